// SPDX-License-Identifier: MIT
//
// Dies in the way its argument names, so that the wait status of native and muninn can be compared.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void divide(void)
{
    volatile int dividend = 7, zero = 0;
    dividend = dividend / zero;
}

static void write_null(void)
{
    *(volatile int *)0 = 1;
}

static void illegal(void)
{
    __asm__ volatile("ud2");
}

static void broken_pipe(void)
{
    int ends[2];
    if (pipe(ends) == 0) {
        close(ends[0]);
        (void)!write(ends[1], "x", 1);
    }
}

static void terminate(void)
{
    kill(getpid(), SIGTERM);
}

static void overflow(void)
{
    volatile char frame[4096];
    frame[0] = 1;
    overflow();
    frame[1] = frame[0];
}

static const struct {
    const char *name;
    void (*run)(void);
} WAYS[] = {
    { "divide", divide },   { "null", write_null },    { "illegal", illegal },
    { "pipe", broken_pipe }, { "terminate", terminate }, { "abort", abort },
    { "overflow", overflow },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(WAYS) / sizeof(WAYS[0]); i++) {
        if (strcmp(argv[1], WAYS[i].name) == 0) {
            printf("about to die: %s\n", argv[1]);
            fflush(stdout);
            WAYS[i].run();
            return 1;
        }
    }
    fprintf(stderr, "usage: die WAY\n");
    return 2;
}
