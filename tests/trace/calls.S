// SPDX-License-Identifier: MIT
//
// Calls and returns in every form, around vector registers and flags that must
// survive whatever traces them. Exits with 0 if they do. run checks the lines.
    .intel_syntax noprefix
    .globl _start

    .bss
    .balign 64
thread_block: .skip 64

    .data
pointer: .quad callee
pattern: .quad 0x0123456789abcdef, 0xfedcba9876543210

    .text
    .globl callee, callee_popping, site_direct, site_register, site_memory, site_indexed
    .globl site_fs, site_popping, callee_return, popping_return
callee:
callee_return:
    ret
callee_popping:
popping_return:
    ret 16

_start:
    // arch_prctl(ARCH_SET_FS, thread_block)
    mov eax, 158
    mov edi, 0x1002
    lea rsi, [rip + thread_block]
    syscall
    lea rax, [rip + callee]
    mov fs:[8], rax

    movups xmm0, [rip + pattern]
    movups xmm15, [rip + pattern]
    fld1
    stc
site_direct:
    call callee
    jnc wrong
    lea r13, [rip + callee]
    stc
site_register:
    call r13
    jnc wrong
site_memory:
    call [rip + pointer]
    lea rbx, [rip + pointer - 16]
    mov ecx, 2
site_indexed:
    call [rbx + rcx * 8]
site_fs:
    call fs:[8]
    sub rsp, 16
    mov rbp, rsp
site_popping:
    call callee_popping
    sub rsp, rbp
    cmp rsp, 16
    jne wrong

    lea rsp, [rbp + 16]
    movups xmm1, [rip + pattern]
    pxor xmm0, xmm1
    pxor xmm15, xmm1
    por xmm0, xmm15
    ptest xmm0, xmm0
    jnz wrong
    fld1
    fucomip st, st(1)
    jne wrong
    xor edi, edi
    jmp leave_
wrong:
    mov edi, 1
leave_:
    mov eax, 231
    syscall
