// SPDX-License-Identifier: MIT
// BUILD: -O2 -Wno-infinite-recursion
// STRESS: tiny-blocks
//
// longjmp out of many frames, many times, and values that survive it.
#include "guest.h"
#include <setjmp.h>

static jmp_buf home;
static sigjmp_buf masked_home;

__attribute__((noinline)) static int descend(int depth, int value)
{
    volatile int keep = depth;
    if (depth == 0)
        longjmp(home, value);
    return descend(depth - 1, value) + keep;
}

int main(void)
{
    volatile long sum = 0;
    for (volatile int i = 1; i <= 20000; i++) {
        int value = setjmp(home);
        if (value == 0)
            descend(i % 50, i);
        sum += value;
    }
    say("%ld\n", sum);
    if (setjmp(home) == 0)
        longjmp(home, 0); // 0 must arrive as 1
    say("zero becomes one\n");

    block_signal(SIG_BLOCK, SIGUSR1);
    if (sigsetjmp(masked_home, 1) == 0) {
        block_signal(SIG_UNBLOCK, SIGUSR1);
        siglongjmp(masked_home, 5);
    }
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("mask restored: %d\n", sigismember(&now, SIGUSR1));
    return 0;
}
