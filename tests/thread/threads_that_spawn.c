// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
// MUNINN:
// MUNINN: --trace-children=yes
//
// Each of many threads starts a program and ends: nothing of it stays in the address space.
#include "guest.h"
#include <pthread.h>
#include <spawn.h>

extern char **environ;

static long pages_mapped(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages;
}

static void *spawn_in_vain(void *arg)
{
    char *argv[] = {(char *)"nothing", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, "/does/not/exist", NULL, NULL, argv, environ) == ENOENT);
    return arg;
}

static void run_threads(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, spawn_in_vain, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    run_threads(20);
    long before = pages_mapped();
    run_threads(200);
    say("stays small %d\n", pages_mapped() - before < 1000);
    return 0;
}
