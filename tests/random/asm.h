// SPDX-License-Identifier: MIT
//
// The handful of instructions from which the skeleton of a random program is made: branches,
// calls, counters, stack and string operations. Everything else comes from the pool.
#ifndef MUNINN_TESTS_RANDOM_ASM_H
#define MUNINN_TESTS_RANDOM_ASM_H

#include "casefile.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
enum { CC_NE = 5 };

// A place in the code that branches refer to, before or after it is known.
typedef struct Label {
    int at;         // -1: not yet bound
    u16 rel8[8];    // displacements to patch once it is
    u16 rel32[8];
    u8 n_rel8;
    u8 n_rel32;
} Label;

void label_init(Label *label);
void label_bind(CaseBuilder *c, Label *label);

void asm_bytes(CaseBuilder *c, u32 n, ...);
void asm_mov_imm(CaseBuilder *c, u32 reg, i32 imm);
void asm_mov(CaseBuilder *c, u32 to, u32 from);
void asm_lea_disp(CaseBuilder *c, u32 to, u32 base, i32 disp);
void asm_lea_label(CaseBuilder *c, u32 to, Label *label);
void asm_load(CaseBuilder *c, u32 to, u32 base, i32 disp);
void asm_store(CaseBuilder *c, u32 from, u32 base, i32 disp);
void asm_push(CaseBuilder *c, u32 reg);
void asm_pop(CaseBuilder *c, u32 reg);
void asm_dec(CaseBuilder *c, u32 reg);
void asm_setcc_zero_extended(CaseBuilder *c, u32 cc, u32 reg); // leaves the flags alone
void asm_and_imm(CaseBuilder *c, u32 reg, u8 imm);
void asm_jcc(CaseBuilder *c, u32 cc, Label *label, bool is_short);
void asm_jmp(CaseBuilder *c, Label *label, bool is_short);
void asm_loop(CaseBuilder *c, Label *label);
void asm_call(CaseBuilder *c, Label *label);

// jmp (`is_call`: call) to a register, to [base + disp], to [base + index * 8 + disp].
void asm_branch_reg(CaseBuilder *c, bool is_call, u32 reg);
void asm_branch_mem(CaseBuilder *c, bool is_call, u32 base, i32 disp);
void asm_branch_table(CaseBuilder *c, u32 base, u32 index, i32 disp);

#endif
