// SPDX-License-Identifier: MIT
//
// Suppressions: the files in which people say which findings they know of
// already. Reads the incumbent's grammar, matches, counts, and writes entries.
//
// Glossary
//   entry     one suppression: a name, tools, a kind, and locations
//   location  one line of an entry that a frame must match (fun:, obj:, src:), or "..."
//   form      one of the names by which a function may be called in a pattern
//
// What must stay true
//   U1  Whatever file the incumbent accepts is accepted, and an entry matches at least what
//       its manual says. docs/user/suppressions.md lists where it matches more.
//   U2  Files and names are hostile. A bad file is refused with its line, as a
//       whole: the set is as it was. Matching is never exponential.
//   U3  A Suppression stays where it is until suppress_free().
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
    const char *extra;     // of Param: "write(buf)"; of FishyValue: "malloc(size)"; else NULL
    const char *leak_kind; // of Leak: definite, indirect, possible, reachable; else NULL
    const Frame *frames;
    size_t count;
} SuppressQuery;

// One entry, for the lists of used and unused ones.
typedef struct Suppression {
    const char *name;
    const char *file;
    u32 line;              // of its name, as the incumbent counts
    u64 used;              // findings it suppressed, repetitions included
    u64 leaked_bytes, leaked_blocks; // of the leaks it suppressed
} Suppression;

SuppressSet *suppress_new(void);
void suppress_free(SuppressSet *set);

// Reads a file's text. False, with "file:line: expected what, found what" in *ret_error
// (valid until suppress_free), if any of it is not a suppression.
bool suppress_parse(SuppressSet *set, const char *file, const char *text, size_t size,
                    const char **ret_error);
// The same from a file, which may be a pipe.
bool suppress_load(SuppressSet *set, const char *path, const char **ret_error);

// The first entry that matches, in the order of reading, or NULL. The caller counts
// in `used`.
Suppression *suppress_match(SuppressSet *set, const SuppressQuery *query);

size_t suppress_count(const SuppressSet *set);
const Suppression *suppress_at(const SuppressSet *set, size_t index);
// Its counts are zero again.
void suppress_reset(SuppressSet *set, size_t index);

// Writes an entry that matches the query, and will after a rebuild.
void suppress_generate(const SuppressQuery *query, FILE *out);

// The lists of used and unused entries, as the writers of reports need them.
typedef enum SuppressList {
    SUPPRESS_LIST_USED,   // "used_suppression:      2 name file:line …", most used first
    SUPPRESS_LIST_UNUSED, // "unused_suppression: name file:line", in the order of reading
    SUPPRESS_LIST_XML,    // the <suppcounts> element: used ones
    SUPPRESS_LIST_JSON,   // an array of objects: all of them
} SuppressList;

// `prefix` starts each line of the two texts ("--1234-- ").
void suppress_write_list(const SuppressSet *set, SuppressList list, const char *prefix, FILE *out);

#endif
