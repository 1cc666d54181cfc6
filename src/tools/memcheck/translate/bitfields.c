// SPDX-License-Identifier: MIT
//
// See values.h. Bit fields: of what an instruction loads some bits are looked at, and the others
// may be undefined for ever. Where a guard of all of them often fails (often.h) one of those takes
// its place (docs/design/mixed-blocks.md).
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/values.h"

// The bits of a register that are kept by the first instruction that touches it, if that masks it.
static bool kept_bits(const Plan *plan, const PlanInsn *loads, unsigned member, u64 *ret_kept)
{
    enum { INSNS_MAX = 12 };
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    for (const PlanInsn *at = loads + 1; at < plan_end(plan) && at - loads <= INSNS_MAX; at++) {
        unsigned gpr;
        if (at->insn->lowering != LOWER_COPY)
            return false;
        StepGist gist = step_gist(at->insn);
        if (!((gist.reads | gist.writes) >> member & 1))
            continue;
        definedness_prepare(at->insn, step);
        return definedness_masks(step, &gpr, ret_kept) && gpr == member;
    }
    return false;
}

static bool find_bits(const Plan *plan, const PlanInsn *at, u64 *ret_bits)
{
    const ToolInsn *insn = at->insn;
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    InsnForm form;
    DefinednessMove move;
    if (insn->mnemonic == ZYDIS_MNEMONIC_TEST && insn_form(insn, &form)->has_imm) {
        *ret_bits = (u64)insn_imm(insn);
        return true;
    }
    definedness_prepare(insn, step);
    return definedness_move(step, &move) && move.from == MOVE_MEMORY &&
           move.to_member < GPR_COUNT && move.written == 8 &&
           kept_bits(plan, at, move.to_member, ret_bits);
}

// Each byte has one: what may not be touched is undefined as a whole, and is noticed.
static bool is_in_all_bytes(u64 bits, u32 size)
{
    for (u32 i = 0; i < size; i++) {
        if (!(u8)(bits >> 8 * i))
            return false;
    }
    return true;
}

bool bitfields_plan(Plan *plan, PlanInsn *at)
{
    u64 bits;
    const ToolAccess *access = &at->accesses[0];
    u32 size = access->size_bytes;
    if (access->writes || at->is_within || size > 8 || (size & (size - 1)) || !at->flags_dead ||
        often_fails_still(at->insn->pc) || !tool_shadow_can_check(plan->block, access) ||
        !find_bits(plan, at, &bits) || !is_in_all_bytes(bits, size) ||
        (size == 8 && (i64)bits != (i32)bits))
        return false;
    check_below(plan, at, access, PLACE_VALUES);
    plan_add_access(plan, at, PLACE_VALUES, PLAN_GUARD_BITS, access)->bits = bits;
    return true;
}
