// SPDX-License-Identifier: MIT
//
// The tables in which blocks are found, and the links between them. Compiled
// without vector registers: light exits search and link while the client's
// vector state is still in the registers.
#include "base/assert.h"
#include "engine/cache/unit.h"

static CodePtr *const lookup_table = (CodePtr *)LOOKUP_TABLE;
static CodePtr *const return_table = (CodePtr *)RETURN_TABLE;
static u64 *const second_table = (u64 *)SECOND_TABLE;
static CodePtr *const version_table = (CodePtr *)VERSION_TABLE;

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

void cache_expect(GuestAddr pc, u32 version)
{
    __builtin_prefetch(&block_index.slots[index_home(pc, version) & block_index.mask]);
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

static CodePtr *version_slot(const Block *b)
{
    return &version_table[version_sum(b->pc, b->state, b->version) >> (64 - VERSION_BITS)];
}

static bool has_second_word(const Block *b)
{
    return b->version == 0 && b->pc >> 47 == 0;
}

// For the gateways, which take what they find there for the clean block at that pc.
static void publish_second(const Block *b)
{
    if (has_second_word(b))
        __atomic_store_n(&second_table[second_index(b->pc)], second_word(b->pc, b->body),
                         __ATOMIC_RELEASE);
}

static void withdraw_second(const Block *b)
{
    u64 *slot = &second_table[second_index(b->pc)];
    if (has_second_word(b) && *slot == second_word(b->pc, b->body))
        __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

bool cache_publish_entry(Block *b, EntryKind kind)
{
    CodePtr entry, *slot;
    switch (kind) {
    case ENTRY_LOOKUP:
        entry = b->entry;
        slot = &lookup_table[(u16)b->pc];
        break;
    case ENTRY_RETURN:
        entry = b->return_entry;
        slot = &return_table[(u16)b->pc];
        break;
    case ENTRY_VERSION:
        entry = b->version_entry;
        slot = version_slot(b);
        break;
    default: return false;
    }
    if (!entry)
        return false;
    if (cache_links && !b->retired) {
        __atomic_store_n(slot, entry, __ATOMIC_RELEASE);
        publish_second(b);
    }
    return true;
}

static void withdraw(CodePtr *slot, CodePtr entry, CodePtr miss)
{
    if (entry && *slot == entry)
        __atomic_store_n(slot, miss, __ATOMIC_RELEASE);
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
    withdraw(&lookup_table[(u16)b->pc], b->entry, gateway_lookup_miss());
    withdraw(&return_table[(u16)b->pc], b->return_entry, gateway_return_miss());
    withdraw_second(b);
    withdraw(version_slot(b), b->version_entry, gateway_version_miss());
}
