// SPDX-License-Identifier: MIT
//
// What every event of the heap runs through: a block, its site, the totals, the recording, and
// nothing that grows with their number. Inline, since there are millions of them a second.
#ifndef MUNINN_MONITOR_HEAP_MODEL_EVENT_H
#define MUNINN_MONITOR_HEAP_MODEL_EVENT_H

#include "monitor/heap/model.h"
#include "recording/add_event.h"

// ------------------------------------------------------------------------ time

static inline void model_set_time(HeapModel *model, const HeapTime *time)
{
    model->now.allocated_bytes = model->allocated_bytes;
    if (time->ns == model->now.ns && time->instructions == model->now.instructions)
        return;
    // A run of temporary blocks is told when it is over, so its beginning may be behind us.
    model->now.ns = max_u64(time->ns, model->now.ns);
    model->now.instructions = max_u64(time->instructions, model->now.instructions);
}

// After an event in a space: a snapshot, if it is time for one.
static inline void model_check(HeapModel *model, Space space)
{
    if (UNLIKELY(model->trigger_count != 0))
        triggers_check(model);
    if (UNLIKELY(model_clock(model, &model->now) >= model->next_check) && model->counts[space])
        snapshots_take(model);
}

// ----------------------------------------------------------------------- sites

// M3.
static inline void site_touch(HeapModel *model, Site *site)
{
    if (LIKELY(site->epoch == model->epoch))
        return;
    for (int kind = 0; kind < PEAK_KINDS; kind++) {
        if (site->epoch < model->peaks[kind].epoch)
            site->saved[kind] = site->live;
    }
    site->epoch = model->epoch;
}

static inline u64 useful_bytes(const HeapModel *model, PeakKind kind)
{
    const u64 *bytes = model->totals.bytes;
    switch (kind) {
    case PEAK_HEAP: return bytes[SPACE_HEAP];
    case PEAK_BOTH: return bytes[SPACE_HEAP] + bytes[SPACE_STACK];
    default: return model->total[kind];
    }
}

// After a total has grown.
static inline void peak_check(HeapModel *model, PeakKind kind)
{
    Peak *peak = &model->peaks[kind];
    u64 total = model->total[kind];
    if (LIKELY(total < peak->bytes))
        return;
    u64 useful = useful_bytes(model, kind);
    if (total == peak->bytes && useful < peak->useful_bytes)
        return;
    *peak = (Peak){
        .bytes = total,
        .useful_bytes = useful,
        .epoch = ++model->epoch,
        .moment = model->now,
        .site_count = model->site_count,
        .requested_bytes = model->requested_bytes,
    };
}

// One block of the heap; site_grow() and site_shrink() are for all spaces.
static inline void heap_grow(HeapModel *model, Site *site, u64 size, u64 usable)
{
    site_touch(model, site);
    site->live.bytes += size;
    site->live.usable += usable;
    site->live.blocks++;
    model->totals.bytes[SPACE_HEAP] += size;
    model->totals.usable[SPACE_HEAP] += usable;
    model->totals.blocks[SPACE_HEAP]++;
    model->total[PEAK_HEAP] += usable + model->admin_bytes;
    model->total[PEAK_ALL] += size;
    peak_check(model, PEAK_HEAP);
    peak_check(model, PEAK_ALL);
    if (UNLIKELY(model->main_peak == PEAK_BOTH)) {
        model->total[PEAK_BOTH] += usable + model->admin_bytes;
        peak_check(model, PEAK_BOTH);
    }
}

static inline void heap_shrink(HeapModel *model, Site *site, u64 size, u64 usable)
{
    site_touch(model, site);
    site->live.bytes -= size;
    site->live.usable -= usable;
    site->live.blocks--;
    model->totals.bytes[SPACE_HEAP] -= size;
    model->totals.usable[SPACE_HEAP] -= usable;
    model->totals.blocks[SPACE_HEAP]--;
    model->total[PEAK_HEAP] -= usable + model->admin_bytes;
    model->total[PEAK_ALL] -= size;
    if (UNLIKELY(model->main_peak == PEAK_BOTH))
        model->total[PEAK_BOTH] -= usable + model->admin_bytes;
}

// Counts of powers of two: 0, 1, 2-3, 4-7 … up to 2^63.
static inline u32 bucket_of(u64 value)
{
    return 63 ^ (u32)__builtin_clzll(value * 2 + 1);
}

static inline void window_add(Window *window, u32 bucket, u64 count)
{
    if (LIKELY(bucket - window->first < window->count))
        window->counts[bucket - window->first] += count;
    else
        window_widen(window, bucket, count);
}

static inline void few_add(u16 *few, u32 few_count, Window *window, u32 bucket)
{
    if (UNLIKELY(bucket >= few_count))
        window_add(window, bucket, 1);
    else if (UNLIKELY(++few[bucket] == 0))
        window_add(window, bucket, 1 << 16);
}

static inline void count_size(Site *site, u64 size)
{
    few_add(site->few_sizes, FEW_SIZES, &site->sizes, bucket_of(size));
}

static inline void count_lifetime(Site *site, u64 lived_ns)
{
    few_add(site->few_lifetimes, FEW_LIFETIMES, &site->lifetimes, bucket_of(lived_ns));
}

// Its clock of bytes is set here. Returns HeapEvent.number of an allocation.
static inline u32 model_record(HeapModel *model, HeapEvent *event)
{
    model->events++;
    if (UNLIKELY(!model->writer))
        return 0;
    if (model->sites[event->site].space == model->clock_space)
        model->requested_bytes += event->size;
    event->time.allocated_bytes = model->requested_bytes;
    model->recorded_ns = max_u64(model->recorded_ns, event->time.ns);
    return writer_add(model->writer, event);
}

// ---------------------------------------------------------------------- blocks

// What one block adds to the clock B, when it comes and when it goes.
static inline u64 clock_bytes(const HeapModel *model, u64 usable)
{
    return usable + model->admin_bytes;
}

static inline void advance_bytes(HeapModel *model, u64 bytes)
{
    if (model->counts[SPACE_HEAP])
        model->allocated_bytes += bytes;
    model->now.allocated_bytes = model->allocated_bytes;
}

static inline void count_allocation(Site *site, u64 size, u64 count)
{
    site->allocations += count;
    site->allocated_bytes += size * count;
    if (count == 1)
        count_size(site, size);
    else
        window_add(&site->sizes, bucket_of(size), count);
}

// A block that has come and gone with nothing between.
static inline void count_temporary(HeapModel *model, Site *site, u64 size, u64 lived_ns)
{
    count_allocation(site, size, 1);
    count_lifetime(site, lived_ns);
    site->frees++;
    site->temporary++;
    model->allocations++;
    model->frees++;
    model->temporary++;
}

// Takes a block out of the table and of everything but the clock.
static inline void end_block(HeapModel *model, LiveBlock *found, u32 thread, u32 flags)
{
    LiveBlock block = *found;

    blocks_remove(&model->blocks, found);
    if (UNLIKELY(block.site == SITE_IGNORED))
        return;
    Site *site = &model->sites[block.site];
    heap_shrink(model, site, block.size, block_usable(&block));
    site->frees++;
    site->temporary += (flags & EVENT_TEMPORARY) != 0;
    u64 lived_ns = model->now.ns > block.born_ns ? model->now.ns - block.born_ns : 0;
    count_lifetime(site, lived_ns);
    model_record(model, &(HeapEvent){
        .kind = EVENT_FREE,
        .flags = flags,
        .site = block.site,
        .thread = thread,
        .time = model->now,
        .address = block_address(&block),
        .size = block.size,
        .usable = block_usable(&block),
        .born_ns = block.born_ns,
        .number = block.number,
    });
}

// The other way round. A block of an ignored site is kept, so that its end is known.
static inline void begin_block(HeapModel *model, const HeapNew *new, u32 number, u32 flags)
{
    LiveBlock *block = blocks_add(&model->blocks, heap_place(new->address, new->size,
                                                             max_u64(new->size, new->usable)));
    if (UNLIKELY(!block)) {
        model->oddities.lost_blocks++;
        return;
    }
    block->size = new->size;
    block->born_ns = new->time.ns;
    block->site = number;
    block->number = 0;
    if (UNLIKELY(number == SITE_IGNORED))
        return;
    Site *site = &model->sites[number];
    heap_grow(model, site, block->size, block_usable(block));
    count_allocation(site, block->size, 1);
    block->number = model_record(model, &(HeapEvent){
        .kind = EVENT_ALLOC,
        .flags = flags,
        .site = number,
        .thread = new->thread,
        .time = model->now,
        .address = new->address,
        .size = block->size,
        .usable = block_usable(block),
    });
}

// What no block can have makes no sense, and is nothing.
static inline bool is_block_address(u64 address)
{
    return address - 1 < (1ull << HEAP_PLACE_BITS) - 1;
}

// The heap's site of a context, which most often is that of the last time.
static inline u32 heap_site(HeapModel *model, u32 id, u32 thread)
{
    if (LIKELY(id < model->contexts.count)) {
        const Context *context = (const Context *)model->contexts.data + id;
        if (LIKELY(context->thread == thread + 1))
            return context->site;
    }
    return site_find(model, SPACE_HEAP, id, thread);
}

static inline void model_alloc(HeapModel *model, const HeapNew *new)
{
    if (UNLIKELY(!is_block_address(new->address)))
        return;
    model_set_time(model, &new->time);
    u32 site = heap_site(model, new->context, new->thread);
    LiveBlock *old = blocks_find(&model->blocks, new->address);
    if (UNLIKELY(old != NULL))
        end_late_block(model, old, new->thread);
    if (LIKELY(site != SITE_IGNORED)) {
        advance_bytes(model, clock_bytes(model, max_u64(new->usable, new->size)));
        model->allocations++;
    }
    begin_block(model, new, site, 0);
    thread_at(model, new->thread)->last_block = new->address;
    model_check(model, SPACE_HEAP);
}

static inline void model_free(HeapModel *model, const HeapTime *time, u32 thread, u64 address)
{
    model_set_time(model, time);
    if (UNLIKELY(map_count(&model->late) != 0) && is_late_free(model, address))
        return;
    LiveBlock *block = blocks_find(&model->blocks, address);
    if (UNLIKELY(!block)) {
        model->oddities.unknown_frees += address != 0;
        return;
    }
    ModelThread *freeing = thread_at(model, thread);
    bool temporary = freeing->last_block == address && block->site != SITE_IGNORED &&
                     model->sites[block->site].thread == thread;
    if (temporary)
        freeing->last_block = 0;
    if (LIKELY(block->site != SITE_IGNORED)) {
        advance_bytes(model, clock_bytes(model, block_usable(block)));
        model->frees++;
        model->temporary += temporary;
    }
    end_block(model, block, thread, temporary ? EVENT_TEMPORARY : 0);
    model_check(model, SPACE_HEAP);
}

// Whether something would be seen of a block that comes and goes: a peak or a snapshot.
static inline bool is_seen(const HeapModel *model, u64 ns, u64 size, u64 usable)
{
    u64 heap = clock_bytes(model, usable);
    Moment then = model->now;

    then.ns = max_u64(then.ns, ns);
    then.allocated_bytes += model->counts[SPACE_HEAP] ? 2 * heap : 0;
    return model->total[PEAK_HEAP] + heap >= model->peaks[PEAK_HEAP].bytes ||
           model->total[PEAK_ALL] + size >= model->peaks[PEAK_ALL].bytes ||
           (model->main_peak == PEAK_BOTH &&
            model->total[PEAK_BOTH] + heap >= model->peaks[PEAK_BOTH].bytes) ||
           model->trigger_count != 0 || model_clock(model, &then) >= model->next_check;
}

// The beginning of a block that nobody meets in the table of blocks.
static inline HeapEvent temporary_event(const HeapNew *new, u32 site, u64 usable)
{
    return (HeapEvent){
        .kind = EVENT_ALLOC,
        .site = site,
        .thread = new->thread,
        .address = new->address,
        .size = new->size,
        .usable = usable,
    };
}

// heap_temporary() of one block.
static inline void model_pair(HeapModel *model, const HeapNew *new, const HeapTime *first,
                              u64 lived_ns)
{
    u64 usable = max_u64(new->usable, new->size);
    u32 number = heap_site(model, new->context, new->thread);

    if (UNLIKELY(number == SITE_IGNORED || !is_block_address(new->address) ||
                 blocks_find(&model->blocks, new->address) != NULL ||
                 is_seen(model, new->time.ns, new->size, usable))) {
        HeapNew copy = *new; // so that the usual one is never in memory
        HeapTime begun = *first;
        heap_temporary(model, &copy, 1, &begun, lived_ns);
        return;
    }
    model_set_time(model, &new->time);
    Site *site = &model->sites[number];
    HeapEvent event = temporary_event(new, number, usable);
    event.time = model->now;
    event.time.ns = max_u64(first->ns, model->recorded_ns);
    event.born_ns = event.time.ns;
    event.number = model_record(model, &event);
    event.kind = EVENT_FREE;
    event.flags = EVENT_TEMPORARY;
    event.time.ns = max_u64(model->now.ns, event.born_ns);
    model_record(model, &event);
    advance_bytes(model, 2 * clock_bytes(model, usable));
    count_temporary(model, site, new->size, lived_ns);
    thread_at(model, new->thread)->last_block = 0;
}

#endif
