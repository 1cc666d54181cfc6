// SPDX-License-Identifier: MIT
//
// Loads of constants: where an operand can lie, by what the block's own instructions say of its
// registers, is memory that nobody may write to, and all of it is defined. Such a load needs no
// guard: tables that switches jump by, strings, relocated pointers. The block goes when that memory
// is mapped anew, becomes writable or is marked by the client. Engine lock held.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_CONSTANTS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_CONSTANTS_H

#include "engine/toolapi/toolapi.h"

// A block begins; one of its instructions is over.
void constants_begin(void);
void constants_after(const ToolInsn *insn);
// Whether what `insn` loads is such memory; then the block depends on it.
bool constants_has(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access);

#endif
