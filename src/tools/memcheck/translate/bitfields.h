// SPDX-License-Identifier: MIT
//
// Bit fields: of what an instruction loads some bits are looked at, and the others may be undefined
// for ever. Where a guard of all of them often fails (often.h) one of those takes its place
// (docs/design/mixed-blocks.md). At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_BITFIELDS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_BITFIELDS_H

#include "tools/memcheck/memcheck.h"

// Inserts the guard before `insn`, which has this access and no other. False: all bits count, as
// far as the code up to `end` tells, or it would fail too often. If it holds, what the instruction
// leaves counts as defined: nobody sees the other bits.
bool bitfields_guard(ToolBlock *block, const ToolInsn *insn, const ToolInsn *end,
                     const ToolAccess *access);

#endif
