// SPDX-License-Identifier: MIT
//
// plan_values(): which members may be undefined before each instruction, and what is done about
// them. In a dirty block (dirty.c) the version says it; in a clean one nothing is, but for what
// guards that often fail let through (mixed.c). Copies of structures (copies.c) and bit fields
// (bitfields.c) may be in both.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_VALUES_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_VALUES_H

#include "tools/memcheck/translate/plan.h"

// What is to be done for an instruction of a dirty block, or of a clean one, and which of its
// accesses are checked.
void dirty_plan(Plan *plan, PlanInsn *at);
void mixed_plan(Plan *plan, PlanInsn *at);

// Before an instruction that a clean block may be left by, or that needs more than a step: a thread
// with anything undefined goes on in the version for that.
void mixed_settle(Plan *plan, PlanInsn *at, const DefinednessStep *step);

// Plans the step of a copy that begins with the instruction or not far behind it. The state loses
// the registers that it goes through: they are dead then. True: the instruction belongs to a copy,
// and nothing is to be done for it any more.
bool copies_plan(Plan *plan, PlanInsn *at);

// Plans a guard of the bits that count of what the instruction, which has one access, loads. False:
// all bits count, as far as the block tells, or it would fail too often. If it holds, what the
// instruction leaves counts as defined: nobody sees the other bits.
bool bitfields_plan(Plan *plan, PlanInsn *at);

// Plans that bits of a register are set or cleared, as bit-fields are: that needs no call if nobody
// looks at the flags. The register stays in the set, even if no bit is left. False: the instruction
// does something else.
bool masks_plan(Plan *plan, PlanInsn *at, const DefinednessStep *step);

// Whether the instruction only drops a word of the stack: what it loads is not looked at.
bool values_only_discards(const PlanInsn *at);

#endif
