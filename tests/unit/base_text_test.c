// SPDX-License-Identifier: MIT
//
// text_format against what it promises, and against libc where both speak.
#include "base/text.h"

#include "unit.h"

static char text[64];

TEST(every_conversion_prints_what_libc_prints)
{
    char expected[256], got[256];
    const char *format = "%s|%d|%u|%x|%lx|%lu|%ld|%c|%p|%5d|%05d|%-5d|%08x|%016lx|%6s|%-6s|%%";

#define ARGUMENTS                                                                                  \
    "abc", -42, 4000000000u, 0xbeefu, 0xdeadbeefcafeul, 18446744073709551615ul,                    \
        (long)(1ul << 63), 'z', (void *)0x1234, -42, -42, 42, 0xabcu, 0xfeedul, "ab", "ab"
    snprintf(expected, sizeof(expected), format, ARGUMENTS);
    size_t length = text_format(got, sizeof(got), format, ARGUMENTS);
#undef ARGUMENTS
    CHECK(strcmp(expected, got) == 0);
    CHECK(length == strlen(expected));
}

TEST(text_that_does_not_fit_is_cut_and_terminated)
{
    memset(text, 'X', sizeof(text));
    CHECK(text_format(text, 6, "%s", "0123456789") == 5);
    CHECK(strcmp(text, "01234") == 0);
    CHECK(text[6] == 'X');
}

TEST(buffer_of_no_size_is_not_touched)
{
    text[0] = 'X';
    CHECK(text_format(text, 0, "%s", "abc") == 0);
    CHECK(text[0] == 'X');
}

TEST(huge_width_fills_the_buffer_and_ends)
{
    CHECK(text_format(text, sizeof(text), "%999999999d", 1) == sizeof(text) - 1);
}

TEST(null_string_is_named)
{
    const char *volatile nothing = NULL;

    text_format(text, sizeof(text), "%s", nothing);
    CHECK(strcmp(text, "(null)") == 0);
}

TEST(unknown_conversion_stays_visible)
{
    const char *volatile format = "a%8qb%";

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    text_format(text, sizeof(text), format);
#pragma GCC diagnostic pop
    CHECK(strcmp(text, "a%8qb%") == 0);
}
