// SPDX-License-Identifier: MIT
//
// What the values of some options mean once the program runs: the patterns of
// --trace-children-skip, the limits of --snapshot-when and the templates of file names.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/options.h"

// ---------------------------------------------------------------- --trace-children-skip

// Matches all of `text`. When a star fails to match, only the last one is
// widened: an earlier star never has to give back what a later one can take.
static bool pattern_matches(const char *pattern, size_t pattern_len, const char *text)
{
    const char *end = pattern + pattern_len;
    const char *star = NULL, *star_text = NULL;

    while (*text != '\0') {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            star_text = text;
        } else if (pattern < end && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

static bool any_pattern_matches(const char *pattern, const char *text)
{
    while (pattern != NULL && *pattern != '\0') {
        size_t len = strcspn(pattern, ",");

        if (pattern_matches(pattern, len, text))
            return true;
        pattern += len + (pattern[len] == ',');
    }
    return false;
}

bool options_child_is_skipped(const Options *options, const char *path)
{
    return any_pattern_matches(options->trace_children_skip, path);
}

bool options_child_is_skipped_by_arg(const Options *options, char *const *argv)
{
    for (; argv != NULL && *argv != NULL; argv++)
        if (any_pattern_matches(options->trace_children_skip_by_arg, *argv))
            return true;
    return false;
}

// ---------------------------------------------------------------- --snapshot-when

bool options_trigger(const char *text, OptionTrigger *ret_trigger)
{
    static const char *const names[] = {
        [TRIGGER_HEAP] = "heap>",
        [TRIGGER_MAPPED] = "mapped>",
        [TRIGGER_STACKS] = "stacks>",
        [TRIGGER_RSS] = "rss>",
    };
    static const char units[] = "kmgt";

    for (u32 of = 0; of < ARRAY_LEN(names); of++) {
        size_t len = strlen(names[of]);
        char *end;

        if (strncmp(text, names[of], len) != 0 || text[len] < '0' || text[len] > '9')
            continue;
        u64 size = strtoull(text + len, &end, 10);
        const char *unit = *end != '\0' ? strchr(units, *end | 0x20) : NULL;
        u32 shift = unit != NULL ? 10 * (u32)(unit - units + 1) : 0;

        if (end[unit != NULL] != '\0' || size > UINT64_MAX >> shift)
            return false;
        *ret_trigger = (OptionTrigger){of, size << shift};
        return true;
    }
    return false;
}

// ---------------------------------------------------------------- --require-text-symbol

bool options_text_symbol(const char *text, OptionTextSymbol *ret_symbol)
{
    const char *separator = text[0] ? strchr(text + 1, text[0]) : NULL;
    size_t soname = separator ? (size_t)(separator - text - 1) : 0;
    size_t function = separator ? strlen(separator + 1) : 0;

    if (soname == 0 || soname >= sizeof(ret_symbol->soname) || function == 0 ||
        function >= sizeof(ret_symbol->function))
        return false;
    memcpy(ret_symbol->soname, text + 1, soname);
    ret_symbol->soname[soname] = '\0';
    memcpy(ret_symbol->function, separator + 1, function + 1);
    return true;
}

// ---------------------------------------------------------------- templates of file names

// Appends to *at, which never passes `end`. False if there is no room.
static bool append(char **at, const char *end, const char *text, size_t len)
{
    if ((size_t)(end - *at) <= len)
        return false;
    memcpy(*at, text, len);
    *at += len;
    **at = '\0';
    return true;
}

// `text` stands behind "%q". Returns the value of the variable named in braces
// and, in ret_len, how much of the text that was; NULL if it makes no sense.
static const char *expand_variable(const char *text, size_t *ret_len)
{
    char name[256];
    const char *end = text[0] == '{' ? strchr(text, '}') : NULL;

    if (end == NULL || end == text + 1 || (size_t)(end - text) > sizeof(name))
        return NULL;
    size_t len = (size_t)(end - text - 1);
    memcpy(name, text + 1, len);
    name[len] = '\0';
    *ret_len = len + 2;
    return getenv(name);
}

int options_expand_path(const char *template, i32 pid, u32 sequence, char *buffer,
                        size_t buffer_size)
{
    char *at = buffer;
    const char *end = buffer + buffer_size;

    while (*template != '\0') {
        char number[16];
        const char *text = number;
        size_t taken = strcspn(template, "%");

        if (taken != 0) {
            if (!append(&at, end, template, taken))
                return -ENAMETOOLONG;
            template += taken;
            continue;
        }
        taken = 2;
        if (template[1] == 'p') {
            snprintf(number, sizeof(number), "%d", pid);
        } else if (template[1] == 'n') {
            snprintf(number, sizeof(number), "%u", sequence);
        } else if (template[1] == '%') {
            text = "%";
        } else if (template[1] == 'q') {
            text = expand_variable(template + 2, &taken);
            taken += 2;
        } else {
            text = NULL;
        }
        if (text == NULL)
            return -EINVAL;
        if (!append(&at, end, text, strlen(text)))
            return -ENAMETOOLONG;
        template += taken;
    }
    return at == buffer ? -EINVAL : 0;
}
