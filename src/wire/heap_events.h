// SPDX-License-Identifier: MIT
//
// How the events of the heap look on the wire. They are many, so the frequent ones are
// small: three or four words with the two of the record's header, whose spare half
// (WireRecord.payload) is the context.
//
//   HEAP_ALLOC      context │ place, size
//   HEAP_FREE       –       │ address
//   HEAP_REALLOC    context │ place, size, old address
//   HEAP_RUN        context │ place, size, state, first stamp, ticks lived
//
// A run is what a thread allocated and freed again and again, and nothing else meanwhile:
// WireRepeat.state has the count. An allocation is a run of state 1.
//
// A place is an address, below 2^47, and above it how much more than `size` is usable.
#ifndef MUNINN_WIRE_HEAP_EVENTS_H
#define MUNINN_WIRE_HEAP_EVENTS_H

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

// ------------------------------------------------------------------- producing

typedef struct WireAlloc {
    u32 context;
    u32 caller, site; // of a WireRepeat; site 0: every repetition is to be told
    u64 address, size, usable;
} WireAlloc;

void wire_heap_alloc(WireProducer *producer, const WireAlloc *alloc);
void wire_heap_realloc(WireProducer *producer, const WireAlloc *alloc, u64 old_address);
void wire_heap_free(WireProducer *producer, u64 address);
// What is held back is published. wire_begin() does so before any other record.
void wire_heap_flush(WireProducer *producer);
// The words of a HEAP_RUN.
enum { HEAP_RUN_WORDS = 5 };
void wire_heap_run_words(const WireHeld *held, u64 state, u64 words[HEAP_RUN_WORDS]);

#endif
