// SPDX-License-Identifier: MIT
//
// Events of the heap, put into the ring. An allocation is held back (WireHeld) until the
// thread's next event: if that is its free, the two are a count. Emitted code counts too,
// and without a stamp; so those of a run are as exact as one in 64 is.
#include "wire/heap_events.h"

void wire_heap_run_words(const WireHeld *held, const u64 *record, u64 state,
                         u64 words[HEAP_RUN_WORDS])
{
    u64 first = record[1];
    words[0] = record[2];
    words[1] = held->repeat.size; // not that of the record, which may be a pair's by now
    words[2] = state;
    words[3] = first;
    words[4] = state > 1 && held->samples ? held->lived / held->samples * (state / 2) : 0;
}

static bool is_pair(const WireHeld *held)
{
    return held->repeat.state == 2 && held->samples == 1 && held->lived <= HEAP_PAIR_LIVED_MAX &&
           held->repeat.size >> HEAP_PAIR_SIZE_BITS == 0;
}

// Its words stand there already. Those that shared the stamp with it have had their share.
static void flush_series(WireProducer *producer)
{
    WireRing *ring = producer->ring;
    u32 events = wire_series_events(ring->held.repeat.state), blocks = (events + 1) / 2;
    u64 *at = wire_heap_record(ring), words = HEAP_PAIRS_HEAD + blocks;
    at[0] |= words << 16;
    at[2] = events;
    if (at[1] == ring->begun)
        producer->stamps_left -= (u32)min_u64(producer->stamps_left, blocks);
    wire_heap_publish(ring, words * 8);
}

// Where it stands it becomes what it is now. Until it is published the consumer may look at it
// (W6), and takes nothing from it that changes here but the first stamp.
void wire_heap_flush_held(WireProducer *producer)
{
    WireRing *ring = producer->ring;
    const WireHeld *held = &ring->held;
    u64 state = held->repeat.state, bytes = HEAP_ALLOC_BYTES;
    u64 *at = wire_heap_record(ring), head = at[0] & ~(u64)WIRE_STREAM_MASK;
    if (wire_is_series(state)) {
        flush_series(producer);
        return;
    }
    if (is_pair(held)) {
        at[0] = head | WIRE_STREAM_HEAD(RECORD_HEAP_PAIR, WIRE_STREAM_ALLOC);
        at[3] = held->repeat.size | held->lived << HEAP_PAIR_SIZE_BITS;
        at[1] = held->stamp;
    } else if (state > 1) {
        bytes = HEAP_RUN_BYTES;
        at[0] = head | WIRE_STREAM_HEAD(RECORD_HEAP_RUN, HEAP_RUN_BYTES / 8);
        wire_heap_run_words(held, at, state, at + 2);
        at[1] = held->stamp;
    }
    wire_heap_publish(ring, bytes);
}

void wire_heap_alloc_now(WireProducer *producer, const WireAlloc *alloc)
{
    u64 *words = wire_begin(producer, RECORD_HEAP_ALLOC, 2);
    if (!words)
        return;
    wire_set_payload(words, alloc->context);
    words[0] = heap_place(alloc->address, alloc->size, alloc->usable);
    words[1] = alloc->size;
    wire_publish(producer);
}

static void realloc_now(WireProducer *producer, const WireAlloc *alloc, u64 old_address)
{
    u64 *words = wire_begin(producer, RECORD_HEAP_REALLOC, 3);
    if (!words)
        return;
    wire_set_payload(words, alloc->context);
    words[0] = heap_place(alloc->address, alloc->size, alloc->usable);
    words[1] = alloc->size;
    words[2] = old_address;
    wire_publish(producer);
}

void wire_heap_realloc(WireProducer *producer, const WireAlloc *alloc, u64 old_address,
                       bool is_alone)
{
    enum { WORDS = 3, BYTES = (2 + WORDS) * 8 };
    if (UNLIKELY(producer->is_common)) {
        realloc_now(producer, alloc, old_address);
        return;
    }
    wire_heap_flush(producer); // first: a series has used shares of the stamp
    u64 stamp = wire_heap_stamp(producer, is_alone);
    u64 *at = wire_heap_place(producer, RECORD_HEAP_REALLOC, WORDS, stamp);
    if (UNLIKELY(!at))
        return;
    at[0] = RECORD_HEAP_REALLOC | BYTES / 8 << 16 | (u64)alloc->context << 32;
    at[1] = stamp;
    at[2] = heap_place(alloc->address, alloc->size, alloc->usable);
    at[3] = alloc->size;
    at[4] = old_address;
    __atomic_store_n(&producer->ring->write, producer->ring->write + BYTES, __ATOMIC_RELEASE);
}
