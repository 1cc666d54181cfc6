// SPDX-License-Identifier: MIT
// BUILD[static]: -nostdlib -static
// BUILD[pie]: -nostdlib -static-pie
// RUN: a b => exit 45
// STRESS: tiny-blocks
//
// A program of nothing but instructions: argc comes from the stack the kernel built, the kernel's
// promises about registers at entry and across `syscall` are checked, and the status is theirs.
    .globl _start
    .text
_start:
    mov     (%rsp), %rbx            // argc = 3
    lea     (,%rbx,4), %rbx
    lea     3(%rbx,%rbx,1), %rbx    // 3 * 8 + 3 = 27
    test    $15, %spl               // the stack is aligned at entry
    jnz     bad
    mov     $0x1111, %r8
    mov     $0x2222, %r9
    mov     $0x3333, %r10
    mov     $1, %eax
    mov     $1, %edi
    lea     message(%rip), %rsi
    mov     $(message_end - message), %edx
    stc
    syscall
after:
    jnc     bad                     // flags come back from r11
    cmp     $(message_end - message), %rax
    jne     bad
    lea     after(%rip), %rax       // rcx holds the return address
    cmp     %rax, %rcx
    jne     bad
    test    $1, %r11b               // r11 holds the flags, carry set
    jz      bad
    cmp     $0x1111, %r8
    jne     bad
    cmp     $0x2222, %r9
    jne     bad
    cmp     $0x3333, %r10
    jne     bad
    mov     $39, %eax               // getpid
    syscall
    test    %eax, %eax
    jle     bad
    lea     18(%rbx), %edi
    mov     $231, %eax
    syscall
bad:
    mov     $60, %eax
    mov     $99, %edi
    syscall
    .section .rodata
message:
    .ascii  "no libc here\n"
message_end:
    .section .note.GNU-stack,"",@progbits
