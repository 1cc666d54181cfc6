// SPDX-License-Identifier: MIT
//
// Options that the program changes while it runs. Argument 1: a suppressions file.
#include <stdio.h>
#include <stdlib.h>

#include <valgrind/memcheck.h>

#define KEEP __attribute__((noinline, noipa))

KEEP static int first(volatile int *p)
{
    return p[1];
}

KEEP static int second(volatile int *p)
{
    return p[1];
}

KEEP static int third(volatile int *p)
{
    return p[1];
}

KEEP static int fourth(volatile char *p)
{
    return p[0];
}

static void change(const char *name, const char *value)
{
    char option[4096];
    snprintf(option, sizeof(option), "--%s=%s", name, value);
    VALGRIND_CLO_CHANGE(option);
}

int main(int argc, char **argv)
{
    volatile int *p = malloc(4);
    int sum = first(p);
    if (argc > 1)
        change("suppressions", argv[1]);
    sum += second(p);
    change("gen-suppressions", "all");
    sum += third(p);
    change("gen-suppressions", "no");
    char range[64];
    snprintf(range, sizeof(range), "0x%lx-0x%lx", (unsigned long)p + 16, (unsigned long)p + 17);
    change("ignore-ranges", range);
    sum += fourth((volatile char *)p + 16);
    change("error-markers", "begin,end");
    change("redzone-size", "20");
    change("no-such-option", "1");
    change("leak-check", "full");
    change("show-leak-kinds", "all");
    change("freelist-vol", "1000");
    return sum == 12345;
}
