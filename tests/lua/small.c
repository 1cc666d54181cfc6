// SPDX-License-Identifier: MIT
//
// Does a known number of things of each kind that a script can watch.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noipa))

static jmp_buf back;
static volatile unsigned short words[100];

FUNCTION int add(int a, int b)
{
    return a + b;
}

FUNCTION void jumps(int n)
{
    if (n)
        longjmp(back, n);
}

FUNCTION void look(const char *text)
{
    if (!*text)
        abort();
}

FUNCTION void in_thread(int n)
{
    words[n] = (unsigned short)n;
}

FUNCTION void in_child(void)
{
    __asm__ volatile("");
}

static void *work(void *first)
{
    for (int i = 0; i < 4; i++)
        in_thread(*(int *)first + i);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
}

static void run_threads(void)
{
    static int first[2] = {1, 5};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &first[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void run_instructions(void)
{
    unsigned a = 7, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    for (int i = 0; i < 92; i++)
        words[i] = 1; // with in_thread(): 100
    for (int i = 0; i < 1000; i++)
        __asm__ volatile("pause");
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("add %d\n", add(2, 3));
    printf("again %d\n", add(10, 20));
    fflush(stdout);
    if (setjmp(back) == 0)
        jumps(9);
    look("text");
    run_threads();
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    if (open("/nowhere", O_RDONLY) >= 0)
        return 1;
    syscall(SYS_getpid);
    run_instructions();
    if (argc > 1) {
        if (fork() == 0) {
            in_child();
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
