// SPDX-License-Identifier: MIT
//
// Enters and leaves a case. The guest is linked at a fixed low address, so every
// register can be loaded from and stored to an absolute address without another
// register to point with, and nothing is pushed on the stack of the case.

#define GPR(array, number) array + 8 * number

    .text
    .globl run_case
run_case:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, harness_rsp
    mov xstate_mask, %eax
    xor %edx, %edx
    xrstor64 start_xstate
    pushq start_flags
    popfq
    mov GPR(start_gprs, 0), %rax
    mov GPR(start_gprs, 1), %rcx
    mov GPR(start_gprs, 2), %rdx
    mov GPR(start_gprs, 3), %rbx
    mov GPR(start_gprs, 4), %rsp
    mov GPR(start_gprs, 5), %rbp
    mov GPR(start_gprs, 6), %rsi
    mov GPR(start_gprs, 7), %rdi
    mov GPR(start_gprs, 8), %r8
    mov GPR(start_gprs, 9), %r9
    mov GPR(start_gprs, 10), %r10
    mov GPR(start_gprs, 11), %r11
    mov GPR(start_gprs, 12), %r12
    mov GPR(start_gprs, 13), %r13
    mov GPR(start_gprs, 14), %r14
    mov GPR(start_gprs, 15), %r15
    jmp *case_entry

    .globl exit_taken
exit_taken:
    movb $1, took_branch
    .globl exit_case
exit_case:
    mov %rax, GPR(end_gprs, 0)
    mov %rcx, GPR(end_gprs, 1)
    mov %rdx, GPR(end_gprs, 2)
    mov %rbx, GPR(end_gprs, 3)
    mov %rsp, GPR(end_gprs, 4)
    mov %rbp, GPR(end_gprs, 5)
    mov %rsi, GPR(end_gprs, 6)
    mov %rdi, GPR(end_gprs, 7)
    mov %r8, GPR(end_gprs, 8)
    mov %r9, GPR(end_gprs, 9)
    mov %r10, GPR(end_gprs, 10)
    mov %r11, GPR(end_gprs, 11)
    mov %r12, GPR(end_gprs, 12)
    mov %r13, GPR(end_gprs, 13)
    mov %r14, GPR(end_gprs, 14)
    mov %r15, GPR(end_gprs, 15)
    mov harness_rsp, %rsp
    pushfq
    popq end_flags
    pushq $0x202
    popfq
    mov xstate_mask, %eax
    xor %edx, %edx
    xsave64 end_xstate
    // A fault handler returns here, with rsp = harness_rsp and the state already saved.
    .globl leave_case
leave_case:
    cld
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

// The signal trampoline, and the entry point: rdi = the initial stack.
    .globl guest_restorer
guest_restorer:
    mov $15, %eax
    syscall

    .globl _start
_start:
    mov %rsp, %rdi
    and $-16, %rsp
    call guest_main
    ud2

    .section .note.GNU-stack, "", @progbits
