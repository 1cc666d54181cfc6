// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// A process that shares memory but is no thread (CLONE_VM alone, then with FILES and FS): it has a
// pid of its own, runs in parallel, and its stores are seen.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>

static volatile long counter, go, child_pid;

static int body(void *arg)
{
    child_pid = syscall(SYS_getpid);
    go = 1;
    for (int i = 0; i < 100000; i++)
        __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    if (arg)
        syscall(SYS_close, *(int *)arg);
    return 44;
}

static int spin(void *arg)
{
    (void)arg;
    go = 1;
    for (;;)
        ;
    return 0;
}

static int count_tasks(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

int main(void)
{
    static char stack[65536];
    int flags[] = {CLONE_VM | SIGCHLD, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD,
                   CLONE_VM | CLONE_SIGHAND | SIGCHLD};
    for (int i = 0; i < 3; i++) {
        counter = go = 0;
        int fd = open("/dev/null", O_RDONLY);
        pid_t child = clone(body, stack + sizeof stack - 64, flags[i], &fd);
        while (!go)
            ;
        for (int k = 0; k < 100000; k++)
            __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
        wait_and_show("child", child);
        say("counter %ld, own pid %d, descriptor %s\n", counter,
            child_pid == child && child != getpid(), fcntl(fd, F_GETFD) < 0 ? "closed" : "open");
    }
    // Whatever it takes to run such processes is gone with them, also when they are killed.
    for (int i = 0; i < 60; i++) {
        go = 0;
        pid_t child = clone(i % 3 ? body : spin, stack + sizeof stack - 64, CLONE_VM | SIGCHLD, NULL);
        while (!go)
            ;
        if (i % 3 == 0)
            kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    int tasks = count_tasks();
    for (int i = 0; i < 60000 && tasks > 1; i++, tasks = count_tasks())
        usleep(1000);
    say("tasks left: %d\n", tasks);
    return 0;
}
