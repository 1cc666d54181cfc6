// SPDX-License-Identifier: MIT
//
// CASE for assembly: opens a function and registers it with main, which is assembly too. A case is
// run as often as argv[2] says, or once.

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
    subq $16, %rsp
    movq 8(%rsi), %r12
    movl $1, %eax
    cmpl $3, %edi
    jb 5f
    movq 16(%rsi), %rdi
    call atoi@PLT
5:  movl %eax, (%rsp)
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
3:  movq %rbx, 8(%rsp)
6:  movq 8(%rsp), %rbx
    call *8(%rbx)
    decl (%rsp)
    jg 6b
    xorl %eax, %eax
4:  addq $16, %rsp
    popq %r13
    popq %r12
    popq %rbx
    ret
    .size main, . - main
