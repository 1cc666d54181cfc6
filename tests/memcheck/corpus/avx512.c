// SPDX-License-Identifier: MIT
//
// AVX-512: masked memory, gathers and scatters, masks as values, registers beyond the first 16.
// BUILD -mavx512f -mavx512bw -mavx512vl
// NEEDS avx512f avx512bw avx512vl
#include "corpus.h"

#include <valgrind/memcheck.h>

#define CLOBBERS "xmm0", "xmm1", "xmm2", "memory", "cc"

// Loads the lanes of 32 bits that the mask names into zmm0; the word at `lane`, of 64 bits.
#define LOAD(p, mask, lane) \
    __extension__({ \
        u64 out[8]; \
        __asm__ volatile("kmovw %1, %%k1\n\tvmovdqu32 (%2), %%zmm0%{%%k1%}%{z%}\n\t" \
                         "vmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(mask), "r"(p) : CLOBBERS); \
        out[lane]; \
    })
#define STORE(p, mask) \
    __asm__ volatile("kmovw %0, %%k1\n\tvpxord %%zmm0, %%zmm0, %%zmm0\n\t" \
                     "vmovdqu32 %%zmm0, (%1)%{%%k1%}" : : "r"(mask), "r"(p) : CLOBBERS)

CASE(masked_load) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(20);
    BRANCH(LOAD(p, 0x1f, 1));
}

CASE(masked_load_beyond) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(20);
    BRANCH(LOAD(p, 0x3f, 1)); // EXPECT memcheck invalid-read size=4 block=after:0 of=20
}

CASE(masked_load_undefined) // NOT-VALGRIND avx512
{
    u8 *p = block(64);
    BRANCH(LOAD(p, 3, 1));
    BRANCH(LOAD(p, 7, 1)); // EXPECT memcheck uninit-branch origin=heap
}

CASE(masked_store) // NOT-VALGRIND avx512
{
    u8 *p = block(20);
    STORE(p, 0x1f);
    BRANCH(p[19]);
}

CASE(masked_store_beyond) // NOT-VALGRIND avx512
{
    u8 *p = block(20);
    STORE(p, 0x3f); // EXPECT memcheck invalid-write size=4 block=after:0 of=20
}

CASE(masked_store_leaves_the_rest) // NOT-VALGRIND avx512
{
    u8 *p = block(64);
    STORE(p, 0x1f);
    BRANCH(p[19]);
    BRANCH(p[20]); // EXPECT memcheck uninit-branch origin=heap
}

// 16 lanes at the indices, which are in zmm17.
#define GATHER(p, indices, lane) \
    __extension__({ \
        u64 out[8]; \
        __asm__ volatile("kxnorw %%k1, %%k1, %%k1\n\tvmovdqu64 (%1), %%zmm17\n\t" \
                         "vpgatherdd (%2,%%zmm17,4), %%zmm0%{%%k1%}\n\tvmovdqu64 %%zmm0, (%0)" \
                         : : "r"(out), "r"(indices), "r"(p) : "xmm17", CLOBBERS); \
        out[lane]; \
    })
#define SCATTER(p, indices) \
    __asm__ volatile("movl $0xff, %%eax\n\tkmovw %%eax, %%k1\n\tvmovdqu64 (%0), %%zmm17\n\t" \
                     "vpxord %%zmm0, %%zmm0, %%zmm0\n\tvpscatterdd %%zmm0, (%1,%%zmm17,4)%{%%k1%}" \
                     : : "r"(indices), "r"(p) : "rax", "xmm17", CLOBBERS)

static const u32 even[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
static const u32 mixed[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 29, 30};

CASE(gather) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)block(31 * 4);
    for (int i = 0; i < 31; i += 2)
        p[i] = i;
    CHECK(GATHER(p, even, 7) == 30ull << 32 | 28);
}

CASE(gather_undefined) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)block(31 * 4);
    for (int i = 0; i < 31; i += 2)
        p[i] = i;
    BRANCH(GATHER(p, mixed, 6));
    BRANCH(GATHER(p, mixed, 7) >> 32);
    BRANCH((u32)GATHER(p, mixed, 7)); // EXPECT memcheck uninit-branch
}

CASE(gather_beyond) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(30 * 4);
    BRANCH(GATHER(p, even, 0)); // EXPECT memcheck invalid-read size=4 block=after:0 of=120
}

CASE(scatter) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)block(31 * 4);
    SCATTER(p, even);
    BRANCH(p[14]);
    BRANCH(p[1]); // EXPECT memcheck uninit-branch origin=heap
}

CASE(scatter_beyond) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)block(14 * 4);
    SCATTER(p, even); // EXPECT memcheck invalid-write size=4 block=after:0 of=56
}

CASE(scatter_of_undefined) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(31 * 4), *q = (u32 *)block(64);
    __asm__ volatile("kxnorw %%k1, %%k1, %%k1\n\tvmovdqu64 (%0), %%zmm17\n\tvmovdqu64 (%2), %%zmm1\n\t"
                     "vpscatterdd %%zmm1, (%1,%%zmm17,4)%{%%k1%}"
                     : : "r"(even), "r"(p), "r"(q) : "xmm17", CLOBBERS);
    BRANCH(p[3]);
    BRANCH(p[4]); // EXPECT memcheck uninit-branch
}

CASE(compress_to_memory) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)block(12);
    __asm__ volatile("movl $0x111, %%eax\n\tkmovw %%eax, %%k1\n\tvpxord %%zmm0, %%zmm0, %%zmm0\n\t"
                     "vpcompressd %%zmm0, (%0)%{%%k1%}" : : "r"(p) : "rax", CLOBBERS);
    BRANCH(p[2]);
}

#define BROADCAST_ADD(p, mask) \
    __extension__({ \
        u64 out[8]; \
        __asm__ volatile("kmovw %1, %%k1\n\tvpxord %%zmm1, %%zmm1, %%zmm1\n\t" \
                         "vpaddd (%2)%{1to16%}, %%zmm1, %%zmm0%{%%k1%}%{z%}\n\t" \
                         "vmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(mask), "r"(p) : CLOBBERS); \
        out[0]; \
    })

CASE(masked_broadcast) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(4);
    BRANCH(BROADCAST_ADD(p, 0x5555));
    BRANCH(BROADCAST_ADD(p + 4, 0));
    BRANCH(BROADCAST_ADD(p + 4, 0x80)); // EXPECT memcheck invalid-read size=4 block=after:0 of=4
}

CASE(registers_beyond_16) // NOT-VALGRIND avx512
{
    u8 *p = block(64);
    memset(p + 8, 0, 56);
    u64 out[8];
    __asm__ volatile("vmovdqu64 (%1), %%zmm20\n\tvmovdqa64 %%zmm20, %%zmm30\n\tvmovdqu64 %%zmm30, (%0)"
                     : : "r"(out), "r"(p) : "xmm20", "xmm30", "memory");
    BRANCH(out[1]);
    BRANCH(out[0]); // EXPECT memcheck uninit-branch origin=heap
}

CASE(mask_of_a_comparison) // NOT-VALGRIND avx512
{
    u8 *p = block(64);
    memset(p + 8, 0, 56);
    u64 mask;
    __asm__ volatile("vmovdqu64 (%1), %%zmm20\n\tvptestnmb %%zmm20, %%zmm20, %%k2\n\tkmovq %%k2, %0"
                     : "=r"(mask) : "r"(p) : "xmm20", "memory");
    BRANCH(mask >> 8);
    BRANCH(mask & 0xff); // EXPECT memcheck uninit-branch origin=heap
}

// ---------------------------------------------------------------- through memory by xsave

static _Alignas(64) u8 image[8192];

// Undefined, and not zero: the processor may leave a register out that is.
static NOINLINE u8 *odd_block(void)
{
    u8 *p = block(64);
    memset(p, 0x31, 64);
    VALGRIND_MAKE_MEM_UNDEFINED(p, 64);
    return p;
}

// Saves what `spoil` has loaded, clears it, restores it; `read` stores the word to look at.
#define THROUGH(spoil, save, clear, read, p) \
    __extension__({ \
        u64 out; \
        memset(image, 0, sizeof image); \
        __asm__ volatile(spoil "\n\t" save " (%2)\n\t" clear "\n\txrstor64 (%2)\n\t" read \
                         : "=m"(out) : "r"(p), "r"(image), "a"(0xe6), "d"(0) \
                         : CLOBBERS, "xmm17", "k2"); \
        out; \
    })

#define ZMM(n) \
    "vmovdqu64 (%1), %%zmm" n, "xsave64", "vpxorq %%zmm" n ", %%zmm" n ", %%zmm" n, \
    "vextracti64x4 $1, %%zmm" n ", %%ymm0\n\tvmovq %%xmm0, %0"
#define ZMM_COMPACT(n) \
    "vmovdqu64 (%1), %%zmm" n, "xsavec64", "vpxorq %%zmm" n ", %%zmm" n ", %%zmm" n, \
    "vextracti64x4 $1, %%zmm" n ", %%ymm0\n\tvmovq %%xmm0, %0"
#define EXPAND(...) THROUGH(__VA_ARGS__)

CASE(zmm_saved) // NOT-VALGRIND avx512
{
    u8 *p = odd_block();
    BRANCH(EXPAND(ZMM("2"), p)); // EXPECT memcheck uninit-branch origin=client
    BRANCH(EXPAND(ZMM("17"), p)); // EXPECT memcheck uninit-branch origin=client
    memset(p, 0, 64);
    BRANCH(EXPAND(ZMM("2"), p));
}

CASE(zmm_saved_compactly) // NOT-VALGRIND avx512
{
    u8 *p = odd_block();
    BRANCH(EXPAND(ZMM_COMPACT("2"), p)); // EXPECT memcheck uninit-branch origin=client
    BRANCH(EXPAND(ZMM_COMPACT("17"), p)); // EXPECT memcheck uninit-branch origin=client
    memset(p, 0, 64);
    BRANCH(EXPAND(ZMM_COMPACT("17"), p));
}

CASE(mask_saved) // NOT-VALGRIND avx512
{
    u8 *p = odd_block();
    BRANCH(THROUGH("kmovq (%1), %%k2", "xsavec64", "kxorq %%k2, %%k2, %%k2", "kmovq %%k2, %0", p));
    // EXPECT memcheck uninit-branch
    BRANCH(THROUGH("kxnorq %%k2, %%k2, %%k2", "xsavec64", "kxorq %%k2, %%k2, %%k2",
                   "kmovq %%k2, %0", p));
}
