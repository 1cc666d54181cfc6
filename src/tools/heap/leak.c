// SPDX-License-Identifier: MIT
//
// The stages of a leak check in their order, and questions about its result.
#include "tools/heap/leak.h"

#include "base/pages.h"
#include "tools/heap/leak_internal.h"

// An array with an element for each block. Untouched pages of it cost nothing.
static void *per_block(const LeakCheck *check, u64 element_bytes)
{
    u64 bytes = max_u64(1, check->input.block_count) * element_bytes;
    void *array = pages_reserve(bytes);

    if (array && !pages_open(array, bytes)) {
        pages_unmap(array, bytes);
        array = NULL;
    }
    return array;
}

static void free_per_block(const LeakCheck *check, void *array, u64 element_bytes)
{
    if (array)
        pages_unmap(array, max_u64(1, check->input.block_count) * element_bytes);
}

LeakCheck *leak_check(const LeakInput *input, LeakHistory *history)
{
    ASSERT(input->workers > 0 && input->block_count < TOP_IS_BLOCK);
    LeakCheck *check = pages_map(sizeof(LeakCheck));
    if (!check)
        return NULL;
    check->input = *input;
    if (input->wants_holders)
        check->input.workers = 1;
    check->marks = per_block(check, sizeof(u8));
    check->lost = per_block(check, sizeof(LostBlock));
    check->indirect_bytes = per_block(check, sizeof(u64));
    if (input->wants_holders) {
        check->holders = per_block(check, sizeof(u32));
        check->made_of = per_block(check, sizeof(u32));
    }
    if (check->marks)
        leak_prefer_huge_pages(check->marks, input->block_count);
    if (check->lost)
        leak_prefer_huge_pages(check->lost, input->block_count * sizeof(LostBlock));
    if (check->holders && check->made_of) {
        leak_prefer_huge_pages(check->holders, input->block_count * sizeof(u32));
        leak_prefer_huge_pages(check->made_of, input->block_count * sizeof(u32));
    }
    if (check->marks && !input->wants_holders == !(check->holders && check->made_of) &&
        check->lost && check->indirect_bytes &&
        leak_codes_make(&check->codes, input) && leak_index_build(&check->index, input) &&
        leak_mark_from_roots(check) && leak_find_cliques(check) &&
        leak_make_records(check, history) && leak_make_holders(check))
        return check;
    leak_free(check);
    return NULL;
}

void leak_free(LeakCheck *check)
{
    free_per_block(check, check->marks, sizeof(u8));
    leak_holders_free(check);
    leak_codes_free(&check->codes);
    leak_edges_free(check);
    free_per_block(check, check->lost, sizeof(LostBlock));
    free_per_block(check, check->indirect_bytes, sizeof(u64));
    free_per_block(check, check->first_child, sizeof(u32));
    free_per_block(check, check->next_sibling, sizeof(u32));
    leak_index_free(&check->index);
    map_free(&check->keys);
    map_free(&check->records_by_key);
    if (check->records.element_bytes)
        vec_free(&check->records);
    pages_unmap(check, sizeof(LeakCheck));
}

const LeakSummary *leak_summary(const LeakCheck *check)
{
    return &check->summary;
}

u64 leak_record_count(const LeakCheck *check)
{
    return check->records.count;
}

const LeakRecord *leak_record(const LeakCheck *check, u64 index)
{
    return vec_at(&check->records, index);
}

// Children are linked from the highest address down, so that lists ascend. A value is
// the block + 1; 0 ends.
static bool link_children(LeakCheck *check)
{
    if (check->first_child)
        return true;
    u32 *first = per_block(check, sizeof(u32)), *next = per_block(check, sizeof(u32));
    if (!first || !next) {
        free_per_block(check, first, sizeof(u32));
        free_per_block(check, next, sizeof(u32));
        return false;
    }
    for (u64 i = check->input.block_count; i-- > 0;) {
        if (check->marks[i] != MARK_INDIRECT)
            continue;
        next[i] = first[check->lost[i].parent];
        first[check->lost[i].parent] = (u32)i + 1;
    }
    check->first_child = first;
    check->next_sibling = next;
    return true;
}

// Depth first, without recursion: parents lead back up.
static bool list_below(LeakCheck *check, u32 top, LeakListVisit *fn, void *data)
{
    u32 block = top, level = 0;

    for (;;) {
        LeakListed listed = {
            block,
            leak_record_of(check, block),
            level,
            leak_heuristic_of(check, block),
        };
        if (!fn(data, &listed))
            return false;
        if (check->first_child && check->first_child[block]) {
            block = check->first_child[block] - 1;
            level++;
            continue;
        }
        while (level && !check->next_sibling[block]) {
            block = check->lost[block].parent;
            level--;
        }
        if (level == 0)
            return true;
        block = check->next_sibling[block] - 1;
    }
}

void leak_list_blocks(LeakCheck *check, u64 record, LeakListVisit *fn, void *data)
{
    link_children(check); // without memory for it the list is flat
    for (u64 i = 0; i < check->input.block_count; i++) {
        if (leak_record_of(check, i) == record && !list_below(check, (u32)i, fn, data))
            return;
    }
}

typedef struct Search {
    GuestAddr address;
    u64 size;
    LeakPointer pointer;
    LeakPointerVisit *fn;
    void *data;
} Search;

static bool report_pointer(void *data, GuestAddr location, u64 value)
{
    Search *search = data;

    if (value - search->address >= search->size)
        return true;
    search->pointer.location = location;
    search->pointer.value = value;
    return search->fn(search->data, &search->pointer);
}

void leak_who_points_at(const LeakInput *input, GuestAddr address, u64 size_bytes,
                        LeakPointerVisit *fn, void *data)
{
    Search search = {address, max_u64(size_bytes, 1), {0}, fn, data};

    search.pointer.place = LEAK_IN_WORD;
    for (u64 i = 0; i < input->word_count; i++) {
        search.pointer.index = i;
        if (!report_pointer(&search, 0, input->words[i]))
            return;
    }
    search.pointer.place = LEAK_IN_ROOT;
    for (u64 i = 0; i < input->root_count; i++) {
        search.pointer.index = i;
        if (!leak_for_each_word(input, input->roots[i].low, input->roots[i].high, report_pointer,
                                &search))
            return;
    }
    search.pointer.place = LEAK_IN_BLOCK;
    for (u64 i = 0; i < input->block_count; i++) {
        GuestAddr start = leak_block_start(&input->blocks[i]);
        search.pointer.index = i;
        if (!leak_for_each_word(input, start, start + leak_block_size(&input->blocks[i]),
                                report_pointer, &search))
            return;
    }
}
