// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// SIGCHLD's siginfo and waitid tell how a child ended, stopped or continued; WNOWAIT leaves it,
// SA_NOCLDWAIT and SIG_IGN leave no zombie.
#include "guest.h"
#include <sys/wait.h>

static siginfo_t last;
static volatile sig_atomic_t count;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    last = *info;
    count++;
}

static void wait_for_signal(const char *what, pid_t child)
{
    sigset_t none;
    sigemptyset(&none);
    int before = count;
    while (count == before)
        sigsuspend(&none);
    say("%s: code %d status %d pid %d\n", what, last.si_code, last.si_status, last.si_pid == child);
}

static pid_t start(int how)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGCHLD, SIG_DFL);
        if (how == 0)
            _exit(77);
        if (how == 1)
            raise(SIGKILL);
        if (how == 2)
            abort();
        raise(SIGSTOP);
        _exit(5);
    }
    return child;
}

int main(void)
{
    block_signal(SIG_BLOCK, SIGCHLD);
    on_signal(SIGCHLD, handler, 0);
    static const char *const names[] = {"exits", "killed", "aborts"};
    for (int how = 0; how < 3; how++) {
        pid_t child = start(how);
        wait_for_signal(names[how], child);
        siginfo_t info = {0};
        SHOW(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
        SHOW(waitid(P_PID, child, &info, WEXITED));
        say("waitid: code %d status %d pid %d\n", info.si_code, info.si_status,
            info.si_pid == child);
    }
    pid_t child = start(3);
    wait_for_signal("stops", child);
    kill(child, SIGCONT);
    siginfo_t info = {0};
    CHECK(waitid(P_PID, child, &info, WEXITED) == 0);
    say("waitid: code %d status %d\n", info.si_code, info.si_status);
    SHOW(waitid(P_ALL, 0, &info, WEXITED));

    signal(SIGCHLD, SIG_IGN);
    child = start(0);
    SHOW(waitpid(child, NULL, 0));
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &action, NULL);
    child = start(1);
    SHOW(waitpid(child, NULL, 0));
    return 0;
}
