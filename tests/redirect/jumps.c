// SPDX-License-Identifier: MIT
//
// Calls that do not end: longjmp out of one, out of nested ones into the outer,
// in a loop from one call site; other stacks while a call is under way.
// BUILD: dynamic nopie static
// STDOUT: out 0 nested 11 loop 1000 other 42 alt 1
// ORDER: selftest_logged enter 1
// ORDER: selftest_logged enter 2
// ORDER: selftest_logged_too enter 3
// ORDER: selftest_logged 2 returns 11
// ORDER: selftest_logged enter 20
// ORDER: selftest_logged_too enter 21
// ORDER: selftest_logged 20 returns 40
// ORDER: selftest_logged_too 21 returns 42
// ORDER: selftest_logged enter 30
// ORDER: selftest_logged_too enter 31
// ORDER: selftest_logged_too 31 returns 31
// ORDER: selftest_logged 30 returns 1
// LOG: selftest_logged calls 4 returns 3
// LOG: selftest_logged_too calls 3 returns 2
// LOG: selftest_counted* calls 2000 returns 1000
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define KEEP __attribute__((noinline, noipa))

static jmp_buf back, inner;
static ucontext_t main_context, other_context;
static volatile int handled;
static char other_stack[64 * 1024], alt_stack[64 * 1024];

KEEP long selftest_logged_too(long n)
{
    if (n == 3)
        longjmp(inner, 10);
    if (n == 21)
        swapcontext(&other_context, &main_context); // leaves this call under way
    return n == 31 ? n : 2 * n;
}

KEEP long selftest_logged(long n)
{
    if (n == 1)
        longjmp(back, 1);
    if (n == 2) {
        int arrived = setjmp(inner);
        return arrived ? arrived + 1 : selftest_logged_too(3);
    }
    if (n == 20)
        swapcontext(&main_context, &other_context);
    if (n == 30) {
        raise(SIGUSR1);
        return handled;
    }
    return 2 * n;
}

KEEP long selftest_counted(long n)
{
    if (n)
        longjmp(back, 1);
    return 0;
}

static void on_other_stack(void)
{
    printf("other %ld", selftest_logged_too(21));
    swapcontext(&other_context, &main_context);
}

static void on_signal(int sig)
{
    (void)sig;
    handled = selftest_logged_too(31) == 31;
}

int main(void)
{
    volatile int out = 0, loops = 0;
    if (setjmp(back) == 0)
        out += (int)selftest_logged(1) + 1;
    long nested = selftest_logged(2);
    for (volatile int i = 0; i < 2000; i++) {
        if (setjmp(back) == 0)
            selftest_counted(i & 1);
        else
            loops++;
    }
    printf("out %d nested %ld loop %d ", out, nested, loops);

    getcontext(&other_context);
    other_context.uc_stack.ss_sp = other_stack;
    other_context.uc_stack.ss_size = sizeof other_stack;
    makecontext(&other_context, on_other_stack, 0);
    if (selftest_logged(20) != 40)
        return 1;
    swapcontext(&main_context, &other_context); // the other call returns now

    stack_t alt = {.ss_sp = alt_stack, .ss_size = sizeof alt_stack};
    sigaltstack(&alt, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    printf(" alt %ld\n", selftest_logged(30));
    return 0;
}
