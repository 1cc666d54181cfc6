// SPDX-License-Identifier: MIT
//
// Steps of instructions (definedness.h) as calls from blocks. At translation, with the engine
// lock.
#ifndef MUNINN_TOOLS_MEMCHECK_STEPS_H
#define MUNINN_TOOLS_MEMCHECK_STEPS_H

#include "tools/memcheck/memcheck.h"

// The step of an instruction, or the short way of one that only moves a value. Its access may be
// NULL.
ToolStep step_of(const ToolInsn *insn, DefinednessStep *step, const ToolAccess *access);
// The same with another function.
ToolStep step_calling(ToolCallFn *fn, const ToolInsn *insn, const DefinednessStep *step);
// Where a copy of it stays as long as the process does.
u64 step_kept(const DefinednessStep *step);

// Members that are as defined as what the instruction makes of them, whatever they were. `low`:
// vectors of which no more than the low 16 bytes are undefined.
MemberSet step_overwrites(const DefinednessStep *step, MemberSet low);

// What the instruction loads is only compared (lookahead.h).
bool step_loads_to_compare(const ToolInsn *insn, const ToolAccess *access);

#endif
