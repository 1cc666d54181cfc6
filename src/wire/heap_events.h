// SPDX-License-Identifier: MIT
//
// How the events of the heap look on the wire. They are many, so the frequent ones are
// small: three or four words with the two of the record's header, whose spare half
// (WireRecord.payload) is the context.
//
//   HEAP_ALLOC      context │ place, size
//   HEAP_PAIR       context │ place, size and ticks lived
//   HEAP_FREE       –       │ address
//   HEAP_REALLOC    context │ place, size, old address
//   HEAP_RUN        context │ place, size, state, first stamp, ticks lived
//   HEAP_PAIRS      context │ state, words: place and size in one
//
// A series of pairs is what a thread allocated and freed, one after the other, from one stack and
// with one stamp; the last of them may still be live. Its blocks are small.
//
// A run is what a thread allocated and freed again and again, and nothing else meanwhile:
// WireRepeat.state has the count. An allocation is a run of state 1, a pair one of state 2 that
// is small enough.
//
// A place is an address, below 2^47, and above it how much more than `size` is usable.
#ifndef MUNINN_WIRE_HEAP_EVENTS_H
#define MUNINN_WIRE_HEAP_EVENTS_H

#include "base/prefetch.h"
#include "wire/wire.h"

// What pages are.
typedef enum HeapMapKind {
    HEAP_MAP_ANONYMOUS,
    HEAP_MAP_FILE,
    HEAP_MAP_BRK,
    HEAP_MAP_SHM,   // shmat
    HEAP_MAP_STACK, // of a thread: MAP_STACK or MAP_GROWSDOWN, and the main thread's
    HEAP_MAP_IMAGE, // the program, its loader: there before its first instruction
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

// The last word of a HEAP_PAIR; what does not fit is a HEAP_RUN.
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

// Events of a series; it has as many words as allocations.
static inline u32 wire_series_events(u64 state)
{
    return (u32)state & INT32_MAX;
}

// ------------------------------------------------------------------- producing

typedef struct WireAlloc {
    u32 context;
    u32 site; // of a WireRepeat; 0: every repetition is to be told, or there are more threads
    u64 sp, slot, tag;
    u64 address, size, usable;
} WireAlloc;

// What is held back is published. wire_begin() does so before any other record.
void wire_heap_flush_held(WireProducer *producer);
static inline void wire_heap_flush(WireProducer *producer)
{
    if (UNLIKELY(producer->ring->held.repeat.state != 0))
        wire_heap_flush_held(producer);
}
void wire_heap_alloc_now(WireProducer *producer, const WireAlloc *alloc); // not held back
void wire_heap_realloc(WireProducer *producer, const WireAlloc *alloc, u64 old_address,
                       bool is_alone);

// rdtsc is a third of what an event costs its thread. So where there is one thread and events
// follow each other quickly, several have the stamp of the one before them: as many as come in
// LOST_TICKS, which is what is lost, two or three microseconds. After a pause the monitor has
// looked at the rings, which it does every few milliseconds when events have come, or there was
// a system call: then there is a new stamp, unless the monitor sleeps.
enum { STAMPS_SHARED = 15, STAMPS_SHARED_MAX = 63, LOST_TICKS = 8000, TICK_TICKS = 20 << 20 };

static inline void wire_heap_new_stamp(WireProducer *producer)
{
    producer->stamps_left = 0;
    producer->stamps_shared = (u32)min_u64(producer->stamps_shared, STAMPS_SHARED);
    if (producer->ring)
        __atomic_store_n(&producer->ring->held.pairs_end, 0, __ATOMIC_RELAXED);
}

// How many share this stamp, since the last one was so long ago: a few at first, and twice
// as many each time that those came in half the time.
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

// A stamp is a plain rdtsc, which may be executed early: an address that goes from one
// thread to another may then seem to be allocated before it was freed, by nanoseconds.
// The model knows that (H4 of monitor/heap/heap.h). lfence would cost 10 ns an event.
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
    // Of a thread that was moved to a core whose counter is behind.
    if (UNLIKELY(stamp <= begun))
        stamp = begun + 1;
    __atomic_store_n(&ring->begun, stamp, __ATOMIC_RELEASE);
    if (is_alone)
        wire_heap_share_stamp(producer, stamp - begun, stamp);
    return stamp;
}

// Whether so much can be put where the ring is written next, as it is.
static inline bool wire_heap_fits(const WireProducer *producer, u64 bytes)
{
    u64 write = producer->ring->write;
    return write + bytes - producer->read_seen <= WIRE_RING_BYTES &&
           write % WIRE_RING_BYTES + bytes <= WIRE_RING_BYTES;
}

// Room for a record with so many words behind its header, which the caller writes. Mostly it fits
// as it is; wire_reserve() knows what to do otherwise. NULL: the monitor is gone.
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

// There is room for what the record may become: a HEAP_RUN.
enum { HEAP_RUN_WORDS = 5, HEAP_RUN_BYTES = (2 + HEAP_RUN_WORDS) * 8, HEAP_ALLOC_BYTES = 32 };
// And a HEAP_PAIRS: as many pairs as may share a stamp.
enum {
    HEAP_PAIRS_HEAD = 3, // words before those of its blocks, with the two of the header
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

// The producer has a ring, and a monitor that lives.
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

// The same of a series, which emitted code has begun, so there is one thread. What has lived is
// no part of it: then the free is a record of its own.
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

// True: the block is the one held back, and ends with it; or it has ended already. Where there
// are other threads, one of them may have freed it and another may be at the address now: only
// what ends at once is certain to be the same.
static inline bool wire_heap_ends_held(WireRing *ring, u64 address, u64 stamp)
{
    enum { AT_ONCE = 400 }; // ticks: less than to another thread and back
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

// The words of a HEAP_RUN, of what is held back and its record.
void wire_heap_run_words(const WireHeld *held, const u64 *record, u64 state,
                         u64 words[HEAP_RUN_WORDS]);

#endif
