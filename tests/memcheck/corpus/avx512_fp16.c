// SPDX-License-Identifier: MIT
//
// Half floats: lanes by themselves, two of them in a complex number, and the lowest alone.
// BUILD -mavx512fp16
// NEEDS avx512_fp16
#include "corpus.h"

#include <valgrind/memcheck.h>

// 64 bytes, the lane `n` of 16 bits undefined, through an instruction from zmm1 into zmm0.
#define DO16(n, code, lane) \
    __extension__({ \
        u16 out[32], *in = (u16 *)zeroed_block(64); \
        VALGRIND_MAKE_MEM_UNDEFINED(&in[n], 2); \
        __asm__ volatile("vmovdqu64 (%1), %%zmm1\n\tvpxord %%zmm0, %%zmm0, %%zmm0\n\t" code \
                         "\n\tvmovdqu64 %%zmm0, (%0)" : : "r"(out), "r"(in) \
                         : "xmm0", "xmm1", "memory"); \
        out[lane]; \
    })

CASE(lanes) // NOT-VALGRIND avx512
{
    BRANCH(DO16(5, "vaddph %%zmm1, %%zmm1, %%zmm0", 4));
    BRANCH(DO16(5, "vaddph %%zmm1, %%zmm1, %%zmm0", 6));
    BRANCH(DO16(5, "vaddph %%zmm1, %%zmm1, %%zmm0", 5)); // EXPECT memcheck uninit-branch
}

CASE(complex_numbers) // NOT-VALGRIND avx512
{
    BRANCH(DO16(5, "vfmulcph %%zmm1, %%zmm1, %%zmm0", 3));
    BRANCH(DO16(5, "vfmulcph %%zmm1, %%zmm1, %%zmm0", 6));
    BRANCH(DO16(5, "vfmulcph %%zmm1, %%zmm1, %%zmm0", 4)); // EXPECT memcheck uninit-branch
}

CASE(conversions) // NOT-VALGRIND avx512
{
    BRANCH(DO16(5, "vcvtph2psx %%ymm1, %%zmm0", 9));
    BRANCH(DO16(5, "vcvtph2psx %%ymm1, %%zmm0", 12));
    BRANCH(DO16(5, "vcvtph2psx %%ymm1, %%zmm0", 10)); // EXPECT memcheck uninit-branch
}

CASE(lowest) // NOT-VALGRIND avx512
{
    BRANCH(DO16(1, "vaddsh %%xmm1, %%xmm1, %%xmm0", 0));
    BRANCH(DO16(1, "vaddsh %%xmm1, %%xmm1, %%xmm0", 2));
    BRANCH(DO16(1, "vaddsh %%xmm1, %%xmm1, %%xmm0", 1)); // EXPECT memcheck uninit-branch
    BRANCH(DO16(0, "vaddsh %%xmm1, %%xmm1, %%xmm0", 0)); // EXPECT memcheck uninit-branch
}
