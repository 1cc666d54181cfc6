// SPDX-License-Identifier: MIT
// BUILD: -nostdlib -static
// RUN: => exit 0
// STRESS: tiny-blocks
// STRESS: no-link
//
// Two readings of the same bytes: jumps into the middle of an instruction, data among the code, a
// jump table in .text, a call used to fetch an address, and a return into the caller's middle.
    .globl _start
    .text
_start:
    mov     $200, %ebp
again:
    xor     %ebx, %ebx

    // Read from its start this is mov eax, imm32; from its second byte, add ebx 5 and a jump.
    jmp     inside + 1
inside:
    .byte   0xb8                    // mov eax, ...
    add     $5, %ebx                // ... 83 c3 05
    jmp     1f                      // eb xx
1:
    cmp     $5, %ebx
    mov     $1, %edi
    jne     finish

    // The same bytes as an instruction.
    mov     $0, %eax
    jmp     whole
    .balign 16
whole:
    .byte   0xb8, 0x83, 0xc3, 0x05, 0x90
    cmp     $0x9005c383, %eax
    mov     $2, %edi
    jne     finish

    // A string in the code, addressed by the call before it.
    call    2f
    .asciz  "data"
2:  pop     %rsi
    cmpl    $0x61746164, (%rsi)
    mov     $3, %edi
    jne     finish

    // A jump table in .text, with a rest left unexecuted.
    mov     %ebp, %eax
    and     $3, %eax
    lea     table(%rip), %rdx
    movslq  (%rdx,%rax,4), %rax
    add     %rdx, %rax
    jmp     *%rax
table:
    .long   case0 - table, case1 - table, case2 - table, case3 - table
case0:
    add     $10, %ebx
case1:
    add     $20, %ebx
case2:
    add     $30, %ebx
case3:
    add     $40, %ebx

    // The callee returns two bytes further on.
    call    skip_two
    ud2
    dec     %ebp
    jnz     again
    xor     %edi, %edi
    cmp     $95, %ebx               // the last round had ebp = 1: 5 + 20 + 30 + 40
    je      finish
    mov     $4, %edi
finish:
    mov     $231, %eax
    syscall
skip_two:
    addq    $2, (%rsp)
    ret
    .section .note.GNU-stack,"",@progbits
