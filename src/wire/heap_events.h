// SPDX-License-Identifier: MIT
//
// The records of heap events on the wire. There are many of them, so the frequent ones are
// small: three or four words, the two words of the header included. The header's spare half word
// (WireRecord.payload) is the context.
//
//   HEAP_ALLOC      context │ place, size
//   HEAP_PAIR       context │ place, size and ticks lived
//   HEAP_FREE       –       │ address
//   HEAP_REALLOC    context │ place, size, old address
//   HEAP_RUN        context │ place, size, state, first stamp, ticks lived
//   HEAP_PAIRS      context │ state, words: place and size in one
//
// A series of pairs consists of small blocks that a thread allocated and freed, one after the
// other, from one stack and with one stamp. The last of them may still be live.
//
// A run is a block that a thread allocated and freed again and again, with no other event of the
// heap in between; WireRepeat.state has the count. An allocation is a run of state 1. A pair is a
// run of state 2 whose block is small enough.
//
// A place is an address, below 2^47, and above it how much more than `size` is usable.
#ifndef MUNINN_WIRE_HEAP_EVENTS_H
#define MUNINN_WIRE_HEAP_EVENTS_H

#include "base/prefetch.h"
#include "wire/wire.h"

// What mapped pages are.
typedef enum HeapMapKind {
    HEAP_MAP_ANONYMOUS,
    HEAP_MAP_FILE,
    HEAP_MAP_BRK,
    HEAP_MAP_SHM,   // shmat
    HEAP_MAP_STACK, // a thread's stack: MAP_STACK or MAP_GROWSDOWN, or the main thread's
    HEAP_MAP_IMAGE, // the program and its loader, mapped before the first instruction
    HEAP_MAP_KINDS,
} HeapMapKind;

enum { HEAP_PLACE_BITS = 47, HEAP_EXTRA_MAX = (1 << 17) - 1 };
enum { HEAP_NOT_REPEATED = 1 };

static inline u64 heap_place(u64 address, u64 size, u64 usable)
{
    return address | min_u64(usable - size, HEAP_EXTRA_MAX) << HEAP_PLACE_BITS;
}

static inline u64 heap_place_address(u64 place)
{
    return place & ((1ull << HEAP_PLACE_BITS) - 1);
}

static inline u64 heap_place_extra(u64 place)
{
    return place >> HEAP_PLACE_BITS;
}

// The last word of a HEAP_PAIR. A pair whose size or life does not fit is sent as a HEAP_RUN.
enum { HEAP_PAIR_SIZE_BITS = 36, HEAP_PAIR_LIVED_MAX = (1 << 28) - 1 };

static inline u64 heap_pair_size(u64 word)
{
    return word & ((1ull << HEAP_PAIR_SIZE_BITS) - 1);
}

static inline u64 heap_pair_lived(u64 word)
{
    return word >> HEAP_PAIR_SIZE_BITS;
}

// The word of a block in a HEAP_PAIRS. Addresses are multiples of 16.
enum { HEAP_WORD_EXTRA_BITS = 5, HEAP_WORD_SIZE_BITS = 16, HEAP_WORD_BITS = 21 };
enum { HEAP_WORD_EXTRA_MAX = 31, HEAP_WORD_SIZE_MAX = 65535 };
_Static_assert(HEAP_WORD_BITS + HEAP_PLACE_BITS - 4 == 64, "");

static inline u64 heap_word_size(u64 word)
{
    return word >> HEAP_WORD_EXTRA_BITS & HEAP_WORD_SIZE_MAX;
}

static inline u64 heap_word_extra(u64 word)
{
    return word & HEAP_WORD_EXTRA_MAX;
}

static inline u64 heap_word_address(u64 word)
{
    return word >> HEAP_WORD_BITS << 4;
}

static inline u64 heap_word_place(u64 word)
{
    return heap_word_address(word) | heap_word_extra(word) << HEAP_PLACE_BITS;
}

static inline bool wire_is_series(u64 state)
{
    return (i64)state < 0;
}

// The number of events of a series. (It has one word for each allocation.)
static inline u32 wire_series_events(u64 state)
{
    return (u32)state & INT32_MAX;
}

// ------------------------------------------------------------------- producing

typedef struct WireAlloc {
    u32 context;
    u32 site; // of a WireRepeat; 0: no repetition may be counted, or there are several threads
    u64 sp, slot, tag;
    u64 address, size, usable;
} WireAlloc;

// Publishes what the ring holds back. wire_begin() does so before any other record.
void wire_heap_flush_held(WireProducer *producer);
static inline void wire_heap_flush(WireProducer *producer)
{
    if (UNLIKELY(producer->ring->held.repeat.state != 0))
        wire_heap_flush_held(producer);
}
// Publishes an allocation at once instead of holding it back.
void wire_heap_alloc_now(WireProducer *producer, const WireAlloc *alloc);
void wire_heap_realloc(WireProducer *producer, const WireAlloc *alloc, u64 old_address,
                       bool is_alone);

// rdtsc is a third of an event's cost to its thread. So if there is one thread, and its events
// follow each other within little time, several events share the stamp of the first: as many as
// come within LOST_TICKS, two or three microseconds, by which their times may be wrong. An event
// gets a new stamp after a system call, and after the monitor has looked at the rings, which it
// does every few milliseconds while events come.
enum { STAMPS_SHARED = 15, STAMPS_SHARED_MAX = 63, LOST_TICKS = 8000, TICK_TICKS = 20 << 20 };

static inline void wire_heap_new_stamp(WireProducer *producer)
{
    producer->stamps_left = 0;
    producer->stamps_shared = (u32)min_u64(producer->stamps_shared, STAMPS_SHARED);
    if (producer->ring)
        __atomic_store_n(&producer->ring->held.pairs_end, 0, __ATOMIC_RELAXED);
}

// How many events may share a new stamp, if the last stamp is `since` ticks old and was shared by
// `before` events: a few at first, and twice as many each time that they came in half of
// LOST_TICKS.
static inline u32 wire_heap_stamp_shares(u32 before, u64 since)
{
    if (since >= LOST_TICKS)
        return 0;
    if (before < STAMPS_SHARED)
        return STAMPS_SHARED;
    return since < LOST_TICKS / 2 ? (u32)min_u64(2 * before + 1, STAMPS_SHARED_MAX) : before;
}

static inline void wire_heap_share_stamp(WireProducer *producer, u64 since, u64 stamp)
{
    u32 tick = __atomic_load_n(&producer->shared->header.tick, __ATOMIC_RELAXED);
    if (tick != producer->tick_seen) {
        producer->tick_seen = tick;
        producer->tick_stamp = stamp;
    }
    u32 shares = wire_heap_stamp_shares(producer->stamps_shared, since);
    producer->stamps_shared = shares;
    producer->stamps_left = stamp - producer->tick_stamp < TICK_TICKS ? shares : 0;
}

// A stamp is a plain rdtsc, which the processor may execute early. So a block that goes from one
// thread to another may seem to be allocated some nanoseconds before it was freed. The model
// expects that (H4 of monitor/heap/heap.h). lfence would cost 10 ns an event.
static inline u64 wire_heap_stamp(WireProducer *producer, bool is_alone)
{
    WireRing *ring = producer->ring;
    u32 low, high;
    u64 begun = ring->begun;
    if (producer->stamps_left && is_alone &&
        __atomic_load_n(&producer->shared->header.tick, __ATOMIC_RELAXED) == producer->tick_seen) {
        producer->stamps_left--;
        return begun;
    }
    __atomic_store_n(&ring->begun, begun + 1, __ATOMIC_RELEASE);
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    u64 stamp = (u64)high << 32 | low;
    // The thread was moved to a core whose counter is behind.
    if (UNLIKELY(stamp <= begun))
        stamp = begun + 1;
    __atomic_store_n(&ring->begun, stamp, __ATOMIC_RELEASE);
    if (is_alone)
        wire_heap_share_stamp(producer, stamp - begun, stamp);
    return stamp;
}

// Whether the ring has this much free room in one piece where it is written next.
static inline bool wire_heap_fits(const WireProducer *producer, u64 bytes)
{
    u64 write = producer->ring->write;
    return write + bytes - producer->read_seen <= WIRE_RING_BYTES &&
           write % WIRE_RING_BYTES + bytes <= WIRE_RING_BYTES;
}

// Returns room for a record of `words` words and its header; the caller writes both. If the room is
// not free in one piece, which is rare, wire_reserve() waits or skips. NULL: the monitor has died.
static inline u64 *wire_heap_place(WireProducer *producer, WireRecordType type, u64 words,
                                   u64 stamp)
{
    enum { HEADER_WORDS = 2 };
    WireRing *ring = producer->ring;
    if (LIKELY(wire_heap_fits(producer, (HEADER_WORDS + words) * 8))) {
        u8 *at = ring->data + ring->write % WIRE_RING_BYTES;
        prefetch_line_to_write(at + WIRE_FETCH_BYTES);
        return (u64 *)at;
    }
    u64 *at = wire_reserve(producer, type, 0, words, stamp);
    return at ? at - HEADER_WORDS : NULL;
}

// A held record reserves room for the HEAP_RUN that it may become.
enum { HEAP_RUN_WORDS = 5, HEAP_RUN_BYTES = (2 + HEAP_RUN_WORDS) * 8, HEAP_ALLOC_BYTES = 32 };
// A HEAP_PAIRS reserves room for as many pairs as may share a stamp.
enum {
    HEAP_PAIRS_HEAD = 3, // words before those of its blocks, the two of the header included
    HEAP_PAIRS_WORDS = HEAP_PAIRS_HEAD + STAMPS_SHARED_MAX,
    HEAP_PAIRS_BYTES = HEAP_PAIRS_WORDS * 8,
};

static inline void wire_heap_hold(WireProducer *producer, const WireAlloc *alloc, u64 stamp)
{
    WireHeld *held = &producer->ring->held;
    u32 run = held->run;
    u64 *at = wire_heap_place(producer, RECORD_HEAP_RUN, HEAP_RUN_WORDS, stamp);
    if (UNLIKELY(!at))
        return;
    __atomic_store_n(&held->run, run + 1, __ATOMIC_RELEASE);
    at[0] = RECORD_HEAP_ALLOC | (u64)((run + 2) / 2 & 0xff) << 8 | HEAP_ALLOC_BYTES / 8 << 16 |
            (u64)alloc->context << 32;
    at[1] = stamp;
    at[2] = heap_place(alloc->address, alloc->size, alloc->usable);
    at[3] = alloc->size;
    held->repeat.result = alloc->site ? alloc->address : HEAP_NOT_REPEATED;
    held->address = alloc->address;
    held->repeat.size = alloc->size;
    held->repeat.site = alloc->site;
    held->repeat.inner = WIRE_INNER_UNKNOWN;
    held->repeat.sp = alloc->sp;
    held->repeat.slot = alloc->slot;
    held->repeat.tag = alloc->tag;
    held->allocated = stamp;
    __atomic_store_n(&held->repeat.state, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&held->run, run + 2, __ATOMIC_RELEASE);
}

// The record that is held back.
static inline u64 *wire_heap_record(WireRing *ring)
{
    return (u64 *)(ring->data + ring->write % WIRE_RING_BYTES);
}

static inline void wire_heap_publish(WireRing *ring, u64 bytes)
{
    __atomic_store_n(&ring->write, ring->write + bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->held.repeat.state, 0, __ATOMIC_RELEASE);
    ring->held.repeat.result = 0;
}

static inline void wire_heap_flush_inline(WireProducer *producer)
{
    WireRing *ring = producer->ring;
    u64 state = ring->held.repeat.state;
    if (state == 1)
        wire_heap_publish(ring, HEAP_ALLOC_BYTES);
    else if (state != 0)
        wire_heap_flush_held(producer);
}

// The producer must have a ring, and its monitor must live.
static inline void wire_heap_alloc(WireProducer *producer, const WireAlloc *alloc)
{
    if (UNLIKELY(producer->is_common)) {
        wire_heap_alloc_now(producer, alloc);
        return;
    }
    WireHeld *held = &producer->ring->held;
    if (wire_is_series(held->repeat.state))
        wire_heap_flush_held(producer); // first, since it has used shares of the stamp
    u64 stamp = wire_heap_stamp(producer, alloc->site != 0);
    u64 state = held->repeat.state;
    if (state && state % 2 == 0 && held->address == alloc->address &&
        held->repeat.size == alloc->size &&
        wire_heap_record(producer->ring)[0] >> 32 == alloc->context) {
        held->stamp = held->allocated = stamp;
        held->repeat.result = alloc->site ? alloc->address : HEAP_NOT_REPEATED;
        held->repeat.sp = alloc->sp;
        held->repeat.slot = alloc->slot;
        held->repeat.tag = alloc->tag;
        held->repeat.site = alloc->site;
        held->repeat.inner = WIRE_INNER_UNKNOWN;
        __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
        return;
    }
    wire_heap_flush_inline(producer);
    wire_heap_hold(producer, alloc, stamp);
}

// As wire_heap_ends_held() for a series, which emitted code has begun, so there is one thread. A
// block that has lived longer than its stamp is no part of the series: its free is a record of its
// own.
static inline bool wire_heap_ends_pair(WireRing *ring, u64 address, u64 stamp)
{
    WireHeld *held = &ring->held;
    u64 state = held->repeat.state;
    if (held->repeat.result != address)
        return false;
    if (state % 2 == 0)
        return true;
    if (stamp != wire_heap_record(ring)[1])
        return false;
    __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
    return true;
}

// True if the freed block is the one held back: the free is counted there. Also true if that block
// was freed before. With several threads another one may have freed the block, and the address may
// belong to a new block. So only a free that follows at once counts then.
static inline bool wire_heap_ends_held(WireRing *ring, u64 address, u64 stamp)
{
    enum { AT_ONCE = 400 }; // ticks: less than a block needs to another thread and back
    WireHeld *held = &ring->held;
    u64 state = held->repeat.state;
    if (wire_is_series(state))
        return wire_heap_ends_pair(ring, address, stamp);
    if (state == 0 || held->address != address)
        return false;
    bool is_alone = held->repeat.site != 0;
    if (state % 2 == 0)
        return is_alone;
    if (!is_alone && stamp - held->allocated > AT_ONCE)
        return false;
    held->lived = (state == 1 ? 0 : held->lived) + stamp - held->allocated;
    held->samples = (state == 1 ? 0 : held->samples) + 1;
    held->stamp = stamp;
    __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
    return true;
}

static inline void wire_heap_free(WireProducer *producer, u64 address, bool is_alone)
{
    enum { BYTES = 24 };
    WireRing *ring = producer->ring;
    if (UNLIKELY(producer->is_common)) {
        wire_put_heap_free(producer, &(Wire_heap_free){address});
        return;
    }
    u64 stamp = wire_heap_stamp(producer, is_alone);
    if (wire_heap_ends_held(ring, address, stamp))
        return;
    wire_heap_flush_inline(producer);
    u64 *at = wire_heap_place(producer, RECORD_HEAP_FREE, 1, stamp);
    if (UNLIKELY(!at))
        return;
    at[0] = RECORD_HEAP_FREE | BYTES / 8 << 16;
    at[1] = stamp;
    at[2] = address;
    __atomic_store_n(&ring->write, ring->write + BYTES, __ATOMIC_RELEASE);
}

// Makes the words of a HEAP_RUN from what is held back and its record.
void wire_heap_run_words(const WireHeld *held, const u64 *record, u64 state,
                         u64 words[HEAP_RUN_WORDS]);

#endif
