// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=tiny-blocks
// MUNINN: --tool=memcheck -q --stress=signals
// MUNINN: --tool=massif -q --recording=no --stress=tiny-blocks
// MUNINN: --tool=massif -q --recording=no --stress=signals
//
// Functions that return something in a flag, as Lisp's do, with instructions between it and the
// return. Their end is used by others too, which come there by a jump, and first. Whatever tears
// a block apart there, the flag has to arrive.
#include <stdio.h>

enum { ROUNDS = 3000 };

unsigned long call_none(void), call_carry(void), call_no_carry(void), call_equal(long a, long b);

__asm__(".text\n"
        "none:       push %rbp\n"
        "            mov %rsp, %rbp\n"
        "            jmp finish\n"
        "carry:      push %rbp\n"
        "            mov %rsp, %rbp\n"
        "            stc\n"
        "finish:     mov %rbp, %rsp\n"
        "            mov %rbx, %rdx\n"
        "            pop %rbp\n"
        "            ret\n"
        "no_carry:   push %rbp\n"
        "            mov %rsp, %rbp\n"
        "            clc\n"
        "            mov %rbp, %rsp\n"
        "            mov %rbx, %rdx\n"
        "            pop %rbp\n"
        "            ret\n"
        "equal:      push %rbp\n"
        "            cmp %rsi, %rdi\n"
        "            mov %rbx, %rdx\n"
        "            lea 8(%rdx), %rdx\n"
        "            pop %rbp\n"
        "            ret\n"
        ".globl call_none, call_carry, call_no_carry, call_equal\n"
        "call_none:     call none; mov $0, %eax; ret\n"
        "call_carry:    call carry; mov $0, %eax; adc %rax, %rax; ret\n"
        "call_no_carry: call no_carry; mov $0, %eax; adc %rax, %rax; ret\n"
        "call_equal:    call equal; mov $0, %eax; sete %al; ret\n");

int main(void)
{
    unsigned lost = 0;
    for (long i = 0; i < ROUNDS; i++) {
        lost += call_none() != 0;
        lost += call_carry() != 1;
        lost += call_no_carry() != 0;
        lost += call_equal(i, i) != 1;
        lost += call_equal(i, i + 1) != 0;
    }
    printf("%u lost\n", lost);
    return lost != 0;
}
