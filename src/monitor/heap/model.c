// SPDX-License-Identifier: MIT
//
// What an event of the heap changes. Everything here is in the path of every event:
// a block, its site, the totals, and nothing that grows with their number.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/heap/model_event.h"

// ------------------------------------------------------------------------ time

Moment model_moment(const HeapModel *model)
{
    struct timespec now;
    Moment moment = model->now;

    if (!model->config.shared)
        return moment;
    if (model->ended_ns) {
        moment.ns = max_u64(moment.ns, model->ended_ns);
        return moment;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    u64 ns = (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
    u64 start_ns = model->config.shared->header.start_ns;
    moment.ns = max_u64(moment.ns, ns > start_ns ? ns - start_ns : 0);
    return moment;
}

// ----------------------------------------------------------------------- sites

// The peaks that a space has a part in, beside that of all: its own and perhaps massif.out's total.
static const PeakKind own[SPACE_COUNT] = {PEAK_HEAP, PEAK_MAPPED, PEAK_STACK};

// `more` is what the allocator added, and what massif.out adds for its administration.
static void grow_totals(HeapModel *model, Space space, u64 size, u64 more)
{
    model->total[own[space]] += size + more;
    model->total[PEAK_ALL] += size;
    if (model->main_peak == PEAK_BOTH && model->counts[space])
        model->total[PEAK_BOTH] += size + more;
}

static void check_peaks(HeapModel *model, Space space)
{
    peak_check(model, own[space]);
    peak_check(model, PEAK_ALL);
    if (model->main_peak == PEAK_BOTH && model->counts[space])
        peak_check(model, PEAK_BOTH);
}

static u64 added_bytes(const HeapModel *model, Space space, u64 size, u64 usable, u64 blocks)
{
    return space == SPACE_HEAP ? usable - size + blocks * model->admin_bytes : 0;
}

void site_grow(HeapModel *model, u32 number, u64 size, u64 usable, u64 blocks)
{
    Site *site = &model->sites[number];
    Space space = site->space;

    site_touch(model, site);
    site->live.bytes += size;
    site->live.usable += usable;
    site->live.blocks += blocks;
    model->totals.bytes[space] += size;
    model->totals.usable[space] += usable;
    model->totals.blocks[space] += blocks;
    grow_totals(model, space, size, added_bytes(model, space, size, usable, blocks));
    check_peaks(model, space);
}

void site_shrink(HeapModel *model, u32 number, u64 size, u64 usable, u64 blocks)
{
    Site *site = &model->sites[number];
    Space space = site->space;

    site_touch(model, site);
    site->live.bytes -= size;
    site->live.usable -= usable;
    site->live.blocks -= blocks;
    model->totals.bytes[space] -= size;
    model->totals.usable[space] -= usable;
    model->totals.blocks[space] -= blocks;
    grow_totals(model, space, 0 - size, 0 - added_bytes(model, space, size, usable, blocks));
}

// Wider than it was.
void window_widen(Window *window, u32 bucket, u64 count)
{
    u32 first = window->first, end = first + window->count;

    if (window->count == 0)
        first = end = bucket;
    u32 new_first = bucket < first ? bucket : first;
    u32 new_end = bucket >= end ? bucket + 1 : end;
    u64 *counts = calloc(new_end - new_first, sizeof(*counts));
    if (!counts)
        return; // a histogram that lacks something is better than no run
    if (window->count)
        memcpy(counts + (first - new_first), window->counts, window->count * sizeof(*counts));
    counts[bucket - new_first] = count;
    free(window->counts);
    *window = (Window){counts, (u8)new_first, (u8)(new_end - new_first)};
}

// ---------------------------------------------------------------------- blocks

enum { LATE_MAX = 1 << 16 };

// H4: the free of what was here comes later.
void end_late_block(HeapModel *model, LiveBlock *found, u32 thread)
{
    if (map_count(&model->late) >= LATE_MAX)
        map_free(&model->late); // none of those will come any more
    map_put(&model->late, block_address(found), model->now.ns);
    model->oddities.late_frees++;
    end_block(model, found, thread, 0);
}

bool is_late_free(HeapModel *model, u64 address)
{
    u64 ns;

    if (!map_get(&model->late, address, &ns))
        return false;
    map_remove(&model->late, address);
    return model->now.ns - ns <= HEAP_LATE_NS;
}

void heap_alloc(HeapModel *model, const HeapNew *new)
{
    model_alloc(model, new);
}

void heap_free(HeapModel *model, const HeapTime *time, u32 thread, u64 address)
{
    model_free(model, time, thread, address);
}

void heap_realloc(HeapModel *model, const HeapNew *new, u64 old_address)
{
    model_set_time(model, &new->time);
    bool is_late = map_count(&model->late) && is_late_free(model, old_address);
    LiveBlock *old = is_late ? NULL : blocks_find(&model->blocks, old_address);
    if (!old || !is_block_address(new->address)) {
        heap_alloc(model, new);
        return;
    }
    u64 before = block_usable(old), after = max_u64(new->usable, new->size);
    // A block that is ignored stays so, whoever makes it larger.
    u32 site = old->site == SITE_IGNORED
                   ? SITE_IGNORED
                   : heap_site(model, new->context, new->thread);
    if (site != SITE_IGNORED)
        advance_bytes(model, after > before ? after - before : before - after);
    end_block(model, old, new->thread, EVENT_BY_REALLOC);
    LiveBlock *other = blocks_find(&model->blocks, new->address);
    if (UNLIKELY(other != NULL))
        end_late_block(model, other, new->thread);
    begin_block(model, new, site, EVENT_BY_REALLOC);
    if (site != SITE_IGNORED) {
        model->sites[site].reallocations++;
        model->reallocations++;
    }
    thread_at(model, new->thread)->last_block = new->address;
    model_check(model, SPACE_HEAP);
}

#define RUN_MAX (1ull << 36)

// The recording has every one of them, evenly spread from where it is to `to_ns`. Other
// threads may have been recorded since the run began.
static void record_temporary(HeapModel *model, const HeapEvent *first, u64 count, u64 to_ns,
                             u64 lived_ns)
{
    HeapEvent event = *first;
    u64 from_ns = max_u64(first->time.ns, model->recorded_ns);
    u64 step_ns = to_ns > from_ns ? (to_ns - from_ns) / count : 0;

    for (u64 ns = from_ns; count > 0;) {
        u32 more = (u32)min_u64(count - 1, RECORDING_REPEATS_MAX);
        event.time.ns = event.born_ns = ns;
        event.kind = EVENT_ALLOC;
        event.flags = 0;
        event.number = model_record(model, &event);
        event.time.ns += min_u64(lived_ns, step_ns);
        event.kind = EVENT_FREE;
        event.flags = EVENT_TEMPORARY;
        model_record(model, &event);
        model->events += 2 * (u64)more;
        if (model->writer)
            recording_repeat_pair(model->writer, more, step_ns);
        if (model->clock_space == SPACE_HEAP)
            model->requested_bytes += 2 * more * event.size;
        model->recorded_ns = event.time.ns + more * step_ns;
        ns += (more + 1) * step_ns;
        count -= more + 1;
    }
}

// A run of temporary blocks has made these peaks: they are those of its last block, which was
// freed just now.
static void put_peaks_off(HeapModel *model, u64 epoch, u64 size, u64 usable, u64 lived_ns)
{
    Moment moment = model->now;
    u64 requested = model->requested_bytes - (model->clock_space == SPACE_HEAP ? 2 * size : 0);

    moment.ns -= min_u64(moment.ns, lived_ns);
    moment.allocated_bytes -= model->counts[SPACE_HEAP] ? clock_bytes(model, usable) : 0;
    for (int kind = 0; kind < PEAK_KINDS; kind++) {
        Peak *peak = &model->peaks[kind];
        if (peak->epoch <= epoch)
            continue;
        moment.ns = max_u64(moment.ns, peak->moment.ns);
        peak->moment = moment;
        peak->requested_bytes = requested;
    }
}

// The first of them is seen by peaks and snapshots, but not by the table of blocks, where
// nobody could meet it. The others are the same, so they only count.
void heap_temporary(HeapModel *model, const HeapNew *new, u64 count, const HeapTime *first,
                    u64 lived_ns)
{
    if (!is_block_address(new->address) || count == 0 || count > RUN_MAX)
        return; // nobody has that many: the wire is damaged
    u64 usable = max_u64(new->usable, new->size), each_ns = lived_ns / count;
    HeapTime freed = {min_u64(first->ns + each_ns, new->time.ns), first->instructions};

    model_set_time(model, first);
    u32 number = heap_site(model, new->context, new->thread);
    LiveBlock *old = blocks_find(&model->blocks, new->address);
    // One that is younger is another thread's, which got the address when the run was over.
    if (UNLIKELY(old != NULL) && old->born_ns < first->ns)
        end_late_block(model, old, new->thread);
    thread_at(model, new->thread)->last_block = 0;
    if (number == SITE_IGNORED)
        return;
    Site *site = &model->sites[number];
    HeapEvent event = temporary_event(new, number, usable);
    event.born_ns = model->now.ns;
    u64 epoch = model->epoch;
    advance_bytes(model, clock_bytes(model, usable));
    site_grow(model, number, new->size, usable, 1);
    count_allocation(site, new->size, count);
    event.time = model->now;
    event.number = model_record(model, &event);
    model_check(model, SPACE_HEAP);

    model_set_time(model, &freed);
    advance_bytes(model, clock_bytes(model, usable));
    site_shrink(model, number, new->size, usable, 1);
    window_add(&site->lifetimes, bucket_of(each_ns), count);
    event.kind = EVENT_FREE;
    event.flags = EVENT_TEMPORARY;
    event.time = model->now;
    model_record(model, &event);
    if (count > 1) {
        model_set_time(model, &new->time);
        advance_bytes(model, 2 * (count - 1) * clock_bytes(model, usable));
        record_temporary(model, &event, count - 1, new->time.ns, each_ns);
        put_peaks_off(model, epoch, new->size, usable, each_ns);
    }
    site->frees += count;
    site->temporary += count;
    model->allocations += count;
    model->frees += count;
    model->temporary += count;
    model_check(model, SPACE_HEAP);
}
