// SPDX-License-Identifier: MIT
//
// A handler that calls the client: nested, interrupted, left by longjmp.
// BUILD: dynamic nopie static
// STDOUT: twice 12 nested 26 caught 30000 ticks 1
// LOG: selftest_calls_back calls 30006 returns 0
// LOG: selftest_counted* calls 8 returns 8
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noipa))

typedef long Callback(long n);
static jmp_buf back;
static volatile int ticks;

KEEP long selftest_calls_back(Callback *callback, long n)
{
    (void)callback;
    return n;
}

KEEP long selftest_counted(long n)
{
    char *p = malloc(10);
    double d = (double)n * 1.5 + p[0] * 0;
    free(p);
    return (long)(d * 2 / 3) + 1;
}

KEEP static long add_one(long n)
{
    return selftest_counted(n);
}

KEEP static long nest(long n)
{
    return selftest_calls_back(add_one, n) + 3;
}

KEEP static long jump_out(long n)
{
    (void)n;
    longjmp(back, 1);
}

static void on_signal(int sig)
{
    (void)sig;
    ticks = selftest_calls_back(add_one, 5) == 7;
}

KEEP static long interrupted(long n)
{
    if (!ticks)
        raise(SIGUSR1);
    return n;
}

int main(void)
{
    int caught = 0;
    long twice = selftest_calls_back(add_one, 10);
    long nested = selftest_calls_back(nest, 16);
    for (volatile int i = 0; i < 30000; i++) {
        if (setjmp(back) == 0)
            selftest_calls_back(jump_out, i);
        else
            caught++;
    }
    signal(SIGUSR1, on_signal);
    long n = selftest_calls_back(interrupted, 1);
    printf("twice %ld nested %ld caught %d ticks %d\n", twice, nested, caught, (int)(ticks * n));
    return 0;
}
