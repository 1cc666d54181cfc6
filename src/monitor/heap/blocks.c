// SPDX-License-Identifier: MIT
//
// Linear probing. A block that goes leaves no tombstone: those behind it move up, so
// that a table which a long run keeps at the same size stays as fast as a new one.
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "monitor/heap/blocks.h"

// Where tables are small, probes count and memory does not: at most half full, an address that is
// not there is known after 2.5 probes; at 7/8 it takes 32.
// From the second size on it has large pages.
enum { FIRST_SLOTS = 1 << 14, SECOND_SLOTS = 1 << 16, SMALL_SLOTS = 1 << 19 };

static LiveBlock *slots_map(u64 slot_count)
{
    LiveBlock *slots = pages_map(slot_count * sizeof(LiveBlock));
    // The table is read at random: with small pages much of the time would go into the walks of
    // page tables, in a virtual machine most of it.
    if (slots && slot_count >= SECOND_SLOTS)
        madvise(slots, slot_count * sizeof(LiveBlock), MADV_HUGEPAGE);
    return slots;
}

bool blocks_grow(BlockTable *table)
{
    u64 slot_count = table->slot_count ? SECOND_SLOTS : FIRST_SLOTS;
    if (table->slot_count >= SECOND_SLOTS)
        slot_count = table->slot_count < SMALL_SLOTS
                         ? table->slot_count * 2
                         : table->slot_count + table->slot_count * 3 / 8;
    BlockTable larger = {
        .slots = slots_map(slot_count),
        .slot_count = slot_count,
        .limit = slot_count < SMALL_SLOTS ? slot_count / 2 : slot_count - slot_count / 8,
    };
    if (!larger.slots)
        return false;
    for (u64 i = 0; i < table->slot_count; i++) {
        if (table->slots[i].place != 0)
            blocks_add(&larger, &table->slots[i]);
    }
    blocks_free(table);
    *table = larger;
    return true;
}

void blocks_remove(BlockTable *table, LiveBlock *block)
{
    u64 hole = (u64)(block - table->slots), n = table->slot_count;

    for (u64 at = hole;;) {
        at = at + 1 < n ? at + 1 : 0;
        if (table->slots[at].place == 0)
            break;
        u64 home = blocks_home(table, block_address(&table->slots[at]));
        // It may move up unless its home lies behind the hole, on the way to it.
        u64 from_home = at >= home ? at - home : at + n - home;
        u64 from_hole = at >= hole ? at - hole : at + n - hole;
        if (from_home < from_hole)
            continue;
        table->slots[hole] = table->slots[at];
        hole = at;
    }
    table->slots[hole].place = 0;
    table->count--;
}

void blocks_free(BlockTable *table)
{
    if (table->slots)
        pages_unmap(table->slots, table->slot_count * sizeof(LiveBlock));
    *table = (BlockTable){0};
}
