// SPDX-License-Identifier: MIT
//
// The tables of findings.def, and fields as a record carries them. General registers only: a tool's
// slow path calls this from the cache.
#include "wire/findings.h"

#define FIELD(type_, name_, about) {.name = #name_, .type = FIELD_##type_},
#define CHOICE(name_, words_, about) {.name = #name_, .type = FIELD_CHOICE, .words = words_},
#define SHAPE(NAME, name, Name, ...) \
    static const FieldDescription fields_of_##name[] = {__VA_ARGS__};
#include "wire/findings.def"
#undef FIELD
#undef CHOICE

// F1
#define SHAPE(NAME, name, Name, ...)                                                   \
    _Static_assert(sizeof(Fields##Name) == sizeof(u64) * ARRAY_LEN(fields_of_##name) && \
                   ARRAY_LEN(fields_of_##name) <= FIELDS_MAX, #Name);
#include "wire/findings.def"

static const FieldShape shapes[] = {
#define SHAPE(NAME, name, Name, ...) \
    [SHAPE_##NAME] = {#name, fields_of_##name, ARRAY_LEN(fields_of_##name)},
#include "wire/findings.def"
};

#define MEMCHECK .family = "Memcheck"
#define CORE .family = "CoreError"
#define XML(name) .xml = name, .xml_4 = name
static const KindDescription kinds[KIND_COUNT] = {
#define KIND(NAME, shape_, ...) \
    [KIND_##NAME] = {.number = KIND_##NAME, .shape = &shapes[SHAPE_##shape_], __VA_ARGS__},
#include "wire/findings.def"
};

static const PartDescription parts[PART_COUNT] = {
#define PART(NAME, shape_, ...) \
    [PART_##NAME] = {.number = PART_##NAME, .shape = &shapes[SHAPE_##shape_], __VA_ARGS__},
#include "wire/findings.def"
};

const FieldShape *shape_in_table(u32 number)
{
    return number < SHAPE_COUNT ? &shapes[number] : NULL;
}

const KindDescription *kind_in_table(u32 number)
{
    return number < KIND_COUNT ? &kinds[number] : NULL;
}

const PartDescription *part_in_table(u32 number)
{
    return number < PART_COUNT ? &parts[number] : NULL;
}

// As much of the text as there is room for, with its zero. Returns where the next one begins.
static size_t put_text(const char *text, char *texts, size_t at)
{
    while (*text && at < FIELD_TEXTS_BYTES - 1)
        texts[at++] = *text++;
    texts[at] = '\0';
    return at + 1;
}

size_t fields_encode(const FieldShape *shape, const AnyFields *fields, u64 ret_words[FIELDS_MAX],
                     char ret_texts[FIELD_TEXTS_BYTES])
{
    size_t end = 0;

    for (u32 i = 0; i < shape->count; i++) {
        ret_words[i] = fields->words[i];
        if (shape->fields[i].type != FIELD_TEXT)
            continue;
        const char *text = (const char *)fields->words[i];
        bool is_there = text && end < FIELD_TEXTS_BYTES;
        ret_words[i] = is_there ? end + 1 : 0;
        if (is_there)
            end = put_text(text, ret_texts, end);
    }
    if (end == 0) {
        ret_texts[0] = '\0';
        return 0;
    }
    return end - 1;
}
