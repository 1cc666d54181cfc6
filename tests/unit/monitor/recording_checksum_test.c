// SPDX-License-Identifier: MIT
//
// The checksums of chunks, which are made sixteen bytes at a time, are those of zlib.
#include <zlib.h>

#include "../unit.h"
#include "recording/format.h"

enum { BYTES = 5000 };

static u8 bytes[BYTES];

static void fill(void)
{
    u64 state = 88172645463325252ull;
    for (u32 i = 0; i < BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (u8)(state >> 32);
    }
}

TEST(checksums_of_every_length_and_place_are_those_of_zlib)
{
    fill();
    for (u32 size = 1; size < 700; size++)
        for (u32 at = 0; at < 20; at++)
            CHECK_EQ(chunk_crc(bytes + at, size), (u32)crc32(0, bytes + at, size));
    CHECK_EQ(chunk_crc(bytes, BYTES), (u32)crc32(0, bytes, BYTES));
    CHECK_EQ(chunk_crc(NULL, 0), 0);
}

TEST(checksums_of_parts_are_that_of_the_whole)
{
    fill();
    for (u32 first = 0; first < BYTES; first += 37)
        for (u32 second = 0; first + second <= BYTES; second += 911) {
            u32 crc = chunk_crc_more(chunk_crc(bytes, first), bytes + first, second);
            crc = chunk_crc_more(crc, bytes + first + second, BYTES - first - second);
            CHECK_EQ(crc, (u32)crc32(0, bytes, BYTES));
        }
}
