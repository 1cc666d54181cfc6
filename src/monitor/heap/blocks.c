// SPDX-License-Identifier: MIT
//
// Linear probing. A block that goes leaves no tombstone: those behind it move up, so
// that a table which a long run keeps at the same size stays as fast as a new one.
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "monitor/heap/blocks.h"

// Where tables are small, probes count and memory does not: at most a quarter full, then half.
enum { FIRST_BITS = 12, SMALL_BITS = 18, FIRST_BLOCKS = 1 << 10, LARGE_BYTES = 2 << 20 };

// What is read at random: with small pages much of the time would go into the walks of
// page tables, in a virtual machine most of it.
static void want_large_pages(void *pages, u64 size)
{
    if (pages && size >= LARGE_BYTES)
        madvise(pages, size, MADV_HUGEPAGE);
}

static bool grow_pool(BlockTable *table)
{
    // What has not been touched is not there.
    u32 capacity = table->capacity ? table->capacity / 2 * 3 : FIRST_BLOCKS;
    u64 old_size = table->capacity * sizeof(LiveBlock), size = capacity * sizeof(LiveBlock);
    if (capacity <= table->capacity)
        return false;
    LiveBlock *pool = table->pool ? pages_resize(table->pool, old_size, size) : pages_map(size);
    if (!pool)
        return false;
    want_large_pages(pool, size);
    table->pool = pool;
    table->capacity = capacity;
    table->used += table->used == 0;
    return true;
}

static u64 slots_size(const BlockTable *table)
{
    return ((u64)table->mask + 1) * sizeof(u32);
}

static u32 slots_limit(const BlockTable *table)
{
    u32 bits = 64 - table->shift;
    return table->mask / (bits <= SMALL_BITS ? 4 : 2);
}

static bool grow_slots(BlockTable *table)
{
    u32 bits = table->slots ? 65 - table->shift : FIRST_BITS;
    BlockTable larger = *table;
    if (bits > 32)
        return false;
    larger.shift = 64 - bits;
    larger.mask = (u32)((1ull << bits) - 1);
    larger.slots = pages_map(slots_size(&larger));
    if (!larger.slots)
        return false;
    want_large_pages(larger.slots, slots_size(&larger));
    for (u32 i = 1; i < table->used; i++) {
        if (table->pool[i].place == 0)
            continue;
        u32 at = blocks_home(&larger, block_address(&table->pool[i]));
        while (larger.slots[at] != 0)
            at = (at + 1) & larger.mask;
        larger.slots[at] = i;
    }
    if (table->slots)
        pages_unmap(table->slots, slots_size(table));
    *table = larger;
    return true;
}

bool blocks_grow(BlockTable *table)
{
    if (table->count + 1 >= table->capacity && !grow_pool(table))
        return false;
    if ((!table->slots || table->count >= slots_limit(table)) && !grow_slots(table))
        return false;
    table->limit = table->capacity - 1;
    if (table->limit > slots_limit(table))
        table->limit = slots_limit(table);
    return true;
}

void blocks_close_gap(BlockTable *table, u32 hole)
{
    for (u32 at = (hole + 1) & table->mask; table->slots[at] != 0; at = (at + 1) & table->mask) {
        u32 home = blocks_home(table, block_address(&table->pool[table->slots[at]]));
        // It may move up unless its home lies behind the hole, on the way to it.
        if (((at - home) & table->mask) < ((at - hole) & table->mask))
            continue;
        table->slots[hole] = table->slots[at];
        table->slots[at] = 0;
        hole = at;
    }
}

void blocks_free(BlockTable *table)
{
    if (table->slots)
        pages_unmap(table->slots, slots_size(table));
    if (table->pool)
        pages_unmap(table->pool, table->capacity * sizeof(LiveBlock));
    *table = (BlockTable){0};
}
