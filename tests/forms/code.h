// SPDX-License-Identifier: MIT
//
// The code that runs one instruction in one form of block.
#ifndef MUNINN_TESTS_FORMS_CODE_H
#define MUNINN_TESTS_FORMS_CODE_H

#include "forms.h"

enum { MEMORY_BYTES = 192, MEMORY_BEFORE = 64, FX_BYTES = 512 };

// Registers and memory, before the instruction (at STATE_IN) and behind it (at STATE_OUT).
typedef struct State {
    u64 gpr[16];
    u64 flags;
    u64 mask[8];
    u64 half_flags; // OF in the lowest bit, the others from bit 8 on: what sahf needs
    u64 spare[6];
    _Alignas(64) u8 memory[MEMORY_BYTES]; // the operand is MEMORY_BEFORE behind its begin
    _Alignas(64) u8 fx[FX_BYTES];
    _Alignas(64) u8 vector[32][64];
} State;

#define STATE_IN 0x30000000ull
#define STATE_OUT 0x30010000ull
#define STATE_ZERO 0x30020000ull // defined; what registers hold when the code returns
#define CODE_AT 0x34000000ull
enum { CODE_BYTES_MAX = 4096 };

// Forms of a block, as bits.
enum {
    FORM_SPLIT_BEFORE = 1, // an indirect jump between the loads and the instruction: it stands at
    FORM_SPLIT_AFTER = 2,  // the begin of a block; and between it and the stores
    FORM_FLAGS_DEAD = 4,   // what it leaves in the flags is overwritten
    FORM_STACK = 8,        // its operand is [rsp]
    FORM_SAHF = 16,        // flags are made by sahf in the block, not by popf before it
};

extern bool code_has_avx512;

// Writes the code at `at`; returns its end.
u8 *code_make(u8 *at, const FormInsn *insn, u32 form);

#endif
