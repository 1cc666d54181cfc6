// SPDX-License-Identifier: MIT
//
// Steps of instructions (definedness.h) as calls from blocks. At translation, with the engine
// lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_STEPS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_STEPS_H

#include "tools/memcheck/memcheck.h"

// The step of an instruction, or the short way of one that only moves a value. Its access may be
// NULL. `forgotten`: so many bytes of what it stores, see step_forgets().
ToolStep step_of(const ToolInsn *insn, DefinednessStep *step, const ToolAccess *access,
                 u32 forgotten);
// The same with another function.
ToolStep step_calling(ToolCallFn *fn, const ToolInsn *insn, const DefinednessStep *step);
// Where a copy of it stays as long as the process does; of anything that has no holes, too.
u64 step_kept(const DefinednessStep *step);
void *step_keep(const void *what, size_t bytes);

// Members that are as defined as what the instruction makes of them, whatever they were. `low`:
// vectors of which no more than the low 16 bytes are undefined.
MemberSet step_overwrites(const DefinednessStep *step, MemberSet low);

// What an instruction does with members, without its step: that takes long to make.
typedef struct StepGist {
    MemberSet reads;      // in addresses, too
    MemberSet writes;     // wholly or partly
    MemberSet overwrites; // by step_overwrites() without `low`
    MemberSet overwrites_low; // and what is to be added of it
} StepGist;
StepGist step_gist(const ToolInsn *insn);

// The one of `current` that the instruction stores and nobody reads behind it: its step may forget
// so many bytes of it. 0: none. A vector that gets as far as a call or return might be passed
// on there, but one that is stored whole is no scalar: it is the temporary of a copy.
MemberSet step_forgets(const ToolInsn *insn, const DefinednessStep *step, MemberSet current,
                       MemberSet low, u32 *ret_bytes);

// What the instruction loads is only compared (lookahead.h).
bool step_loads_to_compare(const ToolInsn *insn, const ToolAccess *access);

// Inserts a call of it.
void step_emit(ToolBlock *block, const ToolStep *step, const ToolAccess *access);

// Whether a guard may call the step, and go on behind the instruction's checks.
bool step_is_possible(const ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step,
                      const ToolAccess *accesses, unsigned count);
bool step_is_repeated(const ToolInsn *insn); // a string instruction
// The members that a step may leave undefined. What comes from the stack says nothing of where
// the stack is.
MemberSet step_leaves(const ToolInsn *insn, const DefinednessStep *step);

#endif
