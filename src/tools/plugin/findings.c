// SPDX-License-Identifier: MIT
//
// Kinds of findings that a loaded tool brings, and its findings.
#include <stdlib.h>
#include <string.h>

#include "engine/relay/relay.h"
#include "tools/plugin/plugin_internal.h"

_Static_assert((int)MUNINN_FIELD_TEXT == (int)FIELD_TEXT, "the same types in the same order");
_Static_assert((int)MUNINN_FIELDS_MAX == (int)FIELDS_MAX, "a shape has room for them");

enum { KINDS_MAX = 256, PARTS_OF_FINDING_MAX = 8 };

static KindDescription kinds[KINDS_MAX];
static PartDescription parts[KINDS_MAX];

// What the tool gave may be gone when it is needed.
static const char *copy(const char *text)
{
    char *own = text ? strdup(text) : NULL;
    if (text && !own)
        plugin_refuse("no memory for its kinds of findings");
    return own;
}

static const FieldShape *copy_shape(const char *id, const MuninnField *fields, size_t count)
{
    if (count == 0)
        return NULL;
    if (count > MUNINN_FIELDS_MAX)
        plugin_refuse("%s: %zu fields; %d is the most", id, count, MUNINN_FIELDS_MAX);
    FieldDescription *own = calloc(count, sizeof(*own));
    FieldShape *shape = calloc(1, sizeof(*shape));
    if (!own || !shape)
        plugin_refuse("no memory for its kinds of findings");
    for (size_t i = 0; i < count; i++)
        own[i] = (FieldDescription){
            .name = copy(fields[i].name),
            .type = (FieldType)fields[i].type,
            .words = copy(fields[i].words),
        };
    *shape = (FieldShape){.name = copy(id), .fields = own, .count = (u32)count};
    return shape;
}

uint32_t muninn_finding_kind(const MuninnFindingKind *kind)
{
    plugin_needs_start("muninn_finding_kind");
    if (!kind->id || kind_of_id(kind->id))
        plugin_refuse("muninn_finding_kind: the id %s is taken", kind->id ? kind->id : "NULL");
    if (plugin_tool.kind_count == KINDS_MAX)
        plugin_refuse("muninn_finding_kind: no more than %d kinds", KINDS_MAX);
    kinds[plugin_tool.kind_count] = (KindDescription){
        .id = copy(kind->id),
        .family = copy(plugin_description->name),
        .suppression = copy(kind->suppression),
        .level = copy(kind->level),
        .title = copy(kind->title),
        .sentence = copy(kind->sentence ? kind->sentence : kind->title),
        .help = copy(kind->help),
        .shape = copy_shape(kind->id, kind->fields, kind->field_count),
    };
    plugin_tool.kinds = kinds;
    plugin_tool.needs |= TOOL_NEEDS_MONITOR;
    plugin_tool.gives |= TOOL_GIVES_ERRORS;
    return KIND_COUNT + plugin_tool.kind_count++;
}

uint32_t muninn_part_kind(const MuninnPartKind *kind)
{
    plugin_needs_start("muninn_part_kind");
    if (!kind->id || part_of_id(kind->id))
        plugin_refuse("muninn_part_kind: the id %s is taken", kind->id ? kind->id : "NULL");
    if (plugin_tool.part_count == KINDS_MAX)
        plugin_refuse("muninn_part_kind: no more than %d kinds of parts", KINDS_MAX);
    parts[plugin_tool.part_count] = (PartDescription){
        .id = copy(kind->id),
        .sentence = copy(kind->sentence ? kind->sentence : ""),
        .shape = copy_shape(kind->id, kind->fields, kind->field_count),
    };
    plugin_tool.parts = parts;
    return PART_COUNT + plugin_tool.part_count++;
}

static void fill(const FieldShape *shape, const MuninnValue *values, AnyFields *ret_fields)
{
    for (u32 i = 0; shape && values && i < shape->count; i++)
        ret_fields->words[i] = values[i].number;
}

bool muninn_finding(MuninnThread *thread, uint32_t kind, uint32_t context, uint64_t key,
                    const MuninnValue *values, const MuninnPart *told, size_t part_count)
{
    RelayPart own[PARTS_OF_FINDING_MAX];
    RelayFinding finding = {.kind = kind, .context = context, .key = key, .parts = own};
    if (kind < KIND_COUNT || kind - KIND_COUNT >= plugin_tool.kind_count)
        plugin_refuse("muninn_finding: there is no kind %u", kind);
    if (part_count > PARTS_OF_FINDING_MAX)
        plugin_refuse("muninn_finding: %zu parts; %d is the most", part_count,
                      PARTS_OF_FINDING_MAX);
    fill(relay_kind_shape(kind), values, &finding.fields);
    for (size_t i = 0; i < part_count; i++) {
        if (told[i].kind < PART_COUNT || told[i].kind - PART_COUNT >= plugin_tool.part_count)
            plugin_refuse("muninn_finding: there is no kind of parts %u", told[i].kind);
        own[i] = (RelayPart){.kind = told[i].kind, .context = told[i].context};
        fill(relay_part_shape(told[i].kind), told[i].values, &own[i].fields);
    }
    finding.part_count = (u32)part_count;
    return relay_finding(thread_of(thread), &finding) == VERDICT_SHOWN;
}
