// SPDX-License-Identifier: MIT
//
// Allocations whose sizes spell the calls that lead to them, in base 4 behind a 1, along ways that
// hardly ever come twice in a row: what a stack was the last time does not help. Frames of two
// functions change their size: alloca, and an alignment. Prints how many there were.
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))
enum { WAYS = 4, DEEPEST = 6, ROUNDS = 40000 };

static void go_on(size_t spelt, int depth);
static unsigned long long state = 0x9e3779b97f4a7c15;
static void *kept[64];
static volatile char *volatile room;
static volatile unsigned count;

static unsigned below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % limit;
}

static inline __attribute__((always_inline)) void arrive(size_t spelt, unsigned way, int depth)
{
    spelt = spelt * WAYS + way;
    if (below(2)) {
        void **place = &kept[below(64)];
        free(*place);
        *place = malloc(spelt);
        count++;
    }
    if (depth < DEEPEST)
        go_on(spelt, depth + 1);
    count += 0; // no tail call
}

NOINLINE static void way_0(size_t spelt, int depth)
{
    arrive(spelt, 0, depth);
}

// Compilers put the calls of such a function apart from the rest of the caller.
NOINLINE __attribute__((cold)) static void rarely(size_t spelt, int depth)
{
    arrive(spelt, 1, depth);
}

NOINLINE static void way_1(size_t spelt, int depth)
{
    _Alignas(64) volatile char local[200];
    local[0] = 0;
    if (below(4) == 0)
        rarely(spelt, depth);
    else
        arrive(spelt, 1, depth);
    count += local[0];
}

NOINLINE static void way_2(size_t spelt, int depth)
{
    room = alloca(16 + 48 * below(4));
    arrive(spelt, 2, depth);
}

NOINLINE static void way_3(size_t spelt, int depth)
{
    for (unsigned times = 1 + below(2); times-- > 0;)
        arrive(spelt, 3, depth);
}

static inline __attribute__((always_inline)) void go_on(size_t spelt, int depth)
{
    static void (*const ways[WAYS])(size_t, int) = {way_0, way_1, way_2, way_3};
    for (unsigned times = below(3); times-- > 0;)
        ways[below(WAYS)](spelt, depth);
}

int main(void)
{
    for (int i = 0; i < ROUNDS; i++)
        go_on(1, 1);
    printf("%u\n", count);
    return 0;
}
