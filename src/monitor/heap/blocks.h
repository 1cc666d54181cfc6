// SPDX-License-Identifier: MIT
//
// The blocks that are live: from their address to who allocated them, how large they
// are and since when. The one table that every event looks into. The blocks lie side by side in a
// pool, of which the place that was left last is taken first, so that those of a program which
// allocates and frees stay in the cache; the table has their numbers, 4 bytes each, and can
// afford to be sparse: an address is nearly always where it is looked for first. That makes 40 to
// 48 bytes a block, and while the table is smaller than 1 MiB, up to 64.
#ifndef MUNINN_MONITOR_HEAP_BLOCKS_H
#define MUNINN_MONITOR_HEAP_BLOCKS_H

#include "base/prefetch.h"
#include "wire/heap_events.h"

typedef struct LiveBlock {
    u64 place;   // address and what the allocator added, as on the wire; 0: the place is free
    u64 size;    // asked for
    u64 born_ns;
    u32 site;    // of a free place: the next one
    u32 number;  // HeapEvent.number of its allocation
} LiveBlock;

_Static_assert(sizeof(LiveBlock) == 32, "two share a cache line, none straddles one");

typedef struct BlockTable {
    u32 *slots;       // by a hash of the address: a block's number in the pool; 0: empty
    u32 shift;        // of the hash
    u32 mask;         // slots less one
    LiveBlock *pool;  // [0] is nobody's
    u32 used;         // of the pool, places that are free again included
    u32 free;         // the first of those; 0: none
    u32 capacity;     // of the pool
    u32 count, limit; // blocks; at `limit` one of the two grows
} BlockTable;

static inline u64 block_address(const LiveBlock *block)
{
    return heap_place_address(block->place);
}

static inline u64 block_usable(const LiveBlock *block)
{
    return block->size + heap_place_extra(block->place);
}

// Where an address is looked for first.
static inline u32 blocks_home(const BlockTable *table, u64 address)
{
    // Addresses differ in their middle bits: the multiplication carries those to the top. Blocks of
    // the same 256 bytes share a line of slots.
    u64 line = (address >> 8) * 0x9e3779b97f4a7c15ull >> table->shift;
    return (u32)((line & ~15ull) | (address >> 4 & 15));
}

// NULL: there is none. Good until the table is changed. It must have grown once.
static inline LiveBlock *blocks_find_from(const BlockTable *table, u32 home, u64 address)
{
    for (u32 at = home;; at = (at + 1) & table->mask) {
        u32 index = table->slots[at];
        if (index == 0)
            return NULL;
        if (LIKELY(block_address(&table->pool[index]) == address))
            return &table->pool[index];
    }
}

static inline LiveBlock *blocks_find(const BlockTable *table, u64 address)
{
    return blocks_find_from(table, blocks_home(table, address), address);
}

static inline void blocks_prefetch_slot(const BlockTable *table, u32 home)
{
    prefetch_line(table->slots + home);
}

// The block, if the slot is the right one.
static inline void blocks_prefetch(const BlockTable *table, u32 home)
{
    prefetch_line(table->pool + table->slots[home]);
}

static inline LiveBlock *blocks_fill(BlockTable *table, u32 slot, u64 place)
{
    u32 index = table->free;
    if (LIKELY(index != 0)) {
        table->free = table->pool[index].site;
        // The next block is there, and says where the one after it is.
        prefetch_line(table->pool + table->free);
    } else {
        index = table->used++;
    }
    table->slots[slot] = index;
    table->count++;
    table->pool[index].place = place;
    return &table->pool[index];
}

// Room for a block that is to come. False: the kernel has no memory.
bool blocks_grow(BlockTable *table);
// A block for this address, which must not be 0 and not be there; the rest of it is to be filled
// in. NULL: the kernel has no memory.
static inline LiveBlock *blocks_add(BlockTable *table, u64 place)
{
    if (UNLIKELY(table->count >= table->limit) && !blocks_grow(table))
        return NULL;
    u32 at = blocks_home(table, heap_place_address(place));
    while (UNLIKELY(table->slots[at] != 0))
        at = (at + 1) & table->mask;
    return blocks_fill(table, at, place);
}

// The same if it is not there and there is room, else NULL.
static inline LiveBlock *blocks_add_new(BlockTable *table, u32 home, u64 place)
{
    if (UNLIKELY(table->count >= table->limit))
        return NULL;
    u32 at = home;
    for (; UNLIKELY(table->slots[at] != 0); at = (at + 1) & table->mask) {
        if (block_address(&table->pool[table->slots[at]]) == heap_place_address(place))
            return NULL;
    }
    return blocks_fill(table, at, place);
}

// What lies behind an empty slot moves up.
void blocks_close_gap(BlockTable *table, u32 hole);
// `block` is what blocks_find() gave.
static inline void blocks_remove_from(BlockTable *table, u32 home, LiveBlock *block)
{
    u32 index = (u32)(block - table->pool), at = home;
    while (UNLIKELY(table->slots[at] != index))
        at = (at + 1) & table->mask;
    table->slots[at] = 0;
    if (UNLIKELY(table->slots[(at + 1) & table->mask] != 0))
        blocks_close_gap(table, at);
    block->place = 0;
    block->site = table->free;
    table->free = index;
    table->count--;
}
static inline void blocks_remove(BlockTable *table, LiveBlock *block)
{
    blocks_remove_from(table, blocks_home(table, block_address(block)), block);
}
void blocks_free(BlockTable *table);

#endif
