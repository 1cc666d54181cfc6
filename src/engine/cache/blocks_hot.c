// SPDX-License-Identifier: MIT
//
// The tables in which blocks are found, and the links between them. Compiled
// without vector registers: light exits search and link while the client's
// vector state is still in the registers.
#include "base/assert.h"
#include "engine/cache/unit.h"

static CodePtr *const lookup_table = (CodePtr *)LOOKUP_TABLE;
static CodePtr *const return_table = (CodePtr *)RETURN_TABLE;

Block *cache_find(GuestAddr pc, u32 version)
{
    for (u64 i = index_home(pc, version);; i++) {
        const IndexSlot *slot = &block_index.slots[i & block_index.mask];
        if (slot->pc == pc && slot->version == version && slot->block)
            return block_of_number(slot->block);
        if (!slot->block)
            return NULL;
    }
}

Exit *cache_exit(u32 index)
{
    return &exits[index];
}

static void patch(Exit *x, CodePtr target)
{
    i32 distance = (i32)(target - (x->site + 4));
    __atomic_store_n((i32 *)x->site, distance, __ATOMIC_RELEASE);
}

void cache_link(u32 index, Block *to)
{
    Exit *x = &exits[index];
    if (!cache_links || x->to || x->from->retired || to->retired)
        return;
    x->to = to;
    x->prev = 0;
    x->next = to->incoming;
    if (x->next)
        exits[x->next].prev = index;
    to->incoming = index;
    patch(x, to->body);
    cache_stats.links++;
}

static void unlink_exit(u32 index)
{
    Exit *x = &exits[index];
    if (!x->to)
        return;
    patch(x, x->stub);
    if (x->prev)
        exits[x->prev].next = x->next;
    else
        x->to->incoming = x->next;
    if (x->next)
        exits[x->next].prev = x->prev;
    x->to = NULL;
}

bool cache_publish_entry(Block *b, bool returning)
{
    CodePtr entry = returning ? b->return_entry : b->entry;
    CodePtr *table = returning ? return_table : lookup_table;
    if (!entry)
        return false;
    if (cache_links && !b->retired)
        __atomic_store_n(&table[(u16)b->pc], entry, __ATOMIC_RELEASE);
    return true;
}

static void withdraw(CodePtr *table, const Block *b, CodePtr entry, CodePtr miss)
{
    if (entry && table[(u16)b->pc] == entry)
        __atomic_store_n(&table[(u16)b->pc], miss, __ATOMIC_RELEASE);
}

void block_sever(Block *b)
{
    b->incoming = 0;
    for (u32 i = 0; i < b->exit_count; i++) {
        Exit *x = &exits[b->first_exit + i];
        patch(x, x->stub);
        x->to = NULL;
        x->next = x->prev = 0;
    }
}

void block_unlink(Block *b)
{
    while (b->incoming)
        unlink_exit(b->incoming);
    for (u32 i = 0; i < b->exit_count; i++)
        unlink_exit(b->first_exit + i);
    withdraw(lookup_table, b, b->entry, gateway_lookup_miss());
    withdraw(return_table, b, b->return_entry, gateway_return_miss());
}
