// SPDX-License-Identifier: MIT
//
// What an entry looks like in memory, private to this folder: parse.c makes
// them, match.c finds them. Everything lives in the arena of its set; strings
// point into the copy of the file that the set keeps.
#ifndef MUNINN_MONITOR_SUPPRESS_ENTRY_H
#define MUNINN_MONITOR_SUPPRESS_ENTRY_H

#include "base/arena.h"
#include "base/vec.h"
#include "monitor/suppress/suppress.h"

typedef enum LocationKind {
    LOCATION_ANY_FRAMES, // "...": any number of frames
    LOCATION_FUNCTION,
    LOCATION_OBJECT,
    LOCATION_SOURCE,
} LocationKind;

typedef struct Location {
    const char *pattern;
    u32 size;
    u32 unversioned_size; // of a function "f@@V": the size of "f"; otherwise 0
    u32 line;             // of a source line; 0: any
    LocationKind kind;
    bool is_literal;      // no * or ? in it
} Location;

// Bits of Entry.leak_kinds.
typedef enum LeakKinds {
    LEAK_DEFINITE = 1 << 0,
    LEAK_INDIRECT = 1 << 1,
    LEAK_POSSIBLE = 1 << 2,
    LEAK_REACHABLE = 1 << 3,
    LEAK_ALL = (1 << 4) - 1,
} LeakKinds;

// Texts that an entry cannot do without, as bits of a StackFilter. Most entries are
// ruled out by them, without a look at their locations.
#define ENTRY_NEEDS_MAX 6

typedef struct Entry {
    Suppression shown; // first: a Suppression handed out is its Entry
    const char *tools; // tool_count strings, one after the other
    u32 tool_count;
    u32 order;         // of reading
    const char *kind;
    const char *extra; // of Param and FishyValue, a pattern, or NULL
    u8 leak_kinds;     // LeakKinds; of other kinds LEAK_ALL
    u8 need_count;
    u16 needs[ENTRY_NEEDS_MAX];
    const Location *locations; // no two LOCATION_ANY_FRAMES side by side, none at the end
    u32 location_count;        // 0: nothing that we understand; never matches
} Entry;

// One for each tool of an entry, sorted by key, then by order.
typedef struct IndexSlot {
    u64 key; // index_key(tool, kind)
    Entry *entry;
} IndexSlot;

struct SuppressSet {
    Arena arena;   // files, entries, messages
    Arena scratch; // of one match
    Vec entries;   // Entry *
    Vec index;     // IndexSlot
    size_t indexed_count; // entries that the index covers; all of them, or it is stale
};

// The location that "fun:pattern", or its like, means. The pattern is changed in
// place and must live as long as the location.
Location location_of(LocationKind kind, char *pattern);

// Value0 is Cond, and so on: the one name that a kind goes by here.
const char *kind_canonical(const char *kind);

// "operator new(size)" in the incumbent's words, in which suppressions have it.
const char *fishy_canonical(const char *text);

// Bits of LeakKinds; 0 for a word that is none.
u8 leak_kinds_of(const char *word, size_t size);

// Makes the index cover all entries. False when there is no memory.
bool index_build(SuppressSet *set);
u64 index_key(const char *tool, const char *kind);

#endif
