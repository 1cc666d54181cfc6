// SPDX-License-Identifier: MIT
//
// How far apart the first two processors that it may use are: the nanoseconds in which a word goes
// to the other one and back. Prints them; 0 if there is only one.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 100000 };

static _Alignas(256) volatile long word;
static int processors[2];

static void stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *answer(void *unused)
{
    stay_on(processors[1]);
    for (long turn = 0; turn < TURNS; turn++) {
        while (word != 2 * turn + 1)
            ;
        word = 2 * turn + 2;
    }
    return unused;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int find_processors(void)
{
    cpu_set_t set;
    int found = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            processors[found++] = i;
    return found;
}

int main(void)
{
    pthread_t other;
    if (find_processors() < 2 || pthread_create(&other, NULL, answer, NULL) != 0) {
        puts("0");
        return 0;
    }
    stay_on(processors[0]);
    double start = now_ns();
    for (long turn = 0; turn < TURNS; turn++) {
        word = 2 * turn + 1;
        while (word != 2 * turn + 2)
            ;
    }
    printf("%.0f\n", (now_ns() - start) / TURNS);
    pthread_join(other, NULL);
    return 0;
}
