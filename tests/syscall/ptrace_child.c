// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// A parent traces its own child: stops, registers, memory peeked and poked, a signal passed on, a
// system call stop, detach. What the tracer sees of the registers at a stop is its own convention.
#include "guest.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static volatile long secret = 1111;

int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(99);
        raise(SIGSTOP);
        if (secret != 2222)
            _exit(1);
        raise(SIGUSR1); // the tracer takes it away
        raise(SIGSTOP);
        _exit(5);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    show_status("child", status);
    errno = 0;
    say("peek %ld\n", ptrace(PTRACE_PEEKDATA, child, &secret, NULL));
    SHOW(ptrace(PTRACE_POKEDATA, child, &secret, 2222L));
    SHOW(ptrace(PTRACE_CONT, child, NULL, 0));
    CHECK(waitpid(child, &status, 0) == child);
    show_status("child", status);
    siginfo_t info;
    SHOW(ptrace(PTRACE_GETSIGINFO, child, NULL, &info));
    say("from the child %d\n", info.si_pid == child);
    SHOW(ptrace(PTRACE_CONT, child, NULL, 0));
    CHECK(waitpid(child, &status, 0) == child);
    show_status("child", status);
    SHOW(ptrace(PTRACE_DETACH, child, NULL, 0));
    wait_and_show("detached", child);
    SHOW(ptrace(PTRACE_CONT, child, NULL, 0));
    return 0;
}
