// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
//
// Handlers that never return: a hundred thousand siglongjmps out of faults and raised signals, also
// from an alternate stack. Nothing may pile up, and the mask must come back each time.
#include "guest.h"
#include <setjmp.h>

static sigjmp_buf home;
static char alternate[32768];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    siglongjmp(home, sig);
}

int main(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    on_signal(SIGSEGV, handler, SA_ONSTACK);
    on_signal(SIGILL, handler, 0);
    on_signal(SIGUSR1, handler, 0);
    volatile long counts[3] = {0};
    for (volatile long i = 0; i < 100000; i++) {
        int sig = sigsetjmp(home, 1);
        if (sig == 0) {
            if (i % 3 == 0)
                *(volatile int *)(i % 4096) = 1;
            else if (i % 3 == 1)
                __asm__ volatile("ud2");
            else
                raise(SIGUSR1);
        }
        counts[0] += sig == SIGSEGV;
        counts[1] += sig == SIGILL;
        counts[2] += sig == SIGUSR1;
    }
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("%ld %ld %ld, blocked %d %d\n", counts[0], counts[1], counts[2],
        sigismember(&now, SIGSEGV), sigismember(&now, SIGUSR1));
    return 0;
}
