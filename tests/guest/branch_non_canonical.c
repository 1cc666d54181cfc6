// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=stacktest
// STDERR: any
// STRESS: tiny-blocks
// STRESS: no-link
//
// A branch to an address that is not canonical faults itself: rip is the branch, and nothing was
// pushed or popped. stacktest stands for the tools that keep the call stack; without one, the
// engine can tell so much of calls only (fault.c).
#include "guest.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf home;
uint64_t branch_sp;
static const char *branch_at;

static void handler(int sig, siginfo_t *info, void *context)
{
    const greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
    say("signal %d code %d address %p trap %d rip%+ld rsp%+ld rax %s\n", sig, info->si_code,
        info->si_addr, (int)gregs[REG_TRAPNO], (long)gregs[REG_RIP] - (long)branch_at,
        (long)gregs[REG_RSP] - (long)branch_sp,
        gregs[REG_RAX] == 0x4141414141414141 ? "kept" : "lost");
    siglongjmp(home, 1);
}

#define BRANCHES(X) \
    X(jmp_register, "", "jmp *%rax") \
    X(jmp_memory, "push %rax", "jmp *(%rsp)") \
    X(jmp_scaled, "push %rax; xor %ecx, %ecx", "jmp *(%rsp,%rcx,8)") \
    X(call_register, "mov %rax, %r9", "call *%r9") \
    X(call_memory, "push %rax", "call *(%rsp)") \
    X(ret_plain, "push %rax", "ret") \
    X(ret_dropping, "push %rax", "ret $24") \
    X(ret_repeated, "push %rax", ".byte 0xf3, 0xc3")

#define EMIT(name, before, branch) \
    void do_##name(void); \
    extern char at_##name[]; \
    __asm__(".text\ndo_" #name ":\n    movabs $0x4141414141414141, %rax\n    " before "\n" \
            "    mov %rsp, branch_sp(%rip)\n" \
            "at_" #name ": " branch "\n    ud2\n");
BRANCHES(EMIT)

static const struct {
    const char *name;
    void (*run)(void);
    const char *at;
} branches[] = {
#define ROW(name, before, branch) {#name, do_##name, at_##name},
    BRANCHES(ROW)
};

int main(void)
{
    on_signal(SIGSEGV, handler, 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
            say("%s: ", branches[i].name);
            branch_at = branches[i].at;
            if (sigsetjmp(home, 1) == 0)
                branches[i].run();
        }
    }
    return 0;
}
