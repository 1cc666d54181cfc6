// SPDX-License-Identifier: MIT
//
// Which blocks were made from a guest page: what invalidation walks.
//
// A block refers to each page it has bytes from by one PageRef, threaded into
// the list of a hash bucket. Refs come from one table, which grows, and are reused.
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "engine/cache/unit.h"
#include "engine/landings/landings.h"

typedef struct PageRef {
    u32 page;  // low part of the guest page's number: all of it, below 16 TiB
    u32 block; // block_number()
    u32 next;  // 0 ends the list
} PageRef;

#define PAGE_BUCKETS (1u << 16)
#define PAGE_REFS_AT_START (1u << 16)
#define MARK_REACH 256 // bytes: more than an instruction and what may follow it without a mark
static u32 buckets[PAGE_BUCKETS];
static PageRef *refs; // index 0 is not used
static u64 refs_max;
static u32 refs_used = 1;
static u32 free_refs;

void pages_init(void)
{
    refs_max = PAGE_REFS_AT_START;
    refs = cache_reserve_table(sizeof(PageRef) * refs_max);
}

void pages_clear(void)
{
    memset(buckets, 0, sizeof(buckets));
    free_refs = 0;
    refs_used = 1;
}

static u32 bucket_of(u64 page)
{
    return (u32)((page / PAGE_SIZE) * 0x9e3779b1u >> 8) & (PAGE_BUCKETS - 1);
}

// For a page above 16 TiB also if it is that of another such one: that costs a block or two.
static bool is_page_in(const PageRef *ref, u64 start, u64 end)
{
    return (u32)(ref->page - start / PAGE_SIZE) < (end - start + PAGE_SIZE - 1) / PAGE_SIZE;
}

static void grow_refs(void)
{
    u64 size = sizeof(PageRef) * refs_max;

    refs = pages_resize(refs, size, 2 * size);
    ASSERT(refs);
    refs_max *= 2;
}

static void add_ref(Block *block, u64 page)
{
    u32 *head = &buckets[bucket_of(page)];
    u32 number = block_number(block);
    if (*head && refs[*head].block == number && is_page_in(&refs[*head], page, page + 1))
        return;
    u32 ref = free_refs;
    if (ref) {
        free_refs = refs[ref].next;
    } else {
        if (refs_used == refs_max)
            grow_refs();
        ref = refs_used++;
    }
    refs[ref] = (PageRef){(u32)(page / PAGE_SIZE), number, *head};
    *head = ref;
}

void cache_note_source(Block *block, GuestAddr start, GuestAddr end)
{
    for (u64 page = PAGE_DOWN(start); page < end; page += PAGE_SIZE)
        add_ref(block, page);
}

// Removes the refs of retired blocks from a bucket's list.
static void sweep_bucket(u32 bucket)
{
    for (u32 *at = &buckets[bucket]; *at;) {
        u32 ref = *at;
        if (!block_of_number(refs[ref].block)->retired) {
            at = &refs[ref].next;
            continue;
        }
        *at = refs[ref].next;
        refs[ref].next = free_refs;
        free_refs = ref;
    }
}

void pages_sweep(void)
{
    for (u32 i = 0; i < PAGE_BUCKETS; i++)
        sweep_bucket(i);
}

static void drop_one(Block *b)
{
    ASSERT(!b->retired);
    b->retired = true;
    block_hash_remove(b);
    block_unlink(b);
    if (b->landing)
        landing_close(b->landing);
    cache_stats.retired_blocks++;
}

// A block whose landing leads to this one goes with it, and so on.
void block_drop(Block *b)
{
    drop_one(b);
    while (b > units[b->unit].blocks && b[-1].falls && !b[-1].retired)
        drop_one(--b);
}

// The marks name the instructions, hence every page but the one into which the last of a run may
// reach, and those of what a block was made with beside its instructions: there its refs stay until
// its unit is recycled. The list of `kept` is left alone: who walks it sweeps it once at the end.
// Sweeping it for each of its blocks would take the square of their number, and JITs have thousands
// in a page.
static void sweep_pages_of(const Block *b, u32 kept)
{
    u64 swept = 1;

    for (MarkReader r = marks_of(b); marks_next(&r);) {
        GuestAddr pc = b->pc + (u64)(i64)r.mark.guest_delta;
        for (u64 page = PAGE_DOWN(pc); page < pc + MARK_REACH; page += PAGE_SIZE) {
            if (page != swept && bucket_of(page) != kept)
                sweep_bucket(bucket_of(page));
            swept = page;
        }
    }
}

static void invalidate_bucket(u32 bucket, GuestAddr start, GuestAddr end)
{
    bool any = false;

    for (u32 ref = buckets[bucket]; ref; ref = refs[ref].next) {
        Block *b = block_of_number(refs[ref].block);
        if (!is_page_in(&refs[ref], start, end) || b->retired)
            continue;
        cache_stats.invalidations++;
        block_drop(b);
        sweep_pages_of(b, bucket);
        any = true;
    }
    if (any)
        sweep_bucket(bucket);
}

void cache_invalidate(GuestAddr start, GuestAddr end)
{
    start = PAGE_DOWN(start);
    if ((end - start) / PAGE_SIZE >= PAGE_BUCKETS / 4) {
        for (u32 i = 0; i < PAGE_BUCKETS; i++)
            invalidate_bucket(i, start, end);
        return;
    }
    for (u64 page = start; page < end; page += PAGE_SIZE)
        invalidate_bucket(bucket_of(page), page, page + PAGE_SIZE);
}

static bool holds_insn(const Block *b, GuestAddr pc)
{
    for (MarkReader r = marks_of(b); marks_next(&r);) {
        if (r.mark.spilled != MARK_NOWHERE && b->pc + (u64)(i64)r.mark.guest_delta == pc)
            return true;
    }
    return b->pc == pc;
}

// A call that goes where a PLT's entry leads has an exit to that entry before its own, which is the
// last, or that of its landing is.
static bool passes_by(const Block *b, GuestAddr pc)
{
    for (u32 i = b->exit_count; b->landing && i-- > 1;) {
        if (exit_is_call(exit_site(cache_exit(b->first_exit + i))))
            return exit_target(cache_exit(b->first_exit + i - 1)) == pc;
    }
    return false;
}

void cache_invalidate_insn(GuestAddr pc)
{
    u32 bucket = bucket_of(PAGE_DOWN(pc));

    for (u32 ref = buckets[bucket]; ref; ref = refs[ref].next) {
        Block *b = block_of_number(refs[ref].block);
        if (!is_page_in(&refs[ref], PAGE_DOWN(pc), pc + 1) || b->retired ||
            (!holds_insn(b, pc) && !passes_by(b, pc)))
            continue;
        block_drop(b);
        sweep_pages_of(b, bucket);
    }
    sweep_bucket(bucket);
}

static bool is_listed(const Block *b)
{
    for (u32 ref = buckets[bucket_of(PAGE_DOWN(b->pc))]; ref; ref = refs[ref].next) {
        if (refs[ref].block == block_number(b) &&
            is_page_in(&refs[ref], PAGE_DOWN(b->pc), PAGE_DOWN(b->pc) + 1))
            return true;
    }
    return false;
}

// One that could not be finished is retired, and stands behind the last one of its unit.
static bool may_be_listed(u32 number)
{
    u32 unit = (number - 1) / UNIT_BLOCKS_MAX, index = (number - 1) % UNIT_BLOCKS_MAX;
    return unit < CACHE_UNITS &&
           (index < units[unit].block_count ||
            (index == units[unit].block_count && units[unit].blocks[index].retired));
}

// Refs are in the list of their page's bucket or among the free ones, each once. A list that runs
// in a circle is longer than there are refs.
static const char *refs_breach(void)
{
    u64 count = 1;

    for (u32 ref = free_refs; ref && count <= refs_used; ref = refs[ref].next)
        count++;
    for (u32 i = 0; i < PAGE_BUCKETS; i++) {
        for (u32 ref = buckets[i]; ref && count <= refs_used; ref = refs[ref].next) {
            if (!may_be_listed(refs[ref].block))
                return "C1: the list of a page names a block that is no more";
            if (bucket_of((u64)refs[ref].page * PAGE_SIZE) != i)
                return "C1: a page stands in the list of another";
            count++;
        }
    }
    return count == refs_used ? NULL : "C1: a page's entry is in two lists, or in none";
}

const char *pages_breach(void)
{
    for (unsigned i = 0; i < CACHE_UNITS; i++) {
        for (u32 k = 0; k < units[i].block_count; k++) {
            if (!units[i].blocks[k].retired && !is_listed(&units[i].blocks[k]))
                return "C1: writing to the page of a block would not retire the block";
        }
    }
    return refs_breach();
}
