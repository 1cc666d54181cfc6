// SPDX-License-Identifier: MIT
//
// Memory that is known to be defined at some place of a block: a guard before it would find what
// another has found already. A fact is an operand, and lasts as long as the registers
// that it is made of. Guards of loads establish one, since the block is left where they fail; so do
// marks of stores to the stack.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_KNOWN_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_KNOWN_H

#include "engine/toolapi/toolapi.h"

typedef struct KnownFact {
    union {
        struct {
            u8 base, index, scale, segment;
        };
        u32 registers; // all of them
    };
    i64 disp;
    u32 size; // 0: none
} KnownFact;

enum { KNOWN_FACTS = 16 };

typedef struct Known {
    KnownFact facts[KNOWN_FACTS];
    u32 next, used; // one after the other takes the place of the oldest
    u32 gprs;       // general registers that facts may be about
} Known;

void known_nothing(Known *known);
bool known_defined(const Known *known, const ToolInsn *insn, const ToolAccess *access);
void known_add(Known *known, const ToolInsn *insn, const ToolAccess *access);
// The instruction, which writes these general registers, is over: what is no longer true.
void known_after(Known *known, const ToolInsn *insn, u32 written);
// Whether all that the instruction does to general register `reg` is to add a constant.
bool known_adds(const ToolInsn *insn, unsigned reg, i64 *ret_amount);

#endif
