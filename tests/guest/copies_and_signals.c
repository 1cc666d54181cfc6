// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=often
//
// Signals arrive while structures with holes are copied. The holes are still there then.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "../../include/muninn/client.h"

enum { BYTES = 64, ROUNDS = 6000, COPIES = 100 };

static unsigned char from[BYTES] __attribute__((aligned(64))), to[BYTES], v[BYTES];
static volatile unsigned ticks;

static void on_alarm(int signal)
{
    (void)signal;
    ticks++;
}

// Most of the time it is between its loads and stores.
static __attribute__((noinline)) void copy(void)
{
    __asm__ volatile("movdqu (%1), %%xmm0\n\tmovdqu 16(%1), %%xmm1\n\t"
                     ".rept 20\n\timul %%rcx, %%rcx\n\t.endr\n\t"
                     "movups %%xmm0, (%0)\n\tmovups %%xmm1, 16(%0)\n\t"
                     "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1"
                     :
                     : "r"(to), "r"(from), "c"(3L)
                     : "xmm0", "xmm1", "cc", "memory");
}

int main(void)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    unsigned lost = 0;
    memset(v, 0, BYTES);
    v[3] = v[20] = 0xff;
    MUNINN_SET_VBITS(from, v, BYTES);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned n = 0; n < ROUNDS || ticks < 3; n++) {
        for (unsigned i = 0; i < COPIES; i++)
            copy();
        if (MUNINN_GET_VBITS(to, v, BYTES) == 1)
            lost += v[3] != 0xff || v[20] != 0xff;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%u lost\n", lost);
    return 0;
}
