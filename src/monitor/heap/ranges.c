// SPDX-License-Identifier: MIT
//
// Pages and stacks. A range of pages is one block of its site; one that is cut in
// two is two. What is left of a range that was cut counts as the same memory: for the
// recording it is one reallocation.
#include <string.h>

#include "monitor/heap/model_event.h"

// The first range that ends behind the address, or the number of ranges.
static size_t range_from(const HeapModel *model, u64 address)
{
    size_t low = 0, high = model->ranges.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (((Range *)vec_at(&model->ranges, middle))->end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool range_insert(HeapModel *model, size_t at, const Range *range)
{
    if (!vec_push(&model->ranges, NULL))
        return false;
    Range *ranges = (Range *)model->ranges.data;
    memmove(&ranges[at + 1], &ranges[at], (model->ranges.count - 1 - at) * sizeof(Range));
    ranges[at] = *range;
    return true;
}

static void range_remove(HeapModel *model, size_t at)
{
    Range *ranges = (Range *)model->ranges.data;
    memmove(&ranges[at], &ranges[at + 1], (model->ranges.count - 1 - at) * sizeof(Range));
    vec_pop(&model->ranges);
}

static void record_range(HeapModel *model, EventKind kind, u32 flags, u32 thread,
                         const Range *range)
{
    model_record(model, &(HeapEvent){
        .kind = kind,
        .flags = flags,
        .site = range->site,
        .thread = thread,
        .time = model->now,
        .address = range->start,
        .size = range->end - range->start,
        .usable = range->end - range->start,
        .born_ns = range->born_ns,
    });
}

// [start, end), which lies in the range, goes. Returns how many ranges are left of it, which begin
// now, as what realloc makes does.
static size_t range_cut(HeapModel *model, size_t at, u64 start, u64 end, u32 thread, u32 flags)
{
    Range old = *(Range *)vec_at(&model->ranges, at), head = old, tail = old;
    bool has_head = old.start < start, has_tail = end < old.end;
    u64 gone = end - start;

    head.end = start;
    tail.start = end;
    head.born_ns = tail.born_ns = model->now.ns;
    site_shrink(model, old.site, gone, gone, !has_head && !has_tail);
    record_range(model, EVENT_FREE, has_head || has_tail ? EVENT_BY_REALLOC : flags, thread, &old);
    if (has_head) {
        *(Range *)vec_at(&model->ranges, at) = head;
        record_range(model, EVENT_ALLOC, EVENT_BY_REALLOC, thread, &head);
    }
    if (has_tail && has_head && !range_insert(model, at + 1, &tail)) {
        site_shrink(model, old.site, tail.end - tail.start, tail.end - tail.start, 0);
        model->oddities.lost_blocks++;
        return 1;
    }
    if (has_tail) {
        *(Range *)vec_at(&model->ranges, at + has_head) = tail;
        record_range(model, EVENT_ALLOC, has_head ? 0 : EVENT_BY_REALLOC, thread, &tail);
    }
    if (has_head && has_tail)
        site_grow(model, old.site, 0, 0, 1);
    if (has_head || has_tail)
        return (size_t)has_head + has_tail;
    model->sites[old.site].frees++;
    window_add(&model->sites[old.site].lifetimes, bucket_of(model->now.ns - old.born_ns), 1);
    range_remove(model, at);
    return 0;
}

static void take_away(HeapModel *model, u64 start, u64 end, u32 thread, u32 flags)
{
    for (size_t at = range_from(model, start); at < model->ranges.count;) {
        const Range *range = vec_at(&model->ranges, at);
        if (range->start >= end)
            break;
        at += range_cut(model, at, max_u64(range->start, start), min_u64(range->end, end), thread,
                        flags);
    }
}

static void put_range(HeapModel *model, const HeapNew *pages, PagesKind kind, u32 flags)
{
    u32 site = site_find_pages(model, kind, pages->context, pages->thread);
    Range range = {
        .start = pages->address,
        .end = pages->address + pages->size,
        .born_ns = pages->time.ns,
        .site = site,
    };
    // With --pages-as-heap=yes, --ignore-fn is about pages.
    if (site == SITE_IGNORED)
        return;
    if (!range_insert(model, range_from(model, range.start), &range)) {
        model->oddities.lost_blocks++;
        return;
    }
    site_grow(model, site, pages->size, pages->size, 1);
    Site *grown = &model->sites[site];
    grown->allocations++;
    grown->allocated_bytes += pages->size;
    grown->reallocations += (flags & EVENT_BY_REALLOC) != 0;
    window_add(&grown->sizes, bucket_of(pages->size), 1);
    record_range(model, EVENT_ALLOC, flags, pages->thread, &range);
}

// With --pages-as-heap=yes pages are what the clock B counts.
static void advance(HeapModel *model, u64 bytes)
{
    if (model->counts[SPACE_MAPPED])
        model->allocated_bytes += bytes;
    model->now.allocated_bytes = model->allocated_bytes;
}

static bool is_range(u64 address, u64 size)
{
    return size != 0 && address + size > address;
}

void heap_map(HeapModel *model, const HeapNew *pages, HeapMapKind kind)
{
    static const PagesKind kinds[HEAP_MAP_KINDS] = {
        [HEAP_MAP_ANONYMOUS] = PAGES_ANONYMOUS, [HEAP_MAP_FILE] = PAGES_FILE,
        [HEAP_MAP_BRK] = PAGES_BRK,             [HEAP_MAP_SHM] = PAGES_SHM,
        [HEAP_MAP_STACK] = PAGES_STACK,         [HEAP_MAP_IMAGE] = PAGES_PROGRAM,
    };
    if (!is_range(pages->address, pages->size))
        return;
    model_set_time(model, &pages->time);
    take_away(model, pages->address, pages->address + pages->size, pages->thread, 0);
    advance(model, pages->size);
    put_range(model, pages, kinds[kind], 0);
    model_check(model, SPACE_MAPPED);
}

void heap_unmap(HeapModel *model, const HeapTime *time, u32 thread, u64 address, u64 size)
{
    if (!is_range(address, size))
        return;
    model_set_time(model, time);
    u64 before = model->totals.bytes[SPACE_MAPPED];
    take_away(model, address, address + size, thread, 0);
    advance(model, before - model->totals.bytes[SPACE_MAPPED]);
    model_check(model, SPACE_MAPPED);
}

void heap_remap(HeapModel *model, const HeapNew *pages, u64 old_address, u64 old_size)
{
    model_set_time(model, &pages->time);
    const Range *old = NULL;
    size_t at = range_from(model, old_address);
    if (at < model->ranges.count)
        old = vec_at(&model->ranges, at);
    PagesKind kind = old && old->start <= old_address ? (PagesKind)model->sites[old->site].pages
                                                      : PAGES_ANONYMOUS;
    if (is_range(old_address, old_size))
        take_away(model, old_address, old_address + old_size, pages->thread, EVENT_BY_REALLOC);
    if (is_range(pages->address, pages->size)) {
        take_away(model, pages->address, pages->address + pages->size, pages->thread, 0);
        put_range(model, pages, kind, EVENT_BY_REALLOC);
    }
    advance(model, pages->size > old_size ? pages->size - old_size : old_size - pages->size);
    model_check(model, SPACE_MAPPED);
}

void ranges_forget_younger(HeapModel *model, u64 ns)
{
    for (size_t i = model->ranges.count; i-- > 0;) {
        const Range *range = vec_at(&model->ranges, i);
        u64 bytes = range->end - range->start;
        if (range->born_ns <= ns)
            continue;
        site_shrink(model, range->site, bytes, bytes, 1);
        range_remove(model, i);
    }
}

void ranges_bring_back(HeapModel *model, u32 site, u64 start, u64 size, u64 born_ns)
{
    Range range = {.start = start, .end = start + size, .born_ns = born_ns, .site = site};

    if (!is_range(start, size))
        return;
    take_away(model, start, range.end, 0, 0);
    if (range_insert(model, range_from(model, start), &range))
        site_grow(model, site, size, size, 1);
    else
        model->oddities.lost_blocks++;
}

// ---------------------------------------------------------------------- stacks

static void record_stack(HeapModel *model, EventKind kind, u32 thread, u32 site, u64 bytes)
{
    // A stack has no address that matters: its thread is what tells it from others.
    model_record(model, &(HeapEvent){
        .kind = kind,
        .flags = EVENT_BY_REALLOC,
        .site = site,
        .thread = thread,
        .time = model->now,
        .address = thread,
        .size = bytes,
        .usable = bytes,
    });
}

static void set_stack(HeapModel *model, u32 number, u32 site, u64 bytes)
{
    ModelThread *thread = thread_at(model, number);

    if (thread->stack_bytes == bytes && (bytes == 0 || thread->stack_site == site))
        return;
    if (thread->stack_bytes) {
        site_shrink(model, thread->stack_site, thread->stack_bytes, thread->stack_bytes, 1);
        record_stack(model, EVENT_FREE, number, thread->stack_site, thread->stack_bytes);
    }
    if (model->counts[SPACE_STACK])
        model->allocated_bytes += bytes > thread->stack_bytes ? bytes - thread->stack_bytes
                                                              : thread->stack_bytes - bytes;
    model->now.allocated_bytes = model->allocated_bytes;
    thread->stack_bytes = bytes;
    thread->stack_site = site;
    if (bytes == 0)
        return;
    site_grow(model, site, bytes, bytes, 1);
    record_stack(model, EVENT_ALLOC, number, site, bytes);
}

void heap_stack(HeapModel *model, const HeapTime *time, u32 number, u32 context, u64 bytes,
                u64 deepest)
{
    model_set_time(model, time);
    u32 site = site_find(model, SPACE_STACK, context, number);
    if (site == SITE_IGNORED || (bytes | deepest) >> HEAP_PLACE_BITS)
        return;
    if (deepest > bytes)
        set_stack(model, number, site, deepest);
    set_stack(model, number, site, bytes);
    model_check(model, SPACE_STACK);
}
