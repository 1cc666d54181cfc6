// SPDX-License-Identifier: MIT
// BUILD: -nostdlib -static
// RUN: => exit 0
// STRESS: tiny-blocks
// STRESS: no-link
// STRESS: entries
// STRESS: signals
// STRESS: tiny-cache
//
// Targets of jumps and returns at equal places of six 64 KiB: a table of targets that goes by the
// low bits of an address has room for one of them. Flags and registers must arrive at all.
// The status tells at which of them something was lost. tests/trace counts how often C is asked.
    .globl _start
    .text

    .macro place n, next, flags, next_flags
    .balign 65536
target_\n:
    pushfq
    popq    %rbx
    and     $0xcd5, %ebx
    mov     $\n + 1, %edi
    cmp     $\flags, %ebx
    jne     lost
    cmp     $0x1111, %rcx
    jne     lost
    cmp     $0x2222, %rdx
    jne     lost
    lea     target_\n(%rip), %rbx
    cmp     %rbx, %rax
    jne     lost
    mov     $\flags, %r13d
    call    with_flags
    pushfq
    popq    %rbx
    cld
    and     $0xcd5, %ebx
    mov     $\n + 101, %edi
    cmp     $\flags, %ebx
    jne     lost
    cmp     $0x3333, %rax
    jne     lost
    cmp     $0x4444, %rcx
    jne     lost
    cmp     $0x5555, %rdx
    jne     lost
    dec     %ebp
    jz      done
    mov     $0x1111, %ecx
    mov     $0x2222, %edx
    lea     target_\next(%rip), %rax
    pushq   $\next_flags
    popfq
    jmp     *%rax
    .endm

_start:
    mov     $60000, %ebp
    mov     $0x1111, %ecx
    mov     $0x2222, %edx
    lea     target_0(%rip), %rax
    pushq   $0x8d5
    popfq
    jmp     *%rax

with_flags:
    mov     $0x3333, %eax
    mov     $0x4444, %ecx
    mov     $0x5555, %edx
    pushq   %r13
    popfq
    ret

done:
    xor     %edi, %edi
lost:
    cld
    mov     $231, %eax
    syscall

    place 0, 1, 0x8d5, 0x000
    place 1, 2, 0x000, 0x811
    place 2, 3, 0x811, 0x0c4
    place 3, 4, 0x0c4, 0x480
    place 4, 5, 0x480, 0x845
    place 5, 0, 0x845, 0x8d5
