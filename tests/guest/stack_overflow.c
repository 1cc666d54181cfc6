// SPDX-License-Identifier: MIT
// BUILD: -O1 -fno-optimize-sibling-calls
// RUN[caught]: caught
// RUN[uncaught]: uncaught => SIGSEGV core
// RUN[grows]: grows
//
// The main stack grows on demand to its limit; beyond it, the handler on an alternate stack sees a
// fault near rsp, or the program dies of it.
#include "guest.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf home;
static char alternate[65536];

__attribute__((noinline)) static int descend(int depth)
{
    volatile char frame[4000];
    frame[0] = (char)depth;
    if (depth == 0)
        return 0;
    return descend(depth - 1) + frame[0] % 3;
}

static void handler(int sig, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    long distance = (long)info->si_addr - uc->uc_mcontext.gregs[REG_RSP];
    say("signal %d code %d near rsp: %d\n", sig, info->si_code, labs(distance) < 65536);
    siglongjmp(home, 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (argv[1][0] == 'g') {
        say("%d\n", descend(1900));
        return 0;
    }
    if (argv[1][0] == 'c') {
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        sigaltstack(&stack, NULL);
        on_signal(SIGSEGV, handler, SA_ONSTACK);
    }
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(home, 1) == 0)
            descend(1 << 20);
    return 0;
}
