// SPDX-License-Identifier: MIT
//
// stacks N: allocates N times and more from a few places, in functions that are called in ways
// chosen at random, on frames of the same and of other sizes. The size of a block tells the way: the
// outer function, how often `again` calls itself, the middle function; and what is a multiple of
// 3000 more tells nothing. Prints how many there were of each size.
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 97, SIZES = 10000 };

static uint64_t state = 88172645463325252u;
static long counts[SIZES];
static void *kept[KEPT];

static unsigned below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % limit;
}

static void *counted(void *block, unsigned size)
{
    if (!block)
        abort();
    counts[size]++;
    return block;
}

// Pairs of one place, or of two, and a block that may live; its own frame is not always as large.
__attribute__((noinline)) static void leaf(unsigned size)
{
    unsigned at = below(KEPT), pairs = below(4);
    volatile char *room = alloca(16 + 16 * below(3));
    room[0] = 1;
    for (unsigned i = 0; i < pairs; i++) {
        unsigned other = size + 3000 * below(3);
        free(counted(below(3) ? malloc(other) : calloc(other, 1), other));
    }
    void *block = counted(below(3) ? malloc(size) : calloc(1, size), size);
    if (below(2)) {
        free(block);
        return;
    }
    free(kept[at]);
    kept[at] = block;
}

__attribute__((noinline)) static void middle_1(unsigned size)
{
    for (unsigned i = 0; i <= below(4); i++)
        leaf(size + 1);
    __asm__ volatile("");
}

__attribute__((noinline)) static void middle_2(unsigned size)
{
    for (unsigned i = 0; i <= below(4); i++)
        leaf(size + 2);
    __asm__ volatile("");
}

// A frame that is not always as large.
__attribute__((noinline)) static void middle_3(unsigned size)
{
    volatile char *room = alloca(16 + 16 * below(3));
    room[0] = 1;
    leaf(size + 3);
    leaf(size + 3);
    __asm__ volatile("");
}

__attribute__((noinline)) static void again(unsigned size, unsigned times)
{
    static void (*const middle[])(unsigned) = {middle_1, middle_2, middle_3};
    if (times)
        again(size + 10, times - 1);
    else
        middle[below(3)](size);
    __asm__ volatile("");
}

__attribute__((noinline)) static void outer_1(void)
{
    again(1000, below(3));
    __asm__ volatile("");
}

__attribute__((noinline)) static void outer_2(void)
{
    again(2000, below(3));
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    long turns = argc > 1 ? atol(argv[1]) : 1000;
    for (long i = 0; i < turns; i++) {
        if (below(2))
            outer_1();
        else
            outer_2();
    }
    for (unsigned size = 0; size < SIZES; size++) {
        if (counts[size])
            printf("%u %ld\n", size, counts[size]);
    }
    return 0;
}
