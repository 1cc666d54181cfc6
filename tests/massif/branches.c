// SPDX-License-Identifier: MIT
//
// What massif's quick ways through calls and returns must leave alone: flags that a function
// returns, as no C compiler makes them, and constant places that say another target now.
#include <stdio.h>

__asm__(".text\n"
        "says_carry: movl $3, %edx\n\tstc\n\tret\n"
        "says_none: pushq %rbp\n\tmovq %rsp, %rbp\n\tclc\n\tpopq %rbp\n\tret\n"
        "says_less: movl $3, %edx\n\tcmpl $5, %edx\n\tret\n"
        "gives_one: movl $1, %eax\n\tret\n"
        "gives_two: movl $2, %eax\n\tret\n"
        "jumps_there: jmp *place(%rip)\n"
        ".data\n"
        ".balign 8\n"
        "place: .quad gives_one\n"
        "other: .quad gives_two\n"
        ".text\n");

#define CALL(target, read, result) \
    __asm__ volatile("subq $256, %%rsp\n\tcall " target "\n\t" read \
                     "leaq 256(%%rsp), %%rsp" \
                     : "=a"(result) : : "rcx", "rdx", "r11", "memory", "cc")
#define FLAG(set) set " %%al\n\tmovzbl %%al, %%eax\n\t"

int main(void)
{
    int carry, none, less, called, jumped;
    for (int i = 0; i < 6; i++) {
        CALL("says_carry", FLAG("setc"), carry);
        CALL("says_none", FLAG("setc"), none);
        CALL("says_less", FLAG("setl"), less);
        CALL("*place(%%rip)", "", called);
        CALL("jumps_there", "", jumped);
        printf("%d %d %d %d %d\n", carry, none, less, called, jumped);
        __asm__ volatile("movq place(%%rip), %%rax\n\tmovq other(%%rip), %%rcx\n\t"
                         "movq %%rcx, place(%%rip)\n\tmovq %%rax, other(%%rip)"
                         : : : "rax", "rcx", "memory");
    }
    return 0;
}
