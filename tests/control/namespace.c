// SPDX-License-Identifier: MIT
//
// A child that is process 1 of a pid namespace of its own, makes a finding and sleeps.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long muninn_test_finding(long kind, long value0, long value1, long value2,
                                                   const char *text, long part)
{
    __asm__ volatile("" : : "r"(kind), "r"(value0), "r"(value1), "r"(value2), "r"(text), "r"(part));
    return -1;
}

int main(void)
{
    enum { INVALID_READ = 2, CANNOT = 99 };
    if (unshare(CLONE_NEWPID) != 0)
        return CANNOT;
    pid_t child = fork();
    if (child == 0) {
        muninn_test_finding(INVALID_READ, 4, 0, 0, NULL, 0);
        sleep(300);
        _exit(0);
    }
    printf("%d\n", child);
    fflush(stdout);
    int status = 0;
    wait(&status);
    return WIFSIGNALED(status) ? WTERMSIG(status) : CANNOT;
}
