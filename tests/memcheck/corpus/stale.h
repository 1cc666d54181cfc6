// SPDX-License-Identifier: MIT
//
// Pointers that are used after their blocks were freed, and many others since. What is found of
// them depends on whether the memory has a new owner: of those whose memory has none, the first
// byte must not be touched.
#include "corpus.h"

#include <valgrind/memcheck.h>

enum { STALE = 64, SIZE = 48, BETWEEN = 96, LIVE = 16384 };

static u8 *stale[STALE];

// Frees at one place, by one way to get there: that is what makes a place a busy one. A program that
// has many blocks and replaces one after another; or, if `is_stale`, the blocks that stay pointed
// to, which lie apart.
static NOINLINE void churn(int times, bool is_stale)
{
    static u8 *live[LIVE];
    static unsigned at;
    for (int i = 0; i < times; i++) {
        u8 **place = is_stale ? &stale[i] : &live[at++ % LIVE], *p = *place;
        HIDE(p);
        free(p);
        if (!is_stale)
            *place = block(SIZE);
    }
}

static NOINLINE void find_stale(void)
{
    static u8 *kept[STALE * BETWEEN];
    for (int i = 0; i < STALE * BETWEEN; i++)
        kept[i] = block(SIZE);
    for (int i = 0; i < STALE; i++)
        stale[i] = kept[i * BETWEEN];
}

// How many of them would be reported.
static NOINLINE int found(void)
{
    int count = 0;
    for (int i = 0; i < STALE; i++) {
        u8 bits;
        count += VALGRIND_GET_VBITS(stale[i], &bits, 1) == 3; // not addressable
    }
    return count;
}

// Some 1,000 frees at the place come first: it is a busy one.
static NOINLINE int found_after(int frees)
{
    int times[] = {LIVE + 1000, STALE, frees};
    find_stale();
    for (int phase = 0; phase < 3; phase++) {
        HIDE(phase);
        churn(times[phase], phase == 1);
    }
    return found();
}
