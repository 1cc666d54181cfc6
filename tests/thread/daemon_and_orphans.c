// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// The double fork of a daemon: the grandchild loses its parent, has a session of its own, goes on,
// and its output arrives; a subreaper gets orphans; setsid and process groups obey their rules.
#include "guest.h"
#include <sys/prctl.h>

int main(void)
{
    int ends[2];
    char buffer[256];
    CHECK(pipe(ends) == 0);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t top = getpid(), child = fork();
    if (child == 0) {
        setsid();
        pid_t middle = getpid();
        if (fork() == 0) {
            while (getppid() == middle)
                usleep(500);
            dprintf(ends[1], "grandchild: adopted %d, session is its grandparent's child %d\n",
                    getppid() == top, getsid(0) == middle);
            _exit(3);
        }
        _exit(0);
    }
    wait_and_show("middle", child);
    int status;
    CHECK(waitpid(-1, &status, 0) > 0);
    show_status("adopted", status);
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    say("%.*s", (int)got, buffer);
    say("no more: %s\n", waitpid(-1, NULL, 0) == -1 ? error_name(errno) : "?");

    child = fork();
    if (child == 0) {
        say("setsid %d\n", setsid() == getpid());
        SHOW(setsid());
        SHOW(setpgid(0, 0));
        _exit(0);
    }
    wait_and_show("leader", child);
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    SHOW(setpgid(child, child));
    say("group %d\n", getpgid(child) == child);
    say("killpg %d\n", killpg(child, SIGTERM));
    wait_and_show("group", child);
    SHOW(killpg(0x3fffffff, 0));
    return 0;
}
