// SPDX-License-Identifier: MIT
//
// Children: a fork inside a wrapped function returns twice; a vfork child calls
// wrapped functions on its parent's stack and memory.
// BUILD: dynamic static
// STDOUT: child 5 vfork 3 parent 6
// LOG: selftest_logged_too calls 2 returns 2
// ORDER: selftest_logged_too enter 1
// ORDER: selftest_logged_too 1 returns 0
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noipa))

KEEP long selftest_logged_too(long n)
{
    return n == 1 ? fork() : n + 1;
}

KEEP long selftest_counted(long n)
{
    return n + 1;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOFBF, 4096);
    long pid = selftest_logged_too(1);
    if (pid == 0)
        _exit((int)selftest_counted(4));
    int status, second;
    waitpid((pid_t)pid, &status, 0);
    pid_t other = vfork();
    if (other == 0)
        _exit((int)selftest_counted(2));
    waitpid(other, &second, 0);
    printf("child %d vfork %d parent %ld\n", WEXITSTATUS(status), WEXITSTATUS(second),
           selftest_logged_too(5));
    return 0;
}
