// SPDX-License-Identifier: MIT
//
// Turns a call of the client into a finding.
#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "tools/findingtest/findingtest.h"

enum { TEXT_BYTES = 256 };

// Fills fields of any shape in their order: numbers with `numbers` as far as they go, texts with
// pieces of `text`, each of which ends in a byte 1 or the end.
static void fill(const FieldShape *shape, const u64 *numbers, u32 count, char *text,
                 AnyFields *ret_fields)
{
    u32 number = 0;
    for (u32 i = 0; shape && i < shape->count; i++) {
        if (shape->fields[i].type != FIELD_TEXT) {
            ret_fields->words[i] = number < count ? numbers[number] : 0;
            number++;
            continue;
        }
        ret_fields->words[i] = (u64)text;
        while (text && *text > 1)
            text++;
        if (text && *text == 1)
            *text++ = '\0';
        else
            text = NULL;
    }
}

u64 findingtest_make(ToolThread *thread, ToolCall *call)
{
    char text[TEXT_BYTES];
    // The number of loss records is that of the last one.
    const u64 numbers[] = {call->args[1], call->args[2], call->args[3], call->args[3]};
    u32 context = tool_context(thread, call->entry);
    bool has_text = call->args[4] && guest_read_string(call->args[4], text, sizeof(text)) >= 0;
    RelayPart part = {.kind = (u32)call->args[5] - 1, .context = context};
    RelayFinding finding = {
        .kind = (u32)call->args[0],
        .context = context,
        .part_count = call->args[5] ? 1 : 0,
        .parts = &part,
        .key = call->args[1],
    };
    fill(relay_kind_shape(finding.kind), numbers, 4, has_text ? text : NULL, &finding.fields);
    fill(relay_part_shape(part.kind), numbers, 3, NULL, &part.fields);
    return relay_finding(thread, &finding);
}
