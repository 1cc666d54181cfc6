// SPDX-License-Identifier: MIT
//
// From an error in a string function to a finding, with that function as the innermost frame.
#include "engine/relay/relay.h"
#include "tools/memcheck/ranges.h"
#include "tools/memcheck/strings_call.h"

static u32 context_of(StringCall *s)
{
    return tool_context(s->thread, s->call->entry);
}

// Of the undefined argument, or of the first undefined byte that an argument points to.
static Origin origin_of(StringCall *s)
{
    static const u8 registers[] = {RDI, RSI, RDX};
    const Definedness *d = &memcheck_thread(s->thread)->defined;
    for (size_t i = 0; i < ARRAY_LEN(registers); i++) {
        if (d->set & MEMBER_GPR(registers[i]) && d->gpr[registers[i]])
            return origins_of_member(s->thread, registers[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        GuestAddr at = s->call->args[i];
        u64 size = PAGE_SIZE - at % PAGE_SIZE;
        if (!shadow_is_mapped(at, size))
            continue;
        GuestAddr first = shadow_first_undefined(at, size);
        if (first < at + size && shadow_first_noaccess(s->thread, first, 1) != first)
            return origins_of_memory(s->thread, first);
    }
    return 0;
}

void string_report_access(StringCall *s, GuestAddr address, bool is_write)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    if (ranges_is_ignored(address))
        return;
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
    RelayPart part;
    __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_UNINIT_CONDITION,
        .part_count = origins_part(origin_of(s), &part),
        .parts = &part,
        .context = context_of(s),
    });
}

void string_report_value(StringCall *s)
{
    enum { POINTER_BYTES = 8 };
    if (!memcheck_options->undef_value_errors)
        return;
    RelayPart part;
    __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    relay_finding(s->thread, &(RelayFinding){
        .kind = KIND_UNINIT_VALUE,
        .part_count = origins_part(origin_of(s), &part),
        .parts = &part,
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
