// SPDX-License-Identifier: MIT
//
// What findings can be, as the engine has described it: copies of the descriptions, with defaults
// in place of what is not there. They come over the wire and may be anything (W3); a shape that is
// exactly one of the table becomes that one, so that its fields can be read by name.
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "monitor/report/report.h"

enum { ENTRIES_MAX = 1024, TEXT_MAX = 4096 };

struct Vocabulary {
    Arena arena;
    Vec kinds, parts; // pointers to descriptions, by number
};

Vocabulary *vocabulary_new(void)
{
    Vocabulary *words = calloc(1, sizeof(*words));

    if (!words)
        return NULL;
    vec_init(&words->kinds, sizeof(KindDescription *));
    vec_init(&words->parts, sizeof(PartDescription *));
    return words;
}

void vocabulary_free(Vocabulary *words)
{
    if (!words)
        return;
    vec_free(&words->kinds);
    vec_free(&words->parts);
    arena_free(&words->arena);
    free(words);
}

// A copy as one line; NULL for "".
static const char *keep(Vocabulary *words, WireText text)
{
    size_t size = min_u64(strnlen(text.data, text.size), TEXT_MAX);
    char *copy = size ? arena_alloc(&words->arena, size + 1, 1) : NULL;

    if (!copy)
        return NULL;
    for (size_t i = 0; i < size; i++)
        copy[i] = (u8)text.data[i] < ' ' || text.data[i] == 0x7f ? '?' : text.data[i];
    copy[size] = '\0';
    return copy;
}

static const char *keep_or(Vocabulary *words, WireText text, const char *otherwise)
{
    const char *kept = keep(words, text);
    return kept ? kept : otherwise;
}

// The text behind `at`, which moves on; what is beyond the end is "".
static WireText next_text(WireText texts, size_t *at)
{
    const char *begin = texts.data + min_u64(*at, texts.size);
    size_t size = strnlen(begin, texts.size - (size_t)(begin - texts.data));

    *at = (size_t)(begin - texts.data) + size + 1;
    return (WireText){begin, size};
}

static const FieldShape *keep_shape(Vocabulary *words, WireText name, WireWords types,
                                    WireText names)
{
    u32 count = (u32)min_u64(types.count, FIELDS_MAX);
    FieldDescription *fields = arena_alloc(&words->arena, (count + 1) * sizeof(*fields), 8);
    FieldShape *shape = arena_alloc(&words->arena, sizeof(*shape), 8);
    size_t at = 0;

    if (!fields || !shape)
        return shape_in_table(SHAPE_NOTHING);
    for (u32 i = 0; i < count; i++) {
        fields[i].type = types.data[i] < FIELD_TYPES ? (FieldType)types.data[i] : FIELD_NUMBER;
        fields[i].name = keep_or(words, next_text(names, &at), "?");
        fields[i].words = keep(words, next_text(names, &at));
    }
    *shape = (FieldShape){keep_or(words, name, "?"), fields, count};
    const FieldShape *known = shape_like(shape);
    return known ? known : shape;
}

static const char *level_of(const char *word)
{
    static const char *const levels[] = {"error", "warning", "note"};

    for (size_t i = 0; word && i < ARRAY_LEN(levels); i++) {
        if (strcmp(word, levels[i]) == 0)
            return levels[i];
    }
    return levels[0];
}

bool vocabulary_add_kind(Vocabulary *words, const Wire_describe_kind *record)
{
    KindDescription *kind = arena_alloc(&words->arena, sizeof(*kind), 8);
    const char *id = keep(words, record->id);

    if (!kind || !id || record->number != words->kinds.count || record->number >= ENTRIES_MAX)
        return false;
    *kind = (KindDescription){
        .id = id,
        .family = keep_or(words, record->family, "unknown"),
        .xml = keep_or(words, record->xml, id),
        .xml_4 = keep(words, record->xml_4),
        .suppression = keep_or(words, record->suppression, id),
        .suppression_extra = keep(words, record->suppression_extra),
        .leak_kind = keep(words, record->leak_kind),
        .level = level_of(keep(words, record->level)),
        .title = keep_or(words, record->title, id),
        .sentence = keep_or(words, record->sentence, id),
        .help = keep(words, record->help),
        .shape = keep_shape(words, record->shape, record->field_types, record->field_names),
        .number = (u32)record->number,
    };
    return vec_push(&words->kinds, &kind);
}

bool vocabulary_add_part(Vocabulary *words, const Wire_describe_part *record)
{
    PartDescription *part = arena_alloc(&words->arena, sizeof(*part), 8);
    const char *id = keep(words, record->id);

    if (!part || !id || record->number != words->parts.count || record->number >= ENTRIES_MAX)
        return false;
    *part = (PartDescription){
        .id = id,
        .sentence = keep_or(words, record->sentence, ""),
        .place = keep(words, record->place),
        .shape = keep_shape(words, record->shape, record->field_types, record->field_names),
        .number = (u32)record->number,
    };
    return vec_push(&words->parts, &part);
}

const KindDescription *vocabulary_kind(const Vocabulary *words, u64 number)
{
    if (!words)
        return number < KIND_COUNT ? kind_in_table((u32)number) : NULL;
    if (number >= words->kinds.count)
        return NULL;
    return *(KindDescription **)vec_at((Vec *)&words->kinds, (size_t)number);
}

const PartDescription *vocabulary_part(const Vocabulary *words, u64 number)
{
    if (!words)
        return number < PART_COUNT ? part_in_table((u32)number) : NULL;
    if (number >= words->parts.count)
        return NULL;
    return *(PartDescription **)vec_at((Vec *)&words->parts, (size_t)number);
}
