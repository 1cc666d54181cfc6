// SPDX-License-Identifier: MIT
//
// What is inserted before an instruction for one of its accesses, where nothing is undefined: a
// guard before a load, a check or a mark for a store. At translation, with the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_CHECKS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_CHECKS_H

#include "tools/memcheck/memcheck.h"

// Instructions that name memory and do not touch it.
bool touches_nothing(const ToolInsn *insn);

void check_access(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access);
// Of all of them. What is loaded is asked for before a store marks it: the operands of movs may
// overlap. check_loads(): no stores.
void check_accesses(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                    unsigned count);
void check_loads(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                 unsigned count);
// `lea`: a pointer below the stack pointer is made to write there.
void check_pointer(const ToolInsn *insn);
// Of one, what lies below the stack pointer. True: also below the red zone.
bool check_below(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access);

#endif
