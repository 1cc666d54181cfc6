// SPDX-License-Identifier: MIT
//
// The tables of words: complete, and filled in as their formats say.
#include "../unit.h"
#include "monitor/report/report.h"

static char text[256];

static const char *headline(u32 kind, const u64 *values, size_t count, const char *word)
{
    report_headline(kind, values, count, word, text, sizeof(text));
    return text;
}

static const char *part(u32 kind, const u64 *values, size_t count, const char *word)
{
    report_part_text(kind, values, count, word, text, sizeof(text));
    return text;
}

TEST(every_kind_has_all_its_words)
{
    u64 values[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

    for (u32 kind = 0; kind < KIND_COUNT; kind++) {
        const KindWords *words = report_kind(kind);
        CHECK(words && words->tool && words->xml && words->suppression && words->id);
        CHECK(words->level && words->title);
        headline(kind, values, 8, "f(a)");
        CHECK(text[0] != 0 && !strchr(text, '?') && !strchr(text, '%'));
    }
    CHECK(!report_kind(KIND_COUNT));
    CHECK(!report_kind(UINT32_MAX));
}

TEST(every_part_has_its_words)
{
    u64 values[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

    for (u32 kind = 0; kind < PART_COUNT; kind++) {
        CHECK(report_part_id(kind)[0] != 0);
        part(kind, values, 8, "t");
        CHECK(kind == PART_NONE || text[0] != 0);
        CHECK(!strchr(text, '?') && !strchr(text, '%'));
    }
}

TEST(ids_of_kinds_and_parts_are_unique)
{
    for (u32 a = 0; a < KIND_COUNT; a++)
        for (u32 b = 0; b < a; b++)
            CHECK(strcmp(report_kind(a)->id, report_kind(b)->id) != 0);
    for (u32 a = 0; a < PART_COUNT; a++)
        for (u32 b = 0; b < a; b++)
            CHECK(strcmp(report_part_id(a), report_part_id(b)) != 0);
}

TEST(sentences_are_the_classic_ones)
{
    CHECK_STR(headline(KIND_INVALID_READ, (u64[]){ 4 }, 1, NULL), "Invalid read of size 4");
    CHECK_STR(headline(KIND_SYSCALL_PARAM, (u64[]){ 1, 1 }, 2, "write(buf)"),
              "Syscall param write(buf) points to unaddressable byte(s)");
    CHECK_STR(headline(KIND_FISHY_VALUE, (u64[]){ (u64)-1 }, 1, "malloc(size)"),
              "Argument 'size' of function malloc has a fishy (possibly negative) value: -1");
    CHECK_STR(headline(KIND_LEAK_DEFINITE, (u64[]){ 2016, 1, 7, 1234, 16, 2000 }, 6, NULL),
              "2,016 (16 direct, 2,000 indirect) bytes in 1 blocks are definitely lost in loss "
              "record 7 of 1,234");
    CHECK_STR(headline(KIND_LEAK_DEFINITE, (u64[]){ 16, 1, 7, 8, 16, 0 }, 6, NULL),
              "16 bytes in 1 blocks are definitely lost in loss record 7 of 8");
    CHECK_STR(part(PART_ADDRESS_BLOCK, (u64[]){ 0xab, 1000, 0, 8, 1, 1 }, 6, NULL),
              "Address 0xab is 1,000 bytes before a recently re-allocated block of size 8 free'd");
    CHECK_STR(part(PART_ADDRESS_ANONYMOUS, (u64[]){ 0xab, 5 }, 2, NULL),
              "Address 0xab is in a r-x anonymous segment");
}

TEST(record_that_lacks_values_is_still_a_sentence)
{
    CHECK_STR(headline(KIND_INVALID_READ, NULL, 0, NULL), "Invalid read of size ?");
    CHECK_STR(headline(KIND_SYSCALL_PARAM, (u64[]){ 9 }, 1, NULL), "Syscall param  ? ? byte(s)");
    CHECK_STR(headline(KIND_FISHY_VALUE, (u64[]){ 1 }, 1, "malloc(size"),
              "Argument 'size' of function malloc has a fishy (possibly negative) value: 1");
    CHECK_STR(headline(99, NULL, 0, NULL), "Finding of an unknown kind (99)");
    CHECK_STR(part(99, NULL, 0, NULL), "Something of an unknown kind (99)");
}

TEST(text_with_percent_signs_is_only_text)
{
    CHECK_STR(headline(KIND_SYSCALL_PARAM, (u64[]){ 0, 0 }, 2, "%v0%?9{%["),
              "Syscall param %v0%?9{%[ contains uninitialised byte(s)");
}

TEST(sentence_that_does_not_fit_is_cut_and_terminated)
{
    char small[8] = "XXXXXXX";

    CHECK_EQ(report_headline(KIND_INVALID_FREE, NULL, 0, NULL, small, 5), 4);
    CHECK_STR(small, "Inva");
    CHECK_EQ(small[5], 'X');
    CHECK_EQ(report_headline(KIND_INVALID_FREE, NULL, 0, NULL, small, 0), 0);
}
