// SPDX-License-Identifier: MIT
//
// Streams of events, which nearly all records belong to, go straight from the wire's records into
// the model, without a call for each event.
//
// The stream asks once for many events what each of them would have to ask: whether there is a
// recording, when its slice ends, when a snapshot is due. Until one of these changes, events take
// the fast path below, which does what model_event.h does and no more. Every rare case (a stack
// that is new, a late free, a snapshot) takes the general path, and then the stream asks again.
// The fast path leaves figures that follow from others out of date until stream_settle().
#include "monitor/heap/stream_event.h"

enum {
    FREE_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_FREE, WIRE_STREAM_FREE),
    ALLOC_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC),
    PAIR_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_PAIR, WIRE_STREAM_ALLOC),
    REALLOC_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_REALLOC, WIRE_STREAM_ALLOC + 1),
};

static void keep_before(Stream *stream)
{
    const HeapModel *model = stream->model;
    stream->before = (Before){
        .left = stream->left,
        .heap = model->total[PEAK_HEAP],
        .all = model->total[PEAK_ALL],
        .allocations = model->allocations,
        .frees = model->frees,
    };
}

// The time of the last event: without a recording that of the record that comes now will do, since
// it is not before anything else.
static void settle_clock(Stream *stream, u32 events)
{
    HeapModel *model = stream->model;

    if (!stream->writer) {
        model->now.ns = stream->time.ns;
        return;
    }
    const Moment *last = &stream->writer->encoder.last;
    model->recorded_ns = model->now.ns = last->ns;
    model->requested_bytes = last->allocated_bytes;
    writer_count_usual(stream->writer, events);
}

void stream_settle(Stream *stream)
{
    HeapModel *model = stream->model;
    const Before *before = &stream->before;
    u32 events = before->left - stream->left;
    u64 blocks = model->allocations - before->allocations - (model->frees - before->frees);
    u64 heap = model->total[PEAK_HEAP] - before->heap;

    model->totals.bytes[SPACE_HEAP] += model->total[PEAK_ALL] - before->all;
    model->totals.usable[SPACE_HEAP] += heap - blocks * model->admin_bytes;
    model->totals.blocks[SPACE_HEAP] += blocks;
    if (events) {
        model->events += events;
        model->now.allocated_bytes = model->allocated_bytes;
        settle_clock(stream, events);
    }
    keep_before(stream);
}

// Asks.
static void look(Stream *stream)
{
    HeapModel *model = stream->model;
    bool counts_bytes = model->options->time_unit == TIME_UNIT_BYTES;
    const RecordingWriter *writer = stream->writer = model->writer;
    u64 slice_ns = UINT64_MAX;

    stream->left = 0;
    stream->self = thread_at(model, stream->thread);
    if (model->main_peak != PEAK_HEAP || model->trigger_count || map_count(&model->late) ||
        stream->time.instructions || (writer && writer->encoder.last.ns > stream->time.ns) ||
        model->recorded_ns > stream->time.ns || model->now.ns > stream->time.ns)
        return;
    stream->left = writer ? writer_usual_events(writer, model->requested_bytes, &slice_ns)
                          : UINT32_MAX;
    stream->limit_ns = counts_bytes ? slice_ns : min_u64(slice_ns, model->next_check);
    stream->limit_bytes = counts_bytes ? model->next_check : UINT64_MAX;
    if (stream->time.ns >= stream->limit_ns)
        stream->left = 0;
}

void stream_look(Stream *stream)
{
    look(stream);
    keep_before(stream);
}

void stream_peak(Stream *stream)
{
    HeapModel *model = stream->model;

    stream_settle(stream);
    model->now.ns = stream->time.ns;
    model->now.allocated_bytes = model->allocated_bytes;
    peak_check(model, PEAK_HEAP);
    peak_check(model, PEAK_ALL);
}

void stream_pair_peak(Stream *stream, Site *site, u64 size, u64 usable, u64 lived_ns)
{
    HeapModel *model = stream->model;
    u64 begin_ns = stream->time.ns - min_u64(stream->time.ns, lived_ns);

    stream_settle(stream);
    model->now.ns = max_u64(model->now.ns, begin_ns);
    model->now.allocated_bytes = model->allocated_bytes + clock_bytes(model, usable);
    heap_grow(model, site, size, usable);
    heap_shrink(model, site, size, usable);
}

// One record more.
static USUAL u32 fetch_slot(Stream *stream)
{
    const BlockTable *blocks = &stream->model->blocks;
    if (UNLIKELY(stream->ahead >= stream->end))
        return 0;
    u32 home = blocks_home(blocks, heap_place_address(stream->ahead[2]));
    blocks_prefetch_slot(blocks, home);
    stream->ahead = next_record(stream->ahead);
    return home;
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

// After what may have changed anything. True: the table has grown, and homes begin anew behind the
// record.
static bool begin_anew(Stream *stream, const u64 *at)
{
    if (LIKELY(stream->mask == stream->model->blocks.mask))
        return false;
    look_ahead(stream, next_record(at));
    return true;
}

static bool look_again(Stream *stream, const u64 *at)
{
    stream_look(stream);
    return begin_anew(stream, at);
}

// The long way.
static __attribute__((noinline)) bool take_event(HeapDecoder *decoder, Stream *stream,
                                                 const u64 *at)
{
    bool is_pair = (u8)at[0] == RECORD_HEAP_PAIR;

    stream_settle(stream);
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
    stream_settle(stream);
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

static __attribute__((noinline)) bool take_usual_realloc(Stream *stream, const u64 *at, u32 home)
{
    return stream->left && usual_realloc(stream, home, (u32)(at[0] >> 32), at[2], at[3], at[4]);
}

static USUAL bool take_usual(const HeapDecoder *decoder, Stream *stream, const u64 *at, u32 head,
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

static USUAL void set_time(HeapDecoder *decoder, Stream *stream, u64 stamp)
{
    u64 before_ns = stream->time.ns;

    stream->stamp = stamp;
    stream->time = heap_decoder_now(decoder, stamp);
    // The model's own clock is set by the event: one that began earlier may still be first.
    stream->time.ns = max_u64(max_u64(stream->time.ns, stream->model->now.ns), before_ns);
    if (UNLIKELY(stream->time.ns >= stream->limit_ns) && stream->left) {
        stream_settle(stream);
        stream->left = stream->before.left = 0;
    }
}

static USUAL size_t take_stream(HeapDecoder *decoder, WireStream *wire)
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

    stream_look(&stream);
    look_ahead(&stream, at);
    for (; at < stream.end; at = next_record(at), records++) {
        u32 head = (u32)at[0] & WIRE_STREAM_MASK, home = stream.homes[turn];
        bool is_short = head == FREE_HEAD || head == ALLOC_HEAD || head == PAIR_HEAD, anew;
        if (UNLIKELY(!is_short && (!wire_is_streamed(at[0]) ||
                                   next_record(at) < at + WIRE_STREAM_FREE)))
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
            held = head == FREE_HEAD ? held : at;
        } else if (LIKELY((u8)head == RECORD_HEAP_PAIRS)) {
            held = at;
            stream_take_series(&stream, at);
            anew = begin_anew(&stream, at);
        } else if (head == REALLOC_HEAD && take_usual_realloc(&stream, at, home)) {
            anew = false;
        } else {
            held = (u8)head == RECORD_HEAP_RUN ? at : held;
            anew = take_other(decoder, &stream, wire->ring, at);
        }
        turn = UNLIKELY(anew) ? 0 : turn;
    }
    stream_settle(&stream);
    wire->taken = (size_t)(at - wire->words);
    if (held)
        wire->run = (u8)(held[0] >> 8);
    return records;
}

static WITH_BMI size_t take_stream_bmi(HeapDecoder *decoder, WireStream *wire)
{
    return take_stream(decoder, wire);
}

static size_t take_stream_plain(HeapDecoder *decoder, WireStream *wire)
{
    return take_stream(decoder, wire);
}

size_t heap_take_stream(HeapDecoder *decoder, WireStream *wire)
{
    return has_bmi() ? take_stream_bmi(decoder, wire) : take_stream_plain(decoder, wire);
}
