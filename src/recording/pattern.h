// SPDX-License-Identifier: MIT
//
// A name as a person describes it: a shell pattern, or a /regular expression/; with a ! before
// it, what does not match. Names come from files and may be anything; a match takes time in
// proportion to pattern and name, or what regexec() takes.
#ifndef MUNINN_RECORDING_PATTERN_H
#define MUNINN_RECORDING_PATTERN_H

#include <regex.h>

#include "base/types.h"

typedef struct Pattern {
    bool is_set;     // false: everything matches
    bool is_negated; // the caller's to apply: "none matches" is said of a whole stack
    bool is_regex;
    char *glob;
    regex_t regex;
} Pattern;

// NULL is a pattern that is not set. False: *ret_error (to be freed) says why.
bool pattern_compile(const char *text, Pattern *ret_pattern, char **ret_error);
// Whether the text itself matches, whatever is_negated says. NULL never does.
bool pattern_matches(const Pattern *pattern, const char *text);
void pattern_free(Pattern *pattern);

#endif
