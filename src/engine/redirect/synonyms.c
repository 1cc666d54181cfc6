// SPDX-License-Identifier: MIT
//
// An allocator whose functions have names of its own is told by --alloc-fns: NAME=FUNCTION, or
// PREFIX* for all names that are a known one behind the prefix. options_settle() has seen to it
// that there is nothing else.
#include "engine/redirect/synonyms.h"

#include <string.h>

#include "base/assert.h"
#include "engine/log/log.h"
#include "engine/redirect/redirect_internal.h"
#include "engine/toolapi/toolapi.h"

typedef struct Synonym {
    const char *name;
    u32 length;           // of the name, or of the prefix
    const char *function; // NULL: what stands behind the prefix
} Synonym;

static Synonym synonyms[ALLOC_FNS_MAX];
static u32 synonym_count;
static char text[ALLOC_FNS_BYTES_MAX]; // the options, cut into words
static bool only_libraries;
static char objects[256]; // the pattern of somalloc=

static void add_word(char *word)
{
    char *equals = strchr(word, '='), *star = strchr(word, '*');
    char *end = equals ? equals : star;
    ASSERT(end && synonym_count < ALLOC_FNS_MAX);
    *end = 0;
    synonyms[synonym_count++] = (Synonym){word, (u32)(end - word), equals ? equals + 1 : NULL};
}

// Whether the tool has a row for any object of this name. One that belongs to an allocator is in
// order for a tool that has no use for it, too.
static bool is_function(const char *name)
{
    if (strcmp(name, "malloc_usable_size") == 0)
        return true;
    for (u32 row = 0; row < tool->function_count; row++) {
        if (!tool->functions[row].object && strcmp(tool->functions[row].name, name) == 0)
            return true;
    }
    return false;
}

// A misspelt one would be taken for nothing, and nobody would know.
static void check_functions(void)
{
    for (const Synonym *s = synonyms; s < synonyms + synonym_count; s++) {
        if (s->function && !is_function(s->function))
            log_refuse("--alloc-fns=%s=%s: no function that allocates or frees is called %s",
                       s->name, s->function, s->function);
    }
}

void synonyms_init(const Options *options)
{
    u32 used = 0;
    for (u32 i = 0; i < options->alloc_fns.count; i++) {
        size_t size = strlen(options->alloc_fns.items[i]) + 1;
        ASSERT(size <= sizeof(text) - used);
        char *rest = memcpy(text + used, options->alloc_fns.items[i], size), *word;
        used += (u32)size;
        while ((word = strsep(&rest, ",")))
            add_word(word);
    }
    check_functions();
    const char *sonames = options->soname_synonyms;
    const char *pattern = sonames ? strstr(sonames, "somalloc=") : NULL;
    if (!pattern)
        return;
    pattern += strlen("somalloc=");
    size_t size = min_u64(strcspn(pattern, ","), sizeof(objects) - 1);
    memcpy(objects, pattern, size);
    objects[size] = 0;
    only_libraries = strcmp(objects, "nouserintercepts") == 0;
}

const char *synonyms_find(const char *name)
{
    for (const Synonym *s = synonyms; s < synonyms + synonym_count; s++) {
        if (strncmp(name, s->name, s->length) != 0)
            continue;
        if (!s->function)
            return name + s->length;
        if (name[s->length] == 0)
            return s->function;
    }
    return NULL;
}

bool synonyms_only_libraries(void)
{
    return only_libraries;
}

bool synonyms_names_object(const char *soname)
{
    return objects[0] && !only_libraries && name_matches(objects, soname[0] ? soname : "NONE");
}
