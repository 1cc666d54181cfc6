// SPDX-License-Identifier: MIT
//
// A program without libc whose every instruction can be foreseen: loops, calls, indirect jumps and
// calls, all kinds of branches, flags that live across what a tool inserts, vector instructions,
// system calls. It exits with 42.
    .intel_syntax noprefix
    .globl _start, table, sums, marked, changed, live, leaf, word_loop, done
    .bss
    .balign 64
table: .skip 4096
sums:  .skip 64
    .data
ways: .quad way_one, way_two
    .text
_start:
    xor ebx, ebx
outer:
    // fills table[i] = i
    xor ecx, ecx
fill:
    mov [table + rcx*8], rcx
    inc rcx
    cmp rcx, 100
    jb fill
    // a sum through memory and a call
    xor ecx, ecx
again:
    mov rdi, [table + rcx*8]
    call leaf
    add [sums], rax
    inc rcx
    test cl, 1
    jz even
    nop
even:
    cmp rcx, 100
    jne again
    // an indirect jump, both ways
    mov eax, ebx
    and eax, 1
    jmp [ways + rax*8]
way_one:
    movdqu xmm0, [table]
    paddd xmm0, xmm0
    movdqu [sums + 16], xmm0
    jmp joined
way_two:
    lea rax, [leaf]
    call rax
joined:
    inc ebx
    cmp ebx, 10
    jb outer

    // flags live across the marked instruction: the carry goes around it
    mov rax, -1
    mov r12, 0x1234
    add rax, 1
marked:
    mov r13, r12
live:
    adc r12, 0
    sub r12, 0x1235
    jnz wrong
    // a register that a tool may change; it does not: 5
    mov r14, 5
changed:
    mov r15, r14
    // addresses and values for words, with flags live in the loop
    xor ecx, ecx
    stc
word_loop:
    mov [table + 512 + rcx*8], r15
    mov rdx, rcx
    lea rcx, [rcx + 1]
    jnc wrong
    mov eax, ecx
    sub eax, 50
    jz done
    stc
    jmp word_loop
done:
    mov eax, 39
    syscall
    mov eax, 60
    lea rdi, [r15 + 37]
    syscall
leaf:
    lea rax, [rdi + 1]
    ret
wrong:
    mov eax, 60
    mov edi, 1
    syscall
