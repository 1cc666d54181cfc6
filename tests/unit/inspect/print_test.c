// SPDX-License-Identifier: MIT
//
// The printer: values as people read them, and strings that are safe where they go.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "inspect/print/print.h"

static const char *printed(void (*put)(FILE *, const char *), const char *text)
{
    static char *out;
    size_t size;

    free(out);
    FILE *file = open_memstream(&out, &size);
    put(file, text);
    fclose(file);
    return out;
}

#define CHECK_TEXT(found, expected) CHECK_EQ(strcmp((found), (expected)), 0)

TEST(bytes_have_the_unit_in_which_they_are_short)
{
    char text[VALUE_BYTES_MAX];

    CHECK_TEXT(value_bytes(0, text), "0 B");
    CHECK_TEXT(value_bytes(1023, text), "1023 B");
    CHECK_TEXT(value_bytes(1024, text), "1.0 KiB");
    CHECK_TEXT(value_bytes(1048575, text), "1.0 MiB");
    CHECK_TEXT(value_bytes(150 * 1024, text), "150 KiB");
    CHECK_TEXT(value_bytes(UINT64_MAX, text), "16.0 EiB");
    CHECK_TEXT(value_change(-2048, text), "-2.0 KiB");
    CHECK_TEXT(value_change(5, text), "+5 B");
    CHECK_TEXT(value_change(INT64_MIN, text), "-8.0 EiB");
}

TEST(times_and_counts_are_readable)
{
    char text[VALUE_BYTES_MAX];

    CHECK_TEXT(value_ns(0, text), "0 ns");
    CHECK_TEXT(value_ns(999, text), "999 ns");
    CHECK_TEXT(value_ns(1500000000, text), "1.50 s");
    CHECK_TEXT(value_ns(119000000000, text), "119 s");
    CHECK_TEXT(value_ns(7200000000000, text), "2.00 h");
    CHECK_TEXT(value_count(1234567, text), "1,234,567");
    CHECK_TEXT(value_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
    CHECK_TEXT(value_share(0.256, text), "25.6%");
}

TEST(only_well_formed_characters_have_a_length)
{
    CHECK_EQ(utf8_length("a"), 1);
    CHECK_EQ(utf8_length("é"), 2);
    CHECK_EQ(utf8_length("…"), 3);
    CHECK_EQ(utf8_length("\xf0\x9f\x90\xa6"), 4);
    CHECK_EQ(utf8_length("\xc0\x80"), 0);         // overlong
    CHECK_EQ(utf8_length("\xed\xa0\x80"), 0);     // a surrogate
    CHECK_EQ(utf8_length("\xf4\x90\x80\x80"), 0); // beyond Unicode
    CHECK_EQ(utf8_length("\xe2\x80"), 0);         // cut
    CHECK_EQ(utf8_length("\xff"), 0);
}

TEST(json_strings_hold_anything)
{
    CHECK_TEXT(printed(json_string, "a\"b\\c"), "\"a\\\"b\\\\c\"");
    CHECK_TEXT(printed(json_string, "\n\x1b\x7f"), "\"\\u000a\\u001b\\u007f\"");
    CHECK_TEXT(printed(json_string, "\xff…"), "\"\\ufffd…\"");
}

TEST(nothing_reaches_a_terminal_that_it_would_obey)
{
    CHECK_TEXT(printed(plain_text, "a\x1b[2Jb"), "a\\x1b[2Jb");
    CHECK_TEXT(printed(plain_text, "a\xc2\x9b" "2J"), "a\\xc2\\x9b2J");
    CHECK_TEXT(printed(plain_text, "line\nend"), "line\\x0aend");
    CHECK_EQ(plain_width("a\nb…"), 7);
}

static char *table(PrintForm form)
{
    static const Column columns[] = {{"name", "name", 0}, {"bytes", "bytes", COLUMN_RIGHT}};
    char *text = NULL;
    size_t size;
    FILE *out = tmpfile();
    Printer *printer = printer_new(out, form);

    printer_fact(printer, "total", "total", cell_u64(CELL_BYTES, 2048));
    printer_table(printer, "rows", NULL, columns, ARRAY_LEN(columns));
    printer_row(printer, (Cell[]){cell_text("a,\"b\""), cell_u64(CELL_BYTES, 1024)});
    printer_note(printer, "note");
    printer_row(printer, (Cell[]){cell_none(), cell_u64(CELL_BYTES, 1)});
    if (form != PRINT_CSV)
        printer_more(printer, 3, 1023, NULL);
    CHECK(printer_end(printer));
    size = (size_t)ftell(out);
    text = calloc(size + 1, 1);
    rewind(out);
    CHECK_EQ(fread(text, 1, size, out), size);
    fclose(out);
    return text;
}

TEST(one_table_has_three_forms)
{
    char *text = table(PRINT_TEXT), *json = table(PRINT_JSON), *csv = table(PRINT_CSV);

    CHECK_TEXT(text, "total                 2.0 KiB\n"
                     "name     bytes\n"
                     "a,\"b\"  1.0 KiB\n"
                     "    note\n"
                     "-          1 B\n"
                     "3 more (1023 B)\n");
    CHECK_TEXT(json, "{\n\"total\":2048,\n\"rows\":[\n {\"name\":\"a,\\\"b\\\"\",\"bytes\":1024},\n"
                     " {\"name\":null,\"bytes\":1}\n],\n\"rows_more_rows\":3,\n"
                     "\"rows_more_bytes\":1023\n}\n");
    CHECK_TEXT(csv, "name,bytes\r\n\"a,\"\"b\"\"\",1024\r\n,1\r\n");
    free(text);
    free(json);
    free(csv);
}
