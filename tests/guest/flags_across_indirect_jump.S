// SPDX-License-Identifier: MIT
// BUILD: -nostdlib -static
// RUN: => exit 0
// STRESS: tiny-blocks
// STRESS: no-link
// STRESS: entries
// STRESS: tiny-cache
//
// All arithmetic flags set before an indirect jmp, call or ret must arrive at its target. gcc emits
// switch targets that begin with a conditional jump, and ordinary tests do not notice the loss.
// The status is the number of the first pattern that was lost.
    .globl _start
    .text
    .macro arrive via, flags
    mov     $\flags, %r13d
    pushq   $\flags
    .ifc \via,ret
    lea     target_\@(%rip), %rax
    push    %rax                    // below the flags image: swap them
    mov     8(%rsp), %rcx
    mov     (%rsp), %rax
    mov     %rax, 8(%rsp)
    mov     %rcx, (%rsp)
    popfq
    ret
    .endif
    .ifc \via,jmpreg
    lea     target_\@(%rip), %rax
    popfq
    jmp     *%rax
    .endif
    .ifc \via,jmpmem
    lea     target_\@(%rip), %rax
    mov     %rax, -64(%rsp)
    popfq
    jmp     *-72(%rsp)
    .endif
    .ifc \via,call
    lea     called_\@(%rip), %rax
    popfq
    call    *%rax
called_\@:
    pushfq
    popq    %rax
    add     $8, %rsp
    jmp     compare_\@
    .endif
    ud2
target_\@:
    pushfq
    popq    %rax
compare_\@:
    and     $0xcd5, %eax
    inc     %r12d
    cmp     %r13d, %eax
    jne     lost
    .endm

_start:
    xor     %r12d, %r12d
    mov     $300, %ebp
again:
    xor     %r12d, %r12d
    .irp via,jmpreg,jmpmem,ret,call
    arrive \via, 0x000
    arrive \via, 0x001
    arrive \via, 0x004
    arrive \via, 0x010
    arrive \via, 0x040
    arrive \via, 0x080
    arrive \via, 0x800
    arrive \via, 0x400
    arrive \via, 0x8d5
    arrive \via, 0x845
    .endr
    cld
    dec     %ebp
    jnz     again
    xor     %edi, %edi
    mov     $231, %eax
    syscall
lost:
    mov     %r12d, %edi
    mov     $231, %eax
    syscall
    .section .note.GNU-stack,"",@progbits
