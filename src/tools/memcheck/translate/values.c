// SPDX-License-Identifier: MIT
//
// See values.h.
#include "tools/memcheck/translate/values.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/translate.h"

// `pop` in place of `add rsp, 8`, which is longer: compilers put it behind calls, into a register
// that calls do not preserve. What it finds is often undefined, and would ride along.
bool values_only_discards(const PlanInsn *at)
{
    InsnForm room;
    if (at->insn->mnemonic != ZYDIS_MNEMONIC_POP)
        return false;
    const InsnForm *form = insn_form(at->insn, &room);
    const u32 kept = 1u << RBX | 1u << RBP | 1u << RSP | 1u << R12 | 1u << R13 | 1u << R14 |
                     1u << R15; // by functions, for those that call them
    return form->dst < GPR_COUNT && form->writes_dst && !(kept >> form->dst & 1) &&
           !lookahead_is_read(at->insn->pc + at->insn->len, form->dst);
}

bool masks_plan(Plan *plan, PlanInsn *at, const DefinednessStep *step)
{
    unsigned gpr;
    u64 kept;
    if (!definedness_masks(step, &gpr, &kept) || !at->flags_dead || !at->flags_die)
        return false;
    PlanItem *item = plan_add(plan, at, PLACE_VALUES, PLAN_MASK);
    item->offset = (u32)offsetof(Definedness, gpr) + 8 * gpr;
    item->bits = kept;
    item->members = MEMBER_GPR(gpr);
    return true;
}

static void plan_string(Plan *plan, PlanInsn *at)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    definedness_prepare(at->insn, step);
    if (plan->is_clean)
        mixed_settle(plan, at, step);
    plan_add_call(plan, at, PLACE_VALUES, access_string, step_kept(step));
    at->ends_facts = true;
}

static void plan_insn(Plan *plan, PlanInsn *at)
{
    if (at->count && step_is_repeated(at->insn))
        plan_string(plan, at);
    else if (!at->is_first && plan->values_matter && copies_plan(plan, at))
        return;
    else if (plan->is_clean)
        mixed_plan(plan, at);
    else
        dirty_plan(plan, at);
}

void plan_values(Plan *plan)
{
    MemberSet set = version_set(plan->version);
    plan->state = (PlanState){.current = plan->is_clean ? 0 : set, .exact = set != ~0ull};
    for (u32 i = 0; i < plan->count; i++) {
        PlanInsn *at = &plan->insns[i];
        plan_insn(plan, at);
        at->exit_set = plan->is_clean ? 0 : plan->state.current;
        at->exit_exact = plan->is_clean ? plan->state.current == 0 : plan->state.exact;
    }
}
