// SPDX-License-Identifier: MIT
//
// Events of the heap, put into the ring. An allocation is held back (WireHeld) until the
// thread's next event: if that is its free, the two are a count. Emitted code counts too,
// and without a stamp; so those of a run are as exact as one in 64 is.
#include "wire/heap_events.h"

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

void wire_heap_flush_held(WireProducer *producer)
{
    WireHeld *held = &producer->ring->held;
    u64 state = held->repeat.state;
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
