// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN: first
// MUNINN:
// MUNINN: --trace-children=yes
//
// execve keeps ignored signals, the mask, pending signals, the alarm and the pid; handlers become
// the default and the alternate stack is gone.
#include "guest.h"

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
}

static int second_life(const char *expected_pid)
{
    struct sigaction old;
    sigset_t mask, pending;
    stack_t stack;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    sigaltstack(NULL, &stack);
    for (int sig = 1; sig < 65; sig++) {
        if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_DFL)
            say("%d %s\n", sig, old.sa_handler == SIG_IGN ? "ignored" : "handled");
        if (sigismember(&mask, sig) == 1)
            say("%d blocked, pending %d\n", sig, sigismember(&pending, sig));
    }
    say("alternate stack flags %d, same pid %d\n", stack.ss_flags, getpid() == atoi(expected_pid));
    say("alarm left %d\n", alarm(0) > 90);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return second_life(argv[2]);
    static char alternate[16384], pid[16];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    on_signal(SIGUSR1, handler, SA_ONSTACK);
    on_signal(SIGSEGV, handler, 0);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    block_signal(SIG_BLOCK, SIGUSR2);
    block_signal(SIG_BLOCK, SIGRTMIN + 7);
    raise(SIGUSR2);
    alarm(100);
    snprintf(pid, sizeof pid, "%d", getpid());
    execl("/proc/self/exe", argv[0], "second", pid, (char *)NULL);
    say("FAIL exec: %s\n", error_name(errno));
    return 1;
}
