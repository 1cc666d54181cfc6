// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=often
//
// A copy of undefined bytes, and then a chain of jumps, further than anybody looks ahead for what
// reads the register: on the small stack of a thread, too.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void copy(void *to, const void *from);
__asm__(".text\n"
        "copy: movdqu (%rsi), %xmm5\n"
        "      movups %xmm5, (%rdi)\n"
        "      .rept 200\n"
        "      jmp 1f\n"
        "      ud2\n"
        "   1:\n"
        "      .endr\n"
        "      pxor %xmm5, %xmm5\n"
        "      ret\n");

static void *work(void *unused)
{
    char *from = malloc(64), *to = malloc(64);
    (void)unused;
    for (int i = 0; i < 3000; i++) // often
        copy(to, from);
    free(from);
    free(to);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    work(NULL);
    puts("done");
    return 0;
}
