// SPDX-License-Identifier: MIT
// BUILD: -O1
// STRESS: tiny-blocks
//
// What the ABI promises at the first instruction of a handler: arguments, rax zero, direction flag
// clear, an aligned stack below the red zone, an xsave area that describes itself, and a return
// address that leads to the restorer.
#include "guest.h"
#include <ucontext.h>

uint64_t entry[8];
void raw_handler(int, siginfo_t *, void *);
__asm__(".text\nraw_handler:\n"
        "pushfq; pop entry(%rip)\n"
        "mov %rdi, entry+8(%rip); mov %rsi, entry+16(%rip); mov %rdx, entry+24(%rip)\n"
        "mov %rax, entry+32(%rip); mov %rsp, entry+40(%rip)\n"
        "mov (%rsp), %rax; mov %rax, entry+48(%rip)\n"
        "ret\n");

static void shape_handler(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    const ucontext_t *uc = context;
    const uint32_t *reserved = (const uint32_t *)((const char *)uc->uc_mcontext.fpregs + 464);
    say("uc_flags has xstate %d, sigcontext ss %d, link %d\n", (int)(uc->uc_flags & 1),
        (int)(uc->uc_flags >> 1 & 1), uc->uc_link != NULL);
    say("fpregs aligned %lu, magic %x, extended size > 512 %d, features %x\n",
        (unsigned long)uc->uc_mcontext.fpregs % 64, reserved[0], reserved[1] > 512, reserved[2]);
    const uint32_t *end = (const uint32_t *)((const char *)uc->uc_mcontext.fpregs + reserved[4]);
    say("closing magic %x\n", *end);
    long long segments = uc->uc_mcontext.gregs[REG_CSGSFS];
    say("siginfo above %d, cs %llx ss %llx\n", (char *)info > (char *)uc, segments & 0xffff,
        segments >> 48 & 0xffff);
    say("control %x mxcsr %x\n", uc->uc_mcontext.fpregs->cwd, uc->uc_mcontext.fpregs->mxcsr);
}

int main(void)
{
    on_signal(SIGUSR1, raw_handler, 0);
    uint64_t rsp;
    __asm__ volatile("sub $512, %%rsp\n\t" // beyond the red zone of this function
                     "mov %%rsp, %%rbx\n\t"
                     "mov $39, %%eax; syscall; mov %%eax, %%edi; mov $10, %%esi\n\t"
                     "mov $62, %%eax; std; syscall; cld\n\t"
                     "add $512, %%rsp\n\t"
                     "mov %%rbx, %0"
                     : "=r"(rsp) : : "rax", "rbx", "rcx", "rdi", "rsi", "r11", "memory", "cc");
    say("direction flag %lu, signal %lu, rax %lu\n", entry[0] >> 10 & 1, entry[1], entry[4]);
    say("rsp %% 16 = %lu, below the red zone %d\n", entry[5] % 16, entry[5] < rsp - 128);
    say("ucontext at the return address's neighbour %d\n", entry[3] == entry[5] + 8);
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    say("return address is the restorer %d\n", entry[6] == (uint64_t)action.sa_restorer);
    on_signal(SIGUSR2, shape_handler, 0);
    raise(SIGUSR2);
    return 0;
}
