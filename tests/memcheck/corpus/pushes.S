// SPDX-License-Identifier: MIT
//
// What is pushed and popped keeps its definedness, whichever way it takes: from a register or from
// memory, with and without a displacement, to memory, of other sizes; as arguments on the stack are.
#include "corpus_asm.h"

// Branches on rax.
.macro ASK
    testq %rax, %rax
    jz 1f
    nop
1:
.endm

CASE pushed_from_memory
    BLOCK 8
    movq %rax, %rdi
    pushq (%rdi)
    popq %rax
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_from_memory

CASE pushed_with_displacement
    BLOCK 64
    leaq 64(%rax), %rdi
    pushq -8(%rdi)
    movq (%rsp), %rax
    leaq 8(%rsp), %rsp
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_with_displacement

CASE pushed_with_index
    BLOCK 64
    movl $3, %ecx
    pushq 8(%rax,%rcx,8)
    cmpq $0, (%rsp)
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:  popq %rax
END pushed_with_index

CASE pushed_after_a_load
    BLOCK 8
    movq (%rax), %rcx
    pushq %rcx
    xorl %ecx, %ecx
    popq %rdx
    testq %rdx, %rdx
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_after_a_load

CASE pushed_as_argument
    BLOCK 16
    pushq 8(%rax)
    pushq (%rax)
    call 2f
    addq $16, %rsp
    ret
2:  movq 16(%rsp), %rax
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_as_argument

CASE pushed_while_flags_live
    BLOCK 8
    cmpq $1, %rsp
    pushq (%rax)
    sbbl %ecx, %ecx
    popq %rax
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_while_flags_live

CASE pushed_word
    BLOCK 2
    pushw (%rax)
    popw %ax
    testw %ax, %ax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_word

CASE pushed_twice
    BLOCK 8
    pushq (%rax)
    pushq (%rsp)
    pushq 8(%rsp)
    movq (%rsp), %rax
    addq $24, %rsp
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END pushed_twice

CASE popped_to_memory
    BLOCK 16
    pushq (%rax)
    popq 8(%rax)
    movq 8(%rax), %rcx
    testq %rcx, %rcx
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END popped_to_memory

CASE popped_to_the_stack
    BLOCK 8
    pushq $0
    pushq (%rax)
    popq (%rsp)
    movq (%rsp), %rcx
    leaq 8(%rsp), %rsp
    testq %rcx, %rcx
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END popped_to_the_stack

// What is pushed over something undefined is defined.
CASE pushed_over_what_is_undefined
    BLOCK 8
    pushq (%rax)
    leaq 8(%rsp), %rsp
    pushq $7
    popq %rcx
    pushq (%rax)
    leaq 8(%rsp), %rsp
    movl $3, %eax
    pushq %rax
    popq %rax
    addq %rcx, %rax
    ASK
END pushed_over_what_is_undefined

CASE moved_by_one_string_instruction
    BLOCK 16
    movq %rax, %rsi
    leaq 8(%rax), %rdi
    movsq
    movq -8(%rdi), %rax
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END moved_by_one_string_instruction
