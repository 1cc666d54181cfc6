// SPDX-License-Identifier: MIT
// BUILD: -O1 -Wl,-z,lazy
// STRESS: tiny-cache
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=signals
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=tiny-cache
//
// Jumps through a table whose words lead to what binds them, at first: those of this program, and
// two written here, of both forms that linkers make. Words that are bound are changed, and unbound
// again, between one call and the next.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int plain(int n), marked(int n);
void plain_unbound(void), marked_unbound(void);
extern void *plain_word, *marked_word;
int bound_count;

__asm__(".text\n"
        "plain: jmp *plain_word(%rip)\n"
        "plain_unbound: push $1\n jmp bind\n"
        "marked: endbr64\n bnd jmp *marked_word(%rip)\n"
        "marked_unbound: endbr64\n push $2\n bnd jmp bind\n"
        // As the dynamic linker does: the number goes, the word is set, and on to the function.
        "bind: incl bound_count(%rip)\n"
        "pop %rax\n"
        "lea add_one(%rip), %rdx\n"
        "cmp $1, %rax\n je 1f\n"
        "lea add_two(%rip), %rdx\n mov %rdx, marked_word(%rip)\n jmp *%rdx\n"
        "1: mov %rdx, plain_word(%rip)\n jmp *%rdx\n"
        ".data\n"
        ".balign 8\n"
        ".globl plain_word\n plain_word: .quad plain_unbound\n"
        ".globl marked_word\n marked_word: .quad marked_unbound\n"
        ".text\n");

__attribute__((noinline, used)) int add_one(int n)
{
    return n + 1;
}

__attribute__((noinline, used)) int add_two(int n)
{
    return n + 2;
}

__attribute__((noinline)) static int add_three(int n)
{
    return n + 3;
}

static void *count(void *arg)
{
    int sum = 0;
    for (int i = 0; i < 20000; i++)
        sum = marked(plain(sum)) & 0xffff;
    *(int *)arg = sum;
    return NULL;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += plain(i) * 3 + marked(i);
        if (i % 7 == 3)
            plain_word = (void *)plain_unbound;
        if (i % 5 == 1)
            marked_word = i % 2 ? (void *)marked_unbound : (void *)add_three;
    }
    printf("%d, bound %d times\n", sum, bound_count);

    // Two threads meet a word that is not bound.
    int sums[2];
    pthread_t threads[2];
    plain_word = (void *)plain_unbound;
    marked_word = (void *)marked_unbound;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, &sums[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", sums[0], sums[1]);

    // Functions of the C library, each three times.
    for (int i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d", abs(-i) + (int)strtol("40", NULL, 10));
        puts(strchr(text, '4'));
    }
    return 0;
}
