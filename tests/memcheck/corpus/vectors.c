// SPDX-License-Identifier: MIT
//
// SSE and AVX: undefined lanes move with their data through moves, shuffles, packs and arithmetic,
// and are asked about only where the case says so. P is 64 bytes of which the first 8 are undefined.
// BUILD -mavx2
#include "corpus.h"

#include <valgrind/memcheck.h>

static NOINLINE u8 *half_defined(void)
{
    u8 *p = block(64);
    for (int i = 8; i < 64; i++)
        p[i] = i;
    HIDE(p);
    return p;
}

// Loads 16 bytes into xmm1, or 32 into ymm1; does it; gives lane 0 or 1 of 64 bits of xmm0 or ymm0.
#define DO16(p, code, lane) \
    __extension__({ \
        u64 out[2]; \
        __asm__ volatile("movups (%0), %%xmm1\n\tpxor %%xmm0, %%xmm0\n\t" code \
                         "\n\tmovups %%xmm0, (%1)" \
                         : : "r"(p), "r"(out) : "xmm0", "xmm1", "xmm2", "rax", "memory", "cc"); \
        ((volatile u64 *)out)[lane]; \
    })
#define DO32(p, code, lane) \
    __extension__({ \
        u64 out[4]; \
        __asm__ volatile("vmovups (%0), %%ymm1\n\tvpxor %%ymm0, %%ymm0, %%ymm0\n\t" code \
                         "\n\tvmovups %%ymm0, (%1)\n\tvzeroupper" \
                         : : "r"(p), "r"(out) : "xmm0", "xmm1", "xmm2", "rax", "memory", "cc"); \
        ((volatile u64 *)out)[lane]; \
    })

CASE(movaps_defined_lane) { BRANCH(DO16(half_defined(), "movaps %%xmm1, %%xmm0", 1)); }
CASE(movaps_undefined_lane)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "movaps %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch origin=heap
}

CASE(shufps_moves_lanes) { BRANCH(DO16(half_defined(), "shufps $0xee, %%xmm1, %%xmm0", 1)); }
CASE(pshufd_swaps)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pshufd $0x4e, %%xmm1, %%xmm0", 0));
    BRANCH(DO16(p, "pshufd $0x4e, %%xmm1, %%xmm0", 1)); // EXPECT memcheck uninit-branch origin=heap
}

CASE(pshufb_reverses)
{
    static const u8 order[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    u8 *p = half_defined();
    __asm__ volatile("movups (%0), %%xmm2" : : "r"(order) : "xmm2");
    BRANCH(DO16(p, "pshufb %%xmm2, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 0));
    __asm__ volatile("movups (%0), %%xmm2" : : "r"(order) : "xmm2");
    BRANCH(DO16(p, "pshufb %%xmm2, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 1));
    // EXPECT memcheck uninit-branch
}

CASE(unpack_low_undefined)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "punpckhqdq %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "punpcklbw %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(unpack_high_defined) { BRANCH(DO16(half_defined(), "punpckhbw %%xmm1, %%xmm0", 0)); }

CASE(lane_add)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "paddq %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "paddb %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "paddd %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(lane_multiply)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "movaps %%xmm1, %%xmm0\n\tpmullw %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "movaps %%xmm1, %%xmm0\n\tpmuludq %%xmm1, %%xmm0", 1));
}

CASE(and_with_zero_defines) { BRANCH(DO16(half_defined(), "pand %%xmm1, %%xmm0", 0)); }
CASE(andn_keeps) { BRANCH(DO16(half_defined(), "pandn %%xmm1, %%xmm0", 1)); }
CASE(or_with_ones_defines)
{
    BRANCH(DO16(half_defined(), "pcmpeqd %%xmm0, %%xmm0\n\tpor %%xmm1, %%xmm0", 0));
}

CASE(shift_of_lanes)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "psrldq $8, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 0));
    BRANCH(DO16(p, "psrldq $8, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "pslldq $8, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 0));
    BRANCH(DO16(p, "pslldq $8, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 1));
    // EXPECT memcheck uninit-branch
}

CASE(palignr_picks) { BRANCH(DO16(half_defined(), "movaps %%xmm1, %%xmm0\n\tpalignr $8, %%xmm0, %%xmm0", 0)); }

CASE(extract_and_insert)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pextrq $1, %%xmm1, %%rax\n\tmovq %%rax, %%xmm0", 0));
    BRANCH(DO16(p, "movl $5, %%eax\n\tpinsrq $0, %%rax, %%xmm1\n\tmovaps %%xmm1, %%xmm0", 0));
    BRANCH(DO16(p, "pextrd $0, %%xmm1, %%eax\n\tmovd %%eax, %%xmm0", 0));
    // EXPECT memcheck uninit-branch
}

CASE(movq_clears_the_upper_lane)
{
    BRANCH(DO16(half_defined() + 8, "movq %%xmm1, %%xmm0", 1));
}

CASE(mask_of_bytes)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pmovmskb %%xmm1, %%eax\n\tshrl $8, %%eax\n\tmovd %%eax, %%xmm0", 0));
    BRANCH(DO16(p, "pmovmskb %%xmm1, %%eax\n\tmovd %%eax, %%xmm0", 0));
    // EXPECT memcheck uninit-branch
}

CASE(ptest_of_defined_lane)
{
    u8 *p = half_defined() + 8;
    __asm__ volatile("movups (%0), %%xmm1\n\tptest %%xmm1, %%xmm1\n\tjz 1f\n\tnop\n1:" : : "r"(p) : "xmm1", "cc");
}

CASE(ptest_of_undefined)
{
    u8 *p = half_defined();
    memset(p + 8, 0, 8);
    __asm__ volatile("movups (%0), %%xmm1\n\tptest %%xmm1, %%xmm1\n\tjz 1f\n\tnop\n1:" : : "r"(p) : "xmm1", "cc");
    // EXPECT memcheck uninit-branch origin=heap
}

CASE(ptest_that_defined_bits_decide)
{
    u8 *p = half_defined();
    __asm__ volatile("movups (%0), %%xmm1\n\tptest %%xmm1, %%xmm1\n\tjz 1f\n\tnop\n1:" : : "r"(p) : "xmm1", "cc");
    // EXPECT-VALGRIND memcheck uninit-branch why=flags
}

CASE(compare_equal_lanes)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pcmpeqb %%xmm1, %%xmm0", 1));
    BRANCH(DO16(p, "pcmpeqb %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(pack_with_saturation) { BRANCH(DO16(half_defined() + 8, "packuswb %%xmm1, %%xmm0", 1)); }

CASE(widen) { BRANCH(DO16(half_defined() + 8, "pmovzxbw %%xmm1, %%xmm0", 0)); }

CASE(widen_undefined)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pmovzxbq %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(blend_picks_defined) { BRANCH(DO16(half_defined(), "pblendw $0xf0, %%xmm1, %%xmm0", 0)); }
CASE(blend_picks_undefined)
{
    u8 *p = half_defined();
    BRANCH(DO16(p, "pblendw $0x0f, %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(ymm_move)
{
    u8 *p = half_defined();
    BRANCH(DO32(p, "vmovaps %%ymm1, %%ymm0", 1));
    BRANCH(DO32(p, "vmovaps %%ymm1, %%ymm0", 3));
    BRANCH(DO32(p, "vmovaps %%ymm1, %%ymm0", 0)); // EXPECT memcheck uninit-branch
}

CASE(ymm_permute_halves)
{
    u8 *p = half_defined();
    BRANCH(DO32(p, "vperm2i128 $1, %%ymm1, %%ymm1, %%ymm0", 0));
    BRANCH(DO32(p, "vpermq $0x1b, %%ymm1, %%ymm0", 0));
    BRANCH(DO32(p, "vpermq $0x1b, %%ymm1, %%ymm0", 3)); // EXPECT memcheck uninit-branch
}

CASE(ymm_extract_upper) { BRANCH(DO32(half_defined(), "vextracti128 $1, %%ymm1, %%xmm0", 0)); }
CASE(ymm_xmm_write_clears_upper)
{
    BRANCH(DO32(half_defined() + 8, "vmovaps %%ymm1, %%ymm0\n\tvmovaps %%xmm1, %%xmm0", 3));
}

CASE(vzeroupper_defines)
{
    u8 *p = block(64);
    u64 out[4];
    __asm__ volatile("vmovups (%0), %%ymm1\n\tvzeroupper\n\tvmovups %%ymm1, (%1)"
                     : : "r"(p), "r"(out) : "xmm1", "memory");
    BRANCH(((volatile u64 *)out)[2]);
}

CASE(broadcast_defined) { BRANCH(DO32(half_defined() + 8, "vpbroadcastb %%xmm1, %%ymm0", 3)); }
CASE(broadcast_undefined)
{
    u8 *p = half_defined();
    BRANCH(DO32(p, "vpbroadcastd %%xmm1, %%ymm0", 3)); // EXPECT memcheck uninit-branch
}

CASE(masked_store)
{
    u8 *p = half_defined(), *q = zeroed_block(32);
    static const u32 mask[8] = {0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    __asm__ volatile("vmovups (%0), %%ymm1\n\tvmovups (%2), %%ymm2\n\t"
                     "vpmaskmovd %%ymm1, %%ymm2, (%1)\n\tvzeroupper"
                     : : "r"(p), "r"(q), "r"(mask) : "xmm1", "xmm2", "memory");
    BRANCH(*(volatile u64 *)q);
    BRANCH(*(volatile u64 *)(q + 8));
}

CASE(loop_of_vectors)
{
    u32 *a = (u32 *)block(1003 * 4), *b = (u32 *)zeroed_block(1003 * 4);
    for (int i = 0; i < 1003; i++)
        a[i] = b[i] + i;
    HIDE(a);
    u32 sum = 0;
    for (int i = 0; i < 1003; i++)
        sum += a[i];
    CHECK(sum == 1003 * 501);
}

CASE(loop_of_vectors_one_missing)
{
    u32 *a = (u32 *)block(1003 * 4);
    for (int i = 0; i < 1002; i++)
        a[i] = i;
    HIDE(a);
    u32 sum = 0;
    for (int i = 0; i < 1003; i++)
        sum += a[i];
    BRANCH(sum); // EXPECT memcheck uninit-branch origin=heap:-7
}

CASE(non_temporal_store)
{
    u8 *p = (u8 *)aligned_alloc(64, 64);
    __asm__ volatile("pxor %%xmm0, %%xmm0\n\tmovntdq %%xmm0, (%0)\n\tsfence" : : "r"(p) : "xmm0", "memory");
    BRANCH(*(volatile u64 *)p);
    BRANCH(*(volatile u64 *)(p + 16)); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(double_math)
{
    double *p = (double *)block(3 * sizeof(double));
    p[0] = 1.5, p[1] = 2.5;
    HIDE(p);
    CHECK(p[0] * p[1] + p[0] / p[1] > 4.3);
    CHECK((int)(p[0] + p[1]) == 4);
    p[2] = __builtin_sqrt(p[0]);
    HIDE(p);
    CHECK(p[2] > 1.2);
}

CASE(double_undefined)
{
    double *p = (double *)block(3 * sizeof(double));
    p[0] = 1.5;
    HIDE(p);
    double x = p[0] + p[2];
    __asm__ volatile("ucomisd %0, %0\n\tja 1f\n\tnop\n1:" : : "x"(x) : "cc");
    // EXPECT memcheck uninit-branch
}

CASE(float_to_integer_undefined)
{
    float *p = (float *)block(4);
    int v;
    __asm__ volatile("cvttss2si (%1), %0" : "=r"(v) : "r"(p) : "memory");
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(float_scalar_keeps_upper)
{
    float *p = (float *)block(16);
    p[0] = 1;
    float r;
    __asm__ volatile("movups (%1), %%xmm1\n\taddss %%xmm1, %%xmm1\n\tmovss %%xmm1, %0"
                     : "=m"(r) : "r"(p) : "xmm1");
    CHECK(r == 2);
}

CASE(long_double)
{
    long double *p = (long double *)block(3 * sizeof(long double));
    p[0] = 1.5L, p[1] = p[0] * 2;
    HIDE(p);
    p[2] = p[0];
    CHECK(p[1] == 3 && p[2] + p[0] == 3);
}

CASE(long_double_undefined)
{
    long double *p = (long double *)block(2 * sizeof(long double));
    p[0] = 1.5L;
    HIDE(p);
    __asm__ volatile("fldt 16(%0)\n\tfldt (%0)\n\tfcomip %%st(1), %%st\n\tja 1f\n\tnop\n1: fstp %%st" : : "r"(p) : "cc", "st");
    // EXPECT memcheck uninit-branch
}

// Looks for a zero among 16 bytes at p, as code that searches strings does it.
#define SEARCH16(p) \
    __asm__ volatile("pxor %%xmm0, %%xmm0\n\tmovdqu (%0), %%xmm1\n\tpcmpeqb %%xmm0, %%xmm1\n\t" \
                     "pmovmskb %%xmm1, %%eax\n\ttestl %%eax, %%eax\n\tjz 1f\n\tnop\n1:" \
                     : : "r"(p) : "xmm0", "xmm1", "rax", "cc")

CASE(search_beyond_the_end)
{
    u8 *p = block(7);
    memcpy(p, "abcdef", 7);
    HIDE(p);
    SEARCH16(p + 1); // EXPECT-VALGRIND memcheck invalid-read size=16 why=searches
}

CASE(search_without_an_end)
{
    u8 *p = block(7);
    memcpy(p, "abcdefg", 7);
    HIDE(p);
    SEARCH16(p + 1);
    // EXPECT-VALGRIND memcheck invalid-read size=16 why=searches
    // EXPECT-MUNINN memcheck uninit-branch why=searches
}

CASE(search_before_the_beginning)
{
    u8 *q = (u8 *)block(2);
    while ((u64)q % 64 < 48)
        q = (u8 *)block(2);
    memcpy(q, "a", 2);
    q = (u8 *)((u64)q & ~15ull) - 16;
    HIDE(q);
    SEARCH16(q);
    // EXPECT-VALGRIND memcheck invalid-read size=16 why=searches
    // MAYBE-VALGRIND memcheck uninit-branch why=searches
    // MAYBE-MUNINN memcheck uninit-branch why=searches
}

CASE(search_of_nothing)
{
    u8 *p = freed_block(160);
    SEARCH16(p + 65);
    // EXPECT memcheck invalid-read size=16 block=inside:65 of=160 state=freed
}

// The same by halves, one after the other.
#define SEARCH8_8(p) \
    __asm__ volatile("pxor %%xmm0, %%xmm0\n\tmovlpd (%0), %%xmm1\n\tmovhpd 8(%0), %%xmm1\n\t" \
                     "pcmpeqb %%xmm0, %%xmm1\n\tpmovmskb %%xmm1, %%eax\n\ttestl %%eax, %%eax\n\t" \
                     "jz 1f\n\tnop\n1:" : : "r"(p) : "xmm0", "xmm1", "rax", "cc")

CASE(search_by_halves)
{
    u8 *p = block(8);
    memcpy(p, "$ORIGIN", 8);
    HIDE(p);
    SEARCH8_8(p + 1);
    // EXPECT-VALGRIND memcheck invalid-read size=8 why=searches
    // EXPECT-VALGRIND memcheck invalid-read size=8 why=searches
}

// The least of four vectors has a zero where one has.
#define SEARCH64(p) \
    __asm__ volatile("pxor %%xmm0, %%xmm0\n\tmovdqa (%0), %%xmm1\n\tpminub 16(%0), %%xmm1\n\t" \
                     "pminub 32(%0), %%xmm1\n\tpminub 48(%0), %%xmm1\n\tpcmpeqb %%xmm0, %%xmm1\n\t" \
                     "pmovmskb %%xmm1, %%eax\n\ttestl %%eax, %%eax\n\tjz 1f\n\tnop\n1:" \
                     : : "r"(p) : "xmm0", "xmm1", "rax", "cc")

CASE(search_by_fours)
{
    // ONCE it reads beyond a page if its block lies at the end of one
    u8 *p = block(40);
    memset(p, 'x', 39);
    p[39] = 0;
    HIDE(p);
    SEARCH64(p);
    // EXPECT-VALGRIND memcheck invalid-read size=16 why=searches
    // MAYBE-VALGRIND memcheck uninit-branch why=searches
}

// ------------------------------------------------------------------ memory in lanes

// A mask of 8 lanes of 32 bits, the first n of them on.
static const u32 lanes_on[16] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
#define MASK_FIRST(n) (lanes_on + 8 - (n))

#define MASKED_LOAD(p, n) \
    __extension__({ \
        u64 out[4]; \
        __asm__ volatile("vmovups (%1), %%ymm1\n\tvmaskmovps (%2), %%ymm1, %%ymm0\n\t" \
                         "vmovups %%ymm0, (%0)" : : "r"(out), "r"(MASK_FIRST(n)), "r"(p) \
                         : "xmm0", "xmm1", "memory"); \
        out[1]; \
    })
#define MASKED_STORE(p, n) \
    __asm__ volatile("vmovups (%0), %%ymm1\n\tvpxor %%xmm0, %%xmm0, %%xmm0\n\t" \
                     "vmaskmovps %%ymm0, %%ymm1, (%1)" : : "r"(MASK_FIRST(n)), "r"(p) \
                     : "xmm0", "xmm1", "memory")

#define MASKED_STORE_BY(mask, p) \
    __asm__ volatile("vmovups (%0), %%ymm1\n\tvpxor %%xmm0, %%xmm0, %%xmm0\n\t" \
                     "vmaskmovps %%ymm0, %%ymm1, (%1)" : : "r"(mask), "r"(p) \
                     : "xmm0", "xmm1", "memory")

CASE(masked_store_by_an_undefined_mask)
{
    u8 *p = zeroed_block(32), *mask = zeroed_block(32);
    VALGRIND_MAKE_MEM_UNDEFINED(mask + 28, 3); // only the top bits count
    MASKED_STORE_BY(mask, p);
    VALGRIND_MAKE_MEM_UNDEFINED(mask + 31, 1);
    MASKED_STORE_BY(mask, p); // EXPECT memcheck uninit-branch origin=client
    BRANCH(*(volatile u32 *)(p + 28));
}

CASE(masked_load_of_what_is_there)
{
    u8 *p = zeroed_block(20);
    BRANCH(MASKED_LOAD(p, 5));
}

CASE(masked_load_beyond)
{
    u8 *p = zeroed_block(20);
    BRANCH(MASKED_LOAD(p, 6)); // EXPECT memcheck invalid-read size=4 block=after:0 of=20
}

CASE(masked_load_undefined)
{
    u8 *p = block(32);
    BRANCH(MASKED_LOAD(p, 2));
    BRANCH(MASKED_LOAD(p, 3)); // EXPECT memcheck uninit-branch
}

CASE(masked_store_of_what_is_there)
{
    u8 *p = block(20);
    MASKED_STORE(p, 5);
    BRANCH(p[19]);
}

CASE(masked_store_beyond)
{
    u8 *p = block(20);
    MASKED_STORE(p, 6); // EXPECT memcheck invalid-write size=4 block=after:0 of=20
}

CASE(masked_store_leaves_the_rest)
{
    u8 *p = block(32);
    MASKED_STORE(p, 5);
    BRANCH(p[19]);
    BRANCH(p[20]); // EXPECT memcheck uninit-branch origin=heap
}

#define GATHER(p, indices) \
    __extension__({ \
        u64 out[4]; \
        __asm__ volatile("vpcmpeqd %%ymm2, %%ymm2, %%ymm2\n\tvmovups (%1), %%ymm1\n\t" \
                         "vpgatherdd %%ymm2, (%2,%%ymm1,4), %%ymm0\n\tvmovups %%ymm0, (%0)" \
                         : : "r"(out), "r"(indices), "r"(p) : "xmm0", "xmm1", "xmm2", "memory"); \
        out[0]; \
    })

CASE(gather)
{
    static const u32 indices[8] = {0, 2, 4, 6, 8, 10, 12, 14};
    u32 *p = (u32 *)block(60);
    for (int i = 0; i < 15; i += 2)
        p[i] = i;
    CHECK(GATHER(p, indices) >> 32 == 2);
}

CASE(gather_undefined)
{
    static const u32 indices[8] = {1, 2, 4, 6, 8, 10, 12, 14};
    u32 *p = (u32 *)block(60);
    for (int i = 0; i < 15; i += 2)
        p[i] = i;
    BRANCH(GATHER(p, indices) >> 32);
    BRANCH((u32)GATHER(p, indices)); // EXPECT memcheck uninit-branch
}

CASE(gather_beyond)
{
    static const u32 indices[8] = {0, 2, 4, 6, 8, 10, 12, 15};
    u32 *p = (u32 *)zeroed_block(60);
    BRANCH(GATHER(p, indices)); // EXPECT memcheck invalid-read size=4 block=after:0 of=60
}

// The index of a lane that is off is nobody's address.
#define GATHER_WHERE(p, indices, mask) \
    __extension__({ \
        u64 out[4]; \
        __asm__ volatile("vmovups (%3), %%ymm2\n\tvmovups (%1), %%ymm1\n\t" \
                         "vpxor %%ymm0, %%ymm0, %%ymm0\n\t" \
                         "vpgatherdd %%ymm2, (%2,%%ymm1,4), %%ymm0\n\tvmovups %%ymm0, (%0)" \
                         : : "r"(out), "r"(indices), "r"(p), "r"(mask) \
                         : "xmm0", "xmm1", "xmm2", "memory"); \
        out[0] | out[1] | out[2] | out[3]; \
    })

CASE(gather_by_undefined_indices)
{
    static const u32 mask[8] = {0, ~0u, ~0u, ~0u, 0, ~0u, ~0u, ~0u};
    u32 *indices = (u32 *)zeroed_block(40), *p = (u32 *)zeroed_block(4);
    VALGRIND_MAKE_MEM_UNDEFINED(&indices[0], 4);
    VALGRIND_MAKE_MEM_UNDEFINED(&indices[4], 4);
    BRANCH(GATHER_WHERE(p, indices, mask));
    BRANCH(GATHER_WHERE(p, indices + 1, mask)); // EXPECT memcheck uninit-value
}

CASE(x87_words_undefined)
{
    u8 *p = block(28), *q = block(108);
    __asm__ volatile("fnstenv (%0)\n\tfldenv (%0)\n\tfnsave (%1)\n\tfrstor (%1)\n\tfnstsw %%ax\n\t"
                     "testb $1, %%ah\n\tjz 1f\n\tnop\n1:" : : "r"(p), "r"(q) : "rax", "cc", "memory");
}

// Of a read that is reported the bytes that may be read are as defined as they are, the others count
// as defined.
CASE(good_bytes_of_an_invalid_read)
{
    u8 *p = block(12);
    u64 v;
    __asm__ volatile("movq 6(%1), %0" : "=r"(v) : "r"(p));
    // EXPECT memcheck invalid-read size=8 block=inside:6 of=12
    BRANCH((u32)v); // EXPECT memcheck uninit-branch origin=heap:-4
    BRANCH(v >> 48);
}

// Both halves of what LOAD puts into xmm1; of ymm1 the lowest and the highest word.
#define XMM_HALVES "movq %%xmm1, %0\n\tpextrq $1, %%xmm1, %1"
#define YMM_ENDS \
    "vmovq %%xmm1, %0\n\tvextracti128 $1, %%ymm1, %%xmm1\n\tvpextrq $1, %%xmm1, %1\n\tvzeroupper"

CASE(good_bytes_of_an_invalid_vector)
{
    u8 *p = block(36);
    u64 a, b;
    __asm__ volatile("movdqu 26(%2), %%xmm1\n\t" XMM_HALVES : "=&r"(a), "=&r"(b) : "r"(p) : "xmm1");
    // EXPECT memcheck invalid-read size=16 block=inside:26 of=36
    BRANCH(a); // EXPECT memcheck uninit-branch origin=heap:-4
    BRANCH(b >> 16);
    __asm__ volatile("vmovdqu 26(%2), %%ymm1\n\t" YMM_ENDS : "=&r"(a), "=&r"(b) : "r"(p) : "xmm1");
    // EXPECT memcheck invalid-read size=32 block=inside:26 of=36
    BRANCH(a); // EXPECT memcheck uninit-branch origin=heap:-8
    BRANCH(b);
}

CASE(good_bytes_of_a_partial_vector)
{
    u8 *p = (u8 *)aligned_alloc(64, 36);
    u64 a, b;
    HIDE(p);
    memset(p + 8, 0, 24);
    __asm__ volatile("vmovdqa (%2), %%ymm1\n\t" YMM_ENDS : "=&r"(a), "=&r"(b) : "r"(p) : "xmm1");
    BRANCH(a); // EXPECT memcheck uninit-branch origin=heap:-5
    BRANCH(b);
    __asm__ volatile("vmovdqa 32(%2), %%ymm1\n\t" YMM_ENDS : "=&r"(a), "=&r"(b) : "r"(p) : "xmm1");
    BRANCH((u32)a); // EXPECT memcheck uninit-branch origin=heap:-8
    BRANCH(b); // EXPECT memcheck uninit-branch
}
