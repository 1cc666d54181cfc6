// SPDX-License-Identifier: MIT
//
// From an error in a string function to a finding, with that function as the innermost frame.
#include "engine/relay/relay.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/strings/call.h"
#include "tools/memcheck/strings/strings.h"

static u32 context_of(StringCall *s)
{
    return tool_context(s->thread, s->call->named_at);
}

void string_report_access(StringCall *s, GuestAddr address, bool is_write)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(s->thread, &(RelayFinding){
        .kind = is_write ? KIND_INVALID_WRITE : KIND_INVALID_READ,
        .access = {.size = s->element, .address = address},
        .context = context_of(s),
        .part_count = describe_address(s->thread, address, parts),
        .parts = parts,
        .key = s->element,
    });
}

static Origin origin_of(StringCall *s, unsigned argument)
{
    if (argument != STRING_ELEMENT)
        return origins_of_member(s->thread, string_argument_register[argument]);
    GuestAddr at = s->undefined_at;
    return at ? origins_of_memory(s->thread, shadow_first_undefined(at, s->element)) : ORIGIN_NONE;
}

static void report_undefined(StringCall *s, u32 kind, u64 size, unsigned argument)
{
    RelayPart part;
    if (!memcheck_options->undef_value_errors)
        return;
    __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    relay_finding(s->thread, &(RelayFinding){
        .kind = kind,
        .value = {.size = size},
        .context = context_of(s),
        .part_count = origins_part(origin_of(s, argument), &part),
        .parts = &part,
        .key = size,
    });
}

void string_report_condition(StringCall *s, unsigned argument)
{
    report_undefined(s, KIND_UNINIT_CONDITION, 0, argument);
}

void string_report_value(StringCall *s, unsigned argument)
{
    enum { POINTER_BYTES = 8 };
    report_undefined(s, KIND_UNINIT_VALUE, POINTER_BYTES, argument);
}

void string_note_origins(StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    if (memcheck_options->track_origins)
        origins_copied(s->thread, to, from, size);
}

void string_report_overlap(StringCall *s, GuestAddr to, GuestAddr from, u64 count,
                           const char *name)
{
    bool counted = s->data & (STRING_LIMIT_1 | STRING_LIMIT_2);
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_OVERLAP,
        .overlap = {.to = to, .from = from, .count = counted ? count : 0, .function = name},
        .context = context_of(s),
    });
}
