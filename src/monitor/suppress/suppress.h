// SPDX-License-Identifier: MIT
//
// Suppressions: the files in which people say which findings they know of
// already. Reads the incumbent's grammar, matches, counts, and writes entries.
#ifndef MUNINN_MONITOR_SUPPRESS_SUPPRESS_H
#define MUNINN_MONITOR_SUPPRESS_SUPPRESS_H

#include <stdio.h>

#include "base/types.h"
#include "monitor/symbols/symbols.h"

typedef struct SuppressSet SuppressSet;

// A finding in the eyes of a suppression.
typedef struct SuppressQuery {
    const char *tool;      // "Memcheck", "CoreError", …
    const char *kind;      // "Addr4", "Cond", "Param", "Leak", …
    const char *extra;     // of Param: "write(buf)"; else NULL
    const char *leak_kind; // of Leak: definite, indirect, possible, reachable; else NULL
    const Frame *frames;
    size_t count;
} SuppressQuery;

// One entry, for the lists of used and unused ones.
typedef struct Suppression {
    const char *name;
    const char *file;
    u32 line;
    u64 used;              // findings it suppressed, repetitions included
    u64 leaked_bytes, leaked_blocks; // of the leaks it suppressed
} Suppression;

SuppressSet *suppress_new(void);
void suppress_free(SuppressSet *set);

// Reads a file's text. False, with "file:line: what was expected" in *ret_error
// (valid until suppress_free), if any of it is not a suppression.
bool suppress_parse(SuppressSet *set, const char *file, const char *text, size_t size,
                    const char **ret_error);
bool suppress_load(SuppressSet *set, const char *path, const char **ret_error);

// The first entry that matches, or NULL. The caller counts in `used`.
Suppression *suppress_match(SuppressSet *set, const SuppressQuery *query);

size_t suppress_count(const SuppressSet *set);
const Suppression *suppress_at(const SuppressSet *set, size_t index);

// Writes an entry that matches the query, and will after a rebuild.
void suppress_generate(const SuppressQuery *query, FILE *out);

#endif
