// SPDX-License-Identifier: MIT
// BUILD: -O1
// STRESS: tiny-blocks
//
// rt_sigreturn called by hand on a copy of the frame at another place, as language runtimes and
// stack-switching libraries do; and a frame returned to after another handler has run.
#include "guest.h"
#include <ucontext.h>

static _Alignas(64) char copy[32768];
static volatile int hits;

__attribute__((noreturn)) static void return_through(void *frame)
{
    __asm__ volatile("mov %0, %%rsp; mov $15, %%eax; syscall; ud2" : : "r"(frame) : "memory");
    __builtin_unreachable();
}

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    hits++;
    // A frame is a return address, the ucontext, the siginfo, and the xsave area fpregs points to.
    ucontext_t *uc = context;
    size_t state_size = ((uint32_t *)((char *)uc->uc_mcontext.fpregs + 464))[1];
    char *state = copy + 16384;
    memcpy(copy + 8192, uc, sizeof *uc);
    memcpy(state, uc->uc_mcontext.fpregs, state_size);
    ucontext_t *moved = (ucontext_t *)(copy + 8192);
    moved->uc_mcontext.fpregs = (void *)state;
    moved->uc_mcontext.gregs[REG_R12] += 1000;
    return_through(moved);
}

int main(void)
{
    on_signal(SIGILL, handler, 0);
    on_signal(SIGUSR1, handler, 0);
    uint64_t r12;
    for (int i = 0; i < 1000; i++) {
        __asm__ volatile("mov $7, %%r12d\n\t"
                         "mov $39, %%eax; syscall; mov %%eax, %%edi; mov $10, %%esi\n\t"
                         "sub $256, %%rsp; mov $62, %%eax; syscall; add $256, %%rsp\n\t"
                         "mov %%r12, %0"
                         : "=r"(r12)
                         : : "rax", "rcx", "rdi", "rsi", "r11", "r12", "memory", "cc");
        CHECK(r12 == 1007);
    }
    say("r12 %lu, hits %d\n", (unsigned long)r12, hits);
    return 0;
}
