// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// Coroutines on stacks of their own: ucontext, and a hand-written switch of stacks.
#include "guest.h"
#include <ucontext.h>

enum { COROUTINES = 10, ROUNDS = 2000 };
static ucontext_t main_context, contexts[COROUTINES];
static long sums[COROUTINES];

static void body(int id)
{
    for (int i = 0; i < ROUNDS; i++) {
        sums[id] += id * i;
        swapcontext(&contexts[id], &contexts[(id + 1) % COROUTINES]);
    }
}

void switch_stack(void **save, void *to);
__asm__(".text\n"
        "switch_stack:\n"
        "    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "    ret\n");

static void *main_stack, *other_stack;
static long ping_pongs;

static void other_body(void)
{
    for (;;) {
        ping_pongs++;
        switch_stack(&other_stack, main_stack);
    }
}

int main(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(65536);
        contexts[i].uc_stack.ss_size = 65536;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))body, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    for (int i = 0; i < COROUTINES; i++)
        say("%ld ", sums[i]);

    void **top = (void **)((char *)malloc(65536) + 65536 - 64);
    *--top = NULL;
    *--top = (void *)other_body;
    other_stack = top - 6;
    for (int i = 0; i < 100000; i++)
        switch_stack(&main_stack, other_stack);
    say("\nping-pongs %ld\n", ping_pongs);
    return 0;
}
