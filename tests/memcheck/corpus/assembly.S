// SPDX-License-Identifier: MIT
//
// Hand-written assembly: accesses in every addressing mode, flags, string instructions, pushes and
// returns, idioms of compilers that no C source is sure to give.
#include "corpus_asm.h"

// rax: a block of \size bytes, undefined. Saves nothing. rsp is 8 off a multiple of 16 in a case.
CASE base_index_scale
    BLOCK 64
    movl $4, %ecx
    movb $1, 16(%rax,%rcx,8)
    movb $1, 32(%rax,%rcx,8) // EXPECT memcheck invalid-write size=1 block=after:0 of=64
END base_index_scale

CASE movs_one
    BLOCK 8
    movq %rax, %rsi
    movq $0, (%rsi)
    leaq -64(%rsp), %rdi
    movsq
    movsb // EXPECT memcheck invalid-read size=1 block=after:0 of=8
END movs_one

CASE stos_backwards
    BLOCK 8
    leaq 7(%rax), %rdi
    movl $9, %ecx
    xorl %eax, %eax
    std
    rep stosb // EXPECT memcheck invalid-write size=1 block=before:1 of=8
    cld
END stos_backwards

CASE stos_backwards_right
    BLOCK 8
    leaq 7(%rax), %rdi
    movl $8, %ecx
    xorl %eax, %eax
    std
    rep stosb
    cld
END stos_backwards_right

CASE repne_scas
    BLOCK 8
    movabsq $0x0044434241404142, %rcx
    movq %rcx, (%rax)
    movq %rax, %rdi
    xorl %eax, %eax
    movl $100, %ecx
    repne scasb
    jne 1f
    nop
1:
END repne_scas

CASE repe_cmps_undefined
    BLOCK 8
    movq %rax, %rsi
    movq %rax, %rdi
    leaq -64(%rsp), %rdi
    movq $0, (%rdi)
    movl $8, %ecx
    repe cmpsb // MAYBE memcheck uninit-branch
    jne 1f // MAYBE memcheck uninit-branch
    nop
1:
END repe_cmps_undefined

CASE lods_undefined
    BLOCK 8
    movq %rax, %rsi
    lodsb
    testb %al, %al
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END lods_undefined

CASE jump_through_table
    leaq 1f(%rip), %rax
    movq %rax, -16(%rsp)
    jmp *-16(%rsp)
    ud2
1:
END jump_through_table

CASE loop_counter_undefined
    BLOCK 8
    movzbl (%rax), %ecx
    andl $3, %ecx
    incl %ecx
1:  loop 1b // EXPECT memcheck uninit-branch origin=heap
END loop_counter_undefined

CASE jrcxz_undefined
    BLOCK 8
    movq (%rax), %rcx
    jrcxz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END jrcxz_undefined

CASE jrcxz_defined
    xorl %ecx, %ecx
    jrcxz 1f
    ud2
1:
END jrcxz_defined

CASE flags_saved
    BLOCK 8
    movq (%rax), %rcx
    testq %rcx, %rcx
    pushfq
    xorl %edx, %edx
    popfq
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END flags_saved

CASE lahf_sahf
    xorl %eax, %eax
    lahf
    cmpl $1, %eax
    sahf
    jz 1f
    ud2
1:
END lahf_sahf

CASE cmov_of_undefined_data
    BLOCK 8
    movq (%rax), %rcx
    xorl %edx, %edx
    testl %edx, %edx
    movl $5, %esi
    cmovnzq %rcx, %rsi
    testq %rsi, %rsi
    jz 1f
    nop
1:
END cmov_of_undefined_data

CASE cmov_takes_undefined_data
    BLOCK 8
    movq (%rax), %rcx
    xorl %edx, %edx
    testl %edx, %edx
    movl $5, %esi
    cmovzq %rcx, %rsi
    testq %rsi, %rsi
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END cmov_takes_undefined_data

CASE cmpxchg_defined
    BLOCK 8
    movq $5, (%rax)
    movq %rax, %rdx
    movl $5, %eax
    movl $6, %ecx
    lock cmpxchgq %rcx, (%rdx)
    jne 1f
    nop
1:
END cmpxchg_defined

CASE cmpxchg_undefined
    BLOCK 8
    movq %rax, %rdx
    movl $5, %eax
    movl $6, %ecx
    lock cmpxchgq %rcx, (%rdx) // MAYBE memcheck uninit-branch
    jne 1f // EXPECT memcheck uninit-branch
    nop
1:
END cmpxchg_undefined

CASE xadd_behind
    BLOCK 8
    movl $1, %ecx
    lock xaddl %ecx, 8(%rax)
    // EXPECT memcheck invalid-read size=4
    // MAYBE memcheck invalid-write size=4
END xadd_behind

CASE call_and_return_undefined_register
    BLOCK 8
    movq (%rax), %rbx
    pushq %rbx
    xorl %ebx, %ebx
    popq %rbx
    xorq %rbx, %rbx
    testq %rbx, %rbx
    jz 1f
    ud2
1:
END call_and_return_undefined_register

CASE return_address_replaced
    leaq 1f(%rip), %rax
    pushq %rax
    ret
    ud2
1:
END return_address_replaced

CASE enter_leave
    enter $64, $0
    movq $1, -8(%rbp)
    cmpq $1, -8(%rbp)
    je 1f
    ud2
1:  leave
END enter_leave

CASE enter_leave_undefined
    enter $64, $0
    cmpq $1, -16(%rbp)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:  leave
END enter_leave_undefined

CASE adc_of_defined_carry
    BLOCK 8
    stc
    movl $0, %ecx
    adcl $0, %ecx
    cmpl $1, %ecx
    je 1f
    ud2
1:
END adc_of_defined_carry

CASE partial_register_merge
    BLOCK 8
    movl (%rax), %ecx
    movb $1, %cl
    movb $2, %ch
    cmpw $0x201, %cx
    je 1f
    ud2
1:
END partial_register_merge

CASE high_byte_undefined
    BLOCK 8
    movl (%rax), %ecx
    movb $1, %cl
    testb %ch, %ch
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
END high_byte_undefined

CASE rcl_through_undefined_carry
    BLOCK 8
    movzbl (%rax), %ecx
    addb %cl, %cl
    movl $0, %edx
    rcll $1, %edx
    testl %edx, %edx
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END rcl_through_undefined_carry

CASE bmi_of_defined
    movl $0xf0, %eax
    blsrl %eax, %ecx
    andnl %eax, %ecx, %edx
    bextrl %eax, %ecx, %edx
    pextl %eax, %ecx, %edx
    testl %edx, %edx
    jz 1f
    nop
1:
END bmi_of_defined

CASE pext_selects_defined
    BLOCK 8
    movb $0x55, (%rax)
    movq (%rax), %rcx
    movl $0xff, %edx
    pextq %rdx, %rcx, %rsi
    testq %rsi, %rsi
    jz 1f
    nop
1:
END pext_selects_defined

CASE vector_compare_and_mask
    BLOCK 64
    movaps %xmm0, %xmm1
    pxor %xmm0, %xmm0
    movups %xmm0, (%rax)
    movups (%rax), %xmm1
    pcmpeqb %xmm0, %xmm1
    pmovmskb %xmm1, %ecx
    cmpl $0xffff, %ecx
    je 1f
    ud2
1:
END vector_compare_and_mask

CASE prefetch_of_nothing
    prefetcht0 0
    prefetchw 64
END prefetch_of_nothing

CASE nop_with_operand
    nopl 0(%rax,%rax,1)
    nopw 8(%rax,%rax,1)
END nop_with_operand

CASE cpuid_and_rdtsc
    pushq %rbx
    movl $1, %eax
    xorl %ecx, %ecx
    cpuid
    testl %edx, %edx
    jz 1f
    nop
1:  rdtsc
    testl %eax, %eax
    jz 1f
    nop
1:  popq %rbx
END cpuid_and_rdtsc

CASE fs_relative
    movq %fs:0, %rax
    testq %rax, %rax
    jz 1f
    nop
1:
END fs_relative

CASE loads_of_two_blocks
    BLOCK 16
    movq %rax, %rbx
    BLOCK 16
    movq $1, 8(%rax)
    movq 8(%rax), %rcx
    addq 8(%rbx), %rcx
    jc 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END loads_of_two_blocks

CASE xlat_undefined // NOT-VALGRIND xlat
    BLOCK 16
    leaq -120(%rsp), %rbx
    movb (%rax), %al
    andb $15, %al
    xlatb // EXPECT memcheck uninit-value size=8 origin=heap
END xlat_undefined

CASE xlat_table_undefined // NOT-VALGRIND xlat
    BLOCK 16
    movq %rax, %rbx
    movq $0, (%rbx)
    movl $9, %eax
    xlatb
    testb %al, %al
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END xlat_table_undefined

CASE xlat_beyond // NOT-VALGRIND xlat
    BLOCK 16
    movq %rax, %rbx
    movl $16, %eax
    xlatb // EXPECT memcheck invalid-read size=1 block=after:0 of=16
END xlat_beyond

CASE xlat_right // NOT-VALGRIND xlat
    BLOCK 16
    movq %rax, %rbx
    movq $0, 8(%rbx)
    movl $9, %eax
    xlatb
    testb %al, %al
    jz 1f
    nop
1:
END xlat_right

CASE call_memory_behind
    BLOCK 8
    leaq 1f(%rip), %rcx
    movq %rcx, (%rax)
    jmp *(%rax)
1:
END call_memory_behind

CASE mul_undefined_high_half
    BLOCK 8
    movl (%rax), %eax
    movl $2, %ecx
    mull %ecx
    testl %edx, %edx
    jz 1f // EXPECT memcheck uninit-branch origin=heap
    nop
1:
END mul_undefined_high_half

CASE shld_picks_defined
    BLOCK 8
    movl (%rax), %ecx
    movl $0x12345678, %edx
    shldl $16, %edx, %ecx
    movzwl %cx, %ecx
    cmpl $0x1234, %ecx
    je 1f
    ud2
1:
END shld_picks_defined

CASE fldenv_undefined // NOT-VALGRIND flags
    BLOCK 28
    fnstenv (%rax)
    movl $0xffffffff, %ecx
    BLOCK 28
    movq %rax, %rsi
    fnstenv -40(%rsp)
    movl -40(%rsp), %ecx
    movl %ecx, (%rsi)
    fldenv (%rsi)
    fnstsw %ax
    testb $1, %ah
    jz 1f // EXPECT memcheck uninit-branch
    nop
1:  fninit
END fldenv_undefined

// What a block has checked it does not check again (known.c), unless it may have changed.
CASE same_base_elsewhere
    BLOCK 16
    movq $0, (%rax)
    movq (%rax), %rcx
    addq $8, %rax
    cmpq $0, (%rax)
    je 1f // EXPECT memcheck uninit-branch origin=heap:-5
    nop
1:
END same_base_elsewhere

CASE same_index_elsewhere
    BLOCK 16
    movq $0, (%rax)
    xorl %ecx, %ecx
    movq (%rax,%rcx,8), %rdx
    incl %ecx
    cmpq $0, (%rax,%rcx,8)
    je 1f // EXPECT memcheck uninit-branch origin=heap:-6
    nop
1:
END same_index_elsewhere

CASE more_than_was_checked
    BLOCK 8
    movl $0, (%rax)
    movl (%rax), %ecx
    cmpq $0, (%rax)
    je 1f // EXPECT memcheck uninit-branch origin=heap:-4
    nop
1:
END more_than_was_checked

CASE part_of_what_was_checked
    BLOCK 16
    movq $0, 8(%rax)
    movq 8(%rax), %rcx
    cmpl $0, 12(%rax)
    je 1f
    nop
1:
    cmpl $0, 4(%rax)
    je 1f // EXPECT memcheck uninit-branch origin=heap:-8
    nop
1:
END part_of_what_was_checked

CASE slots_after_a_push
    subq $40, %rsp
    movq $0, 8(%rsp)
    pushq %rsp
    cmpq $0, 8(%rsp)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
    cmpq $0, 16(%rsp)
    je 1f
    nop
1:
    addq $48, %rsp
END slots_after_a_push

CASE slots_after_a_pop
    subq $40, %rsp
    movq $0, 8(%rsp)
    movq $0, (%rsp)
    popq %rax
    cmpq $0, 8(%rsp)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
    cmpq $0, (%rsp)
    je 1f
    nop
1:
    addq $32, %rsp
END slots_after_a_pop

// What is below the stack pointer stays what it is until the next call or return.
CASE popped_and_read_again
    movl $5, %eax
    pushq %rax
    popq %rcx
    movq -8(%rsp), %rdx
    testq %rdx, %rdx
    je 1f
    nop
1:
    subq $64, %rsp
    movq $3, (%rsp)
    addq $64, %rsp
    cmpq $3, -64(%rsp)
    je 1f
    nop
1:
    cmpq $3, -56(%rsp)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
END popped_and_read_again

CASE popped_call_and_read_again
    pushq $7
    popq %rcx
    call 2f
    cmpq $7, -8(%rsp)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
    jmp 3f
2:  ret
3:
END popped_call_and_read_again

// Its closures leave the frame first, and take their result from there by an address and a table.
CASE left_and_read_by_address
    subq $64, %rsp
    movl $5, 40(%rsp)
    addq $64, %rsp
    leaq 1f(%rip), %rdx
    leaq -24(%rsp), %rsi
    jmp *%rdx
1:
    movl (%rsi), %eax
    cmpl $5, %eax
    je 1f
    nop
1:
END left_and_read_by_address

// libffi takes what it has saved from behind a frame that it has left already.
CASE left_and_read_by_rbp
    pushq %rbp
    subq $64, %rsp
    movq $1, 16(%rsp)
    movq $2, 24(%rsp)
    leaq 16(%rsp), %rbp
    call 9f
    leaq 32(%rbp), %rsp
    movq (%rbp), %rcx
    movq 8(%rbp), %rdx
    cmpq $2, %rdx
    jne 1f
    cmpq $1, %rcx
    jne 1f
    leaq 48(%rbp), %rsp
    popq %rbp
    ret
1:  ud2
9:  ret
END left_and_read_by_rbp

// A frame that is left may still say where to go on: trampolines jump there, or return it.
CASE left_and_jumped_to
    pushq %rbp
    movq %rsp, %rbp
    subq $64, %rsp
    leaq 1f(%rip), %rax
    movq %rax, -24(%rbp)
    leave
    jmp *-32(%rsp)
1:
END left_and_jumped_to

CASE left_and_returned
    call 2f
    cmpq $9, %rax
    je 1f
    nop
1:
    jmp 3f
2:  pushq %rbp
    movq %rsp, %rbp
    subq $64, %rsp
    movq $9, -16(%rbp)
    movq %rbp, %rsp
    popq %rbp
    movq -24(%rsp), %rax
    ret
3:
END left_and_returned

CASE left_and_jumped_to_undefined
    pushq %rbp
    movq %rsp, %rbp
    subq $64, %rsp
    leaq 1f(%rip), %rax
    subq -24(%rbp), %rax
    addq -24(%rbp), %rax
    movq %rax, -24(%rbp)
    leave
    jmp *-32(%rsp) // EXPECT memcheck uninit-value size=8
1:
END left_and_jumped_to_undefined

// Saved around a call, in a register that calls do not preserve, and looked at on one way only.
CASE saved_and_read_behind_a_branch
    BLOCK 16
    movq (%rax), %rcx
    pushq %rcx
    subq $8, %rsp
    call 2f
    addq $8, %rsp
    popq %rcx
    testl %eax, %eax
    jne 3f
    jmp 4f
2:  movl $1, %eax
    ret
3:  testq %rcx, %rcx
    je 4f // EXPECT memcheck uninit-branch
    nop
4:
END saved_and_read_behind_a_branch

CASE checked_before_a_request
    pushq %rbx
    BLOCK 16
    movq %rax, %rbx
    movq $0, (%rbx)
    subq $48, %rsp
    movq $0x4d430001, (%rsp) // MAKE_MEM_UNDEFINED
    movq %rbx, 8(%rsp)
    movq $8, 16(%rsp)
    movq $0, 24(%rsp)
    movq $0, 32(%rsp)
    movq $0, 40(%rsp)
    movq %rsp, %rax
    xorl %edx, %edx
    movq (%rbx), %rcx
    rolq $3, %rdi
    rolq $13, %rdi
    rolq $61, %rdi
    rolq $51, %rdi
    xchgq %rbx, %rbx
    cmpq $0, (%rbx)
    je 1f // EXPECT memcheck uninit-branch
    nop
1:
    addq $48, %rsp
    popq %rbx
END checked_before_a_request

// What is undefined is copied with DF and AC set, which C code must neither see nor change.
CASE copies_with_unusual_flags
    BLOCK 64
    movq %rax, %rdx
    movl $300, %ecx
    pushfq
    orl $0x40400, (%rsp)
    popfq
1:  movq (%rdx), %rsi
    movq %rsi, 16(%rdx)
    movups 32(%rdx), %xmm3
    movups %xmm3, 48(%rdx)
    subl $1, %ecx
    jne 1b
    pushfq
    popq %rcx
    pushq $2
    popfq
    cld
    andl $0x40400, %ecx
    cmpl $0x40400, %ecx
    je 1f
    ud2
1:
END copies_with_unusual_flags

// The word that the call reads is undefined, and good: it is said once, and the call is made.
CASE call_undefined_memory
    BLOCK 16
    movq (%rax), %rcx
    movq (%rax), %rdx
    xorq %rdx, %rcx
    leaq returns_at_once(%rip), %rdx
    addq %rcx, %rdx
    movq %rdx, 8(%rax)
    call *8(%rax) // EXPECT memcheck uninit-value size=8 origin=heap
END call_undefined_memory
    .type returns_at_once, @function
returns_at_once:
    ret
    .size returns_at_once, . - returns_at_once
