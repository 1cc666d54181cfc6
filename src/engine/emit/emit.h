// SPDX-License-Identifier: MIT
//
// Encoding of the few x86-64 instructions that the engine inserts.
//
// None of them changes the flags, unless its name says so: client flags live in
// the flags register while emitted code runs. fs:-relative operands address
// the thread's ThreadCtx; `CTX(field)` gives the displacement of a field.
#ifndef MUNINN_ENGINE_EMIT_EMIT_H
#define MUNINN_ENGINE_EMIT_EMIT_H

#include <string.h>

#include "base/assert.h"
#include "base/types.h"
#include "engine/run/run.h"

typedef struct Emitter {
    CodePtr pc;  // where the next byte goes
    CodePtr end; // first byte that must not be written
} Emitter;

#define INSN_MAX 15

// fs:-relative displacement of the calling thread's ThreadCtx: the same in all
// threads, since it is a thread-local variable of the executable.
extern i32 ctx_displacement;
#define CTX(field) (ctx_displacement + (i32)offsetof(ThreadCtx, field))
#define CTX_GPR(r) (CTX(gpr) + 8 * (i32)(r))
#define CTX_SPILL(r) (CTX(spill) + 8 * (i32)(r))

enum {
    OP_NOP = 0x90, OP_CALL_REL32 = 0xe8, OP_JMP_REL32 = 0xe9, OP_JMP_REL8 = 0xeb, OP_JRCXZ = 0xe3,
    OP_LOOP = 0xe2,
};

static inline void put_u8(Emitter *e, u8 byte)
{
    DEBUG_ASSERT(e->pc < e->end);
    *e->pc++ = byte;
}

static inline void put_u32(Emitter *e, u32 v)
{
    memcpy(e->pc, &v, 4);
    e->pc += 4;
}

static inline void put_u64(Emitter *e, u64 v)
{
    memcpy(e->pc, &v, 8);
    e->pc += 8;
}

static inline void put_bytes(Emitter *e, const void *bytes, size_t n)
{
    memcpy(e->pc, bytes, n);
    e->pc += n;
}

static inline size_t emit_room(const Emitter *e)
{
    return (size_t)(e->end - e->pc);
}

static inline bool fits_i32(i64 v)
{
    return v == (i32)v;
}

// op reg, fs:[disp] for a one-byte opcode with a 64-bit register operand.
static inline void emit_op_fs(Emitter *e, u8 opcode, unsigned reg, i32 disp)
{
    put_u8(e, 0x64);
    put_u8(e, (u8)(0x48 | (reg >> 3) << 2));
    put_u8(e, opcode);
    put_u8(e, (u8)(0x04 | (reg & 7) << 3));
    put_u8(e, 0x25);
    put_u32(e, (u32)disp);
}

// mov fs:[disp], reg
static inline void emit_store_fs(Emitter *e, i32 disp, unsigned reg)
{
    emit_op_fs(e, 0x89, reg, disp);
}

// mov reg, fs:[disp]
static inline void emit_load_fs(Emitter *e, unsigned reg, i32 disp)
{
    emit_op_fs(e, 0x8b, reg, disp);
}

// mov dword fs:[disp], imm32
static inline void emit_store_fs_imm32(Emitter *e, i32 disp, u32 imm)
{
    put_bytes(e, (u8[]){0x64, 0xc7, 0x04, 0x25}, 4);
    put_u32(e, (u32)disp);
    put_u32(e, imm);
}

// Stores a 64-bit constant in fs:[disp]: one store when it is a sign-extended
// 32-bit value, two otherwise.
static inline void emit_store_fs_imm64(Emitter *e, i32 disp, u64 imm)
{
    if (!fits_i32((i64)imm)) {
        emit_store_fs_imm32(e, disp, (u32)imm);
        emit_store_fs_imm32(e, disp + 4, (u32)(imm >> 32));
        return;
    }
    put_bytes(e, (u8[]){0x64, 0x48, 0xc7, 0x04, 0x25}, 5);
    put_u32(e, (u32)disp);
    put_u32(e, (u32)imm);
}

// jmp fs:[disp]
static inline void emit_jmp_fs(Emitter *e, i32 disp)
{
    put_bytes(e, (u8[]){0x64, 0xff, 0x24, 0x25}, 4);
    put_u32(e, (u32)disp);
}

// mov reg, imm in its shortest form
static inline void emit_mov_imm(Emitter *e, unsigned reg, u64 imm)
{
    if (imm <= UINT32_MAX) {
        if (reg >= 8)
            put_u8(e, 0x41);
        put_u8(e, (u8)(0xb8 | (reg & 7)));
        put_u32(e, (u32)imm);
        return;
    }
    put_u8(e, (u8)(0x48 | reg >> 3));
    put_u8(e, (u8)(0xb8 | (reg & 7)));
    put_u64(e, imm);
}

// mov dst, src
static inline void emit_mov_reg(Emitter *e, unsigned dst, unsigned src)
{
    put_u8(e, (u8)(0x48 | (src >> 3) << 2 | dst >> 3));
    put_u8(e, 0x89);
    put_u8(e, (u8)(0xc0 | (src & 7) << 3 | (dst & 7)));
}

// op reg, [base + disp32] with REX.W
static inline void emit_op_base(Emitter *e, u8 opcode, unsigned reg, unsigned base, i32 disp)
{
    put_u8(e, (u8)(0x48 | (reg >> 3) << 2 | base >> 3));
    put_u8(e, opcode);
    bool small = disp == (i8)disp;
    put_u8(e, (u8)((small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7)));
    if ((base & 7) == RSP)
        put_u8(e, 0x24);
    if (small)
        put_u8(e, (u8)disp);
    else
        put_u32(e, (u32)disp);
}

// lea dst, [base + disp]
static inline void emit_lea(Emitter *e, unsigned dst, unsigned base, i32 disp)
{
    emit_op_base(e, 0x8d, dst, base, disp);
}

// lea dst, [base + index]
static inline void emit_lea_sum(Emitter *e, unsigned dst, unsigned base, unsigned index)
{
    // rsp cannot be an index: swap, the sum is the same.
    if (index == RSP) {
        unsigned swap = base;
        base = index;
        index = swap;
    }
    put_u8(e, (u8)(0x48 | (dst >> 3) << 2 | (index >> 3) << 1 | base >> 3));
    put_u8(e, 0x8d);
    put_u8(e, (u8)(0x44 | (dst & 7) << 3)); // [base+index+disp8]: valid for every base
    put_u8(e, (u8)((index & 7) << 3 | (base & 7)));
    put_u8(e, 0);
}

// jmp target
static inline void emit_jmp(Emitter *e, CodePtr target)
{
    i64 distance = target - (e->pc + 5);
    ASSERT(fits_i32(distance));
    put_u8(e, OP_JMP_REL32);
    put_u32(e, (u32)distance);
}

// Ends in a rel32 displacement that link_exit() may rewrite while other threads
// execute it: such a store must not straddle a 16-byte line, so prefixes may come
// first. `opcode` is e9 for jmp, 0f8x for jcc. Returns the address of the rel32.
CodePtr emit_link_site(Emitter *e, unsigned opcode, CodePtr target);

#endif
