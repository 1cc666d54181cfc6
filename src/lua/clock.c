// SPDX-License-Identifier: MIT
//
// Time. What a call takes is measured with the processor's counter of time: a question to the
// kernel takes longer than most functions do.
#include <cpuid.h>
#include <time.h>
#include <x86intrin.h>

#include "lua/script.h"

enum { RATE_BITS = 32, CALIBRATION_NS = 20000000, INVARIANT = 1 << 8 };

static uint64_t base_stamp, base_ns; // at the start
static bool has_counter;             // it counts at one rate in all states of the processor
static uint64_t rate;                // nanoseconds of a tick, with RATE_BITS of fraction; atomic

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_start(void)
{
    unsigned a, b, c, d = 0;
    has_counter = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & INVARIANT);
    base_ns = now_ns();
    base_stamp = clock_stamp();
}

uint64_t clock_stamp(void)
{
    return has_counter ? __rdtsc() : now_ns();
}

// The longer the run has taken, the better it is known; from CALIBRATION_NS on it is kept.
static uint64_t rate_now(uint64_t stamp)
{
    uint64_t known = __atomic_load_n(&rate, __ATOMIC_RELAXED);
    if (known || stamp <= base_stamp)
        return known;
    uint64_t ns = now_ns() - base_ns;
    known = (uint64_t)(((unsigned __int128)ns << RATE_BITS) / (stamp - base_stamp));
    if (ns >= CALIBRATION_NS)
        __atomic_store_n(&rate, known, __ATOMIC_RELAXED);
    return known;
}

uint64_t clock_since_ns(uint64_t stamp)
{
    uint64_t now = clock_stamp();
    if (now <= stamp) // of another processor
        return 0;
    if (!has_counter)
        return now - stamp;
    return (uint64_t)((unsigned __int128)(now - stamp) * rate_now(now) >> RATE_BITS);
}
