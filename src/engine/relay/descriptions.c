// SPDX-License-Identifier: MIT
//
// Tells the monitor, before anything else, which kinds of findings and parts there are: those of
// the table, and those that the tool has brought. The monitor knows no others.
#include <string.h>

#include "engine/relay/relay_internal.h"
#include "engine/toolapi/toolapi.h"

enum { NAMES_BYTES = 4096 };

typedef struct ShapeWords {
    u64 types[FIELDS_MAX];
    size_t count;
    char names[NAMES_BYTES];
    size_t size;
} ShapeWords;

static WireText text_of(const char *text)
{
    return (WireText){text ? text : "", text ? strnlen(text, FIELD_TEXTS_BYTES) : 0};
}

// What does not fit is a field without a name.
static void add_name(ShapeWords *words, const char *name)
{
    size_t size = name ? strlen(name) : 0;
    if (words->size + size + 1 >= NAMES_BYTES)
        size = 0;
    memcpy(words->names + words->size, name ? name : "", size);
    words->size = min_u64(words->size + size + 1, NAMES_BYTES - 1);
}

static const char *describe_shape(const FieldShape *shape, ShapeWords *ret_words)
{
    memset(ret_words, 0, sizeof(*ret_words));
    for (u32 i = 0; shape && i < shape->count && i < FIELDS_MAX; i++) {
        ret_words->types[ret_words->count++] = shape->fields[i].type;
        add_name(ret_words, shape->fields[i].name);
        add_name(ret_words, shape->fields[i].words);
    }
    return shape ? shape->name : "nothing";
}

static void put_kind(WireProducer *producer, u32 number, const KindDescription *kind)
{
    ShapeWords words;
    const char *shape = describe_shape(kind->shape, &words);
    wire_put_describe_kind(producer, &(Wire_describe_kind){
        .number = number,
        .id = text_of(kind->id),
        .family = text_of(kind->family),
        .xml = text_of(kind->xml),
        .xml_4 = text_of(kind->xml_4),
        .suppression = text_of(kind->suppression),
        .suppression_extra = text_of(kind->suppression_extra),
        .leak_kind = text_of(kind->leak_kind),
        .level = text_of(kind->level),
        .title = text_of(kind->title),
        .sentence = text_of(kind->sentence),
        .help = text_of(kind->help),
        .shape = text_of(shape),
        .field_types = {words.types, words.count},
        .field_names = {words.names, words.size},
    });
}

static void put_part(WireProducer *producer, u32 number, const PartDescription *part)
{
    ShapeWords words;
    const char *shape = describe_shape(part->shape, &words);
    wire_put_describe_part(producer, &(Wire_describe_part){
        .number = number,
        .id = text_of(part->id),
        .sentence = text_of(part->sentence),
        .place = text_of(part->place),
        .shape = text_of(shape),
        .field_types = {words.types, words.count},
        .field_names = {words.names, words.size},
    });
}

void relay_put_descriptions(WireProducer *producer)
{
    for (u32 i = 0; i < KIND_COUNT; i++)
        put_kind(producer, i, kind_in_table(i));
    for (u32 i = 0; i < tool->kind_count; i++)
        put_kind(producer, KIND_COUNT + i, &tool->kinds[i]);
    for (u32 i = 0; i < PART_COUNT; i++)
        put_part(producer, i, part_in_table(i));
    for (u32 i = 0; i < tool->part_count; i++)
        put_part(producer, PART_COUNT + i, &tool->parts[i]);
}
