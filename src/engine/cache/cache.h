// SPDX-License-Identifier: MIT
//
// The code cache: where blocks live, how they are found, linked and retired,
// and how a host pc inside one is mapped back to the client's state.
#ifndef MUNINN_ENGINE_CACHE_CACHE_H
#define MUNINN_ENGINE_CACHE_CACHE_H

#include "base/types.h"

// What a host pc in the cache means for the client.
typedef struct CodePlace {
    GuestAddr pc;      // the guest instruction being executed
    u32 spilled;       // bit r: the client's register r is in ctx->spill[r]
    bool boundary;     // exactly before that instruction
} CodePlace;

// True if `host_pc` lies in the cache's reservation (gateways excluded).
bool cache_contains(u64 host_pc);

// Maps a host pc inside a block. False for the parts of a block that belong to
// no guest instruction (entry prefix, exit stubs): single-step out of those.
// Takes no lock; callable from the handler of a signal that hit the cache.
bool cache_place(u64 host_pc, CodePlace *ret_place);

// The client's code in [start, end) is gone or has changed: no thread enters a
// block made from it again. Caller holds the engine lock.
void cache_invalidate(GuestAddr start, GuestAddr end);

#endif
