// SPDX-License-Identifier: MIT
//
// Turns a call of the client into a finding.
#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "tools/findingtest/findingtest.h"

enum { TEXT_BYTES = 256 };

u64 findingtest_make(ToolThread *thread, ToolCall *call)
{
    char text[TEXT_BYTES];
    u32 context = tool_context(thread, call->entry);
    bool has_text = call->args[4] && guest_read_string(call->args[4], text, sizeof(text)) >= 0;
    RelayPart part = {
        .kind = (u32)call->args[5] - 1,
        .value_count = 3,
        .values = {call->args[1], call->args[2], call->args[3]},
        .context = context,
    };
    // The number of loss records is that of the last one.
    RelayFinding finding = {
        .kind = (u32)call->args[0],
        .value_count = 6,
        .values = {call->args[1], call->args[2], call->args[3], call->args[3]},
        .text = has_text ? text : NULL,
        .context = context,
        .part_count = call->args[5] ? 1 : 0,
        .parts = &part,
        .key = call->args[1],
    };
    return relay_finding(thread, &finding);
}
