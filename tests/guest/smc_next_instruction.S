// SPDX-License-Identifier: MIT
// BUILD: -nostdlib -static -Wl,-N -Wl,-z,noseparate-code
// RUN: => exit 0
// STRESS: tiny-blocks
// STRESS: no-link
//
// Each store rewrites the immediate of the very next instruction, in straight-line code: the
// hardware runs the new bytes at once. Every round writes another value, and rdx must collect their
// sum.
    .globl _start
    .section .text,"awx"
_start:
    mov     $1000, %ecx
    xor     %edx, %edx
    xor     %ebx, %ebx
again:
    add     %ecx, %ebx
    mov     %ecx, 1+patched(%rip)
patched:
    mov     $0x7fffffff, %eax
    add     %eax, %edx
    dec     %ecx
    jnz     again
    cmp     %ebx, %edx
    mov     $1, %edi
    jne     finish

    // The same through rep stosb: it overwrites the instructions behind it with nops.
    lea     trap(%rip), %rdi
    mov     $0x90, %al
    mov     $(trap_end - trap), %ecx
    rep stosb
trap:
    ud2
    ud2
trap_end:
    // A store that turns a conditional jump, already taken once, into two nops.
    xor     %r8d, %r8d
twice:
    cmp     $1, %r8d
    jne     skip_patch
    movw    $0x9090, jump(%rip)
skip_patch:
    cmp     %r8d, %r8d
jump:
    je      arrived
    xor     %edi, %edi              // reached only when the jump is gone
    jmp     finish
arrived:
    inc     %r8d
    cmp     $3, %r8d
    jb      twice
    mov     $2, %edi
finish:
    mov     $231, %eax
    syscall
    .section .note.GNU-stack,"",@progbits
