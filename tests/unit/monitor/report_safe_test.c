// SPDX-License-Identifier: MIT
//
// What each reader gets of a hostile name.
#include "../unit.h"
#include "monitor/report/buffer.h"

static char text[512];

static const char *safe(const char *name, Reader reader)
{
    Buffer buffer = { 0 };

    buffer_puts_safe(&buffer, name, reader);
    snprintf(text, sizeof(text), "%.*s", (int)buffer.size, buffer.size ? buffer.data : "");
    buffer_free(&buffer);
    return text;
}

TEST(control_characters_never_reach_a_text)
{
    CHECK_STR(safe("a\033[31mb\nc\177", READER_LOG), "a\\x1b[31mb\\x0ac\\u{7f}");
    CHECK_STR(safe("a\033[31mb\nc", READER_TERMINAL), "a\\x1b[31mb\\x0ac");
    CHECK_STR(safe("\302\233", READER_LOG), "\\u{9b}");
    CHECK_STR(safe("\233", READER_LOG), "\\x9b");
}

TEST(foreign_encodings_stay_in_a_log_but_not_on_a_terminal)
{
    CHECK_STR(safe("caf\351", READER_LOG), "caf\351");
    CHECK_STR(safe("caf\351", READER_TERMINAL), "caf\\xe9");
    CHECK_STR(safe("caf\303\251", READER_TERMINAL), "caf\303\251");
}

TEST(text_that_reorders_a_line_is_shown_on_a_terminal)
{
    CHECK_STR(safe("\342\200\256x", READER_TERMINAL), "\\u{202e}x");
}

TEST(xml_has_only_characters_that_xml_has)
{
    CHECK_STR(safe("<a>&\"'", READER_XML), "&lt;a&gt;&amp;\"'");
    CHECK_STR(safe("\001\t\n\r", READER_XML), "\\x01\t\n\\x0d");
    CHECK_STR(safe("\357\277\276", READER_XML), "\\u{fffe}");
    CHECK_STR(safe("\355\240\200", READER_XML), "\\xed\\xa0\\x80"); // a surrogate
    CHECK_STR(safe("\300\200", READER_XML), "\\xc0\\x80");          // zero, too long
}

TEST(json_strings_are_escaped)
{
    CHECK_STR(safe("\"\\\n\001", READER_JSON), "\\\"\\\\\\n\\u0001");
    CHECK_STR(safe("\377", READER_JSON), "\\\\xff");
}

TEST(character_that_is_cut_off_is_not_utf8)
{
    u32 point;

    CHECK_EQ(utf8_decode("\303", 1, &point), 0);
    CHECK_EQ(utf8_decode("\303\251", 2, &point), 2);
    CHECK_EQ(point, 0xe9);
    CHECK_EQ(utf8_decode("\364\220\200\200", 4, &point), 0); // behind the last
    CHECK_EQ(utf8_decode("", 0, &point), 0);
}

TEST(commas_stand_between_thousands)
{
    Buffer buffer = { 0 };

    buffer_put_commas(&buffer, 0);
    buffer_putc(&buffer, ' ');
    buffer_put_commas(&buffer, 999);
    buffer_putc(&buffer, ' ');
    buffer_put_commas(&buffer, 1000);
    buffer_putc(&buffer, ' ');
    buffer_put_commas(&buffer, UINT64_MAX);
    buffer_putc(&buffer, 0);
    CHECK_STR(buffer.data, "0 999 1,000 18,446,744,073,709,551,615");
    buffer_free(&buffer);
}
