// SPDX-License-Identifier: MIT
//
// The search for lost blocks: what to search in, how to say what was found. The search
// itself is tools/heap/leak.h. Private to its folder.
#ifndef MUNINN_TOOLS_MEMCHECK_LEAKS_LEAKS_H
#define MUNINN_TOOLS_MEMCHECK_LEAKS_LEAKS_H

#include "tools/heap/leak.h"
#include "tools/memcheck/memcheck.h"

// ------------------------------------------------------------------ what is searched

// What a root is.
typedef struct LeakRootPlace {
    u32 kind;   // HOLDER_ of the wire
    u32 thread; // of a stack and of thread-local memory: its number
    u32 name;   // of its file, in LeakScene.names
} LeakRootPlace;

// The heap and the roots at one moment. All other threads must be stopped.
typedef struct LeakScene {
    LeakInput input;
    LeakBlockList blocks;
    LeakRange *roots;    // in the order of their kinds
    LeakRootPlace *root_places;
    u64 root_count, root_room;
    u64 coarse_roots;    // HOLDER_MEMORY, at the end
    char *names;         // one behind the other; the first is empty
    u64 name_bytes, name_room;
    u64 *words;          // of registers
    u32 *word_places;    // thread number << 4 | register, for each
    u64 word_count, word_room;
    LeakRange *constants; // mapped from files and not to be written: where virtual tables are
    u64 constant_count, constant_room;
    u32 *keys;           // by context: which other context it is one with
    u64 key_count;
    bool failed;         // no memory
} LeakScene;

// False: no memory. `heuristics` are HEURISTIC_ bits.
bool leaks_scene_open(ToolThread *thread, u32 heuristics, LeakScene *ret_scene);
void leaks_scene_close(LeakScene *scene);

// Whether anybody reads who holds what: it is in the JSON report alone.
bool leaks_wants_holders(void);
// LEAK_HEURISTIC_BIT()s of HEURISTIC_ bits.
u32 leaks_heuristic_bits(u32 options);

// Makes room for one more element in an array that is mapped; false: no memory.
bool leaks_grow(LeakScene *scene, void **array, u64 count, u64 *room, u64 element_bytes);
// The scene's roots and constants (roots.c).
void leaks_add_roots(LeakScene *scene);

// ------------------------------------------------------------------ the search

typedef struct LeakWish {
    bool full;        // each record, not the sums alone
    bool by_command;  // from a control client: the hints differ
    bool quiet;       // only count
    u32 show;         // LEAK_ bits of launch/options.h
    u32 errors;       // which kinds count as errors
    u32 heuristics;
    LeakDelta delta;
    u64 limit;        // records to show; 0: all
    bool as_tree;     // into a file (--xtree-leak), instead of being shown
} LeakWish;

// What the last search found, suppressed blocks in a place of their own.
typedef struct LeakTotals {
    LeakAmount kinds[LEAK_KIND_COUNT];
    LeakAmount suppressed;
    LeakAmount by_heuristic[LEAK_HEURISTIC_COUNT];
} LeakTotals;
extern LeakTotals leaks_totals, leaks_totals_before;

void leaks_default_wish(LeakWish *ret_wish);
// Searches and tells. The others are stopped meanwhile.
void leaks_check(ToolThread *thread, const LeakWish *wish);
// Kinds of the options, by kind of the search.
u32 leaks_option_bit(LeakKind kind);

// For commands: the last search. NULL: there is none.
typedef struct LeakLast {
    LeakScene scene;
    LeakCheck *check;
    u64 frees;     // of the heap when it was made
    bool is_stale; // a block was freed since
} LeakLast;
LeakLast *leaks_last(void);
// "112 (16 direct, 96 indirect) bytes in 1 blocks are definitely lost in loss record 7 of 7".
size_t leaks_record_text(const LeakRecord *record, u64 number, u64 count, char *buffer,
                         size_t size);

// ------------------------------------------------------------------ words (summary.c)

// A number with commas; returns the place behind it.
char *leaks_put_number(char *at, char *end, u64 value);
// A line to whoever has asked: in the report, or to a control client.
void leaks_say(ToolThread *thread, const char *text);
void summary_leaks(ToolThread *thread, const LeakWish *wish);
void summary_finish(void); // Tool.finish
void summary_exiting(ToolThread *thread); // Tool.exiting

#endif
