// SPDX-License-Identifier: MIT
//
// What the two halves of the eventtest tool share.
#ifndef MUNINN_TOOLS_EVENTTEST_EVENTTEST_H
#define MUNINN_TOOLS_EVENTTEST_EVENTTEST_H

#include "tools/tools.h"

// The client of the test maps memory here, and only what happens here counts.
#define ARENA_START 0x70000000000ull
#define ARENA_END 0x70001000000ull

typedef struct EventSums {
    u64 mapped_bytes, unmapped_bytes, protected_bytes;
    u64 calls_before, calls_after, signals, threads_started, threads_ended;
    u64 reads, writes;     // accesses to the arena
    u64 address_xor;       // of all their addresses
    u64 size_sum;
    u64 calls_seen;        // tool_call() at `pause`
} EventSums;

extern EventSums event_sums;

// Called from the cache. arg: size, and whether it writes in bit 32.
void eventtest_access(ToolThread *thread, u64 arg, GuestAddr address);
void eventtest_pause(ToolThread *thread, u64 arg, GuestAddr address);

#endif
