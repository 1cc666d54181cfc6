// SPDX-License-Identifier: MIT
//
// Copies of structures, as compilers write them: loads and stores by turns, or all loads and then
// all stores, with other instructions between them. Where they often meet undefined bytes (often.h)
// the V bytes of all are copied by one step before the first, and none of them needs a guard or a
// step of its own (docs/design/mixed-blocks.md). At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_COPIES_H
#define MUNINN_TOOLS_MEMCHECK_COPIES_H

#include "tools/memcheck/memcheck.h"

void copies_begin(const ToolInsn *insns, const ToolInsn *end);

// True: `insn` belongs to a copy whose step is taken before it or, if it is the first of one, has
// been inserted. `current` loses the registers that the copy goes through: they are dead then.
bool copies_insert(ToolBlock *block, const ToolInsn *insn, MemberSet *current);

#endif
