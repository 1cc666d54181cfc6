// SPDX-License-Identifier: MIT
//
// The other test of `a && b` that a compiler has swapped (translate/swapped.h).
#ifndef MUNINN_TOOLS_MEMCHECK_ACCESS_SWAPPED_H
#define MUNINN_TOOLS_MEMCHECK_ACCESS_SWAPPED_H

#include "tools/memcheck/memcheck.h"

enum { SWAPPED_OPS_MAX = 4 };

typedef struct SwappedOperand {
    u64 constant;    // its value, or the displacement
    u8 kind;         // SwappedKind
    u8 size;         // in bytes
    u8 reg, index;   // INSN_NO_REG: none
    u8 scale;
    u8 unused[3];
} SwappedOperand;
typedef enum SwappedKind { SWAPPED_CONSTANT, SWAPPED_REGISTER, SWAPPED_MEMORY } SwappedKind;

// A load of a register, or a comparison, with which it ends.
typedef struct SwappedOp {
    u8 action;    // SwappedAction
    u8 extends;   // a load: from its operand's sign
    u8 to;        // a load: the register; of 4 bytes or 8, and then all of it is written
    u8 to_size;
    u8 unused[4];
    SwappedOperand first, second; // a load has the first alone
} SwappedOp;
typedef enum SwappedAction { SWAPPED_LOAD, SWAPPED_CMP, SWAPPED_TEST } SwappedAction;

// The other test, and which way it has to go.
typedef struct Swapped {
    const DefinednessStep *step; // of the jump before it
    u32 count;
    u32 condition; // with which it gets where the jump leads, too
    SwappedOp ops[SWAPPED_OPS_MAX];
} Swapped;

// As access_step(), of such a jump; the argument is a Swapped.
ToolCallFn swapped_jump;

#endif
