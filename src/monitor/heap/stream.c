// SPDX-License-Identifier: MIT
//
// Streams of events, which are nearly all that comes: straight from the wire's records into the
// model, without a call for each.
//
// What every event would have to ask is asked once for many: whether there is a recording, when
// its slice ends, when a snapshot is due. As long as nothing of that happens, events take the
// short way below, which does what model_event.h does and no more. All that is not usual (a
// stack that is new, a late free, a snapshot) takes the long way, and then it is asked again.
// Figures that follow from others are not kept up to date meanwhile (settle()).
#include "monitor/heap/model_event.h"

enum {
    FREE_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_FREE, WIRE_STREAM_FREE),
    ALLOC_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC),
    PAIR_HEAD = WIRE_STREAM_HEAD(RECORD_HEAP_PAIR, WIRE_STREAM_ALLOC),
};

// Records: so far ahead a slot of the table of blocks is fetched, and half as far ahead the block
// that it leads to.
enum { AHEAD = 8 };

// Whatever the loop over records calls for each of them.
#define USUAL inline __attribute__((always_inline))

// What the model had at the last look.
typedef struct Before {
    u32 left;
    u64 main, all; // HeapModel.total
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

static void keep_before(Stream *stream)
{
    const HeapModel *model = stream->model;
    stream->before = (Before){
        .left = stream->left,
        .main = model->total[PEAK_MAIN],
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

// Before anybody else looks: all that events on the short way have in common.
static __attribute__((noinline)) void settle(Stream *stream)
{
    HeapModel *model = stream->model;
    const Before *before = &stream->before;
    u32 events = before->left - stream->left;
    u64 blocks = model->allocations - before->allocations - (model->frees - before->frees);
    u64 main = model->total[PEAK_MAIN] - before->main;

    model->totals.bytes[SPACE_HEAP] += model->total[PEAK_ALL] - before->all;
    model->totals.usable[SPACE_HEAP] += main - blocks * model->admin_bytes;
    model->totals.blocks[SPACE_HEAP] += blocks;
    if (events) {
        model->events += events;
        model->now.allocated_bytes = model->allocated_bytes;
        settle_clock(stream, events);
    }
    keep_before(stream);
}

static void look(Stream *stream);

// Asks.
static __attribute__((noinline)) void look_around(Stream *stream)
{
    look(stream);
    keep_before(stream);
}

static void look(Stream *stream)
{
    HeapModel *model = stream->model;
    bool counts_bytes = model->options->time_unit == TIME_UNIT_BYTES;
    const RecordingWriter *writer = stream->writer = model->writer;
    u64 slice_ns = UINT64_MAX;

    stream->left = 0;
    stream->self = thread_at(model, stream->thread);
    if (!model->counts[SPACE_HEAP] || model->trigger_count || map_count(&model->late) ||
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
    stream->left--;
    return LIKELY(stream->writer) ? writer_add_usual(stream->writer, event) : 0;
}

static __attribute__((noinline)) void usual_peak(Stream *stream)
{
    HeapModel *model = stream->model;

    settle(stream);
    model->now.ns = stream->time.ns;
    model->now.allocated_bytes = model->allocated_bytes;
    peak_check(model, PEAK_MAIN);
    peak_check(model, PEAK_ALL);
}

static USUAL void usual_grow(Stream *stream, Site *site, u64 size, u64 usable)
{
    HeapModel *model = stream->model;
    u64 main = model->total[PEAK_MAIN] + usable + model->admin_bytes;
    u64 all = model->total[PEAK_ALL] + size;

    site_touch(model, site);
    site->live.bytes += size;
    site->live.usable += usable;
    site->live.blocks++;
    model->total[PEAK_MAIN] = main;
    model->total[PEAK_ALL] = all;
    if (UNLIKELY((main > model->peaks[PEAK_MAIN].bytes) | (all > model->peaks[PEAK_ALL].bytes)))
        usual_peak(stream);
}

static USUAL void usual_shrink(Stream *stream, Site *site, u64 size, u64 usable)
{
    HeapModel *model = stream->model;

    site_touch(model, site);
    site->live.bytes -= size;
    site->live.usable -= usable;
    site->live.blocks--;
    model->total[PEAK_MAIN] -= usable + model->admin_bytes;
    model->total[PEAK_ALL] -= size;
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
    u32 number = context->site;
    Site *site = &model->sites[number];
    model->allocated_bytes = clock;
    model->allocations++;
    stream->self->last_block = address;
    usual_grow(stream, site, size, size + extra);
    count_allocation(site, size, 1);
    block->size = size;
    block->born_ns = stream->time.ns;
    block->site = number;
    HeapEvent event = usual_event(stream, EVENT_ALLOC, number, size, size + extra);
    event.address = address;
    block->number = record_usual(stream, &event);
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

// A block that comes and goes, if no peak and no snapshot would see it.
static USUAL bool usual_pair(Stream *stream, u32 home, u32 id, u64 place, u64 size, u64 lived_ns)
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

// A series of pairs (HEAP_PAIRS), of a stack whose site is known.
typedef struct Series {
    u32 context;
    u32 pairs;        // and perhaps one block more, which is live
    const u64 *words;
} Series;

// Pairs that follow one of their series: what they have in common is found once, and their
// sums are added up here, and not in memory.
typedef struct PairRun {
    u32 count;
    u64 bytes, usable, largest;
    u8 *sizes_end; // in the recording
} PairRun;

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
    model->allocated_bytes += 2 * (run->usable + count * model->admin_bytes);
    stream->left -= 2 * count;
    writer_add_row(stream->writer, number, run->sizes_end, count, run->bytes, run->largest);
}

// The largest block that neither a peak nor a snapshot would see, and at most so many of them.
static u64 largest_unseen(const Stream *stream, u32 *count)
{
    const HeapModel *model = stream->model;
    u64 main = model->peaks[PEAK_MAIN].bytes - model->total[PEAK_MAIN];
    u64 all = model->peaks[PEAK_ALL].bytes - model->total[PEAK_ALL];
    u64 most = 2 * clock_bytes(model, HEAP_WORD_SIZE_MAX + HEAP_WORD_EXTRA_MAX);
    u64 clock_left = stream->limit_bytes - model->allocated_bytes;

    *count = (u32)min_u64(*count, (clock_left - 1) / most);
    return main < model->admin_bytes ? 0 : min_u64(main - model->admin_bytes, all);
}

// How many of these are where the last pair of their class was, and nobody's by now.
static inline u32 pairs_in_row(const Stream *stream, const u64 *words, u32 most)
{
    const EventEncoder *encoder = &stream->writer->encoder;
    const BlockTable *blocks = &stream->model->blocks;
    u64 largest = largest_unseen(stream, &most);
    u32 count = 0;

    for (; count < most; count++) {
        u64 address = heap_word_address(words[count]), size = heap_word_size(words[count]);
        u64 usable = size + heap_word_extra(words[count]);
        if (usable > largest || !fits_row(encoder, address, size, usable) ||
            blocks_find(blocks, address) != NULL)
            break;
    }
    return count;
}

// `index` is behind a pair that took the short way. Returns the first that is not like it.
static __attribute__((noinline)) u32 usual_run(Stream *stream, const Series *series, u32 index)
{
    const u64 *words = series->words + index;
    u32 most = (u32)min_u64(series->pairs - index, stream->left / 2);
    u32 number = ((const Context *)stream->model->contexts.data)[series->context].site;
    Site *site = &stream->model->sites[number];
    u8 *sizes_end = stream->writer->encoder.at[COLUMN_SIZE];
    u32 count = pairs_in_row(stream, words, most);
    u64 bytes = 0, extra = 0, largest = 0;

    for (u32 i = 0; i < count; i++) {
        u64 word = words[i], size = heap_word_size(word);
        bytes += size;
        extra += heap_word_extra(word);
        largest = max_u64(largest, size);
        count_size(site, size);
        sizes_end = encode_in_row(sizes_end, size);
    }
    if (count)
        end_run(stream, &(PairRun){count, bytes, bytes + extra, largest, sizes_end}, number);
    return index + count;
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

    settle(stream);
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

static HeapNew block_of_series(const Stream *stream, const Series *series, u32 index)
{
    u64 word = series->words[index], size = heap_word_size(word);
    return (HeapNew){
        .time = stream->time,
        .thread = stream->thread,
        .context = series->context,
        .address = heap_word_address(word),
        .size = size,
        .usable = size + heap_word_extra(word),
    };
}

static __attribute__((noinline)) bool usual_pair_of(Stream *stream, const Series *series, u32 index)
{
    u64 word = series->words[index], address = heap_word_address(word);
    return stream->left && usual_pair(stream, blocks_home(&stream->model->blocks, address),
                                      series->context, heap_word_place(word),
                                      heap_word_size(word), 0);
}

static __attribute__((noinline)) void take_last_of(Stream *stream, const Series *series)
{
    u64 word = series->words[series->pairs], address = heap_word_address(word);
    if (LIKELY(stream->left) &&
        LIKELY(usual_alloc(stream, blocks_home(&stream->model->blocks, address), series->context,
                           heap_word_place(word), heap_word_size(word))))
        return;
    HeapNew block = block_of_series(stream, series, series->pairs);
    settle(stream);
    model_alloc(stream->model, &block);
    look_around(stream);
}

// True: homes begin anew behind it.
static __attribute__((noinline)) bool take_series(Stream *stream, const u64 *at)
{
    u64 events = at[2], blocks = (u64)(next_record(at) - at) - HEAP_PAIRS_HEAD;
    Series series = {(u32)(at[0] >> 32), (u32)events / 2, at + HEAP_PAIRS_HEAD};

    if (events == 0 || events >> 16 || (events + 1) / 2 != blocks)
        return false;
    for (u32 index = 0; index < series.pairs;) {
        if (LIKELY(usual_pair_of(stream, &series, index))) {
            index++;
            if (LIKELY(stream->writer))
                index = usual_run(stream, &series, index);
            continue;
        }
        HeapNew block = block_of_series(stream, &series, index++);
        settle(stream);
        model_pair(stream->model, &block, &block.time, 0);
        look_around(stream);
    }
    if (events % 2)
        take_last_of(stream, &series);
    if (LIKELY(stream->mask == stream->model->blocks.mask))
        return false;
    look_ahead(stream, next_record(at));
    return true;
}

// What is rare enough to be taken one by one.
static __attribute__((noinline)) bool take_other(HeapDecoder *decoder, Stream *stream, u32 ring,
                                                 const u64 *at)
{
    settle(stream);
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
    u64 before_ns = stream->time.ns;

    stream->stamp = stamp;
    stream->time = heap_decoder_now(decoder, stamp);
    // The model's own clock is set by the event: one that began earlier may still be first.
    stream->time.ns = max_u64(max_u64(stream->time.ns, stream->model->now.ns), before_ns);
    if (UNLIKELY(stream->time.ns >= stream->limit_ns) && stream->left) {
        settle(stream);
        stream->left = stream->before.left = 0;
    }
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
            anew = take_series(&stream, at);
        } else {
            held = (u8)head == RECORD_HEAP_RUN ? at : held;
            anew = take_other(decoder, &stream, wire->ring, at);
        }
        turn = UNLIKELY(anew) ? 0 : turn;
    }
    settle(&stream);
    wire->taken = (size_t)(at - wire->words);
    if (held)
        wire->run = (u8)(held[0] >> 8);
    return records;
}
