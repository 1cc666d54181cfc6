// SPDX-License-Identifier: MIT
//
// See bitfields.h.
#include "tools/memcheck/translate/bitfields.h"

#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/copies.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"

// The bits of a register that are kept by the first instruction that touches it, if that masks it.
static bool kept_bits(const ToolInsn *insn, const ToolInsn *end, unsigned member, u64 *ret_kept)
{
    enum { INSNS_MAX = 12 };
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    for (const ToolInsn *at = insn + 1; at < end && at - insn <= INSNS_MAX; at++) {
        unsigned gpr;
        if (at->lowering != LOWER_COPY)
            return false;
        StepGist gist = step_gist(at);
        if (!((gist.reads | gist.writes) >> member & 1))
            continue;
        definedness_prepare(at, step);
        return definedness_masks(step, &gpr, ret_kept) && gpr == member;
    }
    return false;
}

static bool find_bits(const ToolInsn *insn, const ToolInsn *end, u64 *ret_bits)
{
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
           kept_bits(insn, end, move.to_member, ret_bits);
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

bool bitfields_guard(ToolBlock *block, const ToolInsn *insn, const ToolInsn *end,
                     const ToolAccess *access)
{
    u64 bits;
    u32 size = access->size_bytes;
    if (access->writes || copies_is_within(insn) || size > 8 || (size & (size - 1)) ||
        !tool_flags_are_dead(block) || often_fails_still(insn->pc) ||
        !tool_shadow_can_check(block, access) || !find_bits(insn, end, &bits) ||
        !is_in_all_bytes(bits, size) || (size == 8 && (i64)bits != (i32)bits))
        return false;
    check_below(block, insn, access);
    tool_shadow_guard_bits(block, access, (u32)bits);
    return true;
}
