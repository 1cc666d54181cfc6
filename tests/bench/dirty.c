// SPDX-License-Identifier: MIT
//
// ROUNDS times four instructions from a load to where nothing of it is left. With an argument
// what is loaded is undefined, else not. `threads` runs them in a thread that ends before main.
// `pieces`: so many copies of a structure of 40 bytes instead.
// `whole`: a function copies 16 bytes, of which half are undefined, before each hundredth of them.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100000 };

static void *work(void *argument)
{
    const long *words = argument;
    long copy;

    for (int i = 0; i < ROUNDS; i++)
        __asm__ volatile("mov %1, %%rdx\n\t"
                         "not %%rdx\n\t"
                         "mov %%rdx, %0\n\t"
                         "xor %%edx, %%edx"
                         : "=m"(copy) : "m"(words[1]) : "rdx", "cc");
    return NULL;
}

static void work_in_pieces(long *words)
{
    long copy[5];
    for (int i = 0; i < ROUNDS; i++)
        __asm__ volatile("movdqu (%1), %%xmm0\n\t"
                         "movdqu 16(%1), %%xmm1\n\t"
                         "mov 32(%1), %%rdx\n\t"
                         "movups %%xmm0, (%0)\n\t"
                         "movups %%xmm1, 16(%0)\n\t"
                         "mov %%rdx, 32(%0)\n\t"
                         "xor %%edx, %%edx\n\t"
                         "pxor %%xmm0, %%xmm0\n\t"
                         "pxor %%xmm1, %%xmm1"
                         : : "r"(copy), "r"(words) : "rdx", "xmm0", "xmm1", "cc", "memory");
}

void copy_whole(long *to, const long *from);
__asm__(".text\n"
        "copy_whole: movdqu (%rsi), %xmm1\n"
        "            movups %xmm1, (%rdi)\n"
        "            ret\n");

static void work_between(long *words)
{
    volatile int sum = 0;
    words[1] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 100 == 0)
            copy_whole(words + 2, words);
        sum += i;
    }
}

int main(int argc, char **argv)
{
    long *words = argc > 1 ? malloc(64) : calloc(1, 64);
    pthread_t thread;

    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        pthread_create(&thread, NULL, work, words);
        pthread_join(thread, NULL);
    } else if (argc > 1 && strcmp(argv[1], "whole") == 0) {
        work_between(words);
    } else if (argc > 1 && strcmp(argv[1], "pieces") == 0) {
        work_in_pieces(words);
    } else {
        work(words);
    }
    free(words);
    return 0;
}
