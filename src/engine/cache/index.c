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

static void put(IndexSlot slot)
{
    u64 i = slot.tag;
    while (block_index.slots[i & block_index.mask].block)
        i++;
    block_index.slots[i & block_index.mask] = slot;
    block_index.used++;
}

// Slots tell where they belong: no block is looked at.
static void grow(void)
{
    BlockIndex old = block_index;
    allocate((old.mask + 1) * 2);
    for (u64 i = 0; i <= old.mask; i++) {
        if (old.slots[i].block)
            put(old.slots[i]);
    }
    pages_unmap(old.slots, (old.mask + 1) * sizeof(IndexSlot));
}

void block_hash_insert(Block *b)
{
    if (block_index.used * 2 > block_index.mask)
        grow();
    put((IndexSlot){index_tag(b->pc, b->version), block_number(b)});
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
