// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// Handlers with SA_ONSTACK run on the alternate stack, nested ones further down it, others stay;
// sigaltstack reports its state and refuses what it must; SS_AUTODISARM disarms and re-arms.
#include "guest.h"
#include <ucontext.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { SIZE = 65536 };
static char alternate[SIZE], second[SIZE];
static char *outer_frame;

static bool on_alternate(const char *p)
{
    return p >= alternate && p < alternate + SIZE;
}

static void nested(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    char local;
    say("nested %d: on alternate %d, below the outer %d\n", sig, on_alternate(&local),
        &local < outer_frame);
}

static void outer(int sig, siginfo_t *info, void *context)
{
    (void)info;
    const ucontext_t *uc = context;
    char local;
    outer_frame = &local;
    stack_t now, other = {.ss_sp = second, .ss_size = SIZE};
    sigaltstack(NULL, &now);
    say("outer %d: on alternate %d, flags %x, uc_stack %d %zu %x\n", sig, on_alternate(&local),
        now.ss_flags, uc->uc_stack.ss_sp == alternate, uc->uc_stack.ss_size, uc->uc_stack.ss_flags);
    SHOW(sigaltstack(&other, NULL));
    raise(SIGUSR2);
}

int main(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = SIZE}, old;
    SHOW(sigaltstack(&stack, &old));
    say("old: flags %d\n", old.ss_flags);
    on_signal(SIGUSR2, nested, SA_ONSTACK);
    on_signal(SIGUSR1, outer, SA_ONSTACK);
    raise(SIGUSR1);
    say("-- the handler not on the stack\n");
    on_signal(SIGUSR1, outer, 0);
    raise(SIGUSR1);
    CHECK(sigaltstack(&stack, NULL) == 0);
    say("-- auto-disarm\n");
    stack.ss_flags = SS_AUTODISARM;
    SHOW(sigaltstack(&stack, NULL));
    on_signal(SIGUSR1, outer, SA_ONSTACK);
    raise(SIGUSR1);
    sigaltstack(NULL, &old);
    say("re-armed: %d flags %x\n", old.ss_sp == alternate, old.ss_flags);

    say("-- refusals\n");
    stack_t tiny = {.ss_sp = alternate, .ss_size = 100}, odd = {.ss_sp = alternate, .ss_flags = 77};
    SHOW(sigaltstack(&tiny, NULL));
    SHOW(sigaltstack(&odd, NULL));
    SHOW(sigaltstack((stack_t *)8, NULL));
    stack_t off = {.ss_flags = SS_DISABLE};
    SHOW(sigaltstack(&off, NULL));
    sigaltstack(NULL, &old);
    say("disabled: %d\n", old.ss_flags == SS_DISABLE);
    return 0;
}
