// SPDX-License-Identifier: MIT
//
// reaper PROGRAM WORDS...: makes itself the parent of all orphans below it, runs the program and
// collects children until there are none, three times. Prints how many were its own.
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int own = 0, others = 0, status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; argc > 1 && i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            execv(argv[1], argv + 1);
            _exit(127);
        }
        for (pid_t ended; (ended = waitpid(-1, &status, 0)) > 0;) {
            if (ended == child)
                own++;
            else
                others++;
        }
    }
    printf("own %d, others %d\n", own, others);
    return 0;
}
