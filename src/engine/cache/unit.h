// SPDX-License-Identifier: MIT
//
// Units of the code cache; private to cache/.
#ifndef MUNINN_ENGINE_CACHE_UNIT_H
#define MUNINN_ENGINE_CACHE_UNIT_H

#include "engine/cache/cache.h"

#define UNIT_BLOCKS_MAX (1u << 18)
#define UNIT_EXITS_MAX (1u << 19)
#define UNIT_MARKS_MAX (1u << 22)

typedef struct Unit {
    CodePtr start, end;
    CodePtr next;     // code is bumped upward from start
    Block *blocks;    // in order of their code addresses
    u32 block_count;  // stored last, with release order: read without lock (C4)
    u32 exit_count;   // of the unit's slice of exits[]
    u32 mark_count;
    CodeMark *marks;
    u64 retired_at;   // epoch of the last retirement
    bool filled;      // holds blocks that have not been retired
} Unit;

extern Unit units[CACHE_UNITS];
extern u64 cache_epoch;
extern bool cache_links;
extern Exit *exits;

void block_retire(Block *block);
void block_unlink(Block *block);
void block_hash_insert(Block *block);
void block_hash_remove(Block *block);
void pages_init(void);

#endif
