// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread -fno-optimize-sibling-calls
//
// A million live frames on a big thread stack, and again after unwinding by longjmp.
#include "guest.h"
#include <pthread.h>
#include <setjmp.h>

static jmp_buf out;

__attribute__((noinline)) static long descend(long depth, bool jump)
{
    volatile long keep = depth;
    if (depth == 0) {
        if (jump)
            longjmp(out, 1);
        return 0;
    }
    return descend(depth - 1, jump) + keep % 7;
}

static void *body(void *unused)
{
    say("%ld\n", descend(1000000, false));
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(out) == 0)
            descend(1000000, true);
    say("%ld\n", descend(1000000, false));
    return unused;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512L << 20);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, body, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
