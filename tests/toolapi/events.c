// SPDX-License-Identifier: MIT
//
// Does known numbers of things that the eventtest tool counts, all memory
// accesses by hand in assembly so that no compiler adds any.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARENA ((char *)0x70000000000)
#define PAGE 4096

static volatile int caught;

static void on_signal(int sig)
{
    (void)sig;
    caught++;
}

static void *nothing(void *arg)
{
    return arg;
}

// 3 reads, 3 writes (rep stosb is one access of a byte for each, read-modify-write both)
static void touch(void)
{
    long index = 2;
    __asm__ volatile("mov (%0), %%rax\n\t"                // read 8 at +0
                     "movl $7, 0x10(%0)\n\t"              // write 4 at +16
                     "movups 0x20(%0,%1,8), %%xmm0\n\t"   // read 16 at +48
                     "movups %%xmm0, 0x100(%0)\n\t"       // write 16 at +256
                     "incq 0x200(%0)\n\t"                 // read and write 8 at +512
                     :
                     : "r"(ARENA), "r"(index)
                     : "rax", "xmm0", "memory", "cc");
}

int main(void)
{
    mmap(ARENA, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    touch();
    mprotect(ARENA + 4 * PAGE, 2 * PAGE, PROT_NONE);
    munmap(ARENA + 6 * PAGE, 2 * PAGE);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 3; i++)
        raise(SIGUSR1);
    for (int i = 0; i < 7; i++)
        syscall(SYS_getppid);
    for (int i = 0; i < 2; i++) {
        pthread_t t;
        pthread_create(&t, NULL, nothing, NULL);
        pthread_join(t, NULL);
    }
    for (int i = 0; i < 1000; i++)
        __asm__ volatile("pause");
    printf("caught %d\n", caught);
    return 0;
}
