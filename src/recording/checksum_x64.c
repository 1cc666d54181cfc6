// SPDX-License-Identifier: MIT
//
// The checksums of chunks: CRC-32 as zlib has it. Of a program that does little but allocate they
// were 1.3 % of what massif costs, so they take sixteen bytes at a time where the processor
// multiplies polynomials.
#include <immintrin.h>
#include <zlib.h>

#include "recording/format.h"

// A body is a polynomial whose first bit has the highest power, and all that counts is its
// remainder. So 16 bytes may be replaced by something else that comes D bits later, if that is what
// they are times x^D: their two halves are multiplied by the remainders of x^(D + 32) and
// x^(D - 32), bits reversed as those of the body are, and the products added to the 16 bytes
// that stand D bits behind them.
typedef struct Fold {
    u64 first, second;
} Fold;
static const Fold fold_64_bytes = {0x154442bd4, 0x1c6e41596};
static const Fold fold_16_bytes = {0x1751997d0, 0x0ccaa009e};

enum { LANES = 4, LANE = sizeof(__m128i), FOLDED_FROM = 2 * LANES * LANE };

#define WITH_CLMUL __attribute__((target("pclmul,sse4.1")))

static inline WITH_CLMUL __m128i load_lane(const u8 *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

static inline WITH_CLMUL __m128i fold(__m128i lane, __m128i by, __m128i next)
{
    __m128i first = _mm_clmulepi64_si128(lane, by, 0x00);
    __m128i second = _mm_clmulepi64_si128(lane, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

// There are at least LANES lanes.
static WITH_CLMUL u32 crc_folded(u32 crc, const u8 *data, size_t size)
{
    __m128i far = _mm_set_epi64x((i64)fold_64_bytes.second, (i64)fold_64_bytes.first);
    __m128i near = _mm_set_epi64x((i64)fold_16_bytes.second, (i64)fold_16_bytes.first);
    __m128i lanes[LANES];
    u8 rest[LANE];

#pragma GCC unroll 4 // so that they stay in registers
    for (u32 i = 0; i < LANES; i++)
        lanes[i] = load_lane(data + i * LANE);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)~crc)); // what went before
    for (data += LANES * LANE, size -= LANES * LANE; size >= LANES * LANE;
         data += LANES * LANE, size -= LANES * LANE) {
#pragma GCC unroll 4
        for (u32 i = 0; i < LANES; i++)
            lanes[i] = fold(lanes[i], far, load_lane(data + i * LANE));
    }
#pragma GCC unroll 4
    for (u32 i = 1; i < LANES; i++)
        lanes[i] = fold(lanes[i - 1], near, lanes[i]);
    _mm_storeu_si128((__m128i *)rest, lanes[LANES - 1]);
    // The last lane stands for all of it; zlib inverts what it is given.
    u32 folded = (u32)crc32(0xffffffff, rest, LANE);
    return (u32)crc32(folded, data, (uInt)size);
}

u32 chunk_crc_more(u32 crc, const u8 *data, size_t size)
{
    if (size >= FOLDED_FROM && __builtin_cpu_supports("pclmul"))
        return crc_folded(crc, data, size);
    return size ? (u32)crc32(crc, data, (uInt)size) : crc; // zlib takes NULL for a question
}

u32 chunk_crc(const u8 *data, size_t size)
{
    return chunk_crc_more(0, data, size);
}

u32 chunk_head_crc(const ChunkHeader *header, const u8 *info)
{
    u32 crc = chunk_crc((const u8 *)header, offsetof(ChunkHeader, head_crc));

    return chunk_crc_more(crc, info, header->info_bytes);
}
