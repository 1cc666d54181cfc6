// SPDX-License-Identifier: MIT
//
// The index from addresses to blocks, and the reader of words.
#include "base/pages.h"
#include "tools/heap/leak_internal.h"

static u64 granule_of(const LeakBlock *block)
{
    return leak_block_start(block) >> GRANULE_SHIFT;
}

static u64 count_granules(const LeakInput *input)
{
    u64 count = 0, last = ~0ull;

    for (u64 i = 0; i < input->block_count; i++) {
        u64 granule = granule_of(&input->blocks[i]);
        count += granule != last;
        last = granule;
    }
    return count;
}

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
    *index = (LeakIndex){0};
    if (input->block_count == 0)
        return true;
    index->leaves_bytes = count_granules(input) * LEAF_ENTRIES * sizeof(u32);
    index->leaves = pages_map(index->leaves_bytes);
    index->top = pages_reserve(TOP_ENTRIES * sizeof(u32)); // sparse
    if (!index->leaves || !index->top || !pages_open(index->top, TOP_ENTRIES * sizeof(u32)))
        return false;
    index->low = leak_block_start(&input->blocks[0]);
    fill(index, input);
    index->high = min_u64(index->high, 1ull << 47);
    return true;
}

void leak_index_free(LeakIndex *index)
{
    if (index->leaves)
        pages_unmap(index->leaves, index->leaves_bytes);
    if (index->top)
        pages_unmap(index->top, TOP_ENTRIES * sizeof(u32));
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
