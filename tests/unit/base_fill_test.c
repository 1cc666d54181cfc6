// SPDX-License-Identifier: MIT
//
// Fills and copies of every short length, both ways, touch what they are told to and nothing else.
#include "base/fill.h"

#include "unit.h"

enum { ROOM = 1200, LENGTHS = 1100, MARGIN = 16 };

static u8 buffer[2 * ROOM], source[ROOM];

static void check_fill(u64 size, u8 value)
{
    memset(buffer, 0x5a, sizeof buffer);
    fill_bytes(buffer + MARGIN, value, size);
    for (u64 i = 0; i < ROOM; i++) {
        bool inside = i >= MARGIN && i < MARGIN + size;
        if (buffer[i] != (inside ? value : 0x5a))
            FAIL("fill of %lu bytes: byte %ld is %x", size, (long)i - MARGIN, buffer[i]);
    }
}

static void check_copy(u64 size)
{
    memset(buffer, 0x5a, sizeof buffer);
    copy_bytes(buffer + MARGIN, source, size);
    for (u64 i = 0; i < ROOM; i++) {
        bool inside = i >= MARGIN && i < MARGIN + size;
        if (buffer[i] != (inside ? source[i - MARGIN] : 0x5a))
            FAIL("copy of %lu bytes: byte %ld is %x", size, (long)i - MARGIN, buffer[i]);
    }
}

static void check_all(bool is_quick)
{
    fill_string_is_quick = copy_string_is_quick = is_quick;
    for (u64 size = 0; size < LENGTHS; size++) {
        check_fill(size, 0xff);
        check_fill(size, 0);
        check_copy(size);
    }
}

TEST(every_length_is_filled_and_copied_exactly)
{
    for (u64 i = 0; i < ROOM; i++)
        source[i] = (u8)(i * 7 + 1);
    check_all(false);
    check_all(true);
}

