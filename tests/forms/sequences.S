// SPDX-License-Identifier: MIT
//
// What the generator does not find: instructions whose operands are hidden, and short sequences that
// memcheck takes together. rdi points to 192 bytes of memory, 64 bytes behind their begin; rsp is what
// it was when they end.

#define RAX 0
#define RCX 1
#define RDX 2
#define RBX 3
#define RBP 5
#define RSI 6
#define R8 8
#define R9 9
#define R11 11
#define R12 12
#define FLAGS 16
#define X87 17
#define K(n) (20 + n)
#define XMM(n) (32 + n)

    .section .rodata
    .globl sequences_begin, sequences_end
    .balign 8
sequences_begin:

// An entry: FormInsn of forms.h.
.macro SEQUENCE name, members:vararg
    .set members, 0
    .irp m, \members
    .set members, members | (1 << (\m))
    .endr
    .quad members
    .long 0x10 // AF is open
    .byte 2f - 1f, 0, 1, 0
1:
    .set name_at, .
    .macro NAME_OF_THIS
    .ascii "\name"
    .endm
.endm

.macro END
2:  .fill 128 - (2b - 1b), 1, 0x90
3:  NAME_OF_THIS
    .fill 32 - (. - 3b), 1, 0
    .purgem NAME_OF_THIS
.endm

// ------------------------------------------------------------------------ the stack

SEQUENCE "push pop", RAX, RCX
    pushq %rax
    popq %rcx
END
SEQUENCE "push [m]", RCX
    pushq (%rdi)
    popq %rcx
END
SEQUENCE "push [m + disp]", RCX
    pushq -8(%rdi)
    popq %rcx
END
SEQUENCE "push [m + i]", RCX
    movl $1, %ecx
    pushq 8(%rdi,%rcx,8)
    popq %rcx
END
SEQUENCE "push [m], pop [m]", RAX
    pushq (%rdi)
    popq 8(%rdi)
END
SEQUENCE "push r, pop [m]", RAX, RCX
    pushq %rax
    popq 8(%rdi)
END
SEQUENCE "pop [rsp]", RAX, RCX
    pushq %rcx
    pushq %rax
    popq (%rsp)
    popq %rcx
END
SEQUENCE "pop [rsp + disp]", RAX, RCX, RDX
    pushq %rcx
    pushq %rcx
    pushq %rax
    popq 8(%rsp)
    popq %rdx
    popq %rcx
END
SEQUENCE "push [rsp]", RAX, RCX, RDX
    pushq %rax
    pushq (%rsp)
    pushq 8(%rsp)
    popq %rcx
    popq %rdx
    leaq 8(%rsp), %rsp
END
SEQUENCE "push rsp", RAX
    pushq %rsp
    popq %rax
    subq %rsp, %rax
END
SEQUENCE "pushw popw", RAX, RCX
    pushw %ax
    popw %cx
END
SEQUENCE "pushw [m]", RCX
    pushw (%rdi)
    popw %cx
END
SEQUENCE "popw [m]", RCX
    pushw %cx
    popw 2(%rdi)
END
SEQUENCE "push imm", RCX, RAX
    pushq %rax
    leaq 8(%rsp), %rsp
    pushq $-7
    popq %rcx
END
SEQUENCE "push fs", RCX, RAX
    pushq %rax
    leaq 8(%rsp), %rsp
    pushq %fs
    popq %rcx
END
SEQUENCE "load, push", RAX, RCX
    movq (%rdi), %rax
    pushq %rax
    movq 8(%rdi), %rax
    pushq %rax
    popq %rcx
    popq %rax
END
SEQUENCE "load, push, read", RAX, RCX
    movq (%rdi), %rax
    pushq %rax
    movl 4(%rsp), %ecx
    popq 16(%rdi)
END
SEQUENCE "pushf popf", FLAGS
    pushfq
    popfq
END
SEQUENCE "pushf pop", FLAGS, RCX
    pushfq
    popq %rcx
    andl $0x8c5, %ecx
END
SEQUENCE "enter leave", RBP, RCX
    enter $16, $0
    movq 16(%rsp), %rcx
    leave
END
SEQUENCE "frame", RBP, RAX, RCX
    pushq %rbp
    movq %rsp, %rbp
    subq $32, %rsp
    movq %rax, -16(%rbp)
    movq -16(%rbp), %rcx
    leave
END
SEQUENCE "frame of a struct", RAX, RCX, RDX
    subq $24, %rsp
    movq (%rdi), %rax
    movq 8(%rdi), %rdx
    movq %rax, (%rsp)
    movq %rdx, 8(%rsp)
    movq 4(%rsp), %rcx
    addq $24, %rsp
END
SEQUENCE "red zone", RAX, RCX
    movq %rax, -24(%rsp)
    movq -20(%rsp), %rcx
END
SEQUENCE "fldt fstpt", X87
    fldt (%rdi)
    leaq -16(%rsp), %rsp
    fstpt (%rsp)
    pushq (%rsp)
    popq 16(%rdi)
    leaq 16(%rsp), %rsp
END

// -------------------------------------------------------------------------- strings

SEQUENCE "movsb", RSI
    leaq (%rdi), %rsi
    leaq 17(%rdi), %rdi
    movsb
END
SEQUENCE "movsw", RSI
    leaq (%rdi), %rsi
    leaq 17(%rdi), %rdi
    movsw
END
SEQUENCE "movsl", RSI
    leaq (%rdi), %rsi
    leaq 18(%rdi), %rdi
    movsl
END
SEQUENCE "movsq", RSI
    leaq (%rdi), %rsi
    leaq 4(%rdi), %rdi
    movsq
END
SEQUENCE "movsq twice", RSI
    leaq (%rdi), %rsi
    leaq 32(%rdi), %rdi
    movsq
    movsq
END
SEQUENCE "movsq to the stack", RSI, RAX
    leaq (%rdi), %rsi
    leaq -64(%rsp), %rdi
    movsq
    movq -64(%rsp), %rax
END
SEQUENCE "stosb", RAX
    stosb
END
SEQUENCE "stosl", RAX
    stosl
END
SEQUENCE "stosq", RAX
    stosq
END
SEQUENCE "lodsb", RAX, RSI
    leaq (%rdi), %rsi
    lodsb
END
SEQUENCE "lodsw", RAX, RSI
    leaq (%rdi), %rsi
    lodsw
END
SEQUENCE "lodsl", RAX, RSI
    leaq (%rdi), %rsi
    lodsl
END
SEQUENCE "lodsq", RAX, RSI
    leaq (%rdi), %rsi
    lodsq
END
SEQUENCE "scasb", RAX, FLAGS
    scasb
END
SEQUENCE "scasq", RAX, FLAGS
    scasq
END
SEQUENCE "cmpsb", RSI, FLAGS
    leaq 32(%rdi), %rsi
    cmpsb
END
SEQUENCE "cmpsq", RSI, FLAGS
    leaq 32(%rdi), %rsi
    cmpsq
END
SEQUENCE "rep movsb", RSI, RCX
    leaq (%rdi), %rsi
    leaq 40(%rdi), %rdi
    movl $21, %ecx
    rep movsb
END
SEQUENCE "rep movsq", RSI, RCX
    leaq (%rdi), %rsi
    leaq 8(%rdi), %rdi
    movl $3, %ecx
    rep movsq
END
SEQUENCE "rep stosl", RAX, RCX
    movl $3, %ecx
    rep stosl
END
SEQUENCE "repe cmpsb", RSI, RCX, FLAGS
    leaq (%rdi), %rsi
    leaq 32(%rdi), %rdi
    movl $1, %ecx
    repe cmpsb
END
SEQUENCE "xlat", RAX, RBX
    leaq (%rdi), %rbx
    movl $5, %eax
    xlat
END

// ------------------------------------------------------------- loads and what follows

SEQUENCE "load, mask", RAX, FLAGS
    movl (%rdi), %eax
    andl $0x01010101, %eax
END
SEQUENCE "load, mask a byte", RAX, FLAGS
    movzbl (%rdi), %eax
    andl $6, %eax
END
SEQUENCE "test bits", FLAGS
    testb $5, (%rdi)
END
SEQUENCE "test bits of a word", FLAGS
    testl $0x7f808001, (%rdi)
END
SEQUENCE "set a bit-field", RAX, RCX, FLAGS
    movzbl (%rdi), %eax
    andl $0xf8, %eax
    orl $5, %eax
    movb %al, (%rdi)
END
SEQUENCE "load, or", RAX, FLAGS
    movq (%rdi), %rax
    orq $0x00ff00ff, %rax
END
SEQUENCE "load, xor itself", RAX
    movq (%rdi), %rax
    xorl %eax, %eax
END
SEQUENCE "load, overwrite", RAX, RCX
    movq (%rdi), %rax
    movq %rcx, %rax
END
SEQUENCE "load, overwrite a part", RAX, RCX
    movq (%rdi), %rax
    movb %cl, %al
    movw %cx, %ax
END
SEQUENCE "load, high byte", RAX, RCX
    movq (%rdi), %rax
    movb %ah, %cl
    movb %al, %ch
END
SEQUENCE "load, add, store", RAX, RCX
    movq (%rdi), %rax
    addq %rcx, %rax
    movq %rax, 8(%rdi)
END
SEQUENCE "load, set", RAX, RCX, FLAGS
    cmpq $0, (%rdi)
    sete %al
    setb 40(%rdi)
    cmovne %rcx, %rdx
END
SEQUENCE "load, sbb", RAX, RCX
    movl (%rdi), %eax
    cmpl $1, %eax
    sbbl %ecx, %ecx
END
SEQUENCE "cmov of memory", RAX, RCX, FLAGS
    movq (%rdi), %rcx
    cmovc 16(%rdi), %rcx
    movq %rcx, 32(%rdi)
END
SEQUENCE "loads while flags live", RAX, RCX, RDX, FLAGS
    movq (%rdi), %rax
    movl 8(%rdi), %ecx
    movzwl 12(%rdi), %edx
    movq %rax, 24(%rdi)
    adcl %edx, %ecx
END
SEQUENCE "exchange", RAX, RCX
    movq (%rdi), %rcx
    xchgq %rcx, 8(%rdi)
    xchgq %rax, %rcx
END
SEQUENCE "xadd", RCX, FLAGS
    movl (%rdi), %ecx
    lock xaddl %ecx, 8(%rdi)
END
SEQUENCE "cmpxchg", RAX, RCX, FLAGS
    movq (%rdi), %rax
    lock cmpxchgq %rcx, (%rdi)
END
SEQUENCE "lea of a load", RAX, RCX
    movq (%rdi), %rax
    leaq 8(%rax,%rcx,4), %rcx
END
SEQUENCE "vector load, store", XMM(0)
    movdqu (%rdi), %xmm0
    movups %xmm0, 24(%rdi)
END
SEQUENCE "vector, lower half", XMM(1), RAX
    movq (%rdi), %xmm1
    movhps 12(%rdi), %xmm1
    movq %xmm1, %rax
    movups %xmm1, 24(%rdi)
END
SEQUENCE "vector, upper half stays", XMM(2)
    vmovups (%rdi), %ymm2
    movups 3(%rdi), %xmm2
    vmovups %ymm2, 48(%rdi)
END
SEQUENCE "vector, upper half zeroed", XMM(2)
    vmovups (%rdi), %ymm2
    vmovups 3(%rdi), %xmm2
    vmovups %ymm2, 48(%rdi)
END
SEQUENCE "scalar in a vector", XMM(3), RAX
    movss (%rdi), %xmm3
    movd %xmm3, %eax
    movss %xmm3, 24(%rdi)
END
SEQUENCE "pxor itself", XMM(4)
    movups (%rdi), %xmm4
    pxor %xmm4, %xmm4
END

// A word is moved with zeros above its byte: the rest of the register stays, and so do its neighbours.
SEQUENCE "movzx r16, r8", RCX, RDX, RBX
    movzbw %cl, %dx
END
SEQUENCE "movzx r16, m8", RCX, RDX, RBX
    movzbw (%rdi), %dx
END
// Of zero these leave their destination as it is.
SEQUENCE "bsr of zero", RAX, RCX, FLAGS
    xorl %ecx, %ecx
    bsrq %rcx, %rax
END
SEQUENCE "bsf of zero", RAX, RCX, FLAGS
    movl $0, 32(%rdi)
    bsfq 32(%rdi), %rax
END
// A lane that is off, but might be on.
SEQUENCE "masked compare", K(1), K(2), XMM(0)
    vptestmd (%rdi), %zmm0, %k1{%k2}
END
SEQUENCE "masked conversion", K(2), XMM(0)
    vcvtqq2ps (%rdi){1to2}, %xmm0{%k2}{z}
END
SEQUENCE "masked conversion, whole", K(2), XMM(0)
    vcvtuqq2psx (%rdi), %xmm0{%k2}{z}
END

// ----------------------------------------------------------------- copies as a whole

SEQUENCE "copy by turns", RAX, RDX
    movq (%rdi), %rax
    movq %rax, 64(%rdi)
    movq 8(%rdi), %rax
    movq %rax, 72(%rdi)
    movl 16(%rdi), %eax
    movl %eax, 80(%rdi)
    xorl %eax, %eax
END
SEQUENCE "copy, all loads first", RAX, RDX, RSI, R8
    leaq 64(%rdi), %rsi
    movq (%rdi), %rax
    movq 8(%rdi), %rdx
    movq 16(%rdi), %r8
    movq %rax, (%rsi)
    movq %rdx, 8(%rsi)
    movq %r8, 16(%rsi)
    xorl %eax, %eax
    xorl %edx, %edx
    xorl %r8d, %r8d
END
SEQUENCE "copy of vectors", XMM(0), XMM(1), RSI
    leaq 48(%rdi), %rsi
    movdqu (%rdi), %xmm0
    movdqu 16(%rdi), %xmm1
    movups %xmm0, (%rsi)
    movups %xmm1, 16(%rsi)
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
END
SEQUENCE "copy that overlaps", RAX, RSI
    leaq 4(%rdi), %rsi
    movq (%rdi), %rax
    movq %rax, (%rsi)
    movq 8(%rdi), %rax
    movq %rax, 8(%rsi)
    xorl %eax, %eax
END
SEQUENCE "copy with a load between", RAX, RCX, RSI
    leaq 64(%rdi), %rsi
    movq (%rdi), %rax
    movl 24(%rdi), %ecx
    movq %rax, (%rsi)
    movq 8(%rdi), %rax
    movq %rax, 8(%rsi)
    xorl %eax, %eax
END
SEQUENCE "copy with a store between", RAX, RCX, RSI, R9
    leaq 64(%rdi), %rsi
    leaq -64(%rdi), %r9
    movq (%rdi), %rax
    movq %rcx, (%r9)
    movq %rax, (%rsi)
    movq 8(%rdi), %rax
    movq %rax, 8(%rsi)
    xorl %eax, %eax
END
SEQUENCE "copy to the stack", RAX, RCX
    subq $32, %rsp
    movq (%rdi), %rax
    movq %rax, (%rsp)
    movq 8(%rdi), %rax
    movq %rax, 8(%rsp)
    xorl %eax, %eax
    movq 4(%rsp), %rcx
    addq $32, %rsp
END
SEQUENCE "copy by pushes", RAX, RCX
    pushq 16(%rdi)
    pushq 8(%rdi)
    pushq (%rdi)
    popq 64(%rdi)
    popq 72(%rdi)
    popq %rcx
END

sequences_end:
    .section .note.GNU-stack, "", @progbits
