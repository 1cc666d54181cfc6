// SPDX-License-Identifier: MIT
//
// Records of the wire become calls of the model: the clock, the thread, the size.
//
// The time stamp counter is turned into nanoseconds by what it has been since the start,
// measured anew every turn of the loop. What was given out is never taken back: the
// rate may change a little, the time goes on from where it is.
#include <string.h>
#include <time.h>

#include "monitor/heap/heap.h"

enum { CALIBRATE_AFTER_NS = 1000000 }; // a rate measured over less is not worth much
#define GUESSED_NS_PER_TICK_Q32 ((1ull << 32) / 3)

static u64 now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec;
}

void heap_decoder_init(HeapDecoder *decoder, HeapModel *model, const WireShared *shared)
{
    *decoder = (HeapDecoder){
        .model = model,
        .start_stamp = shared->header.start_stamp,
        .ns_per_tick_q32 = GUESSED_NS_PER_TICK_Q32,
        .calibrated_stamp = shared->header.start_stamp,
    };
    heap_decoder_tick(decoder, shared);
}

void heap_decoder_tick(HeapDecoder *decoder, const WireShared *shared)
{
    u64 ns = now_ns() - shared->header.start_ns, ticks = wire_stamp() - decoder->start_stamp;
    if (ns < CALIBRATE_AFTER_NS || ns >> 62 || ticks >> 62 || ticks == 0)
        return;
    u64 rate = (u64)(((unsigned __int128)ns << 32) / ticks);
    // From here on with the new rate; records that are still to come may be older.
    u64 last_stamp = decoder->last_stamp;
    if (last_stamp > decoder->calibrated_stamp) {
        decoder->calibrated_ns = heap_decoder_ns(decoder, last_stamp);
        decoder->calibrated_stamp = last_stamp;
        decoder->points[decoder->point_count++ % CLOCK_POINTS] =
            (ClockPoint){last_stamp, decoder->calibrated_ns};
    }
    // What the clock is off by is made good over the next second.
    u64 passed = decoder->calibrated_stamp - decoder->start_stamp;
    i64 off = (i64)((unsigned __int128)passed * rate >> 32) - (i64)decoder->calibrated_ns;
    double factor = 1 + (double)off / 1e9;
    factor = factor < 0.5 ? 0.5 : factor > 2 ? 2 : factor;
    decoder->ns_per_tick_q32 = (u64)((double)rate * factor);
}

// Between two points the rate was the same.
u64 heap_decoder_past_ns(const HeapDecoder *decoder, u64 stamp)
{
    u64 kept = min_u64(decoder->point_count, CLOCK_POINTS);
    ClockPoint after = {decoder->calibrated_stamp, decoder->calibrated_ns};

    if (stamp >= after.stamp)
        return heap_decoder_ns(decoder, stamp);
    for (u64 back = 1; back <= kept + 1; back++) {
        ClockPoint before = {decoder->start_stamp, 0};
        if (back <= kept)
            before = decoder->points[(decoder->point_count - back) % CLOCK_POINTS];
        if (stamp >= before.stamp && after.stamp > before.stamp)
            return before.ns + (u64)((unsigned __int128)(stamp - before.stamp) *
                                     (after.ns - before.ns) / (after.stamp - before.stamp));
        after = before;
    }
    return 0;
}

// ------------------------------------------------------------------- events

static bool take_new(HeapDecoder *decoder, const WireRecord *record, HeapNew *ret_block)
{
    u64 place = record->words[0], size = record->words[1];
    if (size >> HEAP_PLACE_BITS)
        return false;
    *ret_block = (HeapNew){
        .time = heap_decoder_now(decoder, record->stamp),
        .thread = decoder->thread_of_ring[record->ring],
        .context = record->payload,
        .address = heap_place_address(place),
        .size = size,
        .usable = size + heap_place_extra(place),
    };
    return true;
}

// A run has come from one state to another; in odd ones its block is live.
static void advance(HeapDecoder *decoder, const HeapNew *block, u64 from, u64 to, u64 first_stamp,
                    u64 lived)
{
    if (from % 2 && from < to) {
        heap_free(decoder->model, &block->time, block->thread, block->address);
        from++;
    }
    u64 count = to > from ? (to - from) / 2 : 0;
    if (count) {
        HeapTime first = block->time;
        u64 ns = heap_decoder_ns(decoder, first_stamp);
        if (from == 0 && ns < first.ns)
            first.ns = ns;
        u64 lived_ns = heap_decoder_lived_ns(decoder, lived);
        heap_temporary(decoder->model, block, count, &first, lived_ns / (to / 2) * count);
    }
    if (to > from && to % 2)
        heap_alloc(decoder->model, block);
}

static bool take_alloc(HeapDecoder *decoder, const WireRecord *record)
{
    HeapNew block;
    if (record->count != 2 || !take_new(decoder, record, &block))
        return false;
    if (!record->was_peeked)
        heap_alloc(decoder->model, &block);
    return true;
}

static bool take_pair(HeapDecoder *decoder, const WireRecord *record)
{
    u64 words[2];
    WireRecord alloc = *record;
    HeapNew block;
    if (record->count != 2)
        return false;
    words[0] = record->words[0];
    words[1] = heap_pair_size(record->words[1]);
    alloc.words = words;
    if (!take_new(decoder, &alloc, &block))
        return false;
    u64 lived = heap_pair_lived(record->words[1]);
    u64 from = record->was_peeked ? decoder->peeked_of_ring[record->ring] : 0;
    if (from > 2)
        return false;
    if (from == 0) {
        u64 lived_ns = heap_decoder_lived_ns(decoder, lived);
        HeapTime first = block.time;
        first.ns -= min_u64(first.ns, lived_ns);
        heap_temporary(decoder->model, &block, 1, &first, lived_ns);
    } else {
        advance(decoder, &block, from, 2, record->stamp, lived);
    }
    return true;
}

static bool take_run(HeapDecoder *decoder, const WireRecord *record)
{
    HeapNew block;
    if (record->count != HEAP_RUN_WORDS || !take_new(decoder, record, &block))
        return false;
    u64 *peeked = &decoder->peeked_of_ring[record->ring];
    u64 from = record->was_peeked ? *peeked : 0, to = record->words[2];
    if (to < from)
        return false;
    advance(decoder, &block, from, to, record->words[3], record->words[4]);
    *peeked = to;
    return true;
}

// The block of one word of a series, which has come from one state to another: 0 is before its
// allocation, 1 while it lives, 2 when it has been freed.
static void advance_pair(HeapDecoder *decoder, HeapNew *block, u64 word, u64 from, u64 to)
{
    block->address = heap_word_address(word);
    block->size = heap_word_size(word);
    block->usable = block->size + heap_word_extra(word);
    if (from == 1 && to == 2)
        heap_free(decoder->model, &block->time, block->thread, block->address);
    else if (from == 0 && to == 2)
        heap_temporary(decoder->model, block, 1, &block->time, 0);
    else if (from == 0 && to == 1)
        heap_alloc(decoder->model, block);
}

static u64 state_of_pair(u64 events, size_t index)
{
    return events <= 2 * index ? 0 : min_u64(events - 2 * index, 2);
}

static bool take_pairs(HeapDecoder *decoder, const WireRecord *record)
{
    u64 *peeked = &decoder->peeked_of_ring[record->ring];
    u64 from = record->was_peeked ? *peeked : 0, to = record->count ? record->words[0] : 0;
    size_t blocks = record->count - 1;
    if (to == 0 || to < from || to > 2 * WIRE_RECORD_BYTES_MAX || (to + 1) / 2 != blocks)
        return false;
    HeapNew block = {
        .time = heap_decoder_now(decoder, record->stamp),
        .thread = decoder->thread_of_ring[record->ring],
        .context = record->payload,
    };
    for (size_t i = from / 2; i < blocks; i++)
        advance_pair(decoder, &block, record->words[1 + i], state_of_pair(from, i),
                     state_of_pair(to, i));
    *peeked = to;
    return true;
}

static bool take_realloc(HeapDecoder *decoder, const WireRecord *record)
{
    HeapNew block;
    if (record->count != 3 || !take_new(decoder, record, &block))
        return false;
    heap_realloc(decoder->model, &block, record->words[2]);
    return true;
}

static bool take_free(HeapDecoder *decoder, const WireRecord *record)
{
    if (record->count != 1)
        return false;
    HeapTime time = heap_decoder_now(decoder, record->stamp);
    heap_free(decoder->model, &time, decoder->thread_of_ring[record->ring], record->words[0]);
    return true;
}

// ------------------------------------------------------------------- pages and stacks

static bool is_range(u64 start, u64 size)
{
    return size && start < 1ull << HEAP_PLACE_BITS && size < 1ull << HEAP_PLACE_BITS;
}

static HeapNew new_pages(HeapDecoder *decoder, const WireRecord *record, u64 context, u64 address,
                         u64 size)
{
    return (HeapNew){
        .time = heap_decoder_now(decoder, record->stamp),
        .thread = decoder->thread_of_ring[record->ring],
        .context = (u32)context,
        .address = address,
        .size = size,
        .usable = size,
    };
}

static bool take_map(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_heap_map map;
    if (!wire_get_heap_map(record, &map) || !is_range(map.address, map.size) ||
        map.kind >= HEAP_MAP_KINDS)
        return false;
    HeapNew pages = new_pages(decoder, record, map.context, map.address, map.size);
    heap_map(decoder->model, &pages, (HeapMapKind)map.kind);
    return true;
}

static bool take_unmap(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_heap_unmap unmap;
    if (!wire_get_heap_unmap(record, &unmap) || !is_range(unmap.address, unmap.size))
        return false;
    HeapTime time = heap_decoder_now(decoder, record->stamp);
    heap_unmap(decoder->model, &time, decoder->thread_of_ring[record->ring], unmap.address,
               unmap.size);
    return true;
}

static bool take_remap(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_heap_remap remap;
    if (!wire_get_heap_remap(record, &remap) || !is_range(remap.address, remap.size) ||
        remap.old_size >> HEAP_PLACE_BITS)
        return false;
    HeapNew pages = new_pages(decoder, record, remap.context, remap.address, remap.size);
    heap_remap(decoder->model, &pages, remap.old_address, remap.old_size);
    return true;
}

static bool take_stack(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_heap_stack stack;
    if (!wire_get_heap_stack(record, &stack))
        return false;
    HeapTime time = heap_decoder_now(decoder, record->stamp);
    heap_stack(decoder->model, &time, decoder->thread_of_ring[record->ring], (u32)stack.context,
               stack.bytes, stack.deepest);
    return true;
}

// ------------------------------------------------------------------- the rest

// Each ring tells the contexts that it uses, so many come more than once.
static bool take_context(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_context context;
    if (!wire_get_context(record, &context) || context.id == 0 || context.id >> 32 ||
        context.parent >> 32)
        return false;
    heap_context(decoder->model, (u32)context.id, (u32)context.parent, context.pc);
    return true;
}

static bool take_thread_start(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_thread_start thread;
    if (!wire_get_thread_start(record, &thread))
        return false;
    HeapTime time = heap_decoder_now(decoder, record->stamp);
    decoder->thread_of_ring[record->ring] = (u32)thread.number;
    decoder->instructions_of_ring[record->ring] = 0;
    heap_thread_start(decoder->model, &time, (u32)thread.number, (i32)thread.tid);
    return true;
}

static bool take_thread_end(HeapDecoder *decoder, const WireRecord *record)
{
    Wire_thread_end thread;
    if (!wire_get_thread_end(record, &thread))
        return false;
    HeapTime time = heap_decoder_now(decoder, record->stamp);
    heap_thread_end(decoder->model, &time, (u32)thread.number);
    return true;
}

static bool take_clock(HeapDecoder *decoder, const WireRecord *record)
{
    u64 *counted = &decoder->instructions_of_ring[record->ring];
    if (record->count != 1 || record->words[0] < *counted)
        return false;
    decoder->last.instructions += record->words[0] - *counted;
    *counted = record->words[0];
    return true;
}

typedef bool TakeFn(HeapDecoder *decoder, const WireRecord *record);

static TakeFn *const take_fns[RECORD_TYPES] = {
    [RECORD_HEAP_ALLOC] = take_alloc,
    [RECORD_HEAP_PAIR] = take_pair,
    [RECORD_HEAP_RUN] = take_run,
    [RECORD_HEAP_PAIRS] = take_pairs,
    [RECORD_HEAP_REALLOC] = take_realloc,
    [RECORD_HEAP_FREE] = take_free,
    [RECORD_HEAP_MAP] = take_map,
    [RECORD_HEAP_UNMAP] = take_unmap,
    [RECORD_HEAP_REMAP] = take_remap,
    [RECORD_HEAP_STACK] = take_stack,
    [RECORD_HEAP_CLOCK] = take_clock,
    [RECORD_CONTEXT] = take_context,
    [RECORD_THREAD_START] = take_thread_start,
    [RECORD_THREAD_END] = take_thread_end,
};

bool heap_take(HeapDecoder *decoder, const WireRecord *record)
{
    TakeFn *take = record->type < RECORD_TYPES ? take_fns[record->type] : NULL;
    return take && record->ring < WIRE_RINGS && take(decoder, record);
}
