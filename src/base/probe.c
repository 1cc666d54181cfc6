// SPDX-License-Identifier: MIT
#include "base/probe.h"

enum { PROBE_ROUNDS = 16 };

static u64 ticks(void)
{
    __asm__ volatile("lfence" : : : "memory");
    return __builtin_ia32_rdtsc();
}

u64 probe_ticks(void (*code)(void))
{
    u64 least = ~0ull;
    for (u32 round = 0; round < PROBE_ROUNDS; round++) {
        u64 start = ticks();
        code();
        least = min_u64(least, ticks() - start);
    }
    return least;
}
