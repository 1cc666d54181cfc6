// SPDX-License-Identifier: MIT
//
// Events of the heap, put into the ring. An allocation is held back (WireHeld) until the
// thread's next event: if that is its free, the two are a count. Emitted code counts too,
// and without a stamp; so those of a run are as exact as one in 64 is.
//
// A stamp is a plain rdtsc, which may be executed early: an address that goes from one
// thread to another may then seem to be allocated before it was freed, by nanoseconds.
// The model knows that (H4 of monitor/heap/heap.h). lfence would cost 10 ns an event.
#include "wire/heap_events.h"

static u64 begin_stamp(WireRing *ring)
{
    u32 low, high;
    __atomic_store_n(&ring->begun, ring->begun + 1, __ATOMIC_RELEASE);
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    u64 stamp = (u64)high << 32 | low;
    // Of one thread that is moved to a core whose counter is behind.
    if (UNLIKELY(stamp < ring->begun))
        stamp = ring->begun;
    __atomic_store_n(&ring->begun, stamp, __ATOMIC_RELEASE);
    return stamp;
}

static bool is_ready(const WireProducer *producer)
{
    return producer->ring && *producer->life >= 0;
}

void wire_heap_run_words(const WireHeld *held, u64 state, u64 words[HEAP_RUN_WORDS])
{
    const WireRepeat *repeat = &held->repeat;
    u64 size = repeat->size;
    words[0] = heap_place(repeat->result, size, size + held->extra);
    words[1] = size;
    words[2] = state;
    words[3] = held->first;
    words[4] = held->samples ? held->lived / held->samples * (state / 2) : 0;
}

void wire_heap_flush(WireProducer *producer)
{
    WireHeld *held = &producer->ring->held;
    u64 state = held->repeat.state;
    if (LIKELY(state == 0))
        return;
    u64 size = held->repeat.size;
    u64 *words;
    if (state == 1) {
        words = wire_reserve(producer, RECORD_HEAP_ALLOC, held->run / 2, 2, held->stamp);
        if (words) {
            words[0] = heap_place(held->repeat.result, size, size + held->extra);
            words[1] = size;
        }
    } else {
        words = wire_reserve(producer, RECORD_HEAP_RUN, held->run / 2, HEAP_RUN_WORDS,
                             held->stamp);
        if (words)
            wire_heap_run_words(held, state, words);
    }
    if (words) {
        wire_set_payload(words, held->context);
        wire_publish(producer);
    }
    __atomic_store_n(&held->repeat.state, 0, __ATOMIC_RELEASE);
    held->repeat.result = 0;
    held->repeat.site = 0;
}

static void hold(WireHeld *held, const WireAlloc *alloc, u64 stamp)
{
    u32 run = held->run;
    __atomic_store_n(&held->run, run + 1, __ATOMIC_RELEASE);
    held->repeat.result = alloc->address;
    held->repeat.size = alloc->size;
    held->repeat.site = alloc->site;
    held->repeat.caller = alloc->caller;
    held->context = alloc->context;
    held->extra = alloc->usable - alloc->size;
    held->stamp = held->first = held->allocated = stamp;
    held->lived = held->samples = 0;
    __atomic_store_n(&held->repeat.state, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&held->run, run + 2, __ATOMIC_RELEASE);
}

static void put_now(WireProducer *producer, const WireAlloc *alloc)
{
    u64 *words = wire_begin(producer, RECORD_HEAP_ALLOC, 2);
    if (!words)
        return;
    wire_set_payload(words, alloc->context);
    words[0] = heap_place(alloc->address, alloc->size, alloc->usable);
    words[1] = alloc->size;
    wire_publish(producer);
}

void wire_heap_alloc(WireProducer *producer, const WireAlloc *alloc)
{
    if (!is_ready(producer))
        return;
    if (UNLIKELY(producer->is_common)) {
        put_now(producer, alloc);
        return;
    }
    WireHeld *held = &producer->ring->held;
    u64 stamp = begin_stamp(producer->ring);
    u64 state = held->repeat.state;
    if (state && state % 2 == 0 && held->context == alloc->context &&
        held->repeat.result == alloc->address && held->repeat.size == alloc->size) {
        held->stamp = held->allocated = stamp;
        held->repeat.site = alloc->site;
        __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
        return;
    }
    wire_heap_flush(producer);
    hold(held, alloc, stamp);
}

// True: the block is the one held back, and ends with it; or it has ended already.
static bool ends_held(WireRing *ring, u64 address, u64 stamp)
{
    WireHeld *held = &ring->held;
    u64 state = held->repeat.state;
    if (state == 0 || held->repeat.result != address)
        return false;
    if (state % 2 == 0)
        return true;
    held->lived += stamp - held->allocated;
    held->samples++;
    held->stamp = stamp;
    __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
    return true;
}

void wire_heap_free(WireProducer *producer, u64 address)
{
    if (!is_ready(producer))
        return;
    if (UNLIKELY(producer->is_common)) {
        wire_put_heap_free(producer, &(Wire_heap_free){address});
        return;
    }
    u64 stamp = begin_stamp(producer->ring);
    if (ends_held(producer->ring, address, stamp))
        return;
    wire_heap_flush(producer);
    u64 *words = wire_reserve(producer, RECORD_HEAP_FREE, 0, 1, stamp);
    if (!words)
        return;
    words[0] = address;
    wire_publish(producer);
}

void wire_heap_realloc(WireProducer *producer, const WireAlloc *alloc, u64 old_address)
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
