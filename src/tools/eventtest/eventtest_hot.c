// SPDX-License-Identifier: MIT
//
// The half of eventtest that runs inside the cache.
#include "tools/eventtest/eventtest.h"

void eventtest_access(ToolThread *thread, u64 arg, GuestAddr address)
{
    (void)thread;
    if (address - ARENA_START >= ARENA_END - ARENA_START)
        return;
    __atomic_fetch_add(arg >> 32 ? &event_sums.writes : &event_sums.reads, 1, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&event_sums.address_xor, address, __ATOMIC_RELAXED);
    __atomic_fetch_add(&event_sums.size_sum, (u32)arg, __ATOMIC_RELAXED);
}

void eventtest_pause(ToolThread *thread, u64 arg, GuestAddr address)
{
    (void)thread;
    (void)address;
    __atomic_fetch_add(&event_sums.calls_seen, arg, __ATOMIC_RELAXED);
}
