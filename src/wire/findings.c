// SPDX-License-Identifier: MIT
//
// Rows of findings.def by name, and values that have come over the wire.
#include "wire/findings.h"

#include <string.h>

const KindDescription *kind_of_id(const char *id)
{
    for (u32 i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kind_in_table(i)->id, id) == 0)
            return kind_in_table(i);
    }
    return NULL;
}

const PartDescription *part_of_id(const char *id)
{
    for (u32 i = 0; i < PART_COUNT; i++) {
        if (strcmp(part_in_table(i)->id, id) == 0)
            return part_in_table(i);
    }
    return NULL;
}

static bool is_same_field(const FieldDescription *a, const FieldDescription *b)
{
    const char *left = a->words ? a->words : "", *right = b->words ? b->words : "";

    return a->type == b->type && strcmp(a->name, b->name) == 0 && strcmp(left, right) == 0;
}

const FieldShape *shape_like(const FieldShape *shape)
{
    for (u32 i = 0; i < SHAPE_COUNT; i++) {
        const FieldShape *row = shape_in_table(i);
        bool is_same = row->count == shape->count && strcmp(row->name, shape->name) == 0;
        for (u32 k = 0; is_same && k < shape->count; k++)
            is_same = is_same_field(&row->fields[k], &shape->fields[k]);
        if (is_same)
            return row;
    }
    return NULL;
}

void fields_decode(const FieldShape *shape, const u64 *words, size_t count, const char *texts,
                   size_t size, FieldValues *ret_values)
{
    FieldValues values = {.shape = shape, .count = (u32)min_u64(count, shape->count)};

    for (u32 i = 0; i < values.count; i++) {
        u64 word = words[i];
        if (shape->fields[i].type == FIELD_TEXT)
            word = word && word - 1 < size ? (u64)(texts + word - 1) : 0;
        values.any.words[i] = word;
    }
    *ret_values = values;
}

FieldValues fields_of(ShapeNumber shape, AnyFields fields)
{
    const FieldShape *row = shape_in_table(shape);

    return (FieldValues){.shape = row, .count = row->count, .any = fields};
}
