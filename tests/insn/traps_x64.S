// SPDX-License-Identifier: MIT
//
// What a translator that copies instructions gets wrong, case by case. Each trap ends by leaving
// the case, by a fault, or by both; `leave_taken` tells a second way out from the first. All
// registers but rsp start random, and everything that differs afterwards, memory below rsp
// included, is a failure. Statements with a dot describe the state the case starts from.
#include "traps.h"

#define NO_DF 4
#define MOVES_FS 8
#define FP_INIT 64
#define ASTRAY 128
#define LOW_ONLY 1
#define STACK 0x1400
#define FS_AT 0x400

.macro record what, kind=0, base=0, index=0, value=0, pointer=0, end=0
    .pushsection trap_records, "aw", @progbits
    .long \what, \kind, \base, \index
    .quad \value, \pointer, \end
    .popsection
.endm

.macro trap name
    .pushsection .rodata.names, "a", @progbits
771: .asciz "\name"
    .popsection
    record TRAP_BEGIN, pointer=771b
772:
    record TRAP_CODE, pointer=772b
.endm
.macro end_trap
773:
    record TRAP_END, pointer=773b
.endm
.macro leave_case
774: .skip 8, 0xcc
    record TRAP_FIX, TRAP_FIX_EXIT, pointer=774b, end=774b
.endm
.macro leave_taken
775: .skip 8, 0xcc
    record TRAP_FIX, TRAP_FIX_EXIT_TAKEN, pointer=775b, end=775b
.endm

// The operand `0(%rip)` of the preceding instruction, which has `imm` bytes of immediate,
// is really at near + offset.
.macro near_operand offset, imm=0
776:
    record TRAP_FIX, TRAP_FIX_REL32, TRAP_BASE_NEAR, 0, \offset, (776b-4-\imm), 776b
.endm
.macro .gpr number, base, value
    record TRAP_SET, TRAP_SET_GPR, \base, \number, \value
.endm
.macro .gpr_label number, label
    record TRAP_SET, TRAP_SET_GPR, TRAP_BASE_CODE, \number, (\label-772b)
.endm
.macro .data_word offset, base, value
    record TRAP_SET, TRAP_SET_DATA, \base, ((\offset)/8), \value
.endm
.macro .data_label offset, label
    record TRAP_SET, TRAP_SET_DATA, TRAP_BASE_CODE, ((\offset)/8), (\label-772b)
.endm
.macro .near_label offset, label
    record TRAP_SET, TRAP_SET_NEAR, TRAP_BASE_CODE, ((\offset)/8), (\label-772b)
.endm
.macro .trait bits
    record TRAP_TRAIT, value=\bits
.endm

#define RAX 0
#define RCX 1
#define RDX 2
#define RBX 3
#define RSP 4
#define RBP 5
#define RSI 6
#define RDI 7
#define NONE TRAP_BASE_NONE
#define DATA TRAP_BASE_DATA
#define NEAR TRAP_BASE_NEAR

    .section .rodata

// --- indirect control transfers: every register, flags live, nothing below rsp touched ---

.macro each_gpr macro
    \macro rax, 0
    \macro rcx, 1
    \macro rdx, 2
    \macro rbx, 3
    \macro rbp, 5
    \macro rsi, 6
    \macro rdi, 7
    \macro r8, 8
    \macro r9, 9
    \macro r10, 10
    \macro r11, 11
    \macro r12, 12
    \macro r13, 13
    \macro r14, 14
    \macro r15, 15
.endm

.macro jump_through reg, number
    trap "flags and registers across jmp reg"
    .gpr_label \number, 1f
    jmp *%\reg
    leave_case
1:  leave_taken
    end_trap

    trap "flags and registers across jmp mem"
    .gpr \number, DATA, 0x800
    .data_label 0x808, 1f
    jmp *8(%\reg)
    leave_case
1:  leave_taken
    end_trap

    trap "jump table"
    .gpr \number, NONE, 3
    .data_label (FS_AT+0x38), 1f
    jmp *%fs:0x20(,%\reg,8)
    leave_case
1:  jc 2f
    leave_taken
2:  leave_case
    end_trap

    trap "call reg"
    .gpr_label \number, 1f
    call *%\reg
    leave_case
1:  leave_taken
    end_trap

    trap "call mem"
    .gpr \number, DATA, 0x800
    .data_label 0x7f8, 1f
    call *-8(%\reg)
    leave_case
1:  ret
    end_trap

    trap "pop of the return address"
    call 1f
1:  pop %\reg
    leave_case
    end_trap

    trap "fs operand with any base"
    .gpr \number, NONE, 0x40
    add %fs:8(%\reg), %\reg
    leave_case
    end_trap

    trap "fs operand with any base"
    .gpr \number, NONE, 0x40
    xchg %\reg, %fs:(%\reg)
    leave_case
    end_trap

    trap "fs operand with any base"
    .gpr \number, NONE, -0x10
    mov %rsp, %fs:0x80(%\reg,%\reg)
    adc %\reg, %fs:0x100
    leave_case
    end_trap

    trap "gs operand with any base"
    .gpr \number, NONE, 0x40
    sbb %gs:8(%\reg), %\reg
    push %gs:0x10
    leave_case
    end_trap

    trap "fs operand of call and jmp"
    .gpr \number, NONE, 0x40
    .data_label (FS_AT+0x40), 1f
    .data_label (FS_AT+0x48), 2f
    call *%fs:(%\reg)
    leave_case
1:  jmp *%fs:8(%\reg)
    leave_case
2:  leave_taken
    end_trap

    trap "push and pop of any register"
    push %\reg
    mov %rsp, %\reg
    pop -8(%\reg)
    push 8(%\reg)
    pop %\reg
    leave_case
    end_trap

    trap "rsp replaced"
    .gpr \number, DATA, 0x1200
    xchg %rsp, %\reg
    push %\reg
    call 1f
1:  mov %\reg, %rsp
    leave_case
    end_trap

    trap "rip-relative operand with any register"
    add 0(%rip), %\reg
    near_operand 0x800
    mov %\reg, 0(%rip)
    near_operand 0x903
    lea 0(%rip), %\reg
    near_operand 0x100
    imul $0x12345678, 0(%rip), %\reg
    near_operand 0x810, 4
    cmpxchg %\reg, 0(%rip)
    near_operand 0x820
    leave_case
    end_trap

    trap "wrfsbase and wrgsbase"
    .trait MOVES_FS
    .gpr \number, DATA, 0x600
    wrfsbase %\reg
    mov %fs:8, %\reg
    rdfsbase %\reg
    wrgsbase %\reg
    add $1, %\reg
    mov %\reg, %gs:0x18
    rdgsbase %\reg
    leave_case
    end_trap
.endm
    each_gpr jump_through

    trap "jmp mem: rip-relative, fs, rsp"
    .near_label 0x800, 1f
    jmp *0(%rip)
    near_operand 0x800
    leave_case
1:  leave_taken
    end_trap

    trap "jmp mem: rip-relative, fs, rsp"
    .data_label (FS_AT+0x28), 1f
    jmp *%fs:0x28
    leave_case
1:  leave_taken
    end_trap

    trap "jmp mem: rip-relative, fs, rsp"
    .data_label (STACK+8), 1f
    jmp *8(%rsp)
    leave_case
1:  leave_taken
    end_trap

    trap "jmp mem: rip-relative, fs, rsp"
    .data_label (STACK-0x80), 1f
    jmp *-0x80(%rsp)
    leave_case
1:  leave_taken
    end_trap

    trap "call mem relative to rsp"
    .data_label (STACK+8), 1f
    call *8(%rsp)
    leave_case
1:  leave_taken
    end_trap

    trap "call mem relative to rsp"
    .data_label (STACK-8), 1f // the slot that the call itself overwrites
    call *-8(%rsp)
    leave_case
1:  leave_taken
    end_trap

    trap "call mem relative to rsp"
    .data_label STACK, 1f
    call *(%rsp)
    leave_case
1:  ret $8
    end_trap

    trap "call of rsp"
    .gpr_label RSP, 1f // the push must fault: the stack is code
    call *%rsp
    leave_case
1:  leave_taken
    end_trap

    trap "jmp of rsp"
    .gpr_label RSP, 1f
    jmp *%rsp
    leave_case
1:  leave_taken
    end_trap

    trap "call mem: rip-relative"
    .near_label 0x800, 1f
    call *0(%rip)
    near_operand 0x800
    leave_case
1:  leave_taken
    end_trap

// --- returns ---

.macro returns instruction:vararg
    trap "return forms"
    .data_label STACK, 1f
    \instruction
    leave_case
1:  leave_taken
    end_trap
.endm
    returns ret
    returns ret $0
    returns ret $0x18
    returns ret $0x8000
    returns ret $0xfff8
    returns .byte 0xf3, 0xc3
    returns .byte 0xf2, 0xc3
    returns .byte 0x48, 0xc3
    returns .byte 0x2e, 0x67, 0x4f, 0xc3

    trap "return that matches no call"
    call 1f
    leave_case
1:  lea 2f(%rip), %rax
    mov %rax, (%rsp)
    ret
2:  leave_taken
    end_trap

    trap "return past several frames"
    call 1f
    leave_taken
1:  call 2f
2:  call 3f
3:  lea 16(%rsp), %rsp
    ret
    leave_case
    end_trap

    trap "recursion"
    mov $9, %ecx
    call 1f
    leave_taken
1:  dec %ecx
    jz 2f
    call 1b
    inc %rdx
2:  ret
    leave_case
    end_trap

// --- stack corner cases ---

.macro stack_case instructions:vararg
    trap "push and pop corner cases"
    \instructions
    leave_case
    end_trap
.endm
    stack_case push %rsp
    stack_case pop %rsp
    stack_case push (%rsp)
    stack_case pop (%rsp)
    stack_case pop 8(%rsp)
    stack_case pop -8(%rsp)
    stack_case push -8(%rsp)
    stack_case push 8(%rsp)
    stack_case pop %sp
    stack_case push %sp
    stack_case pushw (%rsp)
    stack_case popw 2(%rsp)
    stack_case push $-1
    stack_case push $0x7fffffff
    stack_case pushw $0x1234
    stack_case push %fs
    stack_case push %gs
    stack_case push %fs:0
    stack_case push %fs:-8
    stack_case pop %fs:0x20
    stack_case pop %gs:0x20
    stack_case pushfq
    stack_case pushfw
    stack_case enter $16, $0
    stack_case enter $0, $1
    stack_case enter $0xfff, $0
    stack_case xchg %rsp, (%rsp)
    stack_case add %rsp, (%rsp)
    stack_case lea -0x80(%rsp), %rsp
    stack_case sub 8(%rsp), %esp
    stack_case mov %esp, %esp

    trap "push and pop rip-relative"
    push 0(%rip)
    near_operand 0x800
    pop 0(%rip)
    near_operand 0x900
    leave_case
    end_trap

    trap "popf"
    .data_word STACK, NONE, 0xcd5
    popfq
    leave_case
    end_trap

    trap "popf"
    .data_word STACK, NONE, 0x200203 // ID
    popfq
    pushfq
    leave_case
    end_trap

    trap "popf"
    .data_word STACK, NONE, 0x40002 // AC is set for a moment, and nothing misaligned is done
    popfq
    pushfq
    andl $~0x40000, (%rsp)
    popfq
    leave_case
    end_trap

    trap "red zone"
    .trait NO_DF
    mov %rax, -8(%rsp)
    mov %rbx, -0x80(%rsp)
    mov $5, %ecx
1:  add %rcx, -0x10(%rsp)
    mov -0x10(%rsp), %rdx
    lea 2f(%rip), %rax
    jmp *%rax
2:  dec %ecx
    jnz 1b
    mov -0x80(%rsp), %r8
    leave_case
    end_trap

// --- direct branches ---

.macro branch instructions:vararg
    trap "direct branches"
    \instructions
    leave_case
1:  leave_taken
    end_trap
.endm
.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    branch j\cc 1f
    branch {disp32} j\cc 1f
.endr
    branch jmp 1f
    branch {disp32} jmp 1f
    branch call 1f
    branch .byte 0x2e, 0x74, 8
    branch .byte 0x3e, 0x75, 8
    branch .byte 0x2e, 0x0f, 0x84, 8, 0, 0, 0
    branch .byte 0xf2, 0xe9, 8, 0, 0, 0 // bnd
    branch .byte 0xf2, 0xe8, 8, 0, 0, 0
    branch .byte 0xf2, 0x74, 8
    branch .byte 0x48, 0xe9, 8, 0, 0, 0
    branch .byte 0x48, 0x74, 8

.macro counted number, instruction:vararg
    trap "loop and jrcxz"
    .gpr RCX, NONE, \number
    \instruction
    leave_case
1:  leave_taken
    end_trap
.endm
.irp n, 0, 1, 2, 0x100000000, 0x100000001, 0x100000002, -1
    counted \n, loop 1f
    counted \n, loope 1f
    counted \n, loopne 1f
    counted \n, jrcxz 1f
    counted \n, jecxz 1f
    counted \n, .byte 0x67, 0xe2, 8
    counted \n, .byte 0x67, 0xe1, 8
    counted \n, .byte 0x67, 0xe0, 8
    counted \n, .byte 0x48, 0xe2, 8
    counted \n, .byte 0x2e, 0xe3, 8
.endr

    trap "loops"
    .gpr RCX, NONE, 300
    .trait NO_DF
    xor %eax, %eax
1:  adc %rcx, %rax
    loop 1b
    leave_case
    end_trap

    trap "loops"
    .gpr RCX, NONE, 7
    mov $0x100, %edx
1:  imul $3, %rax, %rax
2:  lea -1(%rdx), %edx
    test %edx, %edx
    je 3f
    test $7, %dl
    jne 1b
    jmp 2b
3:  leave_case
    end_trap

    trap "a jump into itself"
    .byte 0xeb, 0xff, 0xc0 // jmp to its own second byte: inc %eax
    leave_case
    end_trap

    trap "overlapping instructions"
    mov $2, %ecx
1:  .byte 0xb8, 0xff, 0xc0, 0x90, 0x90 // mov $imm, %eax; from its second byte inc %eax; nop; nop
    dec %ecx
    js 2f
    jmp 1b + 1
2:  leave_case
    end_trap

// An operand-size prefix on a near branch is ignored by Intel; AMD truncates rip to 16 bits.
.macro branch16 bytes:vararg
    trap "66h-prefixed branches"
    .data_label STACK, 1f
    .byte \bytes
    leave_case
1:  leave_taken
    end_trap
.endm
    branch16 0x66, 0xe9, 8, 0, 0, 0
    branch16 0x66, 0xe8, 8, 0, 0, 0
    branch16 0x66, 0xeb, 8
    branch16 0x66, 0x74, 8
    branch16 0x66, 0xc3
    branch16 0x66, 0xe3, 8
    branch16 0x66, 0x67, 0xe3, 8
    branch16 0x66, 0x0f, 0x84, 8, 0
    branch16 0x66, 0x0f, 0x85, 8, 0
    branch16 0x66, 0x75, 8
    branch16 0x66, 0x7e, 8
    branch16 0x66, 0xe2, 8
    branch16 0x66, 0x67, 0xe2, 8
    branch16 0x66, 0xe1, 8
    branch16 0x66, 0xe0, 8
    branch16 0x66, 0xff, 0xe0 // jmp %ax
    branch16 0x66, 0xff, 0xd1 // call %cx
    branch16 0x66, 0xff, 0x24, 0x24 // jmp *(%rsp)
    branch16 0x66, 0xff, 0x14, 0x24
    branch16 0x66, 0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0
    branch16 0x66, 0xc2, 0x10, 0
    branch16 0x66, 0xff, 0x74, 0x24, 8, 0x66, 0xc3

    trap "66h with REX.W on branches"
    .byte 0x66, 0x66, 0x48, 0xe8, 8, 0, 0, 0 // what compilers emit for __tls_get_addr
    leave_case
    leave_taken
    end_trap
    trap "66h with REX.W on branches"
    .gpr_label RAX, 1f
    .byte 0x66, 0x48, 0xff, 0xd0
    leave_case
1:  leave_taken
    end_trap
    trap "66h with REX.W on branches"
    .gpr_label RAX, 1f
    .byte 0x3e, 0x66, 0x48, 0xff, 0xe0
    leave_case
1:  leave_taken
    end_trap
    trap "notrack jmp"
    .gpr_label RAX, 1f
    .byte 0x3e, 0xff, 0xe0
    leave_case
1:  leave_taken
    end_trap

// --- branches to nowhere ---

.macro nowhere base, value, traits=0
    trap "branch to where nothing can run"
    .trait \traits
    .gpr RAX, \base, \value
    jmp *%rax
    leave_case
    end_trap
    trap "branch to where nothing can run"
    .trait \traits
    .gpr RAX, \base, \value
    call *%rax
    leave_case
    end_trap
    trap "branch to where nothing can run"
    .trait \traits
    .data_word STACK, \base, \value
    ret
    leave_case
    end_trap
    trap "branch to where nothing can run"
    .trait \traits
    .data_word (STACK+8), \base, \value
    jmp *8(%rsp)
    leave_case
    end_trap
.endm
    nowhere NONE, 0
    nowhere NONE, 0x10
    nowhere DATA, 0x800
    nowhere DATA, 0x2010
    nowhere DATA, 0x3fff
    nowhere DATA, 0x4000
    nowhere NONE, -1
    nowhere NONE, 0x7fffffffffff
    nowhere NONE, 0xffff800000000000
// The CPU refuses an address that is not canonical at the branch, before anything is pushed or
// popped. The engine sees it at the target: to remember the branch would cost every indirect
// branch a store, for a difference that only the handler of a fault from nowhere can see.
    nowhere NONE, 0x800000000000, ASTRAY
    nowhere NONE, 0xdead000000000000, ASTRAY

    trap "call with an unusable stack"
    .gpr RSP, DATA, 0x2010
    call 1f
    leave_case
1:  leave_taken
    end_trap
    trap "call with an unusable stack"
    .gpr RSP, NONE, 0
    call *%rax
    leave_case
    end_trap
    trap "ret with an unusable stack"
    .gpr RSP, DATA, 0x1ffc
    ret
    leave_case
    end_trap
    trap "ret with an unusable stack"
    .gpr RSP, NONE, 0xdead000000000000
    ret
    leave_case
    end_trap
    trap "jmp through unusable memory"
    .gpr RAX, DATA, 0x2100
    jmp *8(%rax)
    leave_case
    end_trap
    trap "call through unusable memory"
    .gpr RAX, DATA, 0x2100
    call *8(%rax)
    leave_case
    end_trap

// --- the edge of executable memory: any part of the instruction may be missing ---

.macro edge instructions:vararg
    trap "code that ends at a page that cannot be executed"
    record TRAP_EDGE
    \instructions
    end_trap
.endm
    edge movabs $0x123456789abcdef0, %rax
    edge add $0x12345678, %rax
    edge movl $0x12345678, %fs:0x10
    edge vaddps %ymm0, %ymm1, %ymm2
    edge lock addl $1, -0x100(%rsp)
    edge push $0x1234
    edge {disp32} jz . + 0x100
    edge {disp32} jmp . - 0x80
    edge call . - 0x80
    edge nop
    edge syscall
    edge ud2
    edge .byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90
.macro sixteen_prefixes
    .skip 16, 0x66
.endm
    edge sixteen_prefixes

// --- long instructions ---

.macro length prefixes, instruction:vararg
    trap "instructions of 15 bytes and more"
    .gpr RBX, DATA, 0x800
    .rept \prefixes
    .byte 0x2e
    .endr
    \instruction
    leave_case
    end_trap
.endm
    length 5, movabs $0x123456789abcdef0, %rax
    length 6, movabs $0x123456789abcdef0, %rax
    length 7, movabs $0x123456789abcdef0, %rax
    length 14, nop
    length 15, nop
    length 3, movq $0x12345678, 0x100(%rbx,%r8,8)
    length 2, {disp32} movq $0x12345678, 0x10(%rbx)
    length 3, {disp32} movq $0x12345678, 0x10(%rbx)
    length 4, {disp32} movq $0x12345678, 0x10(%rbx)
    length 5, {disp32} movq $0x12345678, 0x10(%rbx)

    trap "rip-relative with an immediate, 15 bytes"
    .byte 0x2e, 0x2e, 0x2e, 0x2e
    addq $0x12345678, 0(%rip)
    near_operand 0x800, 4
    leave_case
    end_trap

// --- rip-relative operands with something behind the displacement ---

.macro rip imm, instruction:vararg
    trap "rip-relative operands"
    \instruction
    near_operand 0x840, \imm
    leave_case
    end_trap
.endm
    rip 1, addb $0x12, 0(%rip)
    rip 2, addw $0x1234, 0(%rip)
    rip 4, addl $0x12345678, 0(%rip)
    rip 1, addq $0x12, 0(%rip)
    rip 4, cmpq $-0x12345678, 0(%rip)
    rip 1, shll $5, 0(%rip)
    rip 0, shll %cl, 0(%rip)
    rip 1, shld $5, %rax, 0(%rip)
    rip 1, imul $5, 0(%rip), %rsp
    rip 2, imul $0x1234, 0(%rip), %ax
    rip 4, testl $0x12345678, 0(%rip)
    rip 1, testb $0x12, 0(%rip)
    rip 0, notq 0(%rip)
    rip 0, mulq 0(%rip)
    rip 0, divl 0(%rip)
    rip 1, btsl $7, 0(%rip)
    rip 0, cmpxchg16b 0(%rip)
    rip 0, lock xadd %rsp, 0(%rip)
    rip 0, xchg %rax, 0(%rip)
    rip 0, movaps 0(%rip), %xmm9
    rip 1, pshufd $0x1b, 0(%rip), %xmm3
    rip 1, cmpps $2, 0(%rip), %xmm3
    rip 1, pinsrd $2, 0(%rip), %xmm3
    rip 0, vaddps 0(%rip), %ymm1, %ymm12
    rip 1, vpblendd $0x5a, 0(%rip), %ymm1, %ymm12
    rip 1, vperm2i128 $0x31, 0(%rip), %ymm1, %ymm12
    rip 1, vblendvps %ymm4, 0(%rip), %ymm1, %ymm12
    rip 0, vbroadcastss 0(%rip), %ymm3
    rip 0, vmaskmovps %ymm1, %ymm2, 0(%rip)
    rip 0, andn 0(%rip), %rax, %r9
    rip 1, rorx $7, 0(%rip), %r15
    rip 0, vaddps 0(%rip), %zmm1, %zmm30
    rip 0, vaddps 0(%rip){1to16}, %zmm1, %zmm30{%k3}
    rip 0, vaddpd 0(%rip){1to4}, %ymm17, %ymm30{%k3}{z}
    rip 1, vpternlogd $0xca, 0(%rip), %zmm20, %zmm2
    rip 1, vpcmpd $2, 0(%rip), %zmm20, %k2{%k1}
    rip 0, vmovdqu8 %zmm5, 0(%rip){%k1}
    rip 0, vpcompressd %zmm5, 0(%rip){%k1}
    rip 1, vextracti64x4 $1, %zmm5, 0(%rip)
    rip 0, kmovq 0(%rip), %k4
    rip 0, fldt 0(%rip)
    rip 0, fistpll 0(%rip)
    rip 0, fldcw 0(%rip)
    rip 0, ldmxcsr 0(%rip)
    rip 0, movq %mm3, 0(%rip)
    rip 0, prefetcht0 0(%rip)
    rip 0, lea 0(%rip), %rsp
    rip 0, lea 0(%rip), %r13d
    rip 0, lea 0(%rip), %ax
    rip 0, cmovb 0(%rip), %rsp
    rip 0, setb 0(%rip)
    rip 0, movbe 0(%rip), %rdi
    rip 0, crc32q 0(%rip), %rsi
    rip 0, movb %ah, 0(%rip)
    rip 0, addb 0(%rip), %bh

    trap "rip-relative operands that fault"
    addl $1, 0(%rip)
    near_operand 0x2010, 1
    leave_case
    end_trap
    trap "rip-relative operands that fault"
    vmovdqu 0(%rip), %ymm3
    near_operand 0x1ff0
    leave_case
    end_trap
    trap "rip-relative operands that fault"
    movaps 0(%rip), %xmm3
    near_operand 0x801
    leave_case
    end_trap
    trap "eip-relative operands"
    .trait LOW_ONLY
    .byte 0x67
    add 0(%rip), %eax
    near_operand 0x801
    leave_case
    end_trap

// --- fs and gs operands where the obvious scratch register is taken ---

.macro seg instruction:vararg
    trap "fs and gs operands"
    .gpr RAX, NONE, 0x40
    .gpr RCX, NONE, 6
    .gpr RDX, NONE, 0x80
    .gpr RBX, NONE, 0x30
    .gpr RSI, NONE, 0x20
    .gpr RDI, DATA, 0x900
    .trait NO_DF
    \instruction
    leave_case
    end_trap
.endm
    seg mov %fs:0, %rax
    seg mov %fs:0x28, %rsp
    seg movabs %fs:0x28, %rax
    seg movabs %al, %gs:0x28
    seg cmpxchg %rbx, %fs:(%rdx)
    seg lock cmpxchg %rax, %fs:(%rdx)
    seg cmpxchg16b %fs:(%rdx)
    seg lock cmpxchg16b %fs:(%rdx,%rcx,8)
    seg mulq %fs:(%rax,%rcx,2)
    seg divl %fs:(%rax,%rcx,2)
    seg xlatb %fs:(%rbx)
    seg xlatb (%rbx)
    seg rep movsb %fs:(%rsi), (%rdi)
    seg rep movsq %gs:(%rsi), (%rdi)
    seg movsl %fs:(%rsi), (%rdi)
    seg lodsq %fs:(%rsi), %rax
    seg rep lodsb %fs:(%rsi), %al
    seg cmpsb (%rdi), %fs:(%rsi)
    seg repe cmpsb (%rdi), %gs:(%rsi)
    seg repne cmpsw (%rdi), %fs:(%rsi)
    seg .byte 0x64, 0xf3, 0xaa // rep stosb ignores fs
    seg .byte 0x64, 0xf2, 0xae // repne scasb too
    seg .byte 0x67, 0xf3, 0xa4
    seg .byte 0x64, 0x48, 0x8d, 0x50, 0x08 // lea %fs:8(%rax), %rdx ignores fs
    seg .byte 0x64, 0x65, 0x48, 0x8b, 0x00 // the last of two prefixes counts
    seg .byte 0x65, 0x64, 0x48, 0x8b, 0x00
    seg .byte 0x64, 0x3e, 0x48, 0x8b, 0x00
    seg .byte 0x64, 0x48, 0x48, 0x8b, 0x00 // a REX that is not last is ignored
    seg .byte 0x64, 0x67, 0x8b, 0x00 // 32-bit address, then fs
    seg .byte 0x64, 0x67, 0x8b, 0x40, 0xc0
    seg vmovdqu %fs:(%rax,%rcx,8), %ymm9
    seg vmovdqu32 %fs:64(%rax), %zmm19{%k1}
    seg vpaddd %fs:0x40, %ymm9, %ymm10
    seg bts %rcx, %fs:(%rax)
    seg bts %rsi, %fs:0x20
    seg push %fs:(%rax)
    seg pop %fs:(%rsp)
    seg push %fs:(%rsp)
    seg call *%fs:0x2000
    seg movb %ah, %fs:(%rdx)
    seg addb %fs:(%rbx), %dh
    seg fldt %fs:(%rax)
    seg fnstcw %fs:(%rax)
    seg sgdt %fs:0x7fff0000(%rax)
    seg movq $-5, %fs:0x50
    seg addw $0x1234, %fs:(%rax,%rcx)
    seg rdfsbase %rax
    seg rdgsbase %rsp
    seg rdfsbase %r12d
    seg pop %gs:8(%rsp)
    seg popw %gs:8(%rsp,%rcx)
    seg .byte 0x64, 0x67, 0x8f, 0x04, 0x24 // pop %fs:(%esp)
    seg .byte 0x64, 0xa0, 0x28, 0, 0, 0, 0, 0, 0, 0
    seg .byte 0x64, 0x66, 0xa1, 0x28, 0, 0, 0, 0, 0, 0, 0
    seg .byte 0x65, 0xa3, 0x28, 0, 0, 0, 0, 0, 0, 0
    seg .byte 0x65, 0x67, 0xa3, 0x28, 0, 0, 0
    seg .byte 0x65, 0x67, 0x48, 0xa1, 0x28, 0, 0, 0
    seg .byte 0x64, 0x67, 0xf3, 0xa4 // rep movsb %fs:(%esi), (%edi)
    seg .byte 0x64, 0x67, 0xac
    seg .byte 0x64, 0x67, 0xf3, 0xac
    seg .byte 0x64, 0x67, 0xd7
    seg .byte 0x65, 0x64, 0xf3, 0xa5
    seg .byte 0x64, 0x65, 0xf3, 0x48, 0xa5
    seg .byte 0x64, 0xf3, 0xa4, 0x65, 0xf3, 0xa4
    seg .byte 0x64, 0x66, 0x0f, 0xf7, 0xca // maskmovdqu %xmm2, %xmm1 to %fs:(%rdi)
    seg .byte 0x64, 0x0f, 0xf7, 0xca

.macro seg_half base, count, instruction:vararg
    trap "strings through fs and gs that fault half way"
    .gpr RSI, NONE, (\base)
    .gpr RDI, DATA, 0x900
    .gpr RCX, NONE, \count
    .trait NO_DF
    \instruction
    leave_case
    end_trap
.endm
    seg_half 0x1bf1, 0x40, rep movsb %fs:(%rsi), (%rdi)
    seg_half 0x1be0, 0x40, rep movsq %fs:(%rsi), (%rdi)
    seg_half 0x19e7, 0x40, rep movsl %gs:(%rsi), (%rdi)
    seg_half 0x1bf0, 0x40, rep lodsb %fs:(%rsi), %al
    seg_half 0x2000, 0x40, lodsq %gs:(%rsi), %rax
    seg_half 0x2000, 0, rep lodsq %gs:(%rsi), %rax

// --- bases that hardware refuses ---

.macro refused instruction:vararg
    trap "a base that is not canonical"
    .trait MOVES_FS
    .gpr RAX, NONE, 0x800000000000
    .gpr RBX, NONE, 0xdead000000000000
    \instruction
    leave_case
    end_trap
.endm
    refused wrfsbase %rax
    refused wrgsbase %rbx
    refused wrfsbase %eax
    refused wrgsbase %ebx

.macro selector value
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .gpr RAX, NONE, (\value)
    .data_word STACK, NONE, (\value)
    mov %ax, %gs
    rdgsbase %rcx
    leave_case
    end_trap
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .data_word STACK, NONE, (\value)
    pop %fs
    leave_case
    end_trap
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .data_word STACK, NONE, (\value)
    popw %gs
    leave_case
    end_trap
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .data_word STACK, NONE, (\value)
    mov (%rsp), %fs
    leave_case
    end_trap
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .data_word STACK, NONE, 0x123456789abcdef0
    .data_word (STACK+8), NONE, (\value)
    .byte 0x48
    lfs (%rsp), %ecx
    leave_case
    end_trap
    trap "selectors in fs and gs"
    .trait MOVES_FS
    .data_word STACK, NONE, (0x9abcdef0 | (\value) << 32)
    lgs (%rsp), %ecx
    leave_case
    end_trap
.endm
.irp s, 0, 1, 2, 3, 4, 8, 0x10, 0x1b, 0x20, 0x23, 0x28, 0x2b, 0x33, 0x30, 0x3b, 0x43, 0x53, 0x63, 0x7b, 0x83, 0xfff8
    selector \s
.endr

// --- far transfers ---

.macro far_return size, instruction, cs, ss=0x2b
    trap "far returns"
    lea 1f(%rip), %rax
    mov %rax, (%rsp)
    movq $\cs, \size(%rsp)
    \instruction
    leave_case
1:  leave_taken
    end_trap
.endm
.irp cs, 0x33, 0x30, 0x2b, 0, 3, 8, 0x10, 0xfff8
    far_return 8, lretq, \cs
    far_return 4, lretl, \cs
.endr
    far_return 8, "lretq $0x18", 0x33
    far_return 2, lretw, 0x33

.macro interrupt_return cs, ss, flags
    trap "iretq"
    .gpr RDX, DATA, 0x1100
    lea 1f(%rip), %rax
    mov %rax, (%rsp)
    movq $\cs, 8(%rsp)
    movq $\flags, 16(%rsp)
    mov %rdx, 24(%rsp)
    movq $\ss, 32(%rsp)
    iretq
    leave_case
1:  leave_taken
    end_trap
.endm
    interrupt_return 0x33, 0x2b, 0x202
    interrupt_return 0x33, 0x2b, 0xcd7
    interrupt_return 0x33, 0x2b, 0x3002
    interrupt_return 0x33, 0x2b, 0
    interrupt_return 0x33, 0x28, 0x202
    interrupt_return 0x33, 0, 0x202
    interrupt_return 0x33, 0x33, 0x202
    interrupt_return 0x30, 0x2b, 0x202
    interrupt_return 0, 0x2b, 0x202
    interrupt_return 0x10, 0x18, 0x202

.macro far_pointer instruction, cs
    trap "far jumps and calls"
    .gpr RDX, DATA, 0x900
    lea 1f(%rip), %rax
    mov %rax, (%rdx)
    movl $\cs, 4(%rdx)
    \instruction
    leave_case
1:  leave_taken
    end_trap
    trap "far jumps and calls, 64 bits"
    .gpr RDX, DATA, 0x900
    lea 1f(%rip), %rax
    mov %rax, (%rdx)
    movl $\cs, 8(%rdx)
    .byte 0x48
    \instruction
    leave_case
1:  leave_taken
    end_trap
.endm
.irp cs, 0x33, 0, 0x2b, 0x10
    far_pointer "ljmp *(%rdx)", \cs
    far_pointer "lcall *(%rdx)", \cs
.endr

// --- alignment checks, on while the engine is at work ---

.macro checked instructions:vararg
    trap "with alignment checks"
    .trait NO_DF
    .data_word STACK, NONE, 0x40002
    popfq
    \instructions
    pushfq
    andl $~0x40000, (%rsp)
    popfq
    leave_case
    end_trap
.endm
.macro checked_loop
    mov $500, %ecx
1:  lea 2f(%rip), %rax
    jmp *%rax
2:  call 3f
3:  pop %rax
    loop 1b
.endm
.macro checked_syscall
    mov $39, %eax // getpid
    syscall
    mov $0, %eax
.endm
    checked checked_loop
    checked checked_syscall
    checked mov %fs:8, %rdx

// --- system calls, cpuid and their like: only the registers matter ---

    trap "syscall leaves rcx = rip and r11 = flags"
    mov $-1, %rax
    syscall
    leave_case
    end_trap
    trap "syscall leaves rcx = rip and r11 = flags"
    .gpr RDX, DATA, 0x800
    mov $158, %eax // arch_prctl(ARCH_GET_FS, rdx)
    mov $0x1003, %edi
    mov %rdx, %rsi
    syscall
    leave_case
    end_trap
    trap "cpuid"
    .gpr RAX, NONE, 0x80000002
    cpuid
    leave_case
    end_trap
    trap "cpuid"
    .gpr RAX, NONE, 0
    cpuid
    leave_case
    end_trap
    trap "xgetbv"
    .gpr RCX, NONE, 0
    xgetbv
    leave_case
    end_trap

// --- instructions that trap ---

.macro traps instruction:vararg
    trap "instructions that trap"
    \instruction
    leave_case
    end_trap
.endm
    traps int3
    traps .byte 0xcd, 0x03
    traps .byte 0x48, 0xcc
    traps .byte 0xf1
    traps ud2
    traps .byte 0x0f, 0xb9, 0xc0
    traps .byte 0x0f, 0xff, 0xc0
    traps .byte 0x06 // not in 64-bit mode
    traps .byte 0x27
    traps .byte 0xce
    traps .byte 0xd6
    traps .byte 0x9a, 0, 0, 0, 0, 0, 0
    traps .byte 0xea, 0, 0, 0, 0, 0, 0
    traps .byte 0xf0, 0x90 // lock nop
    traps .byte 0xf0, 0x01, 0xc0 // lock add with a register
    traps .byte 0xc5, 0xf8, 0x37, 0xc0
    traps .byte 0x66, 0xc5, 0xf8, 0x58, 0xc0 // 66h before VEX
    traps .byte 0x48, 0xc5, 0xf8, 0x58, 0xc0 // REX before VEX
    traps .byte 0xf0, 0xc5, 0xf8, 0x58, 0x04, 0x24
    traps .byte 0x62, 0, 0, 0, 0, 0
    traps .byte 0x0f, 0x0a
    traps .byte 0x0f, 0x04
    traps hlt
    traps cli
    traps in %dx, %al
    traps mov %cr0, %rax
    traps rdmsr
    traps .byte 0x48, 0xf7, 0xf3 // div by whatever
    traps idivb %al

    trap "division"
    .gpr RAX, NONE, 0x8000000000000000
    .gpr RDX, NONE, -1
    .gpr RCX, NONE, -1
    idiv %rcx
    leave_case
    end_trap
    trap "division"
    .gpr RCX, NONE, 0
    div %ecx
    leave_case
    end_trap

// --- x87 and vector state through memory ---

    trap "xsave and xrstor"
    .gpr RDI, DATA, 0x100
    .gpr RAX, NONE, 7
    .gpr RDX, NONE, 0
.irp w, 0, 8, 16, 24, 32, 40, 48, 56
    .data_word (0x300+\w), NONE, 0
.endr
    record TRAP_IGNORE, base=DATA, index=0x105, value=19
    record TRAP_IGNORE, base=DATA, index=0x300, value=8
    xsave64 (%rdi)
    vpxor %ymm3, %ymm3, %ymm3
    fninit
    xrstor64 (%rdi)
    leave_case
    end_trap

    trap "fxsave and fxrstor"
    .gpr RDI, DATA, 0x100
    record TRAP_IGNORE, base=DATA, index=0x105, value=19
    fxsave64 (%rdi)
    pxor %xmm3, %xmm3
    fninit
    fxrstor64 (%rdi)
    leave_case
    end_trap

    trap "x87 and mmx sequences"
    .trait FP_INIT
    fninit
    fldpi
    fld1
    fldl2e
    faddp
    fdivrp
    fistpll -0x20(%rsp)
    fldl -0x20(%rsp)
    fsqrt
    fxam
    fnstsw %ax
    leave_case
    end_trap

    trap "x87 and mmx sequences"
    movq %rax, %mm0
    paddd %mm1, %mm0
    movq %mm0, %rcx
    emms
    leave_case
    end_trap

// --- strings that fault half way, and other partial work ---

    trap "strings that fault half way"
    .trait NO_DF
    .gpr RSI, DATA, 0x900
    .gpr RDI, DATA, 0x1fe9
    .gpr RCX, NONE, 0x40
    rep movsb
    leave_case
    end_trap
    trap "strings that fault half way"
    .trait NO_DF
    .gpr RDI, DATA, 0x1fe0
    .gpr RCX, NONE, 0x40
    rep stosq
    leave_case
    end_trap
    trap "strings that fault half way"
    .trait NO_DF
    .gpr RSI, DATA, 0x1ff0
    .gpr RDI, DATA, 0x900
    .gpr RCX, NONE, 0x40
    rep movsl
    leave_case
    end_trap
    trap "strings backwards"
    .gpr RSI, DATA, 0x900
    .gpr RDI, DATA, 0x904
    .gpr RCX, NONE, 9
    std
    rep movsw
    leave_case
    end_trap

    trap "cmpxchg16b"
    .gpr RSI, DATA, 0x900
    mov (%rsi), %rax
    mov 8(%rsi), %rdx
    lock cmpxchg16b (%rsi)
    leave_case
    end_trap
    trap "cmpxchg16b"
    .gpr RBX, DATA, 0x900
    cmpxchg16b (%rbx)
    leave_case
    end_trap
    trap "cmpxchg16b"
    .gpr RSI, DATA, 0x908
    cmpxchg16b (%rsi)
    leave_case
    end_trap

    .section .note.GNU-stack, "", @progbits
