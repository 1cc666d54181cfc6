// SPDX-License-Identifier: MIT
//
// outer() starts inner() on a stack of its own, which is left in its middle by a switch of stacks and
// gone on with after outer() has returned. The stacks are in one mapping, and in that of main's
// data, so that nothing tells them from each other but who runs on them.
#include <stdio.h>
#include <ucontext.h>

enum { STACK = 65536 };
static char stacks[2][STACK] __attribute__((aligned(4096)));
static ucontext_t main_context, contexts[2];

__attribute__((noipa)) long inner(long n)
{
    swapcontext(&contexts[1], &contexts[0]);
    return n + 1;
}

static void run_inner(void)
{
    inner(1);
    swapcontext(&contexts[1], &contexts[0]);
}

__attribute__((noipa)) long outer(long n)
{
    swapcontext(&contexts[0], &contexts[1]);
    return n + 2;
}

static void run_outer(void)
{
    outer(2);
    swapcontext(&contexts[0], &contexts[1]); // inner() goes on
    setcontext(&main_context);
}

int main(void)
{
    // inner() is on the lower stack: to a naive eye it is deeper.
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[1 - i];
        contexts[i].uc_stack.ss_size = STACK;
    }
    makecontext(&contexts[0], run_outer, 0);
    makecontext(&contexts[1], run_inner, 0);
    swapcontext(&main_context, &contexts[0]);
    puts("done");
    return 0;
}
