// SPDX-License-Identifier: MIT
// BUILD: -O1 -no-pie -fno-pie
// STRESS: tiny-blocks
// STRESS: no-link
//
// A handler edits the interrupted registers in its ucontext and returns: rip skips the fault, and
// general registers, flags and vector registers come back as edited.
#include "guest.h"
#include <ucontext.h>

static int edit;
extern char landing[];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
    m->gregs[REG_RIP] += 2;
    switch (edit) {
    case 0:
        m->gregs[REG_RAX] = 0x1234;
        m->gregs[REG_R15] = 0x5678;
        break;
    case 1:
        m->gregs[REG_EFL] = (m->gregs[REG_EFL] & ~0x8d5LL) | 0x841;
        break;
    case 2:
        m->fpregs->_xmm[3].element[0] = 0xdeadbeef;
        m->fpregs->_xmm[3].element[3] = 0xcafe;
        break;
    case 3:
        m->gregs[REG_RIP] = (greg_t)landing;
        break;
    case 4:
        m->fpregs->mxcsr = 0x7f80;
        break;
    }
}

int main(void)
{
    on_signal(SIGILL, handler, 0);
    uint64_t rax = 1, r15 = 2, flags = 0;
    edit = 0;
    __asm__ volatile("mov $0x99, %%r15; mov $0x77, %%eax; ud2; mov %%r15, %1"
                     : "=&a"(rax), "=r"(r15) : : "r15");
    say("registers %lx %lx\n", rax, r15);
    edit = 1;
    __asm__ volatile("xor %%eax, %%eax; add $1, %%eax; ud2; pushfq; pop %0"
                     : "=r"(flags) : : "rax");
    say("flags %lx\n", flags & 0x8d5);
    edit = 2;
    uint32_t lanes[4];
    __asm__ volatile("pcmpeqd %%xmm3, %%xmm3; ud2; movups %%xmm3, %0" : "=m"(lanes) : : "xmm3");
    say("xmm3 %x %x %x %x\n", lanes[0], lanes[1], lanes[2], lanes[3]);
    edit = 3;
    uint64_t where = 0;
    __asm__ volatile("xor %0, %0; ud2; jmp 1f; ud2; .globl landing; landing: mov $42, %0; 1:"
                     : "=&r"(where));
    say("landed %lu\n", where);
    edit = 4;
    uint32_t mxcsr;
    __asm__ volatile("ud2; stmxcsr %0" : "=m"(mxcsr));
    say("mxcsr %x\n", mxcsr);
    mxcsr = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));

    edit = 9;
    long count = 0;
    for (int i = 0; i < 5000; i++)
        __asm__ volatile("inc %0; ud2; inc %0" : "+r"(count));
    say("skipped, count %ld\n", count);
    return 0;
}
