// SPDX-License-Identifier: MIT
// BUILD[O2]: -O2
// BUILD[Os]: -Os
// STRESS: tiny-blocks
//
// A jump table of 256 cases, driven by a pseudo-random sequence.
#include "guest.h"

#define CASE1(n) \
    case (n): \
        x = x * (2 * (n) + 1) + (n); \
        if (x & 1 << ((n)&15)) \
            x ^= 0x5a5a + (n); \
        break;
#define CASE4(n) CASE1(n) CASE1(n + 1) CASE1(n + 2) CASE1(n + 3)
#define CASE16(n) CASE4(n) CASE4(n + 4) CASE4(n + 8) CASE4(n + 12)
#define CASE64(n) CASE16(n) CASE16(n + 16) CASE16(n + 32) CASE16(n + 48)

static uint64_t step(uint64_t x, unsigned selector)
{
    switch (selector) {
        CASE64(0) CASE64(64) CASE64(128) CASE64(192)
    default:
        x = ~x;
    }
    return x;
}

int main(void)
{
    uint64_t x = 1, seed = 42;
    for (int i = 0; i < 3000000; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        x = step(x, seed >> 55);
    }
    say("%llx\n", (unsigned long long)x);
    return 0;
}
