// SPDX-License-Identifier: MIT
//
// Copies of structures, as compilers write them: loads and stores by turns, or all loads and then
// all stores, with other instructions between them. Where they often meet undefined bytes (often.h)
// the V bytes of all are copied by one step before the first, and none of them needs a guard or a
// step of its own (docs/design/mixed-blocks.md). At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_COPIES_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_COPIES_H

#include "tools/memcheck/memcheck.h"

void copies_begin(const ToolInsn *insns, const ToolInsn *end);

// Inserts the step of a copy that begins with `insn` or not far behind it. `current` loses the
// registers that it goes through: they are dead then. True: `insn` belongs to a copy, and nothing
// is to be done for it any more.
bool copies_insert(ToolBlock *block, const ToolInsn *insn, MemberSet *current);

// `insn` stands within a copy whose step has been taken: no guard may leave the block there.
bool copies_is_within(const ToolInsn *insn);
// That copy's guards have asked for what it loads.
bool copies_assures(const ToolInsn *insn);

#endif
