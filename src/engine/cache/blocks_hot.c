// SPDX-License-Identifier: MIT
//
// The tables in which blocks are found, and the links between them. Compiled
// without vector registers: light exits search and link while the client's
// vector state is still in the registers.
#include "base/assert.h"
#include "engine/cache/unit.h"

static CodePtr *const lookup_table = (CodePtr *)LOOKUP_TABLE;
static CodeRef *const return_table = (CodeRef *)RETURN_TABLE;
u32 return_shift;
static u64 *const second_table = (u64 *)SECOND_TABLE;
static CodePtr *const version_table = (CodePtr *)VERSION_TABLE;

Block *cache_find(GuestAddr pc, u32 version)
{
    u32 tag = index_tag(pc, version);
    for (u64 i = tag;; i++) {
        const IndexSlot *slot = &block_index.slots[i & block_index.mask];
        if (!slot->block)
            return NULL;
        if (slot->tag != tag)
            continue;
        Block *block = block_of_number(slot->block);
        if (block->pc == pc && block->version == version)
            return block;
    }
}

void cache_expect(GuestAddr pc, u32 version)
{
    __builtin_prefetch(&block_index.slots[index_tag(pc, version) & block_index.mask]);
}

u32 cache_number(const Block *block)
{
    return block_number(block);
}

Block *cache_numbered(u32 number)
{
    return number ? block_of_number(number) : NULL;
}

Exit *cache_exit(u32 index)
{
    return &exits[index];
}

CodePtr exit_site(const Exit *x)
{
    return code_at(block_of_number(x->from)->code) + x->site;
}

static void patch(Exit *x, CodeRef target)
{
    CodePtr site = exit_site(x);
    i32 distance = (i32)(code_at(target) - (site + 4));
    __atomic_store_n((i32 *)site, distance, __ATOMIC_RELEASE);
}

void cache_link(u32 index, Block *to)
{
    Exit *x = &exits[index];
    if (!cache_links || x->to || block_of_number(x->from)->retired || to->retired)
        return;
    bool is_call = exit_is_call(exit_site(x));
    if (is_call && !to->call_entry)
        return;
    x->to = block_number(to);
    x->prev = 0;
    x->next = to->incoming;
    if (x->next)
        exits[x->next].prev = index;
    to->incoming = index;
    patch(x, is_call ? to->call_entry : to->body);
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
        block_of_number(x->to)->incoming = x->next;
    if (x->next)
        exits[x->next].prev = x->prev;
    x->to = 0;
}

static CodePtr *version_slot(const Block *b)
{
    return &version_table[version_sum(b->pc, b->state, b->version) >> (64 - VERSION_BITS)];
}

static CodeRef *return_slot(const Block *b)
{
    return &return_table[return_index(b->pc)];
}

static bool has_second_word(const Block *b)
{
    return b->version == 0 && b->pc >> 47 == 0;
}

// For the gateways, which take what they find there for the clean block at that pc.
static void publish_second(const Block *b)
{
    if (has_second_word(b))
        __atomic_store_n(&second_table[second_index(b->pc)], second_word(b->pc, code_at(b->body)),
                         __ATOMIC_RELEASE);
}

static void withdraw_second(const Block *b)
{
    u64 *slot = &second_table[second_index(b->pc)];
    if (has_second_word(b) && *slot == second_word(b->pc, code_at(b->body)))
        __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

bool cache_publish_entry(Block *b, EntryKind kind)
{
    CodeRef entry;
    CodePtr *slot = NULL; // of a table of pointers
    switch (kind) {
    case ENTRY_LOOKUP:
        entry = b->entry;
        slot = &lookup_table[(u16)b->pc];
        break;
    case ENTRY_RETURN:
        entry = b->return_entry;
        break;
    case ENTRY_VERSION:
        entry = b->version_entry;
        slot = version_slot(b);
        break;
    case ENTRY_CALL: return b->call_entry != 0;
    default: return false;
    }
    if (!entry)
        return false;
    if (cache_links && !b->retired) {
        if (slot)
            __atomic_store_n(slot, code_at(entry), __ATOMIC_RELEASE);
        else
            __atomic_store_n(return_slot(b), entry, __ATOMIC_RELEASE);
        publish_second(b);
    }
    return true;
}

static void withdraw(CodePtr *slot, CodeRef entry, CodePtr miss)
{
    if (entry && *slot == code_at(entry))
        __atomic_store_n(slot, miss, __ATOMIC_RELEASE);
}

void block_sever(Block *b)
{
    b->incoming = 0;
    for (u32 i = 0; i < b->exit_count; i++) {
        Exit *x = &exits[b->first_exit + i];
        patch(x, x->stub);
        x->to = 0;
        x->next = x->prev = 0;
    }
}

void block_unlink(Block *b)
{
    while (b->incoming)
        unlink_exit(b->incoming);
    for (u32 i = 0; i < b->exit_count; i++)
        unlink_exit(b->first_exit + i);
    withdraw(&lookup_table[(u16)b->pc], b->entry, cache_misses.lookup);
    if (b->return_entry && *return_slot(b) == b->return_entry)
        __atomic_store_n(return_slot(b), code_ref(cache_misses.returns), __ATOMIC_RELEASE);
    withdraw_second(b);
    withdraw(version_slot(b), b->version_entry, cache_misses.version);
}
