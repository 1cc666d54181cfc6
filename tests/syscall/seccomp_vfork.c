// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// Children that borrow their parent's memory: a filter that one installs is its own, one that kills
// it leaves the parent alone, and many at once execute programs under the filters of all.
#include "filter.h"
#include <pthread.h>
#include <spawn.h>

extern char **environ;

static void *spawn_many(void *unused)
{
    char *argv[] = {"true", NULL};

    for (int i = 0; i < 25; i++) {
        pid_t child;
        int status;
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];

    no_new_privileges();
    CHECK(filter_install(CALLS(SYS_getppid), SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW, 0) == 0);
    pid_t child = vfork();
    if (child == 0) {
        syscall(SYS_getppid);
        _exit(1);
    }
    wait_and_show("killed", child);
    child = vfork();
    if (child == 0) {
        CHECK(filter_install(CALLS(SYS_getpgrp), SECCOMP_RET_ERRNO | EXDEV, SECCOMP_RET_ALLOW, 0)
              == 0);
        _exit(syscall(SYS_getpgrp) == -1 ? errno : 0);
    }
    wait_and_show("filtered", child);
    say("parent %d\n", syscall(SYS_getpgrp) > 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, spawn_many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    say("done\n");
    return 0;
}
