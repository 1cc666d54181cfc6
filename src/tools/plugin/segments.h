// SPDX-License-Identifier: MIT
//
// Segments of blocks, whose increments stand for all that they add: what counters.c reads and
// segments.c makes.
#ifndef MUNINN_TOOLS_PLUGIN_SEGMENTS_H
#define MUNINN_TOOLS_PLUGIN_SEGMENTS_H

#include "tools/plugin/plugin_internal.h"

enum {
    COUNTERS = MUNINN_COUNTERS_MAX,
    FIRST_BUFFER = COUNTERS, // Addition.counter from here on: of a record in a buffer
    WORDS = 1 << 22,
    ADDITIONS_MAX = 1 << 24, // of all segments
    PLACES_MAX = 1 << 24,    // of all instructions of them
    ON_ENTRY = 0xffff, // Addition.insn: of the segment itself, whatever is executed of it
};

typedef struct Addition {
    u32 counter;
    u32 amount;
    u16 insn; // of the block
    u16 unused; // 0: what is hashed has no holes
} Addition;

typedef struct Segment {
    u32 first_addition, addition_count;
    u32 first_place; // of the block's instructions, the addresses of all of them
    u16 first_insn, end_insn;
    u16 bump_at; // the number grows before this instruction
    u8 last_of_block;
    u8 counts; // it adds to counters, not to buffers alone
} Segment;

extern u32 counter_count;
extern u32 word_count; // the words that are in use

// Reservations that never move, since a signal handler reads them; written under the engine lock.
extern Segment *segments; // by word
extern Addition *additions;

// Address space that costs nothing until it is used; NULL: there is none.
void *counters_reserve(u64 bytes);
// Makes room for segments. False: there is none.
bool segments_init(void);

// The table of a thread.
static inline u64 *words_of(const ToolThread *thread)
{
    return (u64 *)thread->engine_gs;
}

#endif
