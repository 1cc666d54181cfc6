// SPDX-License-Identifier: MIT
//
// A few system calls and signals whose lines run looks for.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static sigjmp_buf after_fault;

static void on_usr1(int sig)
{
    (void)sig;
}

static void on_segv(int sig)
{
    (void)sig;
    siglongjmp(after_fault, 1);
}

int main(void)
{
    signal(SIGUSR1, on_usr1);
    signal(SIGSEGV, on_segv);
    signal(SIGWINCH, SIG_DFL);
    kill(getpid(), SIGUSR1);
    if (!sigsetjmp(after_fault, 1))
        *(volatile int *)0x10 = 1;
    syscall(SYS_openat, -1, "no such file", O_RDONLY);
    return write(1, "done\n", 5) == 5 ? 7 : 1;
}
