// SPDX-License-Identifier: MIT
//
// What the prologues of lean functions, and stubs, are made of; private to translate/.
#ifndef MUNINN_ENGINE_TRANSLATE_LEAN_X64_H
#define MUNINN_ENGINE_TRANSLATE_LEAN_X64_H

#include "engine/calltags/calltags.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"
#include "wire/heap_events.h"

#define REPEAT(field) ((i32)offsetof(ToolRepeat, field))
#define RING(field) ((i32)offsetof(WireRing, field))
#define RING_STATE RING(held.repeat.state)
#define HELD(field) (RING(field) - RING(held.repeat)) // of the ring, from lean_repeat
enum { JB = 0x72, JAE = 0x73, JE = 0x74, JNE = 0x75, JBE = 0x76, JA = 0x77, JS = 0x78, JNS = 0x79,
       JL = 0x7c };

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

static inline void far_link(CodePtr from, CodePtr target)
{
    i32 distance = (i32)(target - from);
    memcpy(from - 4, &distance, 4);
}

static inline void far_land(Emitter *e, CodePtr from)
{
    far_link(from, e->pc);
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

// prefetchw [base + disp + FETCH]: the line of the ring that is written some events later
static inline void emit_fetch_ring(Emitter *e, unsigned base, i32 disp)
{
    put_bytes(e, (u8[]){0x0f, 0x0d, (u8)(0x88 | base)}, 3);
    put_u32(e, (u32)(disp + WIRE_FETCH_BYTES));
}

// mov reg, gs:[base + DISP]
static inline void emit_load_tag(Emitter *e, unsigned reg, unsigned base)
{
    put_u8(e, 0x65);
    emit_op_base(e, 0x8b, reg, base, CALLTAGS_DISP);
}

// Branches to where the event takes the way through C.
typedef struct Slow {
    CodePtr from[24];
    unsigned count;
} Slow;

static inline void unless(Emitter *e, u8 opcode, Slow *slow)
{
    ASSERT(slow->count < ARRAY_LEN(slow->from));
    slow->from[slow->count++] = far_jcc(e, opcode);
}

static inline void land_all(Emitter *e, const Slow *slow)
{
    for (unsigned i = 0; i < slow->count; i++)
        far_land(e, slow->from[i]);
}

// Where the last stamp may be shared; what it costs is noted.
// sub dword fs:[stamps_left], 1
static inline void emit_take_stamp(Emitter *e)
{
    put_bytes(e, (u8[]){0x64, 0x83, 0x2c, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.stamps_left));
    put_u8(e, 1);
}

// May it?
//     cmp dword fs:[stamps_left], 0 ; je slow
//     mov rdx, fs:[shared] ; mov edx, [rdx + tick] ; cmp edx, fs:[tick_seen] ; jne slow
static inline void emit_may_share_stamp(Emitter *e, Slow *slow)
{
    put_bytes(e, (u8[]){0x64, 0x83, 0x3c, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.stamps_left));
    put_u8(e, 0);
    unless(e, JE, slow);
    emit_load_fs(e, RDX, CTX(wire.shared));
    put_bytes(e, (u8[]){0x8b, 0x92}, 2);
    put_u32(e, (u32)offsetof(WireShared, header.tick));
    put_bytes(e, (u8[]){0x64, 0x3b, 0x14, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.tick_seen));
    unless(e, JNE, slow);
}

// What is held back in the ring is published. Uses rdx and rsi, which `ring` must not be.
void lean_flush(Emitter *e, unsigned ring, Slow *slow);

// With rcx and rdx spilled and rcx lean_repeat: an allocation that returns to `pc`, from the same
// stack as what is held back. As lean_alloc_event(), which is to be tried else.
CodePtr lean_alloc_again(Emitter *e);

// The same where rdx is the state of a series.
CodePtr lean_alloc_next(Emitter *e);

// An allocation that returns to `pc`, with rcx and rdx spilled: puts its event into the ring.
// Returns the jump behind everything; behind the code it could not, and nothing has changed.
CodePtr lean_alloc_event(Emitter *e, u32 pc);

// In it: rsi is the slot of its caller's return address, whose tag is a landing's without a
// context. Goes on at `named` with that context in edx and the site in r8; behind the code it could
// not. Uses rcx, rdx, rdi, rsi and r8.
void lean_name_caller(Emitter *e, CodePtr named);

#endif
