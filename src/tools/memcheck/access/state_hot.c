// SPDX-License-Identifier: MIT
//
// The memory of xsave, fxsave and their like, which is not one operand: how much of it is touched
// depends on registers, and what is loaded on what is there.
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

static u32 spans_of(ToolThread *thread, const DefinednessStep *step, GuestAddr address,
                    StateSpan ret[STATE_SPANS_MAX])
{
    return definedness_state_spans(step, thread->gpr, address, ret);
}

static u32 extent(const StateSpan *span, u32 count)
{
    u32 end = 0;
    for (u32 i = 0; i < count; i++)
        end = span[i].at + span[i].size > end ? span[i].at + span[i].size : end;
    return end;
}

bool access_state_is_good(ToolThread *thread, const DefinednessStep *step, GuestAddr address)
{
    StateSpan span[STATE_SPANS_MAX];
    u32 count = spans_of(thread, step, address, span);
    for (u32 i = 0; i < count; i++) {
        GuestAddr start = address + span[i].at;
        if (shadow_first_noaccess(thread, start, span[i].size) == start + span[i].size)
            continue;
        error_access(thread, address, extent(span, count), definedness_state_saves(step));
        return false;
    }
    return true;
}

void access_state(ToolThread *thread, u64 arg, GuestAddr address)
{
    const DefinednessStep *step = (const DefinednessStep *)arg;
    StateSpan span[STATE_SPANS_MAX];
    bool good = access_state_is_good(thread, step, address);
    u32 count = spans_of(thread, step, address, span);
    for (u32 i = 0; i < count; i++) {
        GuestAddr start = address + span[i].at, end = start + span[i].size;
        if (!shadow_is_mapped(start, span[i].size))
            continue;
        if (definedness_state_saves(step) || !memcheck_options->undef_value_errors) {
            shadow_define_touchable(thread, start, span[i].size);
        } else if (good && shadow_first_undefined(start, span[i].size) < end) {
            tool_fail_guard(thread);
            return;
        }
    }
}
