// SPDX-License-Identifier: MIT
//
// A program whose instructions are known line by line: see tests/profile/run.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void thousand_times(void)
{
    __asm__ volatile("mov $1000, %%ecx\n1: sub $1, %%ecx\n jnz 1b" ::: "ecx", "cc"); // COUNT 2001
}

static sigjmp_buf back;

static void on_fault(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

// Of the three instructions the second faults: it has never been executed, nor has the third.
__attribute__((noinline)) static void faults(void)
{
    __asm__ volatile("xor %%eax, %%eax\n mov (%%rax), %%rax\n nop" ::: "rax", "memory"); // FAULTS 1
}

static void *work(void *arg)
{
    for (int i = 0; i < 10; i++)
        thousand_times();
    return arg;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "once";
    if (strcmp(what, "once") == 0)
        thousand_times();
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    if (strcmp(what, "fork") == 0) {
        thousand_times();
        if (fork() == 0) {
            work(NULL);
            _exit(0);
        }
        wait(NULL);
    }
    if (strcmp(what, "fault") == 0) {
        signal(SIGSEGV, on_fault);
        for (volatile int i = 0; i < 100; i++) {
            if (sigsetjmp(back, 1) == 0)
                faults();
        }
    }
    return 0;
}
