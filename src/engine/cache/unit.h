// SPDX-License-Identifier: MIT
//
// Units of the code cache; private to cache/.
#ifndef MUNINN_ENGINE_CACHE_UNIT_H
#define MUNINN_ENGINE_CACHE_UNIT_H

#include "engine/cache/cache.h"

// The sizes of the tables of a unit of UNIT_FULL_BYTES or more. The tables of a smaller unit are
// smaller in proportion, but have at least 1 / UNIT_TABLES_LEAST of these sizes.
#define UNIT_BLOCKS_MAX (1u << 18)
#define UNIT_EXITS_MAX (1u << 19)
#define UNIT_MARK_BYTES_MAX (1u << 24)
#define UNIT_FULL_BYTES (24 * MiB)
#define UNIT_TABLES_LEAST 64

typedef struct Unit {
    CodePtr start, end;
    CodePtr next;     // code is bumped upward from start
    CodePtr cold;     // exit stubs and the like are bumped downward from end
    Block *blocks;    // in order of their code addresses
    u32 block_count;  // stored last, with release order: read without lock (C4)
    u32 exit_count;   // of the unit's slice of exits[]
    u32 mark_bytes;
    u8 *marks;        // packed, see marks_hot.c
    u64 retired_at;   // epoch of the last retirement
    bool filled;      // holds blocks that have not been retired
} Unit;

extern Unit units[CACHE_UNITS];
extern u32 unit_blocks_max, unit_exits_max, unit_mark_bytes_max; // small units have small tables
extern u64 cache_epoch;
extern bool cache_links;
extern Exit *exits;

// Of the first block that a unit is given: index 0 of the first unit means "none".
static inline u32 unit_first_exit(unsigned unit)
{
    return unit * unit_exits_max + 1;
}

// Blocks by (pc, version): open addressing with linear probing, so that a search
// mostly touches one cache line. Readers hold the engine lock like writers.
typedef struct IndexSlot {
    u32 tag;   // index_tag()
    u32 block; // cache_number(); 0: free
} IndexSlot;

typedef struct BlockIndex {
    IndexSlot *slots;
    u64 mask; // number of slots - 1
    u64 used;
} BlockIndex;

extern BlockIndex block_index;

// A hash of pc and version. Its low bits are where the search begins; the whole of it tells nearly
// all other pairs apart, so that a search seldom reads a block that it does not look for.
static inline u32 index_tag(GuestAddr pc, u32 version)
{
    return (u32)((pc ^ version * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >> 32);
}

static inline u32 block_number(const Block *b)
{
    return b->unit * UNIT_BLOCKS_MAX + (u32)(b - units[b->unit].blocks) + 1;
}

static inline Block *block_of_number(u32 number)
{
    return &units[(number - 1) / UNIT_BLOCKS_MAX].blocks[(number - 1) % UNIT_BLOCKS_MAX];
}

#define MARK_BYTES_MAX 10 // of one packed mark
// Packs the marks into the memory at `to`. Returns the end of what it wrote.
u8 *marks_pack(const CodeMark *marks, size_t count, u8 *to);

// Reserves address space that costs no memory until it is used. If the kernel refuses, the process
// ends.
void *cache_reserve_table(size_t bytes);

void index_init(void);

// Takes the block out of the index and out of its links. The lists of the pages it was made from
// still name it: pages_sweep() must run before the block's memory is used again.
void block_drop(Block *block);
void pages_sweep(void);
void block_unlink(Block *block);
void block_sever(Block *block); // unlinks its exits without reading the lists of links
void block_hash_insert(Block *block);
void block_hash_remove(Block *block);
void pages_init(void);
// Empty the index and the lists of pages without reading what is in them.
void index_clear(void);
void pages_clear(void);
const char *pages_breach(void); // for cache_validate()

#endif
