// SPDX-License-Identifier: MIT
//
// Memory that is known to be defined while a block is made: a guard before it would find what
// another has found already. A fact is an operand, and lasts as long as the registers
// that it is made of. Guards of loads establish one, since the block is left where they fail; so do
// marks of stores to the stack. Under the engine lock.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_KNOWN_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_KNOWN_H

#include "engine/toolapi/toolapi.h"

void known_nothing(void);
bool known_defined(const ToolInsn *insn, const ToolAccess *access);
void known_add(const ToolInsn *insn, const ToolAccess *access);
// The instruction is over: what of the facts is no longer true.
void known_after(const ToolInsn *insn);
// Whether all that the instruction does to general register `reg` is to add a constant.
bool known_adds(const ToolInsn *insn, unsigned reg, i64 *ret_amount);

#endif
