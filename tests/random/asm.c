// SPDX-License-Identifier: MIT
//
// Encodings, always 64-bit operands and disp32: variety of encodings is the business of the pool.
#include "asm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void asm_bytes(CaseBuilder *c, u32 n, ...)
{
    va_list args;
    va_start(args, n);
    for (u32 i = 0; i < n; i++) {
        u8 byte = (u8)va_arg(args, int);
        case_code_add(c, &byte, 1);
    }
    va_end(args);
}

static void put_i32(CaseBuilder *c, i32 value)
{
    case_code_add(c, &value, 4);
}

// REX.W opcode modrm with a register operand.
static void op_reg(CaseBuilder *c, u32 opcode, u32 reg, u32 rm)
{
    asm_bytes(c, 3, 0x48 | (reg >> 3) << 2 | rm >> 3, opcode, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

// REX.W opcode modrm with [base + disp32].
static void op_mem(CaseBuilder *c, u32 opcode, u32 reg, u32 base, i32 disp)
{
    asm_bytes(c, 3, 0x48 | (reg >> 3) << 2 | base >> 3, opcode, 0x80 | (reg & 7) << 3 | (base & 7));
    if ((base & 7) == RSP)
        asm_bytes(c, 1, 0x24);
    put_i32(c, disp);
}

void label_init(Label *label)
{
    *label = (Label){ .at = -1 };
}

void label_bind(CaseBuilder *c, Label *label)
{
    label->at = c->head.code_bytes;
    for (u32 i = 0; i < label->n_rel8; i++) {
        int rel = label->at - (label->rel8[i] + 1);
        if (rel > 127) {
            fprintf(stderr, "random: a short branch does not reach\n");
            exit(2);
        }
        c->code[label->rel8[i]] = (u8)rel;
    }
    for (u32 i = 0; i < label->n_rel32; i++) {
        i32 rel = label->at - (label->rel32[i] + 4);
        memcpy(c->code + label->rel32[i], &rel, 4);
    }
}

static void put_rel32(CaseBuilder *c, Label *label)
{
    if (label->at < 0)
        label->rel32[label->n_rel32++] = c->head.code_bytes;
    put_i32(c, label->at - (c->head.code_bytes + 4));
}

static void put_rel8(CaseBuilder *c, Label *label)
{
    if (label->at < 0)
        label->rel8[label->n_rel8++] = c->head.code_bytes;
    asm_bytes(c, 1, label->at - (c->head.code_bytes + 1));
}

static bool reaches(CaseBuilder *c, const Label *label, bool is_short)
{
    return label->at < 0 ? is_short : c->head.code_bytes + 2 - label->at <= 128;
}

void asm_mov_imm(CaseBuilder *c, u32 reg, i32 imm)
{
    op_reg(c, 0xc7, 0, reg);
    put_i32(c, imm);
}

void asm_mov(CaseBuilder *c, u32 to, u32 from)
{
    op_reg(c, 0x89, from, to);
}

void asm_lea_disp(CaseBuilder *c, u32 to, u32 base, i32 disp)
{
    op_mem(c, 0x8d, to, base, disp);
}

void asm_lea_label(CaseBuilder *c, u32 to, Label *label)
{
    asm_bytes(c, 3, 0x48 | (to >> 3) << 2, 0x8d, 0x05 | (to & 7) << 3);
    put_rel32(c, label);
}

void asm_load(CaseBuilder *c, u32 to, u32 base, i32 disp)
{
    op_mem(c, 0x8b, to, base, disp);
}

void asm_store(CaseBuilder *c, u32 from, u32 base, i32 disp)
{
    op_mem(c, 0x89, from, base, disp);
}

void asm_push(CaseBuilder *c, u32 reg)
{
    asm_bytes(c, 2, 0x40 | reg >> 3, 0x50 | (reg & 7));
}

void asm_pop(CaseBuilder *c, u32 reg)
{
    asm_bytes(c, 2, 0x40 | reg >> 3, 0x58 | (reg & 7));
}

void asm_dec(CaseBuilder *c, u32 reg)
{
    op_reg(c, 0xff, 1, reg);
}

void asm_setcc_zero_extended(CaseBuilder *c, u32 cc, u32 reg)
{
    asm_bytes(c, 4, 0x40 | reg >> 3, 0x0f, 0x90 | cc, 0xc0 | (reg & 7));
    asm_bytes(c, 4, 0x48 | (reg >> 3) << 2 | reg >> 3, 0x0f, 0xb6, 0xc0 | (reg & 7) << 3 | (reg & 7));
}

void asm_and_imm(CaseBuilder *c, u32 reg, u8 imm)
{
    op_reg(c, 0x83, 4, reg);
    asm_bytes(c, 1, imm);
}

void asm_jcc(CaseBuilder *c, u32 cc, Label *label, bool is_short)
{
    if (reaches(c, label, is_short)) {
        asm_bytes(c, 1, 0x70 | cc);
        put_rel8(c, label);
    } else {
        asm_bytes(c, 2, 0x0f, 0x80 | cc);
        put_rel32(c, label);
    }
}

void asm_jmp(CaseBuilder *c, Label *label, bool is_short)
{
    bool near = reaches(c, label, is_short);
    asm_bytes(c, 1, near ? 0xeb : 0xe9);
    if (near)
        put_rel8(c, label);
    else
        put_rel32(c, label);
}

// `loop` reaches back 128 bytes only: beyond, it hops over a jmp.
void asm_loop(CaseBuilder *c, Label *label)
{
    if (reaches(c, label, false)) {
        asm_bytes(c, 1, 0xe2);
        put_rel8(c, label);
        return;
    }
    asm_bytes(c, 4, 0xe2, 2, 0xeb, 5);
    asm_bytes(c, 1, 0xe9);
    put_rel32(c, label);
}

void asm_call(CaseBuilder *c, Label *label)
{
    asm_bytes(c, 1, 0xe8);
    put_rel32(c, label);
}

void asm_branch_reg(CaseBuilder *c, bool is_call, u32 reg)
{
    asm_bytes(c, 3, 0x40 | reg >> 3, 0xff, 0xc0 | (is_call ? 2 : 4) << 3 | (reg & 7));
}

void asm_branch_mem(CaseBuilder *c, bool is_call, u32 base, i32 disp)
{
    op_mem(c, 0xff, is_call ? 2 : 4, base, disp);
}

void asm_branch_table(CaseBuilder *c, u32 base, u32 index, i32 disp)
{
    asm_bytes(c, 4, 0x40 | (index >> 3) << 1 | base >> 3, 0xff, 0xa4,
              0xc0 | (index & 7) << 3 | (base & 7));
    put_i32(c, disp);
}
