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

void code_insn(ToolBlock *block, const ToolInsn *insn)
{
    if (massif_options->time_unit == TIME_UNIT_INSTRUCTIONS && begins_segment(insn))
        tool_count(block, MASSIF_INSTRUCTIONS, segment_length(insn));
    if (massif_options->stacks &&
        (insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT))
        tool_note_depth(block, MASSIF_LOW_SP);
}
