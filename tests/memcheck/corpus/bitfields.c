// SPDX-License-Identifier: MIT
//
// Bytes of which some bits are never defined are looked at so often that only the bits that count
// are asked for. When one of these is undefined, or the byte is not there, that is told as ever.
#include <valgrind/memcheck.h>

#include "corpus.h"

// Bit 2 alone is defined.
static NOINLINE u8 *flags_of(u64 size)
{
    u8 *flags = (u8 *)block(size);
    for (u64 i = 0; i < size; i++) {
        u8 v = 0xfb;
        flags[i] = 0;
        CHECK(VALGRIND_SET_VBITS(&flags[i], &v, 1) == 1);
    }
    return flags;
}

#define MASKED(name, load, mask)                                                       \
    static NOINLINE u64 name(const void *p)                                            \
    {                                                                                  \
        u64 value;                                                                     \
        __asm__ volatile(load " (%1), %%eax\n\tandl $" mask ", %%eax\n\tmovq %%rax, %0" \
                         : "=r"(value) : "r"(p) : "rax", "cc");                        \
        return value;                                                                  \
    }
MASKED(masked_1, "movzbl", "4")
MASKED(masked_4, "movl", "0x04040404")
MASKED(masked_low, "movl", "4")

static NOINLINE u64 tested(const void *p)
{
    u64 value;
    __asm__ volatile("xorl %%eax, %%eax\n\ttestb $4, (%1)\n\tsetne %%al\n\tmovq %%rax, %0"
                     : "=r"(value) : "r"(p) : "rax", "cc");
    return value;
}

static NOINLINE void look_often(const u8 *flags)
{
    for (volatile int i = 0; i < 1000; i++) {
        BRANCH(masked_1(flags));
        BRANCH(masked_4(flags));
        BRANCH(masked_low(flags));
        BRANCH(tested(flags));
    }
}

CASE(never_defined)
{
    look_often(flags_of(8));
}

CASE(undefined_at_last)
{
    u8 *flags = flags_of(8), v = 0x04;
    look_often(flags);
    CHECK(VALGRIND_SET_VBITS(&flags[0], &v, 1) == 1);
    BRANCH(masked_1(flags)); // EXPECT memcheck uninit-branch
    BRANCH(masked_4(flags)); // EXPECT memcheck uninit-branch
    BRANCH(masked_low(flags)); // EXPECT memcheck uninit-branch
    BRANCH(tested(flags)); // EXPECT memcheck uninit-branch
}

CASE(one_byte_of_four)
{
    u8 *flags = flags_of(8), v = 0xff;
    look_often(flags);
    CHECK(VALGRIND_SET_VBITS(&flags[3], &v, 1) == 1);
    BRANCH(masked_low(flags));
    BRANCH(masked_4(flags)); // EXPECT memcheck uninit-branch
}

CASE(freed_at_last)
{
    u8 *flags = flags_of(8);
    look_often(flags);
    free(flags);
    masked_1(flags); // EXPECT memcheck invalid-read line=any size=1
    masked_4(flags); // EXPECT memcheck invalid-read line=any size=4
}

CASE(freed_and_tested)
{
    u8 *flags = flags_of(8);
    look_often(flags);
    free(flags);
    masked_low(flags); // EXPECT memcheck invalid-read line=any size=4
    tested(flags); // EXPECT memcheck invalid-read line=any size=1
}

CASE(beyond_the_end)
{
    u8 *flags = flags_of(8);
    look_often(flags);
    masked_4(flags + 6); // EXPECT memcheck invalid-read line=any size=4
    masked_1(flags + 7);
    tested(flags + 8); // EXPECT memcheck invalid-read line=any size=1
    free(flags);
}

CASE(beyond_the_end_and_not_asked_for)
{
    u8 *flags = flags_of(8);
    look_often(flags);
    masked_low(flags + 6); // EXPECT memcheck invalid-read line=any size=4
    free(flags);
}
