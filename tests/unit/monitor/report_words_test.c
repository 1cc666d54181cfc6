// SPDX-License-Identifier: MIT
//
// The table of findings: complete, and its templates filled in as they say; and descriptions that come
// over the wire.
#include <sys/mman.h>

#include "../unit.h"
#include "monitor/report/report.h"

static char text[256];

static const char *fill(const char *words, ShapeNumber shape, AnyFields fields)
{
    FieldValues values = fields_of(shape, fields);
    report_words(words, &values, text, sizeof(text));
    return text;
}

static const char *headline(FindingKind kind, AnyFields fields)
{
    const KindDescription *row = kind_in_table(kind);
    FieldValues values = {.shape = row->shape, .count = row->shape->count, .any = fields};
    report_words(row->sentence, &values, text, sizeof(text));
    return text;
}

static const char *part(PartKind kind, AnyFields fields)
{
    const PartDescription *row = part_in_table(kind);
    FieldValues values = {.shape = row->shape, .count = row->shape->count, .any = fields};
    report_words(row->sentence, &values, text, sizeof(text));
    return text;
}

// 1, "a", 1, ...
static FieldValues ones(const FieldShape *shape)
{
    FieldValues values = {.shape = shape, .count = shape->count};
    for (u32 i = 0; i < shape->count; i++)
        values.any.words[i] = shape->fields[i].type == FIELD_TEXT ? (u64)"a" : 1;
    return values;
}

static void check_template(const char *words, const FieldShape *shape)
{
    FieldValues some = ones(shape), none = {.shape = shape, .count = shape->count};
    report_words(words, &some, text, sizeof(text));
    CHECK(!strpbrk(text, "?{}|"));
    report_words(words, &none, text, sizeof(text));
    CHECK(!strpbrk(text, "?{}|"));
}

TEST(every_kind_has_all_its_words)
{
    for (u32 i = 0; i < KIND_COUNT; i++) {
        const KindDescription *kind = kind_in_table(i);
        CHECK(kind && kind->number == i && kind->id && kind->family && kind->xml);
        CHECK(kind->suppression && kind->level && kind->title && kind->shape);
        CHECK(kind->sentence && kind->sentence[0]);
        check_template(kind->sentence, kind->shape);
        check_template(kind->suppression, kind->shape);
        if (kind->suppression_extra)
            check_template(kind->suppression_extra, kind->shape);
        CHECK(kind_of_id(kind->id) == kind); // no other has its id
    }
    CHECK(!kind_in_table(KIND_COUNT));
    CHECK(!kind_in_table(UINT32_MAX));
    CHECK(!kind_of_id("no-such-kind"));
}

TEST(every_part_has_its_words)
{
    for (u32 i = 0; i < PART_COUNT; i++) {
        const PartDescription *row = part_in_table(i);
        CHECK(row && row->number == i && row->id[0] && row->shape && row->sentence);
        CHECK(i == PART_NONE || row->sentence[0]);
        check_template(row->sentence, row->shape);
        if (row->place)
            check_template(row->place, row->shape);
        CHECK(part_of_id(row->id) == row);
    }
}

TEST(sentences_are_the_classic_ones)
{
    CHECK_STR(headline(KIND_INVALID_READ, (AnyFields){ .access = { .size = 4 } }),
              "Invalid read of size 4");
    CHECK_STR(headline(KIND_SYSCALL_PARAM,
                       (AnyFields){ .syscall_param = { 1, 1, .param = "write(buf)" } }),
              "Syscall param write(buf) points to unaddressable byte(s)");
    CHECK_STR(headline(KIND_FISHY_VALUE, (AnyFields){ .fishy_value = { -1, "malloc", "size" } }),
              "Argument 'size' of function malloc has a fishy (possibly negative) value: -1");
    CHECK_STR(headline(KIND_LEAK_DEFINITE,
                       (AnyFields){ .leak = { 2016, 1, 7, 1234, .direct_bytes = 16,
                                              .indirect_bytes = 2000 } }),
              "2,016 (16 direct, 2,000 indirect) bytes in 1 blocks are definitely lost in loss "
              "record 7 of 1,234");
    CHECK_STR(headline(KIND_LEAK_DEFINITE, (AnyFields){ .leak = { 16, 1, 7, 8, 16 } }),
              "16 bytes in 1 blocks are definitely lost in loss record 7 of 8");
    CHECK_STR(headline(KIND_LEAK_POSSIBLE,
                       (AnyFields){ .leak = { 16, 1, 7, 8, 16, .is_compared = 1,
                                              .bytes_change = -2048, .blocks_change = 0 } }),
              "16 (-2,048) bytes in 1 (+0) blocks are possibly lost in loss record 7 of 8");
    CHECK_STR(part(PART_ADDRESS_BLOCK,
                   (AnyFields){ .block = { 0xab, 1000, RELATION_BEFORE, 8, STATE_FREED, 1 } }),
              "Address 0xab is 1,000 bytes before a recently re-allocated block of size 8 free'd");
    CHECK_STR(part(PART_ADDRESS_ANONYMOUS,
                   (AnyFields){ .mapping = { 0xab, PROT_READ | PROT_EXEC } }),
              "Address 0xab is in a r-x anonymous segment");
    CHECK_STR(headline(KIND_FD_BAD_CLOSE,
                       (AnyFields){ .descriptor = { .fd = 3, .file = "/dev/null" } }),
              "File descriptor 3: /dev/null is already closed");
    CHECK_STR(headline(KIND_FD_BAD_CLOSE,
                       (AnyFields){ .descriptor = { .fd = 3, .socket = "pf-16 socket 3:" } }),
              "pf-16 socket 3: is already closed");
}

TEST(what_has_not_come_is_a_question_mark)
{
    const u64 word = 9;
    FieldValues values;

    fields_decode(shape_in_table(SHAPE_ACCESS), NULL, 0, "", 0, &values);
    report_words("Invalid read of size {size}", &values, text, sizeof(text));
    CHECK_STR(text, "Invalid read of size ?");
    fields_decode(shape_in_table(SHAPE_SYSCALL_PARAM), &word, 1, "", 0, &values);
    report_words(kind_in_table(KIND_SYSCALL_PARAM)->sentence, &values, text, sizeof(text));
    CHECK_STR(text, "Syscall param  ? ? byte(s)");
}

TEST(values_survive_the_wire)
{
    char texts[FIELD_TEXTS_BYTES], longer[FIELD_TEXTS_BYTES + 100];
    u64 words[FIELDS_MAX];
    FieldValues values;
    AnyFields fields = { .fishy_value = { -7, "malloc", "size" } };
    const FieldShape *shape = shape_in_table(SHAPE_FISHY_VALUE);

    size_t size = fields_encode(shape, &fields, words, texts);
    fields_decode(shape, words, shape->count, texts, size, &values);
    const FieldsFishyValue *got = fields_fishy_value(&values);
    CHECK(got && got->value == -7);
    CHECK_STR(got->function, "malloc");
    CHECK_STR(got->argument, "size");
    CHECK(!fields_access(&values));

    // The first text takes all the room: it is cut, and the second is gone.
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    fields.fishy_value.function = longer;
    size = fields_encode(shape, &fields, words, texts);
    fields_decode(shape, words, shape->count, texts, size, &values);
    CHECK_EQ(strlen(values.any.fishy_value.function), FIELD_TEXTS_BYTES - 1);
    CHECK(!values.any.fishy_value.argument);

    // A text that would begin outside is none.
    words[1] = size + 2;
    fields_decode(shape, words, shape->count, texts, size, &values);
    CHECK(!values.any.fishy_value.function);
}

TEST(templates_that_are_none_stand_as_they_are)
{
    AnyFields fields = { .value = { .size = 4 } };

    CHECK_STR(fill("}{|?: %s {", SHAPE_VALUE, fields), "}{|?: %s {");
    CHECK_STR(fill("{} {nobody} {size:a|b} {:} {?x}", SHAPE_VALUE, fields), "? ? ? ? ");
    CHECK_STR(fill("{size?{size?{size?{size?{size?deep}}}}}", SHAPE_VALUE, fields),
              "{size?deep}");
    CHECK_STR(fill("a{size?b|c}d{nobody?e|f}g", SHAPE_VALUE, fields), "abdfg");
}

TEST(text_with_braces_is_only_text)
{
    CHECK_STR(headline(KIND_SYSCALL_PARAM,
                       (AnyFields){ .syscall_param = { .param = "{param}{size?" } }),
              "Syscall param {param}{size? contains uninitialised byte(s)");
}

TEST(sentence_that_does_not_fit_is_cut_and_terminated)
{
    char small[8] = "XXXXXXX";
    FieldValues values = fields_of(SHAPE_NOTHING, (AnyFields){ { 0 } });
    const char *words = kind_in_table(KIND_INVALID_FREE)->sentence;

    CHECK_EQ(report_words(words, &values, small, 5), 4);
    CHECK_STR(small, "Inva");
    CHECK_EQ(small[5], 'X');
    CHECK_EQ(report_words(words, &values, small, 0), 0);
}

// ------------------------------------------------------------------- descriptions

#define TEXT_OF(literal) { literal, sizeof(literal) - 1 }

static Wire_describe_kind described(u64 number)
{
    static const u64 types[] = { FIELD_NUMBER, FIELD_TEXT };

    return (Wire_describe_kind){
        .number = number,
        .id = TEXT_OF("late-frame"), .family = TEXT_OF("Framer"), .xml = TEXT_OF(""),
        .xml_4 = TEXT_OF(""), .suppression = TEXT_OF("Late{ms}"), .suppression_extra = TEXT_OF(""),
        .leak_kind = TEXT_OF(""), .level = TEXT_OF("loud"), .title = TEXT_OF(""),
        .sentence = TEXT_OF("Frame {ms} ms late in {where}"), .help = TEXT_OF(""),
        .shape = TEXT_OF("late"), .field_types = { types, 2 },
        .field_names = TEXT_OF("ms\0\0where\0\0"),
    };
}

TEST(kind_that_nobody_knew_has_words)
{
    Vocabulary *words = vocabulary_new();
    Wire_describe_kind record = described(0);

    CHECK(vocabulary_add_kind(words, &record));
    const KindDescription *kind = vocabulary_kind(words, 0);
    CHECK(kind && kind->number == 0 && kind->shape->count == 2);
    CHECK_STR(kind->xml, "late-frame");
    CHECK(!kind->xml_4 && !kind->leak_kind && !kind->help);
    CHECK_STR(kind->level, "error");
    CHECK_STR(kind->title, "late-frame");
    CHECK_STR(kind->shape->fields[1].name, "where");
    FieldValues values;
    fields_decode(kind->shape, (u64[]){ 12, 1 }, 2, "main", 4, &values);
    report_words(kind->sentence, &values, text, sizeof(text));
    CHECK_STR(text, "Frame 12 ms late in main");
    vocabulary_free(words);
}

TEST(descriptions_come_in_the_order_of_their_numbers)
{
    Vocabulary *words = vocabulary_new();
    Wire_describe_kind record = described(1), nameless = described(0);

    CHECK(!vocabulary_add_kind(words, &record)); // there is no 0 yet
    nameless.id.size = 0;
    CHECK(!vocabulary_add_kind(words, &nameless));
    record.number = 0;
    CHECK(vocabulary_add_kind(words, &record));
    CHECK(!vocabulary_add_kind(words, &record)); // that one is known
    CHECK(!vocabulary_kind(words, 1) && !vocabulary_kind(words, ~0ull));
    vocabulary_free(words);
}

// Its fields can be read by name in C only then.
TEST(shape_is_one_of_the_table_if_all_its_fields_are)
{
    static const u64 types[] = { FIELD_NUMBER, FIELD_ADDRESS };
    Vocabulary *words = vocabulary_new();
    Wire_describe_kind record = described(0);

    record.shape = (WireText)TEXT_OF("access");
    record.field_types = (WireWords){ types, 2 };
    record.field_names = (WireText)TEXT_OF("size\0\0address\0\0");
    CHECK(vocabulary_add_kind(words, &record));
    CHECK(vocabulary_kind(words, 0)->shape == shape_in_table(SHAPE_ACCESS));
    record.number = 1;
    record.field_types.count = 1;
    CHECK(vocabulary_add_kind(words, &record));
    CHECK(vocabulary_kind(words, 1)->shape != shape_in_table(SHAPE_ACCESS));
    vocabulary_free(words);
}
