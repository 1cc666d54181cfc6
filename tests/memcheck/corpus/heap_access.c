// SPDX-License-Identifier: MIT
//
// Reads and writes of every size before, behind, across the end of and in a freed block, each with
// the clean twin that touches the same number of bytes inside it.
// BUILD -mavx
#include "corpus.h"

// Reads.
CASE(read1_after)
{
    u8 *p = zeroed_block(40);
    READ1(p + 40); // EXPECT memcheck invalid-read size=1 block=after:0 of=40 state=live alloc=-1
}
CASE(read1_after_odd)
{
    u8 *p = zeroed_block(37);
    READ1(p + 40); // EXPECT memcheck invalid-read size=1 block=after:3 of=37
}
CASE(read1_before)
{
    u8 *p = zeroed_block(40);
    READ1(p - 1); // EXPECT memcheck invalid-read size=1 block=before:1 of=40
}
CASE(read1_freed)
{
    u8 *p = freed_block(40);
    READ1(p + 8); // EXPECT memcheck invalid-read size=1 block=inside:8 of=40 state=freed free=-1
}
CASE(read1_inside)
{
    u8 *p = zeroed_block(40);
    READ1(p);
    READ1(p + 40 - 1);
    READ1(p + 3);
}
CASE(read2_after)
{
    u8 *p = zeroed_block(40);
    READ2(p + 40); // EXPECT memcheck invalid-read size=2 block=after:0 of=40 state=live alloc=-1
}
CASE(read2_after_odd)
{
    u8 *p = zeroed_block(37);
    READ2(p + 40); // EXPECT memcheck invalid-read size=2 block=after:3 of=37
}
CASE(read2_before)
{
    u8 *p = zeroed_block(40);
    READ2(p - 2); // EXPECT memcheck invalid-read size=2 block=before:2 of=40
}
CASE(read2_freed)
{
    u8 *p = freed_block(40);
    READ2(p + 8); // EXPECT memcheck invalid-read size=2 block=inside:8 of=40 state=freed free=-1
}
CASE(read2_across_end)
{
    u8 *p = zeroed_block(61);
    READ2(p + 62 - 2); // EXPECT memcheck invalid-read size=2 block=inside:60 of=61
}
CASE(read2_across_start)
{
    u8 *p = zeroed_block(61);
    READ2(p - 1); // EXPECT memcheck invalid-read size=2 block=before:1 of=61
}
CASE(read2_inside)
{
    u8 *p = zeroed_block(40);
    READ2(p);
    READ2(p + 40 - 2);
    READ2(p + 3);
}
CASE(read4_after)
{
    u8 *p = zeroed_block(40);
    READ4(p + 40); // EXPECT memcheck invalid-read size=4 block=after:0 of=40 state=live alloc=-1
}
CASE(read4_after_odd)
{
    u8 *p = zeroed_block(37);
    READ4(p + 40); // EXPECT memcheck invalid-read size=4 block=after:3 of=37
}
CASE(read4_before)
{
    u8 *p = zeroed_block(40);
    READ4(p - 4); // EXPECT memcheck invalid-read size=4 block=before:4 of=40
}
CASE(read4_freed)
{
    u8 *p = freed_block(40);
    READ4(p + 8); // EXPECT memcheck invalid-read size=4 block=inside:8 of=40 state=freed free=-1
}
CASE(read4_across_end)
{
    u8 *p = zeroed_block(61);
    READ4(p + 62 - 4); // EXPECT memcheck invalid-read size=4 block=inside:58 of=61
}
CASE(read4_across_start)
{
    u8 *p = zeroed_block(61);
    READ4(p - 1); // EXPECT memcheck invalid-read size=4 block=before:1 of=61
}
CASE(read4_inside)
{
    u8 *p = zeroed_block(40);
    READ4(p);
    READ4(p + 40 - 4);
    READ4(p + 3);
}
CASE(read8_after)
{
    u8 *p = zeroed_block(40);
    READ8(p + 40); // EXPECT memcheck invalid-read size=8 block=after:0 of=40 state=live alloc=-1
}
CASE(read8_after_odd)
{
    u8 *p = zeroed_block(37);
    READ8(p + 40); // EXPECT memcheck invalid-read size=8 block=after:3 of=37
}
CASE(read8_before)
{
    u8 *p = zeroed_block(40);
    READ8(p - 8); // EXPECT memcheck invalid-read size=8 block=before:8 of=40
}
CASE(read8_freed)
{
    u8 *p = freed_block(40);
    READ8(p + 8); // EXPECT memcheck invalid-read size=8 block=inside:8 of=40 state=freed free=-1
}
CASE(read8_across_end)
{
    u8 *p = zeroed_block(61);
    READ8(p + 62 - 8); // EXPECT memcheck invalid-read size=8 block=inside:54 of=61
}
CASE(read8_across_start)
{
    u8 *p = zeroed_block(61);
    READ8(p - 1); // EXPECT memcheck invalid-read size=8 block=before:1 of=61
}
CASE(read8_inside)
{
    u8 *p = zeroed_block(40);
    READ8(p);
    READ8(p + 40 - 8);
    READ8(p + 3);
}
CASE(read16_after)
{
    u8 *p = zeroed_block(40);
    READ16(p + 40); // EXPECT memcheck invalid-read size=16 block=after:0 of=40 state=live alloc=-1
}
CASE(read16_after_odd)
{
    u8 *p = zeroed_block(37);
    READ16(p + 40); // EXPECT memcheck invalid-read size=16 block=after:3 of=37
}
CASE(read16_before)
{
    u8 *p = zeroed_block(40);
    READ16(p - 16); // EXPECT memcheck invalid-read size=16 block=before:16 of=40
}
CASE(read16_freed)
{
    u8 *p = freed_block(40);
    READ16(p + 8); // EXPECT memcheck invalid-read size=16 block=inside:8 of=40 state=freed free=-1
}
CASE(read16_across_end)
{
    u8 *p = zeroed_block(61);
    READ16(p + 62 - 16); // EXPECT memcheck invalid-read size=16 block=inside:46 of=61
}
CASE(read16_across_start)
{
    u8 *p = zeroed_block(61);
    READ16(p - 1); // EXPECT memcheck invalid-read size=16 block=before:1 of=61
}
CASE(read16_inside)
{
    u8 *p = zeroed_block(40);
    READ16(p);
    READ16(p + 40 - 16);
    READ16(p + 3);
}
CASE(read32_after)
{
    u8 *p = zeroed_block(40);
    READ32(p + 40); // EXPECT memcheck invalid-read size=32 block=after:0 of=40 state=live alloc=-1
}
CASE(read32_after_odd)
{
    u8 *p = zeroed_block(37);
    READ32(p + 40); // EXPECT memcheck invalid-read size=32 block=after:3 of=37
}
CASE(read32_before)
{
    u8 *p = zeroed_block(40);
    READ32(p - 32); // EXPECT memcheck invalid-read size=32
}
CASE(read32_freed)
{
    u8 *p = freed_block(40);
    READ32(p + 8); // EXPECT memcheck invalid-read size=32 block=inside:8 of=40 state=freed free=-1
}
CASE(read32_across_end)
{
    u8 *p = zeroed_block(61);
    READ32(p + 62 - 32); // EXPECT memcheck invalid-read size=32 block=inside:30 of=61
}
CASE(read32_across_start)
{
    u8 *p = zeroed_block(61);
    READ32(p - 1); // EXPECT memcheck invalid-read size=32 block=before:1 of=61
}
CASE(read32_inside)
{
    u8 *p = zeroed_block(40);
    READ32(p);
    READ32(p + 40 - 32);
    READ32(p + 3);
}

// Writes.
CASE(write1_after)
{
    u8 *p = zeroed_block(40);
    WRITE1(p + 40); // EXPECT memcheck invalid-write size=1 block=after:0 of=40 state=live alloc=-1
}
CASE(write1_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE1(p + 40); // EXPECT memcheck invalid-write size=1 block=after:3 of=37
}
CASE(write1_before)
{
    u8 *p = zeroed_block(40);
    WRITE1(p - 1); // EXPECT memcheck invalid-write size=1 block=before:1 of=40
}
CASE(write1_freed)
{
    u8 *p = freed_block(40);
    WRITE1(p + 8); // EXPECT memcheck invalid-write size=1 block=inside:8 of=40 state=freed free=-1
}
CASE(write1_inside)
{
    u8 *p = zeroed_block(40);
    WRITE1(p);
    WRITE1(p + 40 - 1);
    WRITE1(p + 3);
}
CASE(write2_after)
{
    u8 *p = zeroed_block(40);
    WRITE2(p + 40); // EXPECT memcheck invalid-write size=2 block=after:0 of=40 state=live alloc=-1
}
CASE(write2_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE2(p + 40); // EXPECT memcheck invalid-write size=2 block=after:3 of=37
}
CASE(write2_before)
{
    u8 *p = zeroed_block(40);
    WRITE2(p - 2); // EXPECT memcheck invalid-write size=2 block=before:2 of=40
}
CASE(write2_freed)
{
    u8 *p = freed_block(40);
    WRITE2(p + 8); // EXPECT memcheck invalid-write size=2 block=inside:8 of=40 state=freed free=-1
}
CASE(write2_across_end)
{
    u8 *p = zeroed_block(61);
    WRITE2(p + 62 - 2); // EXPECT memcheck invalid-write size=2 block=inside:60 of=61
}
CASE(write2_across_start)
{
    u8 *p = zeroed_block(61);
    WRITE2(p - 1); // EXPECT memcheck invalid-write size=2 block=before:1 of=61
}
CASE(write2_inside)
{
    u8 *p = zeroed_block(40);
    WRITE2(p);
    WRITE2(p + 40 - 2);
    WRITE2(p + 3);
}
CASE(write4_after)
{
    u8 *p = zeroed_block(40);
    WRITE4(p + 40); // EXPECT memcheck invalid-write size=4 block=after:0 of=40 state=live alloc=-1
}
CASE(write4_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE4(p + 40); // EXPECT memcheck invalid-write size=4 block=after:3 of=37
}
CASE(write4_before)
{
    u8 *p = zeroed_block(40);
    WRITE4(p - 4); // EXPECT memcheck invalid-write size=4 block=before:4 of=40
}
CASE(write4_freed)
{
    u8 *p = freed_block(40);
    WRITE4(p + 8); // EXPECT memcheck invalid-write size=4 block=inside:8 of=40 state=freed free=-1
}
CASE(write4_across_end)
{
    u8 *p = zeroed_block(61);
    WRITE4(p + 62 - 4); // EXPECT memcheck invalid-write size=4 block=inside:58 of=61
}
CASE(write4_across_start)
{
    u8 *p = zeroed_block(61);
    WRITE4(p - 1); // EXPECT memcheck invalid-write size=4 block=before:1 of=61
}
CASE(write4_inside)
{
    u8 *p = zeroed_block(40);
    WRITE4(p);
    WRITE4(p + 40 - 4);
    WRITE4(p + 3);
}
CASE(write8_after)
{
    u8 *p = zeroed_block(40);
    WRITE8(p + 40); // EXPECT memcheck invalid-write size=8 block=after:0 of=40 state=live alloc=-1
}
CASE(write8_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE8(p + 40); // EXPECT memcheck invalid-write size=8 block=after:3 of=37
}
CASE(write8_before)
{
    u8 *p = zeroed_block(40);
    WRITE8(p - 8); // EXPECT memcheck invalid-write size=8 block=before:8 of=40
}
CASE(write8_freed)
{
    u8 *p = freed_block(40);
    WRITE8(p + 8); // EXPECT memcheck invalid-write size=8 block=inside:8 of=40 state=freed free=-1
}
CASE(write8_across_end)
{
    u8 *p = zeroed_block(61);
    WRITE8(p + 62 - 8); // EXPECT memcheck invalid-write size=8 block=inside:54 of=61
}
CASE(write8_across_start)
{
    u8 *p = zeroed_block(61);
    WRITE8(p - 1); // EXPECT memcheck invalid-write size=8 block=before:1 of=61
}
CASE(write8_inside)
{
    u8 *p = zeroed_block(40);
    WRITE8(p);
    WRITE8(p + 40 - 8);
    WRITE8(p + 3);
}
CASE(write16_after)
{
    u8 *p = zeroed_block(40);
    WRITE16(p + 40);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=after:0 of=40 state=live alloc=-1 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=40 state=live alloc=-1 why=vector-stores
}
CASE(write16_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE16(p + 40);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=after:3 of=37 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=37 why=vector-stores
}
CASE(write16_before)
{
    u8 *p = zeroed_block(40);
    WRITE16(p - 16);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=before:16 of=40 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=40 why=vector-stores
}
CASE(write16_freed)
{
    u8 *p = freed_block(40);
    WRITE16(p + 8);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=inside:8 of=40 state=freed free=-1 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=40 state=freed free=-1 why=vector-stores
}
CASE(write16_across_end)
{
    u8 *p = zeroed_block(61);
    WRITE16(p + 62 - 16);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=inside:46 of=61 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=61 why=vector-stores
}
CASE(write16_across_start)
{
    u8 *p = zeroed_block(61);
    WRITE16(p - 1);
    // EXPECT-MUNINN memcheck invalid-write size=16 block=before:1 of=61 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=61 why=vector-stores
}
CASE(write16_inside)
{
    u8 *p = zeroed_block(40);
    WRITE16(p);
    WRITE16(p + 40 - 16);
    WRITE16(p + 3);
}
CASE(write32_after)
{
    u8 *p = zeroed_block(40);
    WRITE32(p + 40);
    // EXPECT-MUNINN memcheck invalid-write size=32 block=after:0 of=40 state=live alloc=-1 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=40 state=live alloc=-1 why=vector-stores
}
CASE(write32_after_odd)
{
    u8 *p = zeroed_block(37);
    WRITE32(p + 40);
    // EXPECT-MUNINN memcheck invalid-write size=32 block=after:3 of=37 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=37 why=vector-stores
}
CASE(write32_before)
{
    u8 *p = zeroed_block(40);
    WRITE32(p - 32);
    // EXPECT-MUNINN memcheck invalid-write size=32 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 why=vector-stores
}
CASE(write32_freed)
{
    u8 *p = freed_block(40);
    WRITE32(p + 8);
    // EXPECT-MUNINN memcheck invalid-write size=32 block=inside:8 of=40 state=freed free=-1 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=40 state=freed free=-1 why=vector-stores
}
CASE(write32_across_end)
{
    u8 *p = zeroed_block(61);
    WRITE32(p + 62 - 32);
    // EXPECT-MUNINN memcheck invalid-write size=32 block=inside:30 of=61 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=61 why=vector-stores
}
CASE(write32_across_start)
{
    u8 *p = zeroed_block(61);
    WRITE32(p - 1);
    // EXPECT-MUNINN memcheck invalid-write size=32 block=before:1 of=61 why=vector-stores
  // EXPECT-VALGRIND memcheck invalid-write size=8 of=61 why=vector-stores
}
CASE(write32_inside)
{
    u8 *p = zeroed_block(40);
    WRITE32(p);
    WRITE32(p + 40 - 32);
    WRITE32(p + 3);
}
