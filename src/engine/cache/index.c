// SPDX-License-Identifier: MIT
//
// Changes of the block index; searches are in blocks_hot.c.
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "engine/cache/unit.h"

#define INDEX_SLOTS_AT_START (1u << 12)

BlockIndex block_index;

static void allocate(u64 slots)
{
    block_index.slots = pages_map(slots * sizeof(IndexSlot));
    ASSERT(block_index.slots);
    block_index.mask = slots - 1;
    block_index.used = 0;
}

void index_init(void)
{
    allocate(INDEX_SLOTS_AT_START);
}

void index_clear(void)
{
    memset(block_index.slots, 0, (block_index.mask + 1) * sizeof(IndexSlot));
    block_index.used = 0;
}

static void grow(void)
{
    BlockIndex old = block_index;
    allocate((old.mask + 1) * 2);
    for (u64 i = 0; i <= old.mask; i++) {
        if (old.slots[i].block)
            block_hash_insert(block_of_number(old.slots[i].block));
    }
    pages_unmap(old.slots, (old.mask + 1) * sizeof(IndexSlot));
}

void block_hash_insert(Block *b)
{
    if (block_index.used * 2 > block_index.mask)
        grow();
    u32 tag = index_tag(b->pc, b->version);
    u64 i = tag;
    while (block_index.slots[i & block_index.mask].block)
        i++;
    block_index.slots[i & block_index.mask] = (IndexSlot){tag, block_number(b)};
    block_index.used++;
}

// Backward shift: the slots behind the hole move up unless that would put one
// before its home, so no tombstones are needed.
void block_hash_remove(Block *b)
{
    IndexSlot *slots = block_index.slots;
    u64 mask = block_index.mask;
    u64 hole = index_tag(b->pc, b->version);
    while (slots[hole & mask].block != block_number(b))
        hole++;
    for (u64 i = hole + 1; slots[i & mask].block; i++) {
        u64 home = slots[i & mask].tag;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole & mask] = slots[i & mask];
            hole = i;
        }
    }
    slots[hole & mask].block = 0;
    block_index.used--;
}
