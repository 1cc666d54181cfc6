// SPDX-License-Identifier: MIT
//
// Packed marks are read back as they were, whatever they say.
#include "engine/cache/unit.h"

#include "unit.h"

enum { MARKS = 600 };

static u64 random_state = 0x1234567890abcdefull;

static u32 random_below(u32 bound)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(random_state >> 33) % bound;
}

// Mostly what blocks have, and now and then anything.
static CodeMark random_mark(const CodeMark *last)
{
    CodeMark mark = {
        .host_offset = (u16)(last->host_offset + 1 + random_below(random_below(9) ? 30 : 100)),
        .guest_delta = last->guest_delta + (i32)random_below(16),
        .boundary = random_below(2),
    };
    switch (random_below(8)) {
    case 0: mark.spilled = (u16)(1u << random_below(16)); break;
    case 1: mark.spilled = (u16)random_below(0xffff); break;
    case 2: mark.spilled = MARK_NOWHERE; break;
    case 3: mark.guest_delta = (i32)random_below(1u << 30) - (1 << 29); break;
    default: break;
    }
    return mark;
}

TEST(packed_marks_are_read_as_they_were)
{
    static u8 bytes[MARKS * MARK_BYTES_MAX + 1];
    CodeMark marks[MARKS];

    for (int round = 0; round < 2000; round++) {
        CodeMark last = {0};
        u32 count = random_below(MARKS);
        for (u32 i = 0; i < count; i++)
            last = marks[i] = random_mark(&last);
        bytes[sizeof(bytes) - 1] = 0x5a;
        u8 *end = marks_pack(marks, count, bytes);
        CHECK((size_t)(end - bytes) <= count * (size_t)MARK_BYTES_MAX);
        units[1].marks = bytes;
        Block block = {.unit = 1, .mark_count = (u16)count};
        MarkReader r = marks_of(&block);
        for (u32 i = 0; i < count; i++) {
            CHECK(marks_next(&r));
            CHECK_EQ(r.mark.host_offset, marks[i].host_offset);
            CHECK_EQ(r.mark.spilled, marks[i].spilled);
            CHECK_EQ(r.mark.boundary, marks[i].boundary);
            if (marks[i].spilled != MARK_NOWHERE)
                CHECK_EQ(r.mark.guest_delta, marks[i].guest_delta);
        }
        CHECK(!marks_next(&r) && r.at == end);
        units[1].marks = NULL;
    }
}

TEST(marks_of_most_instructions_take_two_bytes)
{
    u8 bytes[8 * MARK_BYTES_MAX];
    CodeMark marks[] = {
        {.host_offset = 0, .boundary = 1},
        {.host_offset = 20, .guest_delta = 4, .boundary = 1},
        {.host_offset = 29, .guest_delta = 4, .spilled = 1u << 1},
        {.host_offset = 50, .guest_delta = 4},
        {.host_offset = 58, .guest_delta = 19, .boundary = 1},
        {.host_offset = 70, .spilled = MARK_NOWHERE},
    };
    CHECK_EQ((size_t)(marks_pack(marks, ARRAY_LEN(marks), bytes) - bytes), 2 * ARRAY_LEN(marks));
}
