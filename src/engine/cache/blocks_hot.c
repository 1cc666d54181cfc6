// SPDX-License-Identifier: MIT
//
// The tables in which blocks are found, and the links between them. Compiled
// without vector registers: light exits search and link while the client's
// vector state is still in the registers.
#include "base/assert.h"
#include "engine/cache/unit.h"

#define BUCKETS (1u << 17)
static Block *buckets[BUCKETS];

static CodePtr *const lookup_table = (CodePtr *)LOOKUP_TABLE;

static u32 hash(GuestAddr pc, u64 version)
{
    u64 h = (pc ^ version * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return (u32)(h >> 40) & (BUCKETS - 1);
}

Block *cache_find(GuestAddr pc, u64 version)
{
    Block *b = buckets[hash(pc, version)];
    while (b && (b->pc != pc || b->version != version))
        b = b->hash_next;
    return b;
}

void block_hash_insert(Block *b)
{
    Block **head = &buckets[hash(b->pc, b->version)];
    b->hash_next = *head;
    *head = b;
}

void block_hash_remove(Block *b)
{
    Block **at = &buckets[hash(b->pc, b->version)];
    while (*at != b)
        at = &(*at)->hash_next;
    *at = b->hash_next;
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

void cache_publish_entry(Block *b)
{
    if (cache_links && b->entry && !b->retired)
        __atomic_store_n(&lookup_table[(u16)b->pc], b->entry, __ATOMIC_RELEASE);
}

void block_unlink(Block *b)
{
    while (b->incoming)
        unlink_exit(b->incoming);
    for (u32 i = 0; i < b->exit_count; i++)
        unlink_exit(b->first_exit + i);
    if (b->entry && lookup_table[(u16)b->pc] == b->entry)
        __atomic_store_n(&lookup_table[(u16)b->pc], gateway_lookup_miss(), __ATOMIC_RELEASE);
}
