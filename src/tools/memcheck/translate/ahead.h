// SPDX-License-Identifier: MIT
//
// Guards that stand ahead of the loads they are for, in clean blocks: where flags are still dead,
// or in the guard of a load beside them. One that fails leaves the block at an instruction whose
// own step then finds nothing, and the load meets its own guard in the next block; so nothing is
// told that would not be told without. At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_AHEAD_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_AHEAD_H

#include "tools/memcheck/memcheck.h"

// `end`: behind the last instruction of the block.
void ahead_begin(const ToolInsn *end);
// Before `insn`: guards of loads behind it, where flags are live.
void ahead_insert(ToolBlock *block, const ToolInsn *insn);
// The guard of a load, together with loads beside it that come later.
void ahead_guard(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access);

#endif
