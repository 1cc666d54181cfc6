// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// RUN: first
// MUNINN:
// MUNINN: --trace-children=yes
//
// execve from a thread that is not main, while others spin and block: they vanish, the new program
// has the old pid and one thread.
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>

static char **arguments;

static void *spin(void *arg)
{
    for (volatile uint64_t x = 1;; x++)
        if (arg)
            pause();
    return NULL;
}

static void *exec_away(void *arg)
{
    char pid[16];
    usleep(5000);
    snprintf(pid, sizeof pid, "%d", getpid());
    execl("/proc/self/exe", arguments[0], "second", pid, (char *)NULL);
    say("FAIL exec: %s\n", error_name(errno));
    return arg;
}

int main(int argc, char **argv)
{
    arguments = argv;
    if (argc == 3) {
        say("same pid %d, thread is main %d\n", getpid() == atoi(argv[2]),
            syscall(SYS_gettid) == getpid());
        return 0;
    }
    pthread_t thread;
    for (long i = 0; i < 4; i++)
        pthread_create(&thread, NULL, spin, (void *)(i & 1));
    pthread_create(&thread, NULL, exec_away, NULL);
    for (;;)
        pause();
}
