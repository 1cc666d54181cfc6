// SPDX-License-Identifier: MIT
//
// The index from addresses to blocks, and the reader of words.
//
// The tables know the last block that starts at or before an address. Behind the end of a block
// that lies in another one the address may still be in the other: those others are few, and have a
// list of their own.
#include "base/pages.h"
#include "tools/heap/leak_internal.h"

static u64 granule_of(const LeakBlock *block)
{
    return leak_block_start(block) >> GRANULE_SHIFT;
}

static GuestAddr end_of(const LeakBlock *block)
{
    return leak_block_start(block) + leak_block_size(block);
}

static u64 count_granules(const LeakInput *input, bool *ret_overlap)
{
    u64 count = 0, last = ~0ull, end = 0;

    for (u64 i = 0; i < input->block_count; i++) {
        u64 granule = granule_of(&input->blocks[i]);
        count += granule != last;
        last = granule;
        *ret_overlap |= leak_block_start(&input->blocks[i]) < end;
        end = max_u64(end, end_of(&input->blocks[i]));
    }
    return count;
}

// ------------------------------------------------------------------ containers

static const LeakContainer *container_at(const LeakIndex *index, u32 number)
{
    return vec_at(&index->containers, number);
}

static bool find_containers(LeakIndex *index, const LeakInput *input)
{
    u32 open = NO_BLOCK; // the innermost that has not ended

    for (u64 i = 0; i + 1 < input->block_count; i++) {
        GuestAddr start = leak_block_start(&input->blocks[i]);
        while (open != NO_BLOCK &&
               end_of(&input->blocks[container_at(index, open)->block]) <= start)
            open = container_at(index, open)->outer;
        if (leak_block_start(&input->blocks[i + 1]) >= end_of(&input->blocks[i]))
            continue;
        LeakContainer container = {(u32)i, open};
        if (!vec_push(&index->containers, &container))
            return false;
        open = (u32)index->containers.count - 1;
        index->high = max_u64(index->high, end_of(&input->blocks[i]) + 1);
    }
    return true;
}

// From this one outwards.
static u32 first_around(const LeakIndex *index, const LeakBlock *blocks, u32 container,
                        GuestAddr address)
{
    while (container != NO_BLOCK &&
           !leak_block_has(&blocks[container_at(index, container)->block], address))
        container = container_at(index, container)->outer;
    return container;
}

u32 leak_container_at(const LeakIndex *index, const LeakBlock *blocks, GuestAddr address)
{
    u32 low = 0, high = (u32)index->containers.count; // the last that starts at or before

    while (low < high) {
        u32 middle = (low + high) / 2;
        if (leak_block_start(&blocks[container_at(index, middle)->block]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NO_BLOCK : first_around(index, blocks, low - 1, address);
}

u32 leak_container_around(const LeakIndex *index, const LeakBlock *blocks, u32 container,
                          GuestAddr address)
{
    return first_around(index, blocks, container_at(index, container)->outer, address);
}

u32 leak_container_block(const LeakIndex *index, u32 container)
{
    return container_at(index, container)->block;
}

// ------------------------------------------------------------------ tables

// One leaf from blocks [first, end), which start in its granule.
static void fill_leaf(u32 *leaf, const LeakInput *input, u64 first, u64 end)
{
    u64 page = 0;

    for (u64 i = first; i < end; i++) {
        u64 own = (leak_block_start(&input->blocks[i]) >> 12) % GRANULE_PAGES;
        while (page <= own)
            leaf[page++] = (u32)i;
    }
    while (page < LEAF_ENTRIES)
        leaf[page++] = (u32)end;
}

// The granules behind a block's own that it reaches into and where nothing starts.
static void fill_tail(LeakIndex *index, const LeakBlock *block, u32 number, u64 next_granule)
{
    u64 end = leak_block_start(block) + leak_block_size(block);
    u64 last = min_u64((end - 1) >> GRANULE_SHIFT, TOP_ENTRIES - 1);

    for (u64 g = granule_of(block) + 1; g <= last && g < next_granule; g++)
        index->top[g] = number | TOP_IS_BLOCK;
}

static void fill(LeakIndex *index, const LeakInput *input)
{
    u32 leaf = 0;

    for (u64 first = 0, end; first < input->block_count; first = end) {
        u64 granule = granule_of(&input->blocks[first]);
        for (end = first; end < input->block_count; end++) {
            if (granule_of(&input->blocks[end]) != granule)
                break;
        }
        fill_leaf(&index->leaves[(u64)leaf * LEAF_ENTRIES], input, first, end);
        index->top[granule] = ++leaf;
        u64 next = end < input->block_count ? granule_of(&input->blocks[end]) : TOP_ENTRIES;
        const LeakBlock *last = &input->blocks[end - 1];
        if (leak_block_size(last))
            fill_tail(index, last, (u32)(end - 1), next);
        index->high = max_u64(index->high, leak_block_start(last) + leak_block_size(last) + 1);
    }
}

bool leak_index_build(LeakIndex *index, const LeakInput *input)
{
    bool overlap = false;

    *index = (LeakIndex){0};
    vec_init(&index->containers, sizeof(LeakContainer));
    if (input->block_count == 0)
        return true;
    index->leaves_bytes = count_granules(input, &overlap) * LEAF_ENTRIES * sizeof(u32);
    index->leaves = pages_map(index->leaves_bytes);
    index->top = pages_reserve(TOP_ENTRIES * sizeof(u32)); // sparse
    if (!index->leaves || !index->top || !pages_open(index->top, TOP_ENTRIES * sizeof(u32)))
        return false;
    index->low = leak_block_start(&input->blocks[0]);
    fill(index, input);
    bool ok = !overlap || find_containers(index, input);
    index->high = min_u64(index->high, 1ull << 47);
    return ok;
}

void leak_index_free(LeakIndex *index)
{
    if (index->leaves)
        pages_unmap(index->leaves, index->leaves_bytes);
    if (index->top)
        pages_unmap(index->top, TOP_ENTRIES * sizeof(u32));
    if (index->containers.element_bytes)
        vec_free(&index->containers);
}

bool leak_for_each_word(const LeakInput *input, GuestAddr address, GuestAddr high, WordVisit *fn,
                        void *data)
{
    u64 words[PAGE_SIZE / sizeof(u64)];

    address = (address + 7) & ~7ull;
    while (high >= 8 && address <= high - 8) {
        GuestAddr page_end = PAGE_DOWN(address) + PAGE_SIZE;
        u32 count = (u32)((min_u64(page_end, high) - address) / 8);
        if (input->read_words(input->data, address, count, words)) {
            for (u32 i = 0; i < count; i++) {
                if (words[i] && !fn(data, address + i * 8, words[i]))
                    return false;
            }
        }
        if (page_end == 0)
            break;
        address = address + count * 8 < page_end ? high : page_end;
    }
    return true;
}
