// SPDX-License-Identifier: MIT
//
// The general registers, by the numbers that the hardware gives them.
#ifndef MUNINN_BASE_REGISTERS_X64_H
#define MUNINN_BASE_REGISTERS_X64_H

enum Gpr {
    RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, GPR_COUNT
};

#endif
