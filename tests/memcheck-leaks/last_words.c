// SPDX-License-Identifier: MIT
//
// Ends of a process that are not exit(): a leak, and then the last thread ends by the plain system
// call, alone, or beside others that end at the same time. With FAULTY, linked statically, the
// function that frees what libc keeps is one that faults; the program has a handler for that.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 6 };

#ifdef FAULTY
void __libc_freeres(void);
void __libc_freeres(void)
{
    *(volatile int *)8 = 1;
}
#endif

static void on_fault(int sig)
{
    (void)sig;
    _exit(99);
}

static void *end(void *arg)
{
    syscall(SYS_exit, 3);
    return arg;
}

static void lose(void)
{
    void *volatile block = malloc(10);
    block = NULL;
    (void)block;
}

int main(int argc, char **argv)
{
    signal(SIGSEGV, on_fault);
    lose();
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        pthread_t thread;
        for (int i = 0; i < THREADS; i++)
            pthread_create(&thread, NULL, end, NULL);
    }
    if (argc > 1)
        end(NULL);
    return 3;
}
