// SPDX-License-Identifier: MIT
//
// A leaf function may use 128 bytes below its stack pointer, its own frame included. What it leaves
// there is nobody's: a pointer to it dangles, and the next function's variables begin undefined.
#include "corpus_asm.h"

// Calls the leaf that follows the case, which returns a pointer into its red zone, and reads there.
.macro READ_LEFT
    call 9f
    movq (%rax), %rcx
.endm

CASE left_by_add
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    addq $200, %rsp
END left_by_add

CASE left_by_add_of_little
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $72, %rsp
    movq $1, -120(%rsp)
    leaq -120(%rsp), %rax
    addq $72, %rsp
END left_by_add_of_little

CASE left_by_add_of_much
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $4096, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    addq $4096, %rsp
END left_by_add_of_much

CASE left_by_add_of_minus
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  addq $-128, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    subq $-128, %rsp
END left_by_add_of_minus

CASE left_by_lea
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  leaq -200(%rsp), %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    leaq 200(%rsp), %rsp
END left_by_lea

CASE left_by_add_and_pops
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  pushq %rbx
    pushq %r12
    subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    addq $200, %rsp
    popq %r12
    popq %rbx
END left_by_add_and_pops

CASE left_by_leave
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  pushq %rbp
    movq %rsp, %rbp
    subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    leave
END left_by_leave

CASE left_by_rbp
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  pushq %rbp
    movq %rsp, %rbp
    pushq %rbx
    subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    leaq -8(%rbp), %rsp
    popq %rbx
    popq %rbp
END left_by_rbp

CASE left_by_a_jump
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    addq $200, %rsp
    jmp 8f
    .p2align 4
8:
END left_by_a_jump

CASE written_by_a_pointer
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    leaq -64(%rsp), %rax
    movq $1, (%rax)
    addq $200, %rsp
END written_by_a_pointer

CASE written_by_a_pointer_in_a_loop
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $112, %rsp
    leaq -120(%rsp), %rax
    leaq 96(%rsp), %rcx
1:  movq $1, (%rax)
    addq $8, %rax
    cmpq %rcx, %rax
    jne 1b
    leaq -120(%rsp), %rax
    addq $112, %rsp
END written_by_a_pointer_in_a_loop

CASE written_with_an_index
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    movl $2, %ecx
    movq $1, -64(%rsp,%rcx,8)
    leaq -48(%rsp), %rax
    addq $200, %rsp
END written_with_an_index

CASE written_far_before_it_is_left
    READ_LEFT // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    .rept 300
    addl %edx, %ecx
    .endr
    addq $200, %rsp
END written_far_before_it_is_left

CASE called_by_pointer
    leaq 9f(%rip), %rax
    call *%rax
    movq (%rax), %rcx // EXPECT memcheck invalid-read size=8 below=yes
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    leaq -64(%rsp), %rax
    addq $200, %rsp
END called_by_pointer

// What it has written is the next one's, undefined.
CASE next_begins_undefined
    call 9f
    subq $400, %rsp
    movq 400-8-200-64(%rsp), %rax
    testq %rax, %rax
    jz 1f // EXPECT memcheck uninit-branch
    nop
1:  addq $400, %rsp
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    addq $200, %rsp
END next_begins_undefined

// Its own, as long as it runs.
CASE read_while_it_lasts
    call 9f
    ret
9:  subq $200, %rsp
    movq $1, -64(%rsp)
    movq $1, -128(%rsp)
    movq -64(%rsp), %rax
    addq -128(%rsp), %rax
    movq $3, 192(%rsp)
    addq $200, %rsp
    addq -8(%rsp), %rax
    testq %rax, %rax
    jz 1f
    nop
1:
END read_while_it_lasts
