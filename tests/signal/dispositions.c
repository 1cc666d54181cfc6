// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// sigaction returns exactly what was installed, refuses SIGKILL and SIGSTOP, and libc's reserved
// signals; fork inherits handlers and mask but no pending signals.
#include "guest.h"
#include <sys/syscall.h>

static volatile sig_atomic_t hits;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    hits++;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler}, old;
    int interesting[] = {0, SA_RESTART, SA_NODEFER | SA_ONSTACK, SA_RESETHAND | SA_NOCLDSTOP};
    sigaddset(&action.sa_mask, SIGHUP);
    sigaddset(&action.sa_mask, SIGRTMIN + 3);
    for (int i = 0; i < 4; i++) {
        action.sa_flags = SA_SIGINFO | interesting[i];
        CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
        say("flags %x handler %d mask %d %d %d\n", (unsigned)old.sa_flags & ~0x04000000U,
            old.sa_sigaction == handler, sigismember(&old.sa_mask, SIGHUP),
            sigismember(&old.sa_mask, SIGRTMIN + 3), sigismember(&old.sa_mask, SIGTERM));
    }
    for (int sig = 1; sig < 65; sig++) {
        sigaction(sig, NULL, &old);
        if (old.sa_handler != SIG_DFL)
            say("not default: %d\n", sig);
    }
    SHOW(sigaction(SIGKILL, &action, NULL));
    SHOW(sigaction(SIGSTOP, &action, NULL));
    SHOW(syscall(SYS_rt_sigaction, 65, NULL, NULL, 8));
    SHOW(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8));
    SHOW(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 16));
    SHOW(syscall(SYS_rt_sigaction, SIGUSR1, 8L, NULL, 8));
    SHOW(syscall(SYS_rt_sigprocmask, 77, &action.sa_mask, NULL, 8));
    SHOW(syscall(SYS_rt_sigprocmask, 0, 8L, NULL, 8));
    SHOW(syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 4));

    on_signal(SIGUSR2, handler, 0);
    block_signal(SIG_BLOCK, SIGUSR2);
    raise(SIGUSR2);
    pid_t child = fork();
    if (child == 0) {
        sigset_t pending, mask;
        sigpending(&pending);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigaction(SIGUSR2, NULL, &old);
        say("child: pending %d blocked %d handler %d\n", sigismember(&pending, SIGUSR2),
            sigismember(&mask, SIGUSR2), old.sa_sigaction == handler);
        _exit(0);
    }
    wait_and_show("child", child);
    block_signal(SIG_UNBLOCK, SIGUSR2);
    say("hits %d\n", hits);
    return 0;
}
