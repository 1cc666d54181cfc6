// SPDX-License-Identifier: MIT
//
// CASE for assembly: opens a function and registers it with main, which is assembly too.

.macro CASE name
    .section .rodata
    .Lname_\name: .asciz "\name"
    .section cases, "aw"
    .quad .Lname_\name, \name\()_case
    .text
    .globl \name\()_case
    .type \name\()_case, @function
    \name\()_case:
.endm

.macro END name
    ret
    .size \name\()_case, . - \name\()_case
.endm

// rax := a new block.
.macro BLOCK size
    movl $\size, %edi
    subq $8, %rsp
    call malloc@PLT
    addq $8, %rsp
.endm

    .section .note.GNU-stack, "", @progbits
    .text
    .globl main
    .type main, @function
main:
    pushq %rbx
    pushq %r12
    pushq %r13
    movq 8(%rsi), %r12
    leaq __start_cases(%rip), %rbx
    leaq __stop_cases(%rip), %r13
1:  cmpq %r13, %rbx
    jae 2f
    movq (%rbx), %rdi
    movq %r12, %rsi
    call strcmp@PLT
    testl %eax, %eax
    jz 3f
    addq $16, %rbx
    jmp 1b
2:  movl $99, %eax
    jmp 4f
3:  call *8(%rbx)
    xorl %eax, %eax
4:  popq %r13
    popq %r12
    popq %rbx
    ret
    .size main, . - main
