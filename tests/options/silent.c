// SPDX-License-Identifier: MIT
//
// A child that says nothing since its parent said so, and a trace that begins and ends.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <valgrind/valgrind.h>

__attribute__((noinline, noipa)) static int wrong(volatile int *p)
{
    return p[1];
}

__attribute__((noinline, noipa)) static void traced(void)
{
    __asm__ volatile("");
}

int main(void)
{
    volatile int *p = malloc(4);
    traced();
    VALGRIND_CLO_CHANGE("--child-silent-after-fork=yes");
    VALGRIND_CLO_CHANGE("--trace=calls");
    traced();
    VALGRIND_CLO_CHANGE("--trace=none");
    traced();
    pid_t child = fork();
    if (child == 0)
        _exit(wrong(p) == 12345);
    waitpid(child, NULL, 0);
    return 0;
}
