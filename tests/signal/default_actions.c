// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// What each signal does by default, sent from outside to a computing child and to a sleeping one:
// death, death with core, stop, or nothing.
#include "guest.h"

static void try_signal(int sig, bool computing)
{
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        setpgid(0, 0); // an orphaned group would ignore the terminal stops
        CHECK(write(ends[1], "r", 1) == 1);
        int64_t end = now_ns() + 3000000000LL;
        while (computing && now_ns() < end)
            ;
        pause();
        _exit(1);
    }
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
    close(ends[0]), close(ends[1]);
    kill(child, sig);
    bool harmless = sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH;
    if (harmless) {
        usleep(1000);
        kill(child, SIGKILL);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    char name[32];
    snprintf(name, sizeof name, "signal %d", sig);
    show_status(name, status);
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

int main(void)
{
    for (int sig = 1; sig <= SIGRTMAX; sig += sig < 31 ? 1 : sig == 31 ? 3 : 15)
        try_signal(sig, sig & 1);
    return 0;
}
