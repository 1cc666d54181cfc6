// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
//
// The kernel gives the tid of a thread that has ended to a new one; then the process forks while
// the new thread waits for it. Asks the kernel for the number, for which one must be root: without
// that the test shows nothing, and passes.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

static pthread_barrier_t both_live;
static volatile pid_t tids[2];
static int until[2];

static void *short_lived(void *arg)
{
    tids[(intptr_t)arg] = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&both_live);
    return arg;
}

static void *long_lived(void *arg)
{
    char byte;
    *(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
    CHECK(read(until[0], &byte, 1) == 1);
    return NULL;
}

static void ask_for(pid_t pid)
{
    char text[16];
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
    int length = snprintf(text, sizeof text, "%d", pid - 1);
    if (fd >= 0 && write(fd, text, length) != length)
        errno = 0;
    close(fd);
}

static void try_once(int attempt)
{
    pthread_t threads[2], third;
    volatile pid_t tid = 0;
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, short_lived, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    sleep_ms(2);
    ask_for(tids[attempt % 2]);
    pthread_create(&third, NULL, long_lived, (void *)&tid);
    while (!tid)
        sleep_ms(1);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    CHECK(write(until[1], "x", 1) == 1);
    pthread_join(third, NULL);
}

int main(void)
{
    CHECK(pipe(until) == 0);
    pthread_barrier_init(&both_live, NULL, 2);
    for (int i = 0; i < 20; i++)
        try_once(i);
    say("forked beside every thread\n");
    return 0;
}
