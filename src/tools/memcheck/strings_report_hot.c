// SPDX-License-Identifier: MIT
//
// From an error in a string function to a finding, with that function as the innermost frame.
#include "engine/relay/relay.h"
#include "tools/memcheck/strings_call.h"

static u32 context_of(StringCall *s)
{
    return tool_context(s->thread, s->call->entry);
}

void string_report_access(StringCall *s, GuestAddr address, bool is_write)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(s->thread, &(RelayFinding){
        .kind = is_write ? KIND_INVALID_WRITE : KIND_INVALID_READ,
        .value_count = 2,
        .values = {s->element, address},
        .context = context_of(s),
        .part_count = describe_address(s->thread, address, parts),
        .parts = parts,
        .key = s->element,
    });
}

void string_report_condition(StringCall *s)
{
    if (!memcheck_options->undef_value_errors)
        return;
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_UNINIT_CONDITION,
        .context = context_of(s),
    });
}

void string_report_value(StringCall *s)
{
    enum { POINTER_BYTES = 8 };
    if (!memcheck_options->undef_value_errors)
        return;
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_UNINIT_VALUE,
        .value_count = 1,
        .values = {POINTER_BYTES},
        .context = context_of(s),
        .key = POINTER_BYTES,
    });
}

void string_report_overlap(StringCall *s, GuestAddr to, GuestAddr from, u64 count)
{
    bool counted = s->data & (STRING_LIMIT_1 | STRING_LIMIT_2);
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_OVERLAP,
        .value_count = counted ? 3 : 2,
        .values = {to, from, count},
        .text = s->call->function->name,
        .context = context_of(s),
    });
}
