// SPDX-License-Identifier: MIT
//
// Stale pointers of a place that frees all the time, used 10, 1,000 and 100,000 frees later.
#include "stale.h"

CASE(after_10_frees)
{
    CHECK(found_after(10) == STALE);
    READ1(stale[5]); // EXPECT memcheck invalid-read size=1 block=inside:0 of=48 state=freed
}

CASE(after_1000_frees)
{
    CHECK(found_after(1000) == STALE);
    READ1(stale[5]); // EXPECT memcheck invalid-read size=1 block=inside:0 of=48 state=freed
}

// 100,000 blocks of 48 bytes: a quarter of --freelist-vol with all that belongs to them.
CASE(after_100000_frees)
{
    // NOT-VALGRIND quarantine
    // OPTIONS --quarantine=exact
    CHECK(found_after(100000) == STALE);
    READ1(stale[5]); // EXPECT memcheck invalid-read size=1 block=inside:0 of=48 state=freed
}

// A few go the long way, so that a program that runs long is caught sooner or later.
CASE(after_100000_frees_a_few_are_left)
{
    // NOT-VALGRIND quarantine
    int share = 0;
    for (int i = 0; i < 32; i++)
        share += found_after(10000);
    CHECK(share > 0 && share < 32 * STALE / 2);
}

// What its place frees seldom waits as long as --freelist-vol says, whatever others do.
CASE(of_a_quiet_place)
{
    u8 *p = block(SIZE);
    free(p);
    HIDE(p);
    churn(100000, false);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=48 state=freed
}

// For docs/design/brief-quarantine.md: the share that is found, in percent.
CASE(shares)
{
    // NOT-VALGRIND quarantine
    static const int frees[] = {10, 1000, 3000, 10000, 100000};
    for (int i = 0; i < 5; i++) {
        int sum = 0;
        for (int round = 0; round < 32; round++)
            sum += found_after(frees[i]);
        printf("after %6d frees: %5.1f %%\n", frees[i], 100.0 * sum / (32 * STALE));
    }
}
