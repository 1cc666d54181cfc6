// SPDX-License-Identifier: MIT
//
// The blocks that are live: from their address to who allocated them, how large they
// are and since when. The one table that every event looks into, so it is flat and
// open: 32 bytes a block, at most 7/8 full, grown by 3/8, hence 37 to 50 bytes a block. While
// it is smaller than 16 MiB it is at most half full.
#ifndef MUNINN_MONITOR_HEAP_BLOCKS_H
#define MUNINN_MONITOR_HEAP_BLOCKS_H

#include "wire/heap_events.h"

typedef struct LiveBlock {
    u64 place;   // address and what the allocator added, as on the wire; 0: the slot is empty
    u64 size;    // asked for
    u64 born_ns;
    u32 site;
    u32 number;  // HeapEvent.number of its allocation
} LiveBlock;

_Static_assert(sizeof(LiveBlock) == 32, "two share a cache line, none straddles one");

typedef struct BlockTable {
    LiveBlock *slots;
    u64 slot_count; // any number: the hash is scaled to it
    u64 count, limit; // blocks; at `limit` the table grows
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
static inline u64 blocks_home(const BlockTable *table, u64 address)
{
    // Addresses differ in their middle bits: the multiplication carries those to the top.
    u64 hash = (address >> 3) * 0x9e3779b97f4a7c15ull;
    return (u64)(((unsigned __int128)hash * table->slot_count) >> 64);
}

// NULL: there is none. Good until the table is changed.
static inline LiveBlock *blocks_find(const BlockTable *table, u64 address)
{
    if (table->slot_count == 0 || address == 0)
        return NULL;
    for (u64 at = blocks_home(table, address);;) {
        LiveBlock *slot = &table->slots[at];
        if (block_address(slot) == address)
            return slot;
        if (slot->place == 0)
            return NULL;
        at = at + 1 < table->slot_count ? at + 1 : 0;
    }
}

// Not __builtin_prefetch(): gcc 12 finds that a function which does nothing else does nothing.
static inline void blocks_prefetch(const BlockTable *table, u64 address)
{
    const LiveBlock *slot = table->slots + blocks_home(table, address);
    __asm__ volatile("prefetcht0 (%0)" : : "r"(slot));
}

// The address must not be 0 and not be there. NULL: the kernel has no memory.
bool blocks_grow(BlockTable *table);
static inline LiveBlock *blocks_add(BlockTable *table, const LiveBlock *block)
{
    if (UNLIKELY(table->count >= table->limit) && !blocks_grow(table))
        return NULL;
    u64 at = blocks_home(table, block_address(block));
    while (table->slots[at].place != 0)
        at = at + 1 < table->slot_count ? at + 1 : 0;
    table->slots[at] = *block;
    table->count++;
    return &table->slots[at];
}
// `block` is what blocks_find() gave.
void blocks_remove(BlockTable *table, LiveBlock *block);
void blocks_free(BlockTable *table);

#endif
