// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// SA_NODEFER lets a handler interrupt itself; without it the signal waits for the return.
// SA_RESETHAND restores the default before the first run.
#include "guest.h"

static volatile int depth, deepest, runs;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    if (++depth > deepest)
        deepest = depth;
    if (++runs < 5)
        raise(sig);
    depth--;
}

static void once(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    struct sigaction now;
    sigset_t mask;
    sigaction(sig, NULL, &now);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    say("in the handler: disposition default %d, masked %d\n", now.sa_handler == SIG_DFL,
        sigismember(&mask, sig));
}

int main(void)
{
    on_signal(SIGUSR1, handler, SA_NODEFER);
    raise(SIGUSR1);
    say("nodefer: runs %d deepest %d\n", runs, deepest);
    deepest = runs = 0;
    on_signal(SIGUSR1, handler, 0);
    raise(SIGUSR1);
    say("deferred: runs %d deepest %d\n", runs, deepest);

    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            on_signal(SIGUSR2, once, SA_RESETHAND | (i ? SA_NODEFER : 0));
            raise(SIGUSR2);
            raise(SIGUSR2);
            _exit(3);
        }
        wait_and_show("second delivery", child);
    }
    return 0;
}
