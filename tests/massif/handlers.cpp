// SPDX-License-Identifier: MIT
//
// Signals in the middle of allocations: handlers that allocate, and handlers that never return.
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/time.h>

static bool raises, jumps;
static sigjmp_buf before;
static volatile long ticks;
static void *volatile sink;

void *operator new(size_t size)
{
    if (raises)
        raise(SIGUSR1);
    return malloc(size);
}

static void allocate(int)
{
    sink = malloc(19);
}

static void leave(int)
{
    ticks = ticks + 1;
    if (jumps)
        siglongjmp(before, 1);
}

// 10 of 70 bytes, and in each of these one of 19.
static void nested()
{
    signal(SIGUSR1, allocate);
    raises = true;
    for (int i = 0; i < 10; i++)
        sink = ::operator new(70);
}

// 600,000, of which signals interrupt some, after 40 handlers that were left by a jump.
static void left()
{
    struct itimerval timer = {{0, 200}, {0, 200}};
    signal(SIGALRM, leave);
    jumps = true;
    for (volatile int i = 0; i < 40; i = i + 1) {
        if (sigsetjmp(before, 1) == 0)
            raise(SIGALRM);
    }
    jumps = false;
    setitimer(ITIMER_REAL, &timer, nullptr);
    for (long i = 0; i < 200000; i++) {
        sink = malloc(100 + i % 3000);
        free(sink);
        sink = calloc(3, 50);
        sink = realloc(sink, 3000);
        free(sink);
    }
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, nullptr);
}

int main(int, char **argv)
{
    if (strcmp(argv[1], "nested") == 0)
        nested();
    else
        left();
    return ticks > 40 || argv[1][0] == 'n' ? 0 : 1;
}
