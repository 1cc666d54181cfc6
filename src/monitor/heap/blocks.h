// SPDX-License-Identifier: MIT
//
// The blocks that are live: from their address to who allocated them, how large they
// are and since when. The one table that every event looks into, so it is flat and
// open: 32 bytes a block, at most 7/8 full, grown by 3/8, hence 37 to 50 bytes a block. While
// it is smaller than 16 MiB it is at most half full.
#ifndef MUNINN_MONITOR_HEAP_BLOCKS_H
#define MUNINN_MONITOR_HEAP_BLOCKS_H

#include "base/types.h"

typedef struct LiveBlock {
    u64 address; // 0: the slot is empty
    u64 size;    // asked for
    u64 born_ns;
    u32 site;
    u32 slack;   // what the allocator added, U32_MAX at most
} LiveBlock;

_Static_assert(sizeof(LiveBlock) == 32, "two share a cache line, none straddles one");

typedef struct BlockTable {
    LiveBlock *slots;
    u64 slot_count; // any number: the hash is scaled to it
    u64 count, limit; // blocks; at `limit` the table grows
} BlockTable;

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
        if (slot->address == address)
            return slot;
        if (slot->address == 0)
            return NULL;
        at = at + 1 < table->slot_count ? at + 1 : 0;
    }
}

static inline void blocks_prefetch(const BlockTable *table, u64 address)
{
    __builtin_prefetch(table->slots + blocks_home(table, address), 1);
}

// The address must not be 0 and not be there. False: the kernel has no memory.
bool blocks_add(BlockTable *table, const LiveBlock *block);
// `block` is what blocks_find() gave.
void blocks_remove(BlockTable *table, LiveBlock *block);
void blocks_free(BlockTable *table);

#endif
