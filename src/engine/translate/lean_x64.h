// SPDX-License-Identifier: MIT
//
// What the prologues of lean functions are made of; private to lean_x64.c and lean_free_x64.c.
#ifndef MUNINN_ENGINE_TRANSLATE_LEAN_X64_H
#define MUNINN_ENGINE_TRANSLATE_LEAN_X64_H

#include "engine/translate/builder.h"

#define REPEAT(field) ((i32)offsetof(ToolRepeat, field))
enum { JAE = 0x73, JE = 0x74, JNE = 0x75, JA = 0x77, JNS = 0x79 };

// A short branch; returns where the next instruction is, for land().
static inline CodePtr branch(Emitter *e, u8 opcode)
{
    put_bytes(e, (u8[]){opcode, 0}, 2);
    return e->pc;
}

static inline void land(Emitter *e, CodePtr from)
{
    ASSERT(e->pc - from < 128);
    from[-1] = (u8)(e->pc - from);
}

static inline CodePtr far_branch(Emitter *e)
{
    put_bytes(e, (u8[]){OP_JMP_REL32, 0, 0, 0, 0}, 5);
    return e->pc;
}

// jcc rel32, of the condition of a short branch
static inline CodePtr far_jcc(Emitter *e, u8 opcode)
{
    put_bytes(e, (u8[]){0x0f, (u8)(opcode + 0x10), 0, 0, 0, 0}, 6);
    return e->pc;
}

static inline void far_land(Emitter *e, CodePtr from)
{
    i32 distance = (i32)(e->pc - from);
    memcpy(from - 4, &distance, 4);
}

// test byte [rcx + disp], mask
static inline void emit_test_byte(Emitter *e, i32 disp, u8 mask)
{
    put_bytes(e, (u8[]){0xf6, 0x81}, 2);
    put_u32(e, (u32)disp);
    put_u8(e, mask);
}

// add qword [rcx + disp], 1
static inline void emit_increment(Emitter *e, i32 disp)
{
    put_bytes(e, (u8[]){0x48, 0x83, 0x81}, 3);
    put_u32(e, (u32)disp);
    put_u8(e, 1);
}

#endif
