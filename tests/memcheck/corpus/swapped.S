// SPDX-License-Identifier: MIT
//
// `a && b`, where b is tested first although it is undefined: silent if a is defined and decides.
#include "corpus_asm.h"

// %rdx is undefined; where the comparison holds, both ways lead to the same place.

.macro BY cc, first, second
    movl $\first, %ecx
    testq %rdx, %rdx
    jne 1f
    cmpl $\second, %ecx
    j\cc 1f
    nop
1:
.endm

CASE another_test_decides
    BLOCK 16
    movq (%rax), %rdx
    xorl %ecx, %ecx
    testq %rdx, %rdx
    jne 1f // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    testl %ecx, %ecx
    jne 2f
1:  nop
2:
END another_test_decides

CASE another_test_does_not
    BLOCK 16
    movq (%rax), %rdx
    movl $1, %ecx
    testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
    testl %ecx, %ecx
    jne 2f
1:  nop
2:
END another_test_does_not

// The second test is where the first one leads to.
CASE another_test_behind_the_jump
    BLOCK 16
    movq (%rax), %rdx
    movl $3, %ecx
    testq %rdx, %rdx
    je 2f
1:  nop
    jmp 3f
    nop
2:  cmpl $3, %ecx
    je 1b
3:
END another_test_behind_the_jump

CASE another_test_of_memory
    BLOCK 32
    movq (%rax), %rdx
    movb $0x80, 8(%rax)
    movl $-5, 16(%rax)
    movl $8, %ecx
    testq %rdx, %rdx
    jne 1f // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    movsbl (%rax,%rcx), %esi
    cmpl $-128, %esi
    je 1f
    nop
1:  testq %rdx, %rdx
    jne 1f // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    cmpl $-5, 8(%rax,%rcx)
    jge 1f
    nop
1:  testq %rdx, %rdx
    jne 1f // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    movslq 16(%rax), %rsi
    testq %rsi, %rsi
    js 1f
    nop
1:  testq %rdx, %rdx
    jne 1f // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    movzbl 8(%rax), %edi
    cmpb $0x7f, %dil
    jo 1f // a - b of -128 and 127
    nop
1:
END another_test_of_memory

// What it would test is undefined as well, or not there.
CASE another_test_is_undefined
    BLOCK 16
    movq (%rax), %rdx
    movq 8(%rax), %rcx
    testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
    testq %rcx, %rcx
    je 1f // MAYBE memcheck uninit-branch origin=heap
    nop
1:
END another_test_is_undefined

CASE another_test_is_nowhere
    BLOCK 16
    movq (%rax), %rdx
    xorl %ecx, %ecx
    xorq (%rax), %rdx
    testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
2:  nop
    jmp 3f
1:  cmpq $0, (%rcx)
    je 2b
3:
END another_test_is_nowhere

// It ends in something else than that place, or does more than to load and compare.
CASE another_test_leads_elsewhere
    BLOCK 16
    movq (%rax), %rdx
    xorl %ecx, %ecx
    testq %rdx, %rdx
    jne 1f // EXPECT-MUNINN memcheck uninit-branch origin=heap why=swapped-tests
    testl %ecx, %ecx
    je 2f // EXPECT-VALGRIND memcheck uninit-branch origin=heap why=swapped-tests
1:  nop
2:  testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
    movl %ecx, 8(%rax)
    testl %ecx, %ecx
    je 1f
    nop
1:
END another_test_leads_elsewhere

// What the other test loads is used where both lead to: it is as undefined as the way was.
CASE another_test_loads_what_is_wanted
    BLOCK 16
    movq (%rax), %rdx
    movq $7, 8(%rax)
    xorl %esi, %esi
    testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
    movq 8(%rax), %rsi
    cmpq $7, %rsi
    je 1f
    nop
1:  movq %rsi, 8(%rax)
END another_test_loads_what_is_wanted

// A jump with a prefix, and a constant with a sign.
CASE another_test_in_unusual_forms
    BLOCK 16
    movq (%rax), %rdx
    xorl %ecx, %ecx
    testq %rdx, %rdx
    jne 1f // EXPECT-MUNINN memcheck uninit-branch origin=heap why=swapped-tests
    testl %ecx, %ecx // EXPECT-VALGRIND memcheck uninit-branch origin=heap why=swapped-tests
    .byte 0x2e, 0x0f, 0x85
    .long 1f - . - 4
    nop
1:  testq %rdx, %rdx
    jne 1f // EXPECT memcheck uninit-branch origin=heap
    movq $-305419896, %rcx
    testq %rcx, %rcx
    jns 1f
    nop
1:
END another_test_in_unusual_forms

CASE each_condition_decides
    BLOCK 16
    movq (%rax), %rdx
    BY b, 5, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY ae, 7, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY e, 7, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY ne, 5, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY be, 7, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY a, -1, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY s, 5, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY ns, 7, 5 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY p, 7, 4 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY np, 7, 5 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY l, -1, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY ge, 7, -1 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY le, 7, 7 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY g, 7, -1 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY o, 0x80000000, 1 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
    BY no, 7, 1 // MAYBE-VALGRIND memcheck uninit-branch why=swapped-tests
END each_condition_decides

CASE each_condition_does_not
    BLOCK 16
    movq (%rax), %rdx
    BY b, 7, 5 // EXPECT memcheck uninit-branch
    BY ae, 5, 7 // EXPECT memcheck uninit-branch
    BY e, 5, 7 // EXPECT memcheck uninit-branch
    BY ne, 7, 7 // EXPECT memcheck uninit-branch
    BY be, -1, 7 // EXPECT memcheck uninit-branch
    BY a, 5, 7 // EXPECT memcheck uninit-branch
    BY s, 7, 5 // EXPECT memcheck uninit-branch
    BY ns, 5, 7 // EXPECT memcheck uninit-branch
    BY p, 7, 5 // EXPECT memcheck uninit-branch
    BY np, 7, 4 // EXPECT memcheck uninit-branch
    BY l, 7, -1 // EXPECT memcheck uninit-branch
    BY ge, -1, 7 // EXPECT memcheck uninit-branch
    BY le, 7, -1 // EXPECT memcheck uninit-branch
    BY g, -1, 7 // EXPECT memcheck uninit-branch
    BY o, 7, 1 // EXPECT memcheck uninit-branch
    BY no, 0x80000000, 1 // EXPECT memcheck uninit-branch
END each_condition_does_not
