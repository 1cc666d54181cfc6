// SPDX-License-Identifier: MIT
//
// How the events of the heap look on the wire. They are many, so the frequent ones are
// small: three or four words with the two of the record's header, whose spare half
// (WireRecord.payload) is the context.
//
//   HEAP_ALLOC      context │ place, size
//   HEAP_FREE       –       │ address
//   HEAP_REALLOC    context │ place, size, old address
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

#endif
