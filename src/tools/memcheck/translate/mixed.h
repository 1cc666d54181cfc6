// SPDX-License-Identifier: MIT
//
// Clean blocks in which guards often fail (often.h, docs/design/mixed-blocks.md): steps are taken
// out of line. What one may have left undefined is so only if the thread's set has it, and code
// asks. At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_MIXED_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_MIXED_H

#include "tools/memcheck/memcheck.h"

void mixed_begin(const ToolInsn *block_end);

// True: all has been inserted that there is to know of the instruction's accesses and values.
bool mixed_insert(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                  unsigned count);

// Before an instruction that the block may be left by, or that needs more than a step: a thread
// with anything undefined goes on in the version for that.
void mixed_settle(ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step);
bool mixed_is_settled(void);
MemberSet *mixed_current(void); // members that may be undefined

#endif
