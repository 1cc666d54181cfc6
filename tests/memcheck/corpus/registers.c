// SPDX-License-Identifier: MIT
//
// What is known of registers, asked for by a request at the very place: each class of registers, and
// rules of each kind. Nothing here is inferred from reports, of which there are none.
// BUILD -mavx2
#include "corpus.h"

enum { RCX = 1, RBX = 3, RBP = 5, RSI = 6, RDI = 7, R8 = 8, FLAGS = 16, MXCSR, X87_WORDS, MASK = 24,
       VECTOR = 32, ST = 64 };
enum { CF = 1, PF = 4, ZF = 0x40, SF = 0x80, OF = 0x800 };

#define NUMBER 0x4d550010

typedef union {
    u8 byte[64];
    u64 word[8];
} Bits;

// Runs the code with a pointer to undefined or half defined bytes in rsi, and asks.
#define ASK(which, code, p) \
    __extension__({ \
        Bits bits; \
        memset(&bits, 0x55, sizeof bits); \
        volatile u64 request[6] = {NUMBER, (which), (u64)&bits, sizeof bits}; \
        u64 result = 0; \
        __asm__ volatile("pushq %%rbp\n\t" code "\n\t" \
                         "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\t" \
                         "rolq $51, %%rdi\n\txchgq %%rbx, %%rbx\n\tpopq %%rbp" \
                         : "+d"(result) : "a"(request), "S"(p) \
                         : "cc", "memory", "rbx", "rcx", "rdi", "r8", "r9", "r10", "r11", "r12", \
                           "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3"); \
        CHECK(result != 0); \
        bits; \
    })
#define ASK8(which, code, p) (ASK(which, code, p).word[0])

static NOINLINE u8 *undefined(void)
{
    return block(64);
}

// The lowest 4 bits of each byte are undefined, the others 0.
static NOINLINE u64 *nibbles(void)
{
    u64 *p = (u64 *)block(64);
    for (int i = 0; i < 8; i++)
        p[i] &= 0x0f0f0f0f0f0f0f0f;
    HIDE(p);
    return p;
}

CASE(general_registers) // NOT-VALGRIND registers
{
    u8 *p = undefined();
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx", p) == ~0ull);
    CHECK(ASK8(RBX, "movq (%%rsi), %%rbx", p) == ~0ull);
    CHECK(ASK8(RBP, "movq (%%rsi), %%rbp", p) == ~0ull);
    CHECK(ASK8(RDI, "movq (%%rsi), %%rdi", p) == ~0ull);
    CHECK(ASK8(R8, "movq (%%rsi), %%r8", p) == ~0ull);
    CHECK(ASK8(R8 + 1, "movq (%%rsi), %%r9", p) == ~0ull);
    CHECK(ASK8(R8 + 2, "movq (%%rsi), %%r10", p) == ~0ull);
    CHECK(ASK8(R8 + 3, "movq (%%rsi), %%r11", p) == ~0ull);
    CHECK(ASK8(R8 + 4, "movq (%%rsi), %%r12", p) == ~0ull);
    CHECK(ASK8(R8 + 5, "movq (%%rsi), %%r13", p) == ~0ull);
    CHECK(ASK8(R8 + 6, "movq (%%rsi), %%r14", p) == ~0ull);
    CHECK(ASK8(R8 + 7, "movq (%%rsi), %%r15", p) == ~0ull);
    CHECK(ASK8(RSI, "movq (%%rsi), %%rcx", p) == 0);
}

// Flags that nobody looks at: what clears and sets bits is told inline.
CASE(masked_registers) // NOT-VALGRIND registers
{
    u8 *p = undefined();
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tandl $-2, %%ecx\n\ttestq %%rsi, %%rsi", p) == 0xfe);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tandl $-2, %%ecx\n\ttestq %%rsi, %%rsi", p) == 0xfffffffe);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tandq $-256, %%rcx\n\ttestq %%rsi, %%rsi", p) == ~0xffull);
    CHECK(ASK8(R8, "movq (%%rsi), %%r8\n\tandq $255, %%r8\n\ttestq %%rsi, %%rsi", p) == 0xff);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\torq $15, %%rcx\n\ttestq %%rsi, %%rsi", p) == ~0xfull);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\torl $-16, %%ecx\n\ttestq %%rsi, %%rsi", p) == 0xf);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tandl $0, %%ecx\n\ttestq %%rsi, %%rsi", p) == 0);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tandb $15, %%cl\n\ttestq %%rsi, %%rsi", p) == ~0xf0ull);
}

CASE(parts_of_registers) // NOT-VALGRIND registers
{
    u8 *p = undefined();
    CHECK(ASK8(RCX, "xorl %%ecx, %%ecx\n\tmovb (%%rsi), %%cl", p) == 0xff);
    CHECK(ASK8(RCX, "xorl %%ecx, %%ecx\n\tmovb (%%rsi), %%ch", p) == 0xff00);
    CHECK(ASK8(RCX, "xorl %%ecx, %%ecx\n\tmovw (%%rsi), %%cx", p) == 0xffff);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tmovl %%ecx, %%ecx", p) == 0xffffffff);
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx\n\tmovb $0, %%ch", p) == 0xffffffffffff00ff);
    CHECK(ASK8(RCX, "movsbq (%%rsi), %%rcx", p) == ~0ull);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx", p) == 0xff);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tbswapl %%ecx", p) == 0xff000000);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\txorl %%ecx, %%ecx", p) == 0);
}

CASE(arithmetic) // NOT-VALGRIND registers
{
    u64 *p = nibbles();
    CHECK(ASK8(RCX, "movq (%%rsi), %%rcx", p) == 0x0f0f0f0f0f0f0f0f);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\taddl $0x10, %%ecx", p) == 0xf);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\taddl $0xf1, %%ecx", p) == 0x1ff);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tandl $0xfc, %%ecx", p) == 0xc);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\torl $3, %%ecx", p) == 0xc);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tshll $3, %%ecx", p) == 0x78);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tnotl %%ecx", p) == 0xf);
    CHECK(ASK8(RCX, "movzbl (%%rsi), %%ecx\n\tleal 16(%%ecx,%%ecx,4), %%ecx", p) != 0);
}

CASE(flags) // NOT-VALGRIND registers
{
    u64 *p = nibbles();
    CHECK(ASK8(FLAGS, "movzbl (%%rsi), %%ecx\n\ttestl %%ecx, %%ecx", p) == (ZF | PF));
    CHECK(ASK8(FLAGS, "movzbl (%%rsi), %%ecx\n\ttestl $0xf0, %%ecx", p) == 0);
    CHECK((ASK8(FLAGS, "movzbl (%%rsi), %%ecx\n\tcmpl $16, %%ecx", p) & (ZF | CF | SF | OF)) == 0);
    CHECK(ASK8(FLAGS, "movzbl (%%rsi), %%ecx\n\tcmpl $8, %%ecx", p) & CF);
    CHECK(ASK8(FLAGS, "movq (%%rsi), %%rcx\n\tclc", p) == 0);
}

CASE(vectors) // NOT-VALGRIND registers
{
    u8 *p = undefined();
    memset(p + 8, 1, 8);
    Bits b = ASK(VECTOR, "movups (%%rsi), %%xmm0", p);
    CHECK(b.word[0] == ~0ull && b.word[1] == 0 && b.word[2] == 0 && b.word[7] == 0);
    b = ASK(VECTOR + 1, "vmovups (%%rsi), %%ymm1", p);
    CHECK(b.word[0] == ~0ull && b.word[1] == 0 && b.word[2] == ~0ull && b.word[4] == 0);
    b = ASK(VECTOR + 2, "movups (%%rsi), %%xmm1\n\tpshufd $0x4e, %%xmm1, %%xmm2", p);
    CHECK(b.word[0] == 0 && b.word[1] == ~0ull);
    b = ASK(VECTOR + 3, "movups (%%rsi), %%xmm1\n\tvpslldq $4, %%xmm1, %%xmm3", p);
    CHECK(b.word[0] == ~0ull << 32 && b.word[1] == 0xffffffff);
    b = ASK(VECTOR, "movups (%%rsi), %%xmm0\n\tpxor %%xmm0, %%xmm0", p);
    CHECK(b.word[0] == 0);
    b = ASK(VECTOR, "movss (%%rsi), %%xmm0", p);
    CHECK(b.word[0] == 0xffffffff && b.word[1] == 0);
    b = ASK(VECTOR, "vmovups (%%rsi), %%ymm0\n\tvzeroupper", p);
    CHECK(b.word[0] == ~0ull && b.word[2] == 0);
    CHECK(ASK8(RCX, "movups (%%rsi), %%xmm0\n\tpmovmskb %%xmm0, %%ecx", p) == 0xff);
}

CASE(long_doubles) // NOT-VALGRIND registers
{
    u8 *p = undefined();
    memset(p + 16, 0, 16);
    Bits b = ASK(ST, "fldt (%%rsi)", p);
    CHECK(b.word[0] == ~0ull && b.byte[9] == 0xff);
    __asm__ volatile("fstp %%st" : : : "st");
    b = ASK(ST + 1, "fldt (%%rsi)\n\tfldt 16(%%rsi)", p);
    CHECK(b.word[0] == ~0ull && b.byte[9] == 0xff);
    b = ASK(ST, "nop", p);
    CHECK(b.word[0] == 0 && b.byte[9] == 0);
    b = ASK(ST, "faddp", p);
    CHECK(b.word[0] == ~0ull && b.byte[9] == 0xff);
    __asm__ volatile("fstp %%st" : : : "st");
    b = ASK(ST, "movq (%%rsi), %%mm0", p); // mm0 is st(0) once the top is 0
    CHECK(b.word[0] == ~0ull);
    b = ASK(ST, "movd (%%rsi), %%mm0\n\tpunpckldq %%mm0, %%mm0", p);
    CHECK(b.word[0] == ~0ull);
    b = ASK(ST, "emms", p);
}

CASE(what_there_is_not) // NOT-VALGRIND registers
{
    Bits bits;
    for (u64 which = 0; which < 80; which++) {
        volatile u64 request[6] = {NUMBER, which, (u64)&bits, 7};
        u64 result = 3;
        __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\t"
                         "rolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                         : "+d"(result) : "a"(request) : "cc", "memory");
        CHECK(result == 3);
    }
}
