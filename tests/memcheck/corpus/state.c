// SPDX-License-Identifier: MIT
//
// xsave, fxsave and their like: what was undefined before is undefined after the way through
// memory, register by register; the image is memory like any other.
// BUILD -mavx2
#include "corpus.h"

#include <valgrind/memcheck.h>

enum { X87_WORDS = 18, MASK = 24, VECTOR = 32, ST = 64 };

#define NUMBER 0x4d550010
#define XMM "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
            "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

typedef union {
    u8 byte[64];
    u64 word[8];
} Bits;

static _Alignas(64) u8 image[8192];

// Runs `code`, which spoils registers with what rsi points to, saves, clears, restores, and asks.
#define THROUGH(which, code, save, restore, p) \
    __extension__({ \
        Bits bits; \
        memset(&bits, 0x55, sizeof bits); \
        volatile u64 request[6] = {NUMBER, (which), (u64)&bits, sizeof bits}; \
        u64 result = 0; \
        __asm__ volatile("movq %%rax, %%r12\n\tmovl $-1, %%eax\n\tmovl $-1, %%edx\n\t" \
                         "fninit\n\t" code "\n\t" save " (%%rdi)\n\tfninit\n\tvzeroall\n\t" \
                         restore " (%%rdi)\n\tmovq %%r12, %%rax\n\txorl %%edx, %%edx\n\t" \
                         "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\t" \
                         "rolq $51, %%rdi\n\txchgq %%rbx, %%rbx\n\tfninit" \
                         : "+d"(result) : "a"(request), "S"(p), "D"(image) \
                         : "cc", "memory", "rbx", "rcx", "r12", XMM, "st", "st(1)", \
                           "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"); \
        CHECK(result != 0); \
        bits; \
    })

// Undefined, and not zero: the processor may leave a register out that is.
static NOINLINE u8 *odd_block(size_t size)
{
    u8 *p = block(size);
    memset(p, 0x31, size);
    VALGRIND_MAKE_MEM_UNDEFINED(p, size);
    return p;
}

static void fresh_image(void)
{
    VALGRIND_MAKE_MEM_UNDEFINED(image, sizeof image);
    memset(image + 512, 0, 64); // xrstor wants the header so
}

// Each way there and back. `full`: beyond what fxsave knows.
#define EACH_WAY(which, code, p, condition, full) \
    do { \
        static const char *const ways[] = {"xsave64", "xsaveopt64", "xsavec64", "fxsave64"}; \
        for (int way = 0; way < (full ? 3 : 4); way++) { \
            Bits b; \
            fresh_image(); \
            switch (way) { \
            case 0: b = THROUGH(which, code, "xsave64", "xrstor64", p); break; \
            case 1: b = THROUGH(which, code, "xsaveopt64", "xrstor64", p); break; \
            case 2: b = THROUGH(which, code, "xsavec64", "xrstor64", p); break; \
            default: b = THROUGH(which, code, "fxsave64", "fxrstor64", p); break; \
            } \
            if (!(condition)) \
                printf("FAIL %s\n", ways[way]); \
            CHECK(condition); \
        } \
    } while (0)

CASE(xmm) // NOT-VALGRIND registers
{
    u8 *p = odd_block(64);
    p[3] = 0;
    EACH_WAY(VECTOR + 1, "movups (%%rsi), %%xmm1", p, b.word[0] == 0xffffffff00ffffff &&
             b.word[1] == ~0ull && b.word[2] == 0, false);
    EACH_WAY(VECTOR + 15, "movups (%%rsi), %%xmm15", p, b.word[0] == 0xffffffff00ffffff, false);
    EACH_WAY(VECTOR + 2, "movups (%%rsi), %%xmm1", p, b.word[0] == 0 && b.word[1] == 0, false);
}

CASE(ymm) // NOT-VALGRIND registers
{
    u8 *p = odd_block(64);
    p[17] = 0;
    EACH_WAY(VECTOR + 1, "vmovups (%%rsi), %%ymm1", p, b.word[1] == ~0ull &&
             b.word[2] == 0xffffffffffff00ff && b.word[4] == 0, true);
    EACH_WAY(VECTOR, "vmovups (%%rsi), %%ymm1", p, b.word[2] == 0, true);
}

CASE(x87) // NOT-VALGRIND registers
{
    u8 *p = odd_block(16);
    memset(p + 1, 1, 9);
    EACH_WAY(ST, "fldt (%%rsi)", p, b.word[0] == 0xff && b.byte[8] == 0, false);
    EACH_WAY(ST + 2, "fldt (%%rsi)\n\tfld1\n\tfld1", p, b.word[0] == 0xff, false);
    EACH_WAY(ST, "fldt (%%rsi)\n\tfld1\n\tfld1", p, b.word[0] == 0, false);
    EACH_WAY(X87_WORDS, "fld1\n\tfldt (%%rsi)\n\tfcomp %%st(1)", p, b.word[0] != 0, false);
    EACH_WAY(X87_WORDS, "fld1\n\tfldt (%%rsi)", p, b.word[0] == 0, false);
}

// A component that was not saved keeps what it has.
CASE(some_components) // NOT-VALGRIND registers
{
    u8 *p = odd_block(64);
    fresh_image();
    Bits b = THROUGH(VECTOR + 1, "vmovups (%%rsi), %%ymm1\n\tmovl $4, %%eax\n\txorl %%edx, %%edx",
                     "xsavec64", "xrstor64", p);
    CHECK(b.word[0] == 0 && b.word[2] == ~0ull);
    fresh_image();
    b = THROUGH(VECTOR + 1, "vmovups (%%rsi), %%ymm1\n\tmovl $2, %%eax\n\txorl %%edx, %%edx",
                "xsavec64", "xrstor64", p);
    CHECK(b.word[0] == ~0ull && b.word[2] == 0);
}

// Where undefined registers were saved, defined ones are saved next.
CASE(saved_again) // NOT-VALGRIND registers
{
    u8 *p = odd_block(64);
    fresh_image();
    THROUGH(VECTOR + 1, "vmovups (%%rsi), %%ymm1", "xsavec64", "xrstor64", p);
    memset(p, 0, 64);
    Bits b = THROUGH(VECTOR + 1, "vmovups (%%rsi), %%ymm1", "xsavec64", "xrstor64", p);
    CHECK(b.word[0] == 0 && b.word[2] == 0);
}

// ---------------------------------------------------------------- the image is memory

static NOINLINE u8 *aligned_block(size_t size)
{
    u8 *p = aligned_alloc(64, (size + 63) & ~63ull);
    HIDE(p);
    return p;
}

CASE(saved_image_is_defined)
{
    u8 *p = aligned_block(512);
    __asm__ volatile("fxsave64 (%0)" : : "r"(p) : "memory");
    for (int i = 0; i < 416; i++)
        BRANCH(p[i]);
}

CASE(saved_image_leaves_room)
{
    u8 *p = aligned_block(512);
    __asm__ volatile("fxsave64 (%0)" : : "r"(p) : "memory");
    BRANCH(p[470]); // EXPECT memcheck uninit-branch origin=heap
}

CASE(saved_xmm_is_undefined)
{
    u8 *p = aligned_block(512), *q = block(16);
    __asm__ volatile("movups (%1), %%xmm2\n\tfxsave64 (%0)" : : "r"(p), "r"(q) : "xmm2", "memory");
    BRANCH(p[160]);
    BRANCH(p[160 + 32]); // EXPECT memcheck uninit-branch
}

CASE(restored_by_hand)
{
    u8 *p = aligned_block(512);
    u64 out[2];
    __asm__ volatile("fxsave64 (%0)" : : "r"(p) : "memory");
    memset(p + 160, 7, 256);
    __asm__ volatile("fxrstor64 (%0)\n\tmovups %%xmm3, (%1)" : : "r"(p), "r"(out)
                     : XMM, "memory");
    CHECK(out[0] == 0x0707070707070707);
}

CASE(image_too_small)
{
    u8 *p = aligned_block(384);
    __asm__ volatile("fxsave64 (%0)" : : "r"(p) : "memory");
    // EXPECT memcheck invalid-write
    READ1(p + 384); // EXPECT memcheck invalid-read size=1 block=after:0 of=384
}

CASE(image_gone) // NOT-VALGRIND registers
{
    u8 *p = aligned_block(4096);
    free(p);
    __asm__ volatile("xsavec64 (%0)" : : "r"(p), "a"(3), "d"(0) : "memory");
    // EXPECT memcheck invalid-write size=528 block=inside:0 of=4096 state=freed
}
