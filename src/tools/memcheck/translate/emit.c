// SPDX-License-Identifier: MIT
//
// See plan.h: the code that a plan says.
#include <string.h>

#include "tools/memcheck/translate/plan.h"
#include "tools/memcheck/translate/steps.h"

static u32 state_of(unsigned member)
{
    return member < 16   ? (u32)offsetof(Definedness, gpr) + 8 * member
           : member < 32 ? (u32)offsetof(Definedness, flags)
                         : (u32)offsetof(Definedness, vector) + 64 * (member - 32);
}

static void emit_forget(ToolBlock *block, MemberSet members)
{
    for (MemberSet left = members; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        unsigned words = member < 32 ? 1 : 8;
        for (unsigned i = 0; i < words; i++)
            tool_state_store(block, state_of(member) + 8 * i, 0);
    }
    tool_state_and(block, ~members);
}

// What only bits beyond a scalar's make undefined is the temporary of a copy, dead by now.
static void emit_forget_copies(ToolBlock *block, MemberSet vectors)
{
    for (MemberSet left = vectors; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        CodePtr site = tool_state_if(block, state_of(member) + 8);
        emit_forget(block, 1ull << member);
        tool_state_end_if(block, site);
    }
}

static void emit_call(ToolBlock *block, const PlanItem *item)
{
    for (u32 left = item->step.gprs; left; left &= left - 1)
        tool_store_gpr(block, (unsigned)__builtin_ctz(left));
    if (item->has_access)
        tool_call_access(block, &item->access, item->step.fn, item->step.arg);
    else
        tool_call(block, item->step.fn, item->step.arg);
}

static void emit_copy(const Plan *plan, const PlanItem *item)
{
    tool_keep_whole(plan->block, plan->insns[item->last].insn);
    tool_shadow_guards_step(plan->block, &plan->copied[item->copied], item->copied_count,
                            item->members, &item->step);
}

static void emit_item(Plan *plan, PlanItem *item)
{
    ToolBlock *block = plan->block;
    const ToolAccess *access = item->has_access ? &item->access : NULL;
    switch ((PlanKind)item->kind) {
    case PLAN_NOTHING: return;
    case PLAN_COUNT: tool_count(block, item->stat, 1); return;
    case PLAN_PREFETCH: tool_shadow_prefetch(block, access); return;
    case PLAN_FILL: tool_shadow_fill_stack(block, item->disp, item->size, 0xff); return;
    case PLAN_CALL: emit_call(block, item); return;
    case PLAN_STEP: step_emit(block, &item->step, access); return;
    case PLAN_GUARD: tool_shadow_guard(block, access); return;
    case PLAN_GUARD_EARLY: tool_shadow_guard_early(block, access); return;
    case PLAN_GUARD_BITS: tool_shadow_guard_bits(block, access, (u32)item->bits); return;
    case PLAN_GUARD_LOAD:
        tool_guard_end(block, tool_shadow_guard_step(block, access, &item->step));
        return;
    case PLAN_GUARD_STORE: tool_shadow_guard_store(block, access); return;
    case PLAN_CLEAR: tool_shadow_clear(block, access); return;
    case PLAN_STEP_IF:
        item->first_guard = (u16)tool_shadow_guard_step(block, access, &item->step);
        return;
    case PLAN_STEP_IF_STATE:
        item->first_guard = (u16)tool_state_guard_step(block, item->members, access, &item->step);
        return;
    case PLAN_JOIN: tool_guard_end(block, plan->items[item->opened].first_guard); return;
    case PLAN_LEAVE_IF_STATE: tool_state_guard(block, item->members); return;
    case PLAN_COPY: emit_copy(plan, item); return;
    case PLAN_FORGET: emit_forget(block, item->members); return;
    case PLAN_FORGET_COPIES: emit_forget_copies(block, item->members); return;
    case PLAN_MASK: tool_state_mask(block, item->offset, item->bits, ~item->members); return;
    }
}

void plan_emit(Plan *plan, const ToolInsn *insn)
{
    plan->emitted = (u32)(insn - plan->insns[0].insn);
    const PlanInsn *at = &plan->insns[plan->emitted];
    for (u32 left = at->places; left; left &= left - 1) {
        for (PlanItem *item = plan_first(plan, at, (PlanPlace)__builtin_ctz(left)); item;
             item = plan_next(plan, item))
            emit_item(plan, item);
    }
}
