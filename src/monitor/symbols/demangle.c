// SPDX-License-Identifier: MIT
//
// libiberty does the demangling; this file decides what it gets to see and what is
// left of its answer. It bounds its own recursion; lengths are bounded here.
#include "monitor/symbols/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "base/wrap_name.h"

#define MANGLED_MAX   (32 * KiB)
#define DEMANGLED_MAX (256 * KiB)
#define RUST_HASH     19 // "::h" and 16 digits

// What optimisers append to the name of the function they cloned or cut, before its number.
static const char *const clone_suffixes[] = {
    "cold", "constprop", "isra", "part", "llvm", "lto_priv", "localalias", "specialized", "warm",
};

// True when text ends in one of the suffixes, perhaps numbered: then that is cut off.
static bool cut_one_suffix(char *text)
{
    size_t end = strlen(text);

    while (end > 0 && (isdigit((u8)text[end - 1]) || text[end - 1] == '.'))
        end--;
    for (size_t i = 0; i < ARRAY_LEN(clone_suffixes); i++) {
        size_t length = strlen(clone_suffixes[i]);
        if (end > length + 1 && text[end - length - 1] == '.' &&
            strncmp(text + end - length, clone_suffixes[i], length) == 0) {
            text[end - length - 1] = '\0';
            return true;
        }
    }
    return false;
}

static void cut_rust_hash(char *text)
{
    size_t length = strlen(text);
    if (length <= RUST_HASH)
        return;
    char *hash = text + length - RUST_HASH;
    if (strncmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
        *hash = '\0';
}

static char *demangle_plain(const char *mangled)
{
    const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO;
    char *name = NULL;

    if (strlen(mangled) > MANGLED_MAX || mangled[0] != '_')
        return NULL;
    if (mangled[1] == 'D')
        name = dlang_demangle(mangled, options);
    else if (mangled[1] == 'Z' || mangled[1] == 'R')
        name = cplus_demangle(mangled, options);
    if (name && strlen(name) > DEMANGLED_MAX) {
        free(name);
        return NULL;
    }
    return name;
}

static char *demangle_unwrapped(const char *mangled)
{
    char *plain = strdup(mangled);
    if (!plain)
        return NULL;
    char *at = strchr(plain, '@');
    const char *version = at ? mangled + (at - plain) : "";
    if (at && at != plain)
        *at = '\0';
    else
        version = "";
    while (cut_one_suffix(plain))
        ;
    char *name = demangle_plain(plain), *whole = NULL;
    if (!name)
        name = plain;
    else
        free(plain);
    cut_rust_hash(name);
    if (!*version)
        return name;
    if (asprintf(&whole, "%s%s", name, version) < 0)
        return name;
    free(name);
    return whole;
}

// The name of a wrapper is shown as that of what it wraps.
static char *copy_without_wrapping(const char *mangled)
{
    char buffer[WRAP_NAME_MAX];
    WrapName name;
    return strdup(wrap_name_decode(mangled, buffer, &name) ? name.function : mangled);
}

char *demangle_name(const char *symbol)
{
    char *mangled = copy_without_wrapping(symbol);
    char *name = mangled ? demangle_unwrapped(mangled) : NULL;
    free(mangled);
    return name;
}
