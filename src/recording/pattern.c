// SPDX-License-Identifier: MIT
//
// Shell patterns by backtracking to the last star only, which is enough for them and cannot
// explode as fnmatch() may on names of 10,000 characters.
#include "recording/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pattern_compile(const char *text, Pattern *ret_pattern, char **ret_error)
{
    Pattern pattern = { .is_set = text && *text };

    if (!pattern.is_set) {
        *ret_pattern = pattern;
        return true;
    }
    const char *body = text;
    if (*body == '!') {
        pattern.is_negated = true;
        body++;
    }
    size_t length = strlen(body);
    if (length < 2 || body[0] != '/' || body[length - 1] != '/') {
        pattern.glob = strdup(body);
        *ret_pattern = pattern;
        return pattern.glob != NULL;
    }
    char *regex = strndup(body + 1, length - 2);
    int error = regex ? regcomp(&pattern.regex, regex, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
    free(regex);
    if (error) {
        char reason[160];
        regerror(error, &pattern.regex, reason, sizeof(reason));
        if (asprintf(ret_error, "the pattern %s: %s", text, reason) < 0)
            *ret_error = NULL;
        return false;
    }
    pattern.is_regex = true;
    *ret_pattern = pattern;
    return true;
}

// One character against a [set], which *at points behind the [ of. *at moves behind the ].
// False with *at unchanged: it has no end and is an ordinary [.
static bool set_matches(const char **at, char c, bool *ret_is_set)
{
    const char *p = *at;
    bool negated = *p == '!' || *p == '^', found = false;

    p += negated;
    for (bool first = true; *p && (first || *p != ']'); first = false) {
        u8 low = (u8)*p, high = low;
        if (p[1] == '-' && p[2] && p[2] != ']') {
            high = (u8)p[2];
            p += 2;
        }
        p++;
        found |= (u8)c >= low && (u8)c <= high;
    }
    *ret_is_set = *p == ']';
    if (!*ret_is_set)
        return c == '[';
    *at = p + 1;
    return found != negated;
}

// One character of the text against the pattern at *at, which moves on.
static bool one_matches(const char **at, char c)
{
    char p = *(*at)++;
    bool is_set;

    switch (p) {
    case '?': return true;
    case '[': return set_matches(at, c, &is_set);
    case '\\':
        if (**at)
            p = *(*at)++;
        return p == c;
    default: return p == c;
    }
}

static bool glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *after = NULL;

    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            after = text;
            continue;
        }
        const char *next = glob;
        if (*glob && one_matches(&next, *text)) {
            glob = next;
            text++;
            continue;
        }
        if (!star)
            return false;
        glob = star;
        text = ++after;
    }
    while (*glob == '*')
        glob++;
    return *glob == '\0';
}

bool pattern_matches(const Pattern *pattern, const char *text)
{
    if (!pattern->is_set)
        return true;
    if (!text)
        return false;
    if (pattern->is_regex)
        return regexec(&pattern->regex, text, 0, NULL, 0) == 0;
    return glob_matches(pattern->glob, text);
}

void pattern_free(Pattern *pattern)
{
    free(pattern->glob);
    if (pattern->is_regex)
        regfree(&pattern->regex);
    *pattern = (Pattern){ 0 };
}
