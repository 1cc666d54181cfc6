// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// The mask while a handler runs is the old one, its sa_mask and the signal; it is restored from the
// frame afterwards, so a handler can change it there. Pending signals are seen and come in order.
#include "guest.h"
#include <ucontext.h>

static void show_mask(const char *when)
{
    sigset_t mask, pending;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    say("%s: blocked", when);
    for (int sig = 1; sig < 65; sig++)
        if (sigismember(&mask, sig) == 1)
            say(" %d", sig);
    say(", pending");
    for (int sig = 1; sig < 65; sig++)
        if (sigismember(&pending, sig) == 1)
            say(" %d", sig);
    say("\n");
}

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info;
    ucontext_t *uc = context;
    char name[32];
    snprintf(name, sizeof name, "handler %d", sig);
    show_mask(name);
    say("uc_sigmask has usr2 %d, term %d\n", sigismember(&uc->uc_sigmask, SIGUSR2),
        sigismember(&uc->uc_sigmask, SIGTERM));
    if (sig == SIGHUP)
        sigaddset(&uc->uc_sigmask, SIGWINCH);
}

static void plain(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    say("delivered %d\n", sig);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGRTMAX);
    sigaction(SIGHUP, &action, NULL);
    block_signal(SIG_BLOCK, SIGUSR2);
    show_mask("start");
    raise(SIGHUP);
    show_mask("after (with 28, by the frame)");

    int signals[] = {SIGUSR1, SIGINT, SIGTERM, SIGRTMIN, SIGRTMIN + 1, SIGQUIT};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    show_mask("all (not kill and stop)");
    for (int i = 0; i < 6; i++) {
        on_signal(signals[i], plain, 0);
        raise(signals[5 - i]);
        raise(signals[5 - i]);
    }
    show_mask("all pending");
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    show_mask("end");
    return 0;
}
