// SPDX-License-Identifier: MIT
//
// The fast path of a stream (stream.c): handles one event as model_event.h does it, unless the case
// is rare. Inline, for the loop over records and for the loop over series.
#ifndef MUNINN_MONITOR_HEAP_STREAM_EVENT_H
#define MUNINN_MONITOR_HEAP_STREAM_EVENT_H

#include "monitor/heap/model_event.h"

// Records: so far ahead a slot of the table of blocks is fetched, and half as far ahead the block
// that it leads to.
enum { AHEAD = 8 };

// What the model had at the last look.
typedef struct Before {
    u32 left;
    u64 heap, all; // HeapModel.total
    u64 allocations, frees;
} Before;

typedef struct Stream {
    HeapModel *model;
    RecordingWriter *writer;
    ModelThread *self;
    u32 thread;
    u32 left;        // events that may take the short way
    Before before;
    u64 limit_ns;    // before this moment
    u64 limit_bytes; // and this one, of the clock of bytes
    u64 stamp;       // of the last event, and
    HeapTime time;
    // Where the next records' blocks are looked for, in a table of this size
    const u64 *ahead, *end;
    u32 homes[AHEAD];
    u32 mask;
} Stream;

// Asks what may take the short way from here on.
void stream_look(Stream *stream);
// Before anybody else looks: all that events on the short way have in common.
void stream_settle(Stream *stream);
// The total of the event that is taken now is at least as much as ever.
void stream_peak(Stream *stream);
// The same of a pair's block, for as long as it lives.
void stream_pair_peak(Stream *stream, Site *site, u64 size, u64 usable, u64 lived_ns);
// A HEAP_PAIRS (series.c).
void stream_take_series(Stream *stream, const u64 *at);

// Whatever the loop over records calls for each of them.
#define USUAL inline __attribute__((always_inline))

// The loops are there twice. An event is counted and written by its number of bits: Zen 3 takes
// eight operations for bsr, and one for lzcnt, which all that have BMI2 have.
#define WITH_BMI __attribute__((target("bmi,bmi2,lzcnt")))
static inline bool has_bmi(void)
{
    return __builtin_cpu_supports("bmi2");
}

// The event that the recording gets, at this moment of its own clock.
static inline HeapEvent usual_event(const Stream *stream, EventKind kind, u32 site, u64 size,
                                    u64 usable)
{
    return (HeapEvent){
        .kind = kind,
        .site = site,
        .thread = stream->thread,
        .time = {.ns = stream->time.ns},
        .size = size,
        .usable = usable,
    };
}

static USUAL u32 record_usual(Stream *stream, HeapEvent *event)
{
    stream->left--;
    return LIKELY(stream->writer) ? writer_add_usual(stream->writer, event) : 0;
}

static USUAL void usual_grow(Stream *stream, Site *site, u64 size, u64 usable)
{
    HeapModel *model = stream->model;
    u64 heap = model->total[PEAK_HEAP] + usable + model->admin_bytes;
    u64 all = model->total[PEAK_ALL] + size;

    site_touch(model, site);
    site->live.bytes += size;
    site->live.usable += usable;
    site->live.blocks++;
    model->total[PEAK_HEAP] = heap;
    model->total[PEAK_ALL] = all;
    if (UNLIKELY((heap >= model->peaks[PEAK_HEAP].bytes) | (all >= model->peaks[PEAK_ALL].bytes)))
        stream_peak(stream);
}

static USUAL void usual_shrink(Stream *stream, Site *site, u64 size, u64 usable)
{
    HeapModel *model = stream->model;

    site_touch(model, site);
    site->live.bytes -= size;
    site->live.usable -= usable;
    site->live.blocks--;
    model->total[PEAK_HEAP] -= usable + model->admin_bytes;
    model->total[PEAK_ALL] -= size;
}

// It is in the table, and the clock of bytes has moved.
static USUAL void begin_usual(Stream *stream, LiveBlock *block, u32 number, u64 place, u64 size,
                              u32 flags)
{
    HeapModel *model = stream->model;
    Site *site = &model->sites[number];
    u64 address = heap_place_address(place), usable = size + heap_place_extra(place);

    stream->self->last_block = address;
    usual_grow(stream, site, size, usable);
    count_allocation(site, size, 1);
    block->size = size;
    block->born_ns = stream->time.ns;
    block->site = number;
    HeapEvent event = usual_event(stream, EVENT_ALLOC, number, size, usable);
    event.address = address;
    event.flags = flags;
    block->number = record_usual(stream, &event);
}

// False: it is to take the long way, and nothing has changed.
static USUAL bool usual_alloc(Stream *stream, u32 home, u32 id, u64 place, u64 size)
{
    HeapModel *model = stream->model;
    u64 extra = heap_place_extra(place), address = heap_place_address(place);

    if (UNLIKELY(id >= model->contexts.count || size >> HEAP_PLACE_BITS || address == 0))
        return false;
    const Context *context = (const Context *)model->contexts.data + id;
    u64 clock = model->allocated_bytes + clock_bytes(model, size + extra);
    if (UNLIKELY(context->thread != stream->thread + 1 || context->site == SITE_IGNORED ||
                 clock >= stream->limit_bytes))
        return false;
    LiveBlock *block = blocks_add_new(&model->blocks, home, place);
    if (UNLIKELY(!block))
        return false;
    model->allocated_bytes = clock;
    model->allocations++;
    begin_usual(stream, block, context->site, place, size, 0);
    return true;
}

static USUAL bool usual_free(Stream *stream, u32 home, u64 address)
{
    HeapModel *model = stream->model;
    LiveBlock *block = blocks_find_from(&model->blocks, home, address);

    if (UNLIKELY(!block || block->site == SITE_IGNORED))
        return false;
    u32 number = block->site;
    Site *site = &model->sites[number];
    u64 size = block->size, usable = block_usable(block);
    u64 clock = model->allocated_bytes + clock_bytes(model, usable);
    if (UNLIKELY(clock >= stream->limit_bytes))
        return false;
    bool temporary = stream->self->last_block == address && site->thread == stream->thread;
    HeapEvent event = usual_event(stream, EVENT_FREE, number, size, usable);
    event.address = address;
    event.flags = temporary ? EVENT_TEMPORARY : 0;
    event.born_ns = block->born_ns;
    event.number = block->number;
    blocks_remove_from(&model->blocks, home, block);
    if (UNLIKELY(temporary)) {
        stream->self->last_block = 0;
        site->temporary++;
        model->temporary++;
    }
    model->allocated_bytes = clock;
    model->frees++;
    usual_shrink(stream, site, size, usable);
    site->frees++;
    count_lifetime(site, stream->time.ns - event.born_ns);
    record_usual(stream, &event);
    return true;
}

// The old block's end and the new one's beginning, of sites that are known.
static USUAL bool usual_realloc(Stream *stream, u32 home, u32 id, u64 place, u64 size,
                                u64 old_address)
{
    HeapModel *model = stream->model;
    BlockTable *blocks = &model->blocks;
    u64 usable = size + heap_place_extra(place), address = heap_place_address(place);
    u32 old_home = blocks_home(blocks, old_address);
    LiveBlock *old = blocks_find_from(blocks, old_home, old_address);

    if (UNLIKELY(!old || old->site == SITE_IGNORED || id >= model->contexts.count ||
                 stream->left < 2 || size >> HEAP_PLACE_BITS || address == 0))
        return false;
    const Context *context = (const Context *)model->contexts.data + id;
    u32 number = context->site;
    u64 before = block_usable(old);
    u64 clock = model->allocated_bytes + (usable > before ? usable - before : before - usable);
    if (UNLIKELY(context->thread != stream->thread + 1 || number == SITE_IGNORED ||
                 clock >= stream->limit_bytes ||
                 (address != old_address && blocks_find_from(blocks, home, address) != NULL)))
        return false;
    Site *site = &model->sites[old->site];
    HeapEvent event = usual_event(stream, EVENT_FREE, old->site, old->size, before);
    event.address = old_address;
    event.flags = EVENT_BY_REALLOC;
    event.born_ns = old->born_ns;
    event.number = old->number;
    model->allocated_bytes = clock;
    blocks_remove_from(blocks, old_home, old);
    usual_shrink(stream, site, event.size, before);
    site->frees++;
    count_lifetime(site, stream->time.ns - event.born_ns);
    record_usual(stream, &event);
    LiveBlock *block = blocks_add_new(blocks, home, place);
    begin_usual(stream, block, number, place, size, EVENT_BY_REALLOC);
    model->sites[number].reallocations++;
    model->reallocations++;
    return true;
}

// A block that comes and goes, if it makes nothing larger than it ever was and no snapshot would
// see it.
static USUAL bool usual_pair(Stream *stream, u32 home, u32 id, u64 place, u64 size, u64 lived_ns)
{
    HeapModel *model = stream->model;
    u64 usable = size + heap_place_extra(place), address = heap_place_address(place);
    u64 clock = model->allocated_bytes + 2 * clock_bytes(model, usable);
    u64 heap = model->total[PEAK_HEAP] + clock_bytes(model, usable);
    u64 all = model->total[PEAK_ALL] + size;
    u64 most_heap = model->peaks[PEAK_HEAP].bytes, most_all = model->peaks[PEAK_ALL].bytes;

    if (UNLIKELY(id >= model->contexts.count || stream->left < 2 || address == 0))
        return false;
    const Context *context = (const Context *)model->contexts.data + id;
    if (UNLIKELY(context->thread != stream->thread + 1 || context->site == SITE_IGNORED ||
                 clock >= stream->limit_bytes || heap > most_heap || all > most_all ||
                 blocks_find_from(&model->blocks, home, address) != NULL))
        return false;
    Site *site = &model->sites[context->site];
    if (UNLIKELY((heap == most_heap) | (all == most_all)))
        stream_pair_peak(stream, site, size, usable, lived_ns);
    model->allocated_bytes = clock;
    stream->self->last_block = 0;
    count_temporary(model, site, size, lived_ns);
    HeapEvent event = usual_event(stream, EVENT_ALLOC, context->site, size, usable);
    u64 end_ns = event.time.ns, begin_ns = end_ns - min_u64(end_ns, lived_ns);
    stream->left -= 2;
    if (UNLIKELY(!stream->writer))
        return true;
    event.address = address;
    event.time.ns = max_u64(max_u64(begin_ns, model->recorded_ns),
                            stream->writer->encoder.last.ns);
    writer_add_usual_pair(stream->writer, &event, end_ns);
    return true;
}

static inline const u64 *next_record(const u64 *at)
{
    return at + (at[0] >> 16 & 0xffff); // which of the two lengths it has cannot be predicted
}

#endif
