// SPDX-License-Identifier: MIT
//
// See mixed.h.
#include "tools/memcheck/translate/mixed.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/bitfields.h"
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/translate.h"

// Under the engine lock, for the block that is being made.
static MemberSet current;         // members that may be undefined before the next instruction
static MemberSet low;             // of these: vectors whose low 16 bytes alone may be undefined
static const ToolInsn *block_end; // behind its last instruction

void mixed_begin(const ToolInsn *end)
{
    current = low = 0;
    block_end = end;
}

bool mixed_is_settled(void)
{
    return current == 0;
}

MemberSet *mixed_current(void)
{
    return &current;
}

static void forget_if(ToolBlock *block, MemberSet members, const ToolStep *step)
{
    if (members)
        tool_guard_end(block, tool_state_guard_step(block, members, NULL, step));
}

void mixed_settle(ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step)
{
    bool is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    bool is_return = insn->lowering == LOWER_RET;
    MemberSet dead = is_call ? ACCESS_DEAD_AT_CALL : is_return ? ACCESS_DEAD_AT_RETURN : 0;
    MemberSet scalars = is_call ? 0xffull << 32 : MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    if (reads & current)
        dead = 0;
    forget_if(block, current & dead, &(ToolStep){.fn = access_call, .arg = is_return});
    current &= ~dead | scalars;
    if (current && !is_call && !is_return) {
        MemberSet passed;
        dead = lookahead_dead(insn->pc, current, low, &passed);
        forget_if(block, dead, &(ToolStep){.fn = access_forget, .arg = dead});
        forget_if(block, passed, &(ToolStep){.fn = access_forget_copies, .arg = passed});
        current &= ~dead;
    }
    if (current)
        tool_state_guard(block, current);
    current = low = 0;
}

// A branch needs the flags that are made before it: what is to be tested is tested before that.
static bool is_before_branch(const ToolBlock *block, const ToolInsn *insn)
{
    return insn + 1 < block_end && insn[1].lowering == LOWER_JCC && tool_flags_are_dead(block);
}

static void note_written(const ToolInsn *insn, const DefinednessStep *step)
{
    DefinednessMove move;
    MemberSet writes = definedness_writes(step), wide = current & ~low;
    low &= ~writes;
    if (definedness_move(step, &move) && move.to_member >= 32 && move.written <= 16)
        low |= writes & MEMBERS_VECTOR & ~wide;
    current |= step_leaves(insn, step);
}

bool mixed_insert(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                  unsigned count)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    bool often = count && accesses[0].reads && often_fails(insn->pc);
    if (!current && !often)
        return false;
    if (insn->lowering == LOWER_JMP && insn + 1 < block_end)
        return true; // it is followed
    definedness_prepare(insn, step);
    if (!step_is_possible(block, insn, step, accesses, count)) {
        mixed_settle(block, insn, step);
        return false;
    }
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    MemberSet writes = definedness_writes(step), touched = (reads | writes) & current;
    if (!touched && !often) {
        if (is_before_branch(block, insn))
            mixed_settle(block, insn, step);
        return false;
    }
    if (!often && step_masks_inline(block, step))
        return true;
    if (!(touched & ~step_overwrites(step, low)) &&
        (!often || (count == 1 && bitfields_guard(block, insn, block_end, &accesses[0])))) {
        forget_if(block, touched, &(ToolStep){.fn = access_forget, .arg = touched});
        current &= ~touched;
        return often;
    }
    const ToolAccess *access = count ? &accesses[0] : NULL;
    u32 bytes;
    MemberSet forgotten = step_forgets(insn, step, current, low, &bytes);
    ToolStep call = step_of(insn, step, access, bytes);
    call.counts = stats_of_step(block, false);
    unsigned asks = 0, loads = 0;
    if (touched)
        asks = tool_state_guard_step(block, touched, access, &call);
    call.counts = stats_of_step(block, true);
    if (often) {
        check_below(block, insn, access);
        loads = tool_shadow_guard_step(block, access, &call);
    }
    // A step has done what is inserted from here on: a check of what the instruction stores would
    // make that defined again (`push [m]`).
    check_accesses(block, insn, accesses + often, count - often);
    if (touched || often)
        tool_guard_end(block, touched ? asks : loads);
    if (count)
        known_nothing();
    note_written(insn, step);
    current &= ~forgotten;
    return true;
}
