// SPDX-License-Identifier: MIT
//
// Loads whose guards stand ahead of them, before the instruction that makes flags or in the guard of a
// load beside them: what is told, and what a handler sees of a fault, is what the load itself does.
#include "corpus_asm.h"

// si_addr, rip and the flags of the fault that is expected, and where to go on. The kernel passes
// all three arguments to any handler.
    .section .data
    .p2align 3
fault_address: .quad 0
fault_pc: .quad 0
fault_flags: .quad 0
fault_next: .quad 0
    .text
on_fault:
    movq fault_address(%rip), %rax
    cmpq %rax, 16(%rsi)
    jne 1f
    movq fault_pc(%rip), %rax
    cmpq %rax, 168(%rdx)
    jne 1f
    movq 176(%rdx), %rax
    andl $0x41, %eax
    cmpq %rax, fault_flags(%rip)
    jne 1f
    movq fault_next(%rip), %rax
    movq %rax, 168(%rdx)
    ret
1:  ud2

// A fault at label 1, after which the case goes on at label 2; of flags CF and ZF count.
.macro FAULTS address, flags
    movl $11, %edi
    leaq on_fault(%rip), %rsi
    subq $8, %rsp
    call signal@PLT
    addq $8, %rsp
    leaq 1f(%rip), %rax
    movq %rax, fault_pc(%rip)
    leaq 2f(%rip), %rax
    movq %rax, fault_next(%rip)
    movq $\address, fault_address(%rip)
    movq $\flags, fault_flags(%rip)
.endm

CASE before_flags
    BLOCK 8
    movl $2, %ecx
    cmpl $2, %ecx
    movl (%rax), %edx
    je 1f
    ud2
1:  testl %edx, %edx
    je 2f // EXPECT memcheck uninit-branch
    nop
2:
END before_flags

CASE before_flags_twice
    BLOCK 16
    movq $0, (%rax)
    movl $2, %ecx
    cmpl $2, %ecx
    movq (%rax), %rsi
    movq 8(%rax), %rdx
    je 1f
    ud2
1:  testq %rsi, %rsi
    jne 2f
    testq %rdx, %rdx
    je 2f // EXPECT memcheck uninit-branch
    nop
2:
END before_flags_twice

CASE before_flags_of_own
    BLOCK 8
    movq $0, (%rax)
    addq $1, %rax
    cmpl $0, -1(%rax)
    movq %rax, %rcx
    movb (%rax), %dl
    leaq 7(%rax), %rax
    movb (%rax), %sil // EXPECT memcheck invalid-read size=1 block=after:0 of=8
    je 1f
    ud2
1:  nop
END before_flags_of_own

CASE fault_behind_flags
    FAULTS 8, 0x40
    xorl %eax, %eax
    movl $2, %ecx
    cmpl $2, %ecx
1:  movl 8(%rax), %edx // EXPECT memcheck invalid-read size=4 where=unknown
    je 3f
2:  nop
3:
END fault_behind_flags

CASE fault_beside
    FAULTS 0x1003, 0
    movl $0x1000, %eax
    addl $1, %ecx
    orl $1, %ecx
1:  movzbl 3(%rax), %ecx // EXPECT memcheck invalid-read size=1 where=unknown
    movzbl 2(%rax), %edx
    movzwl (%rax), %esi
    addl %edx, %esi
2:  nop
END fault_beside

CASE fault_beside_taken
    FAULTS 0x1000, 0
    movq %rsp, %rax
    movl $0x1000, %edx
    orl $1, %ecx
    movb $0, -1(%rsp)
    movb -1(%rax), %sil
    testb %sil, %sil
    jne 3f
    orl $1, %ecx
1:  movzbl (%rdx), %ecx // EXPECT memcheck invalid-read size=1 where=unknown
    movzbl 1(%rdx), %edx
    nop
2:  nop
3:
END fault_beside_taken

CASE beside_behind_branch
    BLOCK 8
    movb $0, 1(%rax)
    addl $1, %ecx
    movzbl 1(%rax), %edx
    testl %edx, %edx
    je 1f
    movzbl (%rax), %edx
    testl %edx, %edx
    je 1f
    nop
1:
END beside_behind_branch

CASE beside_behind_end
    BLOCK 1
    movb $0, (%rax)
    addl $1, %ecx
    movzbl (%rax), %edx
    testl %edx, %edx
    je 1f
    movzbl 1(%rax), %edx
    testl %edx, %edx
    nop
1:
END beside_behind_end

CASE beside_undefined
    BLOCK 8
    movb $0, (%rax)
    movb $0, 1(%rax)
    movb $0, 3(%rax)
    addl $1, %ecx
    movzbl 1(%rax), %edx
    movzbl (%rax), %esi
    movzbl 2(%rax), %edi
    movzbl 3(%rax), %r8d
    addl %edx, %esi
    addl %r8d, %esi
    testl %esi, %esi
    jne 1f
    testl %edi, %edi
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
END beside_undefined

CASE beside_stored
    BLOCK 8
    movb $0, (%rax)
    movl $20, %ecx
3:  movq %rax, %rdx
    movzbl (%rdx), %esi
    movb %sil, 1(%rax)
    movzbl 1(%rdx), %esi
    testl %esi, %esi
    jne 1f
    subl $1, %ecx
    jne 3b
1:
END beside_stored

CASE known_moves
    BLOCK 8
    movl $0, (%rax)
    movl (%rax), %ecx
    incq %rax
    movzwl -1(%rax), %edx
    movzwl 1(%rax), %esi
    addl %edx, %ecx
    leaq 2(%rax), %rax
    addl %esi, %ecx
    jne 1f
    movl -3(%rax), %ecx
    movl -2(%rax), %ecx
    testl %ecx, %ecx
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
END known_moves

CASE known_moves_narrow
    BLOCK 8
    movl $0, (%rax)
    movq %rax, %rsi
    movl (%rax), %ecx
    addb $4, %al
    movl (%rax), %ecx
    movq %rsi, %rax
    testl %ecx, %ecx
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
END known_moves_narrow

// First stores where flags are live, to each kind of place and of each size: the flags stay, and what is
// stored is defined.
.macro STORE_KEEPS store, read, value, one, others
    movl $\value, %edx
    addl $1, %edx
    \store
    j\one 1f
    ud2
1:  lahf
    andb $0xd5, %ah
    cmpb $\others, %ah
    je 1f
    ud2
1:  \read
    je 1f
    nop
1:
.endm

// SF, PF and AF, with OF; and ZF, PF, AF and CF without.
.macro STORES_KEEP store, read
    BLOCK 64
    movq %rax, %rbx
    movq %rax, %rcx
    xorps %xmm0, %xmm0
    STORE_KEEPS "\store", "\read", 0x7fffffff, o, 0x94
    BLOCK 64
    movq %rax, %rbx
    movq %rax, %rcx
    xorps %xmm0, %xmm0
    STORE_KEEPS "\store", "\read", 0xffffffff, no, 0x55
.endm

CASE stores_keep_flags
    pushq %rbx
    subq $16, %rsp
    STORES_KEEP "movb $1, (%rax)", "cmpb $0, (%rbx)"
    STORES_KEEP "movb %dl, 7(%rbx)", "cmpb $0, 7(%rbx)"
    STORES_KEEP "movb $1, 63(%rcx)", "cmpb $0, 63(%rbx)"
    STORES_KEEP "movw $1, 2(%rcx)", "cmpw $0, 2(%rbx)"
    STORES_KEEP "movw $1, 7(%rcx)", "cmpw $0, 7(%rbx)"
    STORES_KEEP "movl $1, 60(%rax)", "cmpl $0, 60(%rbx)"
    STORES_KEEP "movl $1, 5(%rcx)", "cmpl $0, 5(%rbx)"
    STORES_KEEP "movq $1, 8(%rbx)", "cmpq $0, 8(%rbx)"
    STORES_KEEP "movq $1, 55(%rbx)", "cmpq $0, 55(%rbx)"
    STORES_KEEP "movups %xmm0, 48(%rbx)", "cmpq $0, 56(%rbx)"
    STORES_KEEP "movups %xmm0, 17(%rbx)", "cmpq $0, 25(%rbx)"
    leaq 8(%rsp), %rcx
    STORE_KEEPS "movl $1, (%rcx)", "cmpl $0, 8(%rsp)", 0x7fffffff, o, 0x94
    leaq -24(%rsp), %rcx
    STORE_KEEPS "movl $1, (%rcx)", "cmpl $0, (%rcx)", 0xffffffff, no, 0x55
    addq $16, %rsp
    popq %rbx
END stores_keep_flags

CASE store_behind_block_with_flags
    BLOCK 12
    movl $-1, %edx
    addl $1, %edx
    movl $1, 8(%rax)
    movl $1, 12(%rax) // EXPECT memcheck invalid-write size=4 block=after:0 of=12
    jc 1f
    ud2
1:  nop
END store_behind_block_with_flags

// What `pushf` and `enter` store is not where the `push` before them has stored.
CASE flags_pushed_behind_another
    pushq %rsi
    pushfq
    popq %rax
    testq %rax, %rax
    jne 1f
    nop
1:  popq %rsi
END flags_pushed_behind_another

CASE frame_entered_behind_a_push
    pushq %rsi
    enter $16, $0
    movq %rbp, %rcx
    movq (%rcx), %rax
    testq %rax, %rax
    jne 1f
    nop
1:  movq -8(%rcx), %rax
    testq %rax, %rax
    jne 1f // EXPECT memcheck uninit-branch origin=stack
    nop
1:  leave
    popq %rsi
END frame_entered_behind_a_push
