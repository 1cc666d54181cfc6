// SPDX-License-Identifier: MIT
//
// Streams of events, which are nearly all that comes: straight from the wire's records into the
// model, without a call for each.
//
// What every event would have to ask is asked once for many: whether there is a recording, when
// its slice ends, when a snapshot is due. As long as nothing of that happens, events take the
// short way below, which does what model_event.h does and no more. All that is not usual (a
// stack that is new, a peak, a late free) takes the long way, and then it is asked again.
#include "monitor/heap/model_event.h"

enum {
    FREE_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_FREE, WIRE_STREAM_FREE),
    ALLOC_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC),
    PAIR_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_PAIR, WIRE_STREAM_ALLOC),
};

// Records: so far ahead a slot of the table of blocks is fetched, and half as far ahead the block
// that it leads to.
enum { AHEAD = 8 };

typedef struct Stream {
    HeapModel *model;
    RecordingWriter *writer;
    ModelThread *self;
    u32 thread;
    u32 left;        // events that may take the short way
    u64 limit_ns;    // before this moment
    u64 limit_bytes; // and this one, of the clock of bytes
    u64 stamp;       // of the last event, and
    HeapTime time;
    // Where the next records' blocks are looked for, in a table of this size
    const u64 *ahead, *end;
    u32 homes[AHEAD];
    u32 mask;
} Stream;

// Asks.
static __attribute__((noinline)) void look_around(Stream *stream)
{
    HeapModel *model = stream->model;
    bool counts_bytes = model->options->time_unit == TIME_UNIT_BYTES;
    u64 slice_ns = 0;

    stream->left = 0;
    stream->writer = model->writer;
    stream->self = thread_at(model, stream->thread);
    if (!model->writer || !model->counts[SPACE_HEAP] ||
        model->trigger_count || map_count(&model->late) || stream->time.instructions ||
        model->writer->encoder.last.ns > stream->time.ns ||
        model->recorded_ns > stream->time.ns || model->now.ns > stream->time.ns)
        return;
    stream->left = writer_usual_events(model->writer, model->requested_bytes, &slice_ns);
    stream->limit_ns = counts_bytes ? slice_ns : min_u64(slice_ns, model->next_check);
    stream->limit_bytes = counts_bytes ? model->next_check : UINT64_MAX;
    if (stream->time.ns >= stream->limit_ns)
        stream->left = 0;
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

static inline __attribute__((always_inline)) u32 record_usual(Stream *stream, HeapEvent *event)
{
    HeapModel *model = stream->model;

    stream->left--;
    model->events++;
    model->recorded_ns = event->time.ns;
    model->requested_bytes += event->size;
    event->time.allocated_bytes = model->requested_bytes;
    return writer_add_usual(stream->writer, event);
}

static inline void set_clocks(Stream *stream, u64 allocated_bytes)
{
    HeapModel *model = stream->model;

    model->now.ns = stream->time.ns;
    model->allocated_bytes = model->now.allocated_bytes = allocated_bytes;
}

// False: it is to take the long way, and nothing has changed.
static inline bool usual_alloc(Stream *stream, u32 home, u32 id, u64 place, u64 size)
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
    u32 number = context->site;
    Site *site = &model->sites[number];
    set_clocks(stream, clock);
    model->allocations++;
    stream->self->last_block = address;
    heap_grow(model, site, size, size + extra);
    count_allocation(site, size, 1);
    block->size = size;
    block->born_ns = stream->time.ns;
    block->site = number;
    HeapEvent event = usual_event(stream, EVENT_ALLOC, number, size, size + extra);
    event.address = address;
    block->number = record_usual(stream, &event);
    return true;
}

static inline bool usual_free(Stream *stream, u32 home, u64 address)
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
    set_clocks(stream, clock);
    model->frees++;
    heap_shrink(model, site, size, usable);
    site->frees++;
    count_lifetime(site, stream->time.ns - event.born_ns);
    record_usual(stream, &event);
    return true;
}

// A block that comes and goes, if no peak and no snapshot would see it.
static inline bool usual_pair(Stream *stream, u32 home, u32 id, u64 place, u64 size, u64 lived_ns)
{
    HeapModel *model = stream->model;
    u64 usable = size + heap_place_extra(place), address = heap_place_address(place);
    u64 main = clock_bytes(model, usable), clock = model->allocated_bytes + 2 * main;

    if (UNLIKELY(id >= model->contexts.count || stream->left < 2 || address == 0))
        return false;
    const Context *context = (const Context *)model->contexts.data + id;
    if (UNLIKELY(context->thread != stream->thread + 1 || context->site == SITE_IGNORED ||
                 clock >= stream->limit_bytes ||
                 model->total[PEAK_MAIN] + main > model->peaks[PEAK_MAIN].bytes ||
                 model->total[PEAK_ALL] + size > model->peaks[PEAK_ALL].bytes ||
                 blocks_find_from(&model->blocks, home, address) != NULL))
        return false;
    Site *site = &model->sites[context->site];
    set_clocks(stream, clock);
    stream->self->last_block = 0;
    count_temporary(model, site, size, lived_ns);
    HeapEvent event = usual_event(stream, EVENT_ALLOC, context->site, size, usable);
    u64 end_ns = event.time.ns, begin_ns = end_ns - min_u64(end_ns, lived_ns);
    event.address = address;
    event.time.ns = max_u64(begin_ns, model->recorded_ns);
    event.time.allocated_bytes = model->requested_bytes + size;
    stream->left -= 2;
    model->events += 2;
    model->recorded_ns = end_ns;
    model->requested_bytes += 2 * size;
    writer_add_usual_pair(stream->writer, &event, end_ns);
    return true;
}

static inline const u64 *next_record(const u64 *at)
{
    return at + (at[0] >> 16 & 0xffff); // which of the two lengths it has cannot be predicted
}

// One record more.
static inline u32 fetch_slot(Stream *stream)
{
    const BlockTable *blocks = &stream->model->blocks;
    if (UNLIKELY(stream->ahead >= stream->end))
        return 0;
    u32 home = blocks_home(blocks, heap_place_address(stream->ahead[2]));
    blocks_prefetch_slot(blocks, home);
    stream->ahead = next_record(stream->ahead);
    return home;
}

// Pairs that follow one of their own stack, at the same moment: what they have in common is found
// once, and their sums are added up here, and not in memory.
typedef struct PairRun {
    u32 count;
    u64 bytes, largest;
    u64 clock; // the model's, of bytes
    PairColumns columns;
} PairRun;

enum { RUN_BYTE = 0xff00 }; // of a record's head: WireHeld.run

// The record goes on with the run that this one is of; its ticks lived, in the last word, are none.
static inline bool goes_on(const Stream *stream, const u64 *at, const u64 *next)
{
    return next + WIRE_STREAM_ALLOC <= stream->end && ((at[0] ^ next[0]) & ~(u64)RUN_BYTE) == 0 &&
           next[1] == stream->stamp && next[3] >> HEAP_PAIR_SIZE_BITS == 0;
}

static void end_run(Stream *stream, const PairRun *run, u32 number)
{
    HeapModel *model = stream->model;
    Site *site = &model->sites[number];
    u32 count = run->count;

    site->allocations += count;
    site->allocated_bytes += run->bytes;
    site->frees += count;
    site->temporary += count;
    window_add(&site->lifetimes, 0, count);
    model->allocations += count;
    model->frees += count;
    model->temporary += count;
    model->allocated_bytes = model->now.allocated_bytes = run->clock;
    model->events += 2 * count;
    model->requested_bytes += 2 * run->bytes;
    stream->left -= 2 * count;
    writer_add_pairs(stream->writer, number, &run->columns, count, run->bytes, run->largest);
}

// `at` is a pair that took the short way, of the stream's thread. Returns the last of its run.
static __attribute__((noinline)) const u64 *usual_run(Stream *stream, const u64 *at)
{
    HeapModel *model = stream->model;
    const Context *context = (const Context *)model->contexts.data + (at[0] >> 32);
    Site *site = &model->sites[context->site];
    u64 room_main = model->peaks[PEAK_MAIN].bytes - model->total[PEAK_MAIN];
    u64 room_all = model->peaks[PEAK_ALL].bytes - model->total[PEAK_ALL];
    u64 admin_bytes = model->admin_bytes, limit_bytes = stream->limit_bytes;
    u32 most = stream->left / 2;
    PairRun run = {.clock = model->allocated_bytes};

    begin_pairs(&stream->writer->encoder, &run.columns);
    for (const u64 *next = at + WIRE_STREAM_ALLOC; goes_on(stream, at, next);
         next += WIRE_STREAM_ALLOC) {
        u64 size = next[3], address = heap_place_address(next[2]);
        u64 usable = size + heap_place_extra(next[2]), main = usable + admin_bytes;
        if (run.count == most || address == 0 || main > room_main || size > room_all ||
            run.clock + 2 * main >= limit_bytes || usable != guess_usable(size) ||
            blocks_find(&model->blocks, address) != NULL)
            break;
        run.count++;
        run.bytes += size;
        run.largest = max_u64(run.largest, size);
        run.clock += 2 * main;
        count_size(site, size);
        encode_next_pair(&run.columns, address, size);
        at = next;
    }
    if (run.count)
        end_run(stream, &run, context->site);
    return at;
}

static void take_pair(HeapDecoder *decoder, const HeapNew *new, u64 lived)
{
    u64 lived_ns = heap_decoder_lived_ns(decoder, lived);
    HeapTime first = new->time;

    first.ns -= min_u64(first.ns, lived_ns);
    model_pair(decoder->model, new, &first, lived_ns);
}

// homes[0] is that of the record at `at`.
static void look_ahead(Stream *stream, const u64 *at)
{
    stream->mask = stream->model->blocks.mask;
    stream->ahead = at;
    for (u32 i = 0; i < AHEAD; i++)
        stream->homes[i] = fetch_slot(stream);
}

// After an event that may have changed anything. True: the table has grown, and homes begin anew
// behind its record.
static bool look_again(Stream *stream, const u64 *at)
{
    look_around(stream);
    if (LIKELY(stream->mask == stream->model->blocks.mask))
        return false;
    look_ahead(stream, next_record(at));
    return true;
}

// The long way.
static __attribute__((noinline)) bool take_event(HeapDecoder *decoder, Stream *stream,
                                                 const u64 *at)
{
    bool is_pair = (u8)at[0] == RECORD_HEAP_PAIR;

    if ((u8)at[0] == RECORD_HEAP_FREE) {
        model_free(stream->model, &stream->time, stream->thread, at[2]);
    } else {
        u64 size = is_pair ? heap_pair_size(at[3]) : at[3];
        HeapNew new = {
            .time = stream->time,
            .thread = stream->thread,
            .context = (u32)(at[0] >> 32),
            .address = heap_place_address(at[2]),
            .size = size,
            .usable = size + heap_place_extra(at[2]),
        };
        if (is_pair)
            take_pair(decoder, &new, heap_pair_lived(at[3]));
        else if (size >> HEAP_PLACE_BITS == 0)
            model_alloc(stream->model, &new);
    }
    return look_again(stream, at);
}

// What is rare enough to be taken one by one.
static __attribute__((noinline)) bool take_other(HeapDecoder *decoder, Stream *stream, u32 ring,
                                                 const u64 *at)
{
    heap_take(decoder, &(WireRecord){
        .type = (u8)at[0],
        .ring = ring,
        .payload = (u32)(at[0] >> 32),
        .stamp = at[1],
        .words = at + 2,
        .count = (size_t)(next_record(at) - at) - 2,
    });
    return look_again(stream, at);
}

static inline bool take_usual(const HeapDecoder *decoder, Stream *stream, const u64 *at, u32 head,
                              u32 home)
{
    if (UNLIKELY(stream->left == 0))
        return false;
    if (head == FREE_HEAD)
        return usual_free(stream, home, at[2]);
    if (head == ALLOC_HEAD)
        return usual_alloc(stream, home, (u32)(at[0] >> 32), at[2], at[3]);
    return usual_pair(stream, home, (u32)(at[0] >> 32), at[2], heap_pair_size(at[3]),
                      heap_decoder_lived_ns(decoder, heap_pair_lived(at[3])));
}

static inline void set_time(HeapDecoder *decoder, Stream *stream, u64 stamp)
{
    stream->stamp = stamp;
    stream->time = heap_decoder_now(decoder, stamp);
    // The model's own clock is set by the event: one that began earlier may still be first.
    stream->time.ns = max_u64(stream->time.ns, stream->model->now.ns);
    if (stream->time.ns >= stream->limit_ns)
        stream->left = 0;
}

size_t heap_take_stream(HeapDecoder *decoder, WireStream *wire)
{
    const u64 *at = wire->words, *held = NULL;
    size_t records = 0;
    u32 turn = 0; // of homes
    Stream stream = {
        .model = decoder->model,
        .thread = decoder->thread_of_ring[wire->ring],
        .time = decoder->last,
        .end = at + wire->count,
    };

    look_around(&stream);
    look_ahead(&stream, at);
    for (; at < stream.end; at = next_record(at), records++) {
        u32 head = (u32)at[0] & WIRE_STREAM_MASK, home = stream.homes[turn];
        bool is_short = head == FREE_HEAD || head == ALLOC_HEAD || head == PAIR_HEAD, anew;
        if (UNLIKELY(!is_short && (!wire_is_streamed(at[0]) || next_record(at) < at + 2)))
            break;
        if (UNLIKELY(next_record(at) > stream.end))
            break;
        if (at[1] != stream.stamp) {
            if (UNLIKELY(at[1] > wire->limit))
                break;
            wire->last = at[1];
            set_time(decoder, &stream, at[1]);
        }
        stream.homes[turn] = fetch_slot(&stream);
        turn = (turn + 1) % AHEAD;
        blocks_prefetch(&stream.model->blocks, stream.homes[(turn + AHEAD / 2) % AHEAD]);
        if (LIKELY(is_short)) {
            bool is_usual = take_usual(decoder, &stream, at, head, home);
            anew = !is_usual && take_event(decoder, &stream, at);
            if (is_usual && head == PAIR_HEAD && goes_on(&stream, at, next_record(at))) {
                const u64 *last = usual_run(&stream, at);
                records += (size_t)(last - at) / WIRE_STREAM_ALLOC;
                anew = last != at;
                at = last;
                if (anew)
                    look_ahead(&stream, next_record(at));
            }
            held = head == FREE_HEAD ? held : at;
        } else {
            held = (u8)head == RECORD_HEAP_RUN ? at : held;
            anew = take_other(decoder, &stream, wire->ring, at);
        }
        turn = UNLIKELY(anew) ? 0 : turn;
    }
    wire->taken = (size_t)(at - wire->words);
    if (held)
        wire->run = (u8)(held[0] >> 8);
    return records;
}
