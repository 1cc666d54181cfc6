// SPDX-License-Identifier: MIT
//
// What some options insert into the client's code: --time-unit=i and --stacks=yes.
#include "tools/massif/massif.h"

// The block being translated, under the engine lock.
static const ToolInsn *insns;
static unsigned insn_count;

void code_block(ToolBlock *block, const ToolInsn *first, unsigned count)
{
    (void)block;
    insns = first;
    insn_count = count;
}

// A block may be left at its conditional branches: what lies between two is counted
// at once. (By a signal it may be left elsewhere; the rest is then counted again.)
static bool begins_segment(const ToolInsn *insn)
{
    return insn == insns || insn[-1].lowering == LOWER_JCC;
}

static u32 segment_length(const ToolInsn *insn)
{
    const ToolInsn *end = insns + insn_count, *at = insn;
    while (at < end && at->lowering != LOWER_JCC)
        at++;
    return (u32)(at - insn) + (at < end);
}

static bool opens_frame(const ToolInsn *insn)
{
    InsnForm room;
    if (insn->mnemonic != ZYDIS_MNEMONIC_SUB)
        return false;
    const InsnForm *form = insn_form(insn, &room);
    return form->dst == RSP && form->writes_dst;
}

// Where the stack is looked at: before calls, and behind an instruction that opens a frame, which
// a function that calls nothing may have as well.
static bool is_place_to_look(const ToolBlock *block, const ToolInsn *insn)
{
    if (insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT)
        return true;
    return insn != insns && opens_frame(&insn[-1]) && tool_flags_are_dead(block);
}

void code_insn(ToolBlock *block, const ToolInsn *insn)
{
    if (massif_options->time_unit == TIME_UNIT_INSTRUCTIONS && begins_segment(insn))
        tool_count(block, MASSIF_INSTRUCTIONS, segment_length(insn));
    if (massif_options->stacks && is_place_to_look(block, insn))
        tool_note_depth(block, MASSIF_LOW_SP, event_deeper, insn->pc);
}
