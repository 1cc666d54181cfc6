// SPDX-License-Identifier: MIT
//
// AVX-512: masked memory, gathers and scatters, masks as values, registers beyond the first 16.
// BUILD -mavx512f -mavx512bw -mavx512vl
// NEEDS avx512f avx512bw avx512vl
#include "corpus.h"

#include <sys/mman.h>
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

// Which lanes are written follows from a comparison with what is undefined.
CASE(masked_store_by_an_undefined_mask) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(64), *q = zeroed_block(64);
    VALGRIND_MAKE_MEM_UNDEFINED(q + 16, 4);
#define STORE_WHERE(n, width) \
    __asm__ volatile("vmovdqu64 (%0), %%zmm1\n\tvpxord %%zmm0, %%zmm0, %%zmm0\n\t" \
                     "vptestmd %%zmm1, %%zmm1, %%k1\n\tvmovdqu32 %%" width "mm0, (%1)%{%%k1%}" \
                     : : "r"(q), "r"(n) : CLOBBERS)
    STORE_WHERE(p, "x");
    STORE_WHERE(p, "z"); // EXPECT memcheck uninit-branch origin=client
    BRANCH(*(volatile u32 *)(p + 16));
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

// What is off is left out, undefined or not.
CASE(compress_and_expand) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64);
    u64 out[8];
    VALGRIND_MAKE_MEM_UNDEFINED(&p[5], 4);
#define COMPRESS_AND_EXPAND(mask) \
    __asm__ volatile("kmovw %2, %%k1\n\tvmovdqu64 (%1), %%zmm1\n\t" \
                     "vpcompressd %%zmm1, %%zmm0%{%%k1%}%{z%}\n\t" \
                     "vpexpandd %%zmm0, %%zmm2%{%%k1%}%{z%}\n\tvmovdqu64 %%zmm2, (%0)" \
                     : : "r"(out), "r"(p), "r"(mask) : CLOBBERS)
    COMPRESS_AND_EXPAND(0xff0f);
    for (int i = 0; i < 8; i++)
        BRANCH(out[i]);
    COMPRESS_AND_EXPAND(0xff2f);
    BRANCH(out[4]);
    BRANCH(out[2] >> 32); // EXPECT memcheck uninit-branch origin=client
}

CASE(elements_of_two_vectors) // NOT-VALGRIND avx512
{
    static const u32 indices[16] = {16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 31};
    u32 *p = (u32 *)zeroed_block(128);
    u64 out[8];
    VALGRIND_MAKE_MEM_UNDEFINED(&p[0], 4);
    VALGRIND_MAKE_MEM_UNDEFINED(&p[31], 4);
    __asm__ volatile("vmovdqu64 (%1), %%zmm0\n\tvmovdqu64 (%2), %%zmm1\n\t"
                     "vpermt2d 64(%1), %%zmm1, %%zmm0\n\tvmovdqu64 %%zmm0, (%0)"
                     : : "r"(out), "r"(p), "r"(indices) : CLOBBERS);
    for (int i = 0; i < 7; i++)
        BRANCH(out[i]);
    BRANCH((u32)out[7]);
    BRANCH(out[7] >> 32); // EXPECT memcheck uninit-branch origin=client
}

// Lanes that a mask which is defined has off.
CASE(masks_that_settle_others) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(64);
    u64 mask;
    VALGRIND_MAKE_MEM_UNDEFINED(p + 8, 8);
#define MASK_OF(logic) \
    __asm__ volatile("vmovdqu64 (%1), %%zmm1\n\tvptestmb %%zmm1, %%zmm1, %%k2\n\t" \
                     "kmovq %2, %%k1\n\t" logic "\n\tkmovq %%k2, %0" \
                     : "=r"(mask) : "r"(p), "r"(0xff00ull) : "k1", "k2", CLOBBERS)
    MASK_OF("kandnq %%k2, %%k1, %%k2");
    BRANCH(mask);
    MASK_OF("korq %%k2, %%k1, %%k2");
    BRANCH(mask);
    MASK_OF("knotq %%k1, %%k1\n\tkandq %%k2, %%k1, %%k2");
    BRANCH(mask);
    MASK_OF("kandq %%k2, %%k1, %%k2");
    BRANCH(mask); // EXPECT memcheck uninit-branch origin=client
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

// Loads 64 bytes to move them about: the mask does not keep it from touching all of them.
#define UNPACK(p, mask, lane) \
    __extension__({ \
        u64 out[8]; \
        __asm__ volatile("kmovw %1, %%k1\n\tvpxord %%zmm1, %%zmm1, %%zmm1\n\t" \
                         "vpunpckldq (%2), %%zmm1, %%zmm0%{%%k1%}%{z%}\n\t" \
                         "vmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(mask), "r"(p) : CLOBBERS); \
        out[lane]; \
    })

CASE(masked_unpack_of_undefined) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64);
    VALGRIND_MAKE_MEM_UNDEFINED(&p[1], 4);
    BRANCH(UNPACK(p, 2, 0));
    BRANCH(UNPACK(p, 8, 1)); // EXPECT memcheck uninit-branch origin=client
}

CASE(masked_unpack_beyond) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(32);
    BRANCH(UNPACK(p, 1, 0)); // EXPECT memcheck invalid-read size=64 block=inside:0 of=32
}

// Two lanes are made narrower: zeros are above them, and not what was there.
CASE(masked_truncation) // NOT-VALGRIND avx512
{
    u8 *p = block(16);
    u64 out[2];
    HIDE(p);
    __asm__ volatile("kmovw %2, %%k1\n\tvpxord %%zmm1, %%zmm1, %%zmm1\n\tvmovdqu (%1), %%xmm0\n\t"
                     "vpmovqd %%xmm1, %%xmm0%{%%k1%}\n\tvmovdqu %%xmm0, (%0)"
                     : : "r"(out), "r"(p), "r"(1) : CLOBBERS);
    BRANCH(out[1]);
    BRANCH((u32)out[0]);
    BRANCH(out[0] >> 32); // EXPECT memcheck uninit-branch origin=heap
}

// Four words, four times: each has four bits of the mask.
#define TUPLES(p, mask, lane) \
    __extension__({ \
        u64 out[8]; \
        __asm__ volatile("kmovw %1, %%k1\n\tvbroadcasti32x4 (%2), %%zmm0%{%%k1%}%{z%}\n\t" \
                         "vmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(mask), "r"(p) : CLOBBERS); \
        out[lane]; \
    })

CASE(masked_tuples) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(8);
    BRANCH(TUPLES(p, 0x2012, 0));
    BRANCH(TUPLES(p, 0x4012, 0)); // EXPECT memcheck invalid-read size=4 block=after:0 of=8
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

// Histograms: of lanes that are off, nobody asks whether they are the same as others.
CASE(conflicts_of_undefined_lanes) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64);
    u64 mask;
    p[5] = p[7] = 1;
    VALGRIND_MAKE_MEM_UNDEFINED(&p[9], 4);
#define CONFLICTS(on) \
    __asm__ volatile("kmovw %2, %%k1\n\tvmovdqu64 (%1), %%zmm1\n\tvpconflictd %%zmm1, %%zmm2\n\t" \
                     "vpbroadcastmw2d %%k1, %%zmm0\n\tvptestmd %%zmm0, %%zmm2, %%k2%{%%k1%}\n\t" \
                     "kmovq %%k2, %0" : "=r"(mask) : "r"(p), "r"(on) : "k1", "k2", CLOBBERS)
    CONFLICTS(0xa0);
    BRANCH(mask);
    CONFLICTS(0x0101);
    BRANCH(mask);
    CONFLICTS(0x0221); // lanes 0 and 9 may be the same
    BRANCH(mask); // EXPECT memcheck uninit-branch
}

// A bit of 16 words from comparing each with one number.
#define COMPARE(p, how, with) \
    __extension__({ \
        u64 mask; \
        __asm__ volatile("vmovdqu64 (%1), %%zmm1\n\tvpbroadcastd %2, %%zmm2\n\t" \
                         how ", %%zmm1, %%k2\n\tkmovq %%k2, %0" \
                         : "=r"(mask) : "r"(p), "r"(with) : "k2", CLOBBERS); \
        mask; \
    })

CASE(comparisons_that_defined_bits_decide) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64), bit = 1;
    p[3] = 0x80000010;
    VALGRIND_SET_VBITS(&p[3], &bit, 4);
    BRANCH(COMPARE(p, "vptestmd %%zmm2", 0x30));
    BRANCH(COMPARE(p, "vptestnmd %%zmm2", 0x31));
    BRANCH(COMPARE(p, "vptestmd %%zmm2", 1)); // EXPECT memcheck uninit-branch
    BRANCH(COMPARE(p, "vpcmpeqd %%zmm2", 0x10));
    BRANCH(COMPARE(p, "vpcmpeqd %%zmm2", 0x80000010)); // EXPECT memcheck uninit-branch
    BRANCH(COMPARE(p, "vpcmpgtd %%zmm2", 0));
    BRANCH(COMPARE(p, "vpcmpnleud %%zmm2", 0x80000012));
    BRANCH(COMPARE(p, "vpcmpltud %%zmm2", 0x80000011) & 8); // EXPECT memcheck uninit-branch
    BRANCH(COMPARE(p, "vpcmpled %%zmm2", 0x80000010)); // EXPECT memcheck uninit-branch
    BRANCH(COMPARE(p, "vpcmpeqd %%zmm1", 0));
}

// A vectorised `a && b`, each undefined where the other is false.
CASE(comparisons_under_a_mask) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64), *q = (u32 *)zeroed_block(64);
    u64 mask;
    p[2] = q[5] = 1;
    VALGRIND_MAKE_MEM_UNDEFINED(&p[5], 4);
    VALGRIND_MAKE_MEM_UNDEFINED(&q[7], 4);
#define BOTH_ARE(number) \
    __asm__ volatile("vpbroadcastd %3, %%zmm1\n\tvpcmpeqd (%1), %%zmm1, %%k1\n\t" \
                     "vpcmpgtd (%2), %%zmm1, %%k2%{%%k1%}\n\tkmovq %%k2, %0" \
                     : "=r"(mask) : "r"(p), "r"(q), "r"(number) : "k1", "k2", CLOBBERS)
    BOTH_ARE(1);
    BRANCH(mask);
    VALGRIND_MAKE_MEM_UNDEFINED(&q[2], 4);
    BOTH_ARE(1);
    BRANCH(mask); // EXPECT memcheck uninit-branch origin=client
}

CASE(gather_by_undefined_indices) // NOT-VALGRIND avx512
{
    u32 *indices = (u32 *)zeroed_block(64), *p = (u32 *)zeroed_block(4);
    VALGRIND_MAKE_MEM_UNDEFINED(&indices[3], 4);
#define MOVE_BY_INDEX(mask) \
    __asm__ volatile("kmovw %2, %%k1\n\tkmovw %2, %%k2\n\tvmovdqu64 (%0), %%zmm17\n\t" \
                     "vpgatherdd (%1,%%zmm17,4), %%zmm0%{%%k1%}\n\t" \
                     "vpscatterdd %%zmm0, (%1,%%zmm17,4)%{%%k2%}" \
                     : : "r"(indices), "r"(p), "r"(mask) : "xmm17", "k1", "k2", CLOBBERS)
    MOVE_BY_INDEX(0xfff7);
    MOVE_BY_INDEX(0xffff); // EXPECT memcheck uninit-value origin=client
    BRANCH(p[0]);
}

// The rest of the operand is no memory.
CASE(masked_operand_at_the_end_of_memory) // NOT-VALGRIND avx512
{
    u8 *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    u32 *p = (u32 *)(pages + 4096) - 8;
    u64 out[8];
    munmap(pages + 4096, 4096);
    VALGRIND_MAKE_MEM_UNDEFINED(&p[5], 4);
    __asm__ volatile("movl $0xff, %%eax\n\tkmovw %%eax, %%k1\n\tvpxord %%zmm1, %%zmm1, %%zmm1\n\t"
                     "vpaddd (%1), %%zmm1, %%zmm0%{%%k1%}%{z%}\n\tvmovdqu64 %%zmm0, (%0)"
                     : : "r"(out), "r"(p) : "rax", CLOBBERS);
    for (int i = 0; i < 8; i++)
        BRANCH(i == 2 ? (u32)out[i] : out[i]);
    BRANCH(out[2] >> 32); // EXPECT memcheck uninit-branch origin=client
}

// 1 or 0, 3 or 2: by a mask that is undefined in one lane, of which one bit follows.
CASE(moves_by_an_undefined_mask) // NOT-VALGRIND avx512
{
    u32 *p = (u32 *)zeroed_block(64);
    u64 out[8];
    VALGRIND_MAKE_MEM_UNDEFINED(&p[2], 4);
#define CHOOSE(move) \
    __asm__ volatile("vmovdqu64 (%1), %%zmm1\n\tvptestmd %%zmm1, %%zmm1, %%k1\n\t" \
                     "vpbroadcastd %2, %%zmm0\n\tvpbroadcastd %3, %%zmm1\n\t" move "\n\t" \
                     "vmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(p), "r"(2), "r"(3) : CLOBBERS)
    CHOOSE("vpbroadcastd %3, %%zmm0%{%%k1%}");
    BRANCH(out[1] & ~1u);
    BRANCH(out[1] & 1); // EXPECT memcheck uninit-branch origin=client
    CHOOSE("vmovdqa32 %%zmm1, %%zmm0%{%%k1%}");
    BRANCH(out[1] & ~1u);
    BRANCH(out[1] & 1); // EXPECT memcheck uninit-branch origin=client
    CHOOSE("vpblendmd %%zmm1, %%zmm0, %%zmm0%{%%k1%}");
    BRANCH(out[1] & ~1u);
    BRANCH(out[1] & 1); // EXPECT memcheck uninit-branch origin=client
    CHOOSE("vpshufd $0, %%zmm1, %%zmm0%{%%k1%}%{z%}");
    BRANCH(out[1] & ~3u);
    BRANCH(out[1] & 2); // EXPECT memcheck uninit-branch origin=client
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
