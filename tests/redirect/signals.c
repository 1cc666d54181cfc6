// SPDX-License-Identifier: MIT
//
// A timer's handler interrupts wrapped and replaced functions, their prologues
// and their return sites, and calls such functions itself. What the program
// counted is what the tool counted.
// BUILD: dynamic static
// TRUTH
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define KEEP __attribute__((noinline, noipa))

static volatile long counted, fast, changed, ticks;

KEEP long selftest_counted(long a)
{
    counted++;
    for (volatile int i = 0; i < 20; i++)
        ;
    return a + 1;
}

KEEP long selftest_counted_in_handler(long a)
{
    counted++;
    return a + 2;
}

KEEP long selftest_replaced_fast(long a, long b, long c, long d, long e, long f)
{
    return a + b + c + d + e - f;
}

KEEP long selftest_changed(long a, long b)
{
    changed++;
    return a + b;
}

static void on_tick(int sig)
{
    (void)sig;
    ticks++;
    long kept = counted; // the interrupted increment may be half done
    if (selftest_counted_in_handler(ticks) != ticks + 2)
        abort();
    counted = kept;
    if (selftest_replaced_fast(ticks, 0, 0, 0, 0, 5) != 2 * ticks + 5)
        abort();
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 300}, {0, 300}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    long calls = 0;
    for (time_t end = time(NULL) + 3; time(NULL) < end || ticks < 300; calls++) {
        if (selftest_counted(calls) != calls + 1)
            abort();
        if (selftest_replaced_fast(calls, 0, 0, 0, 0, 9) != 2 * calls + 9)
            abort();
        fast++;
        if (calls % 8 == 0 && selftest_changed(calls, 1) != ~(calls + 101))
            abort();
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("selftest_counted* calls %ld returns %ld\n", calls + ticks, calls + ticks);
    printf("selftest_replaced_fast calls %ld returns 0\n", fast + ticks);
    printf("selftest_changed calls %ld returns %ld\n", changed, changed);
    return 0;
}
