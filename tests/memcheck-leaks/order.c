// SPDX-License-Identifier: MIT
//
// Losses of every kind, large and tiny, made in no order.
#include <stdlib.h>

static char *reachable, *more, *inside, *tiny_inside;

static __attribute__((noinline)) void lose(size_t size)
{
    char *volatile p = malloc(size);
    p[0] = 1;
    p = NULL;
}

static __attribute__((noinline)) void scrub(void)
{
    volatile char space[4096];
    for (int i = 0; i < 4096; i++)
        space[i] = 0;
}

int main(void)
{
    lose(10);
    inside = (char *)malloc(200000) + 8;
    lose(5000);
    reachable = malloc(300000);
    tiny_inside = (char *)malloc(20) + 8;
    lose(70000);
    more = malloc(400000);
    scrub();
    return 0;
}
