// SPDX-License-Identifier: MIT
// BUILD: -O2 -mno-red-zone
// STRESS: tiny-blocks
// STRESS: no-link
//
// The odd forms of stack instructions: push and pop of rsp, memory operands relative to rsp, 16-bit
// pushes, enter and leave with levels, ret imm16, call through [rsp+n], pushf/popf, segment pushes.
#include "guest.h"

static uint64_t a, b, c, d;

static void show(const char *what)
{
    say("%s: %lx %lx %lx %lx\n", what, a, b, c, d);
    a = b = c = d = 0;
}

#define ASM(...) __asm__ volatile(__VA_ARGS__ : "rax", "rcx", "rdx", "rsi", "memory", "cc")

static void pushes_of_rsp(void)
{
    ASM("mov %%rsp, %%rcx; push %%rsp; pop %%rax; sub %%rcx, %%rax; mov %%rax, %0\n\t"
        "mov %%rsp, %%rcx; lea -256(%%rsp), %%rax; push %%rax; pop %%rsp\n\t"
        "mov %%rsp, %%rax; mov %%rcx, %%rsp; sub %%rcx, %%rax; mov %%rax, %1\n\t"
        : "=m"(a), "=m"(b) :);
    show("push rsp, pop rsp");
    ASM("push $0x11; push $0x22; pushq 8(%%rsp); pop %%rax; mov %%rax, %0\n\t"
        "popq 8(%%rsp); pop %%rcx; pop %%rax; mov %%rax, %1; mov %%rcx, %2; sub $8, %%rsp\n\t"
        : "=m"(a), "=m"(b), "=m"(c) :);
    show("push and pop of memory at rsp");
    ASM("mov %%rsp, %%rcx; mov $0x1234, %%eax; push %%ax; mov %%rcx, %%rdx; sub %%rsp, %%rdx\n\t"
        "mov %%rdx, %0; xor %%eax, %%eax; pop %%ax; mov %%rax, %1; pushw $-2\n\t"
        "movzwl (%%rsp), %%eax; mov %%rax, %2; mov %%rcx, %%rsp"
        : "=m"(a), "=m"(b), "=m"(c) :);
    show("16-bit pushes");
    ASM("push $-5; popq %0; push $0x7fffffff; popq %1; push %%fs; pop %%rax; movzwl %%ax, %%eax\n\t"
        "mov %%rax, %2; push %%gs; pop %%gs; mov %%cs, %%eax; mov %%rax, %3"
        : "=m"(a), "=m"(b), "=m"(c), "=m"(d) :);
    show("immediates and segments");
}

static void enter_and_leave(void)
{
    ASM("mov %%rbp, %%rsi; mov %%rsp, %%rcx; enter $48, $0; mov %%rcx, %%rax; sub %%rsp, %%rax\n\t"
        "mov %%rax, %0; mov %%rcx, %%rax; sub %%rbp, %%rax; leave; mov %%rax, %1\n\t"
        "sub %%rsp, %%rcx; mov %%rcx, %2; sub %%rbp, %%rsi; mov %%rsi, %3"
        : "=m"(a), "=m"(b), "=m"(c), "=m"(d) :);
    show("enter 48,0");
    ASM("mov %%rbp, %%rsi; mov %%rsp, %%rbp; mov %%rsp, %%rcx; enter $16, $2\n\t"
        "mov %%rcx, %%rax; sub %%rsp, %%rax; leave; mov %%rsi, %%rbp\n\t"
        "mov %%rax, %0; sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("enter 16,2");
}

static void calls_and_returns(void)
{
    ASM("mov %%rsp, %%rcx; push $1; push $2; push $3; call 1f; jmp 2f\n\t"
        "1: mov 8(%%rsp), %%rax; mov %%rax, %0; ret $24\n\t"
        "2: sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("ret 24");
    ASM("mov %%rsp, %%rcx; lea 1f(%%rip), %%rax; push %%rax; push $7; mov $5, %%edx\n\t"
        "call *8(%%rsp); jmp 2f\n\t"
        "1: add 8(%%rsp), %%rdx; ret\n\t"
        "2: add $16, %%rsp; mov %%rdx, %0; sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("call *8(rsp)");
    ASM("mov %%rsp, %%rcx; lea 1f(%%rip), %%rax; push %%rax; push $9; jmp *8(%%rsp)\n\t"
        "ud2\n\t"
        "1: pop %%rax; mov %%rax, %0; pop %%rax; sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("jmp *8(rsp)");
    ASM("call 1f; 1: pop %%rax; lea 1b(%%rip), %%rcx; sub %%rcx, %%rax; mov %%rax, %0\n\t"
        "lea 3f(%%rip), %%rax; mov %%rsp, %%rcx; push %%rax; mov %%rsp, %%rdx; call *(%%rdx)\n\t"
        "3: mov %%rcx, %%rax; sub %%rsp, %%rax; mov %%rcx, %%rsp; mov %%rax, %1"
        : "=m"(a), "=m"(b) :);
    show("call next, call *(rdx)");
}

static void flags_and_far_returns(void)
{
    ASM("push $0x8d5; popfq; pushfq; pop %%rax; and $0xcd5, %%eax; mov %%rax, %0\n\t"
        "push $0x400; popfq; pushfq; cld; pop %%rax; and $0xcd5, %%eax; mov %%rax, %1\n\t"
        "mov $0xd5, %%ah; sahf; lahf; movzbl %%ah, %%eax; mov %%rax, %2\n\t"
        "pushw $0x801; popfw; pushfw; pop %%ax; and $0xcd5, %%eax; mov %%rax, %3"
        : "=m"(a), "=m"(b), "=m"(c), "=m"(d) :);
    show("pushf, popf");
    ASM("mov %%rsp, %%rcx; mov %%ss, %%eax; push %%rax; push %%rcx; push $0x8c5\n\t"
        "mov %%cs, %%eax; push %%rax; lea 1f(%%rip), %%rax; push %%rax; iretq\n\t"
        "ud2\n\t"
        "1: pushfq; pop %%rax; and $0xcd5, %%eax; mov %%rax, %0; sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("iretq");
    ASM("mov %%rsp, %%rcx; mov %%cs, %%eax; push %%rax; lea 1f(%%rip), %%rax; push %%rax\n\t"
        "stc; lretq\n\t"
        "ud2\n\t"
        "1: setc %%al; movzbl %%al, %%eax; mov %%rax, %0; sub %%rsp, %%rcx; mov %%rcx, %1"
        : "=m"(a), "=m"(b) :);
    show("retfq");
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        pushes_of_rsp();
        enter_and_leave();
        calls_and_returns();
        flags_and_far_returns();
    }
    return 0;
}
