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
#define HELD(field) (RING(field) - RING(held.repeat)) // of the ring, from lean.repeat

// test byte [rcx + disp], mask
static inline void emit_test_byte(Emitter *e, i32 disp, u8 mask)
{
    x64_test_mem_imm(e, BYTE, x64_at(RCX, disp), (i8)mask);
}

// add qword [rcx + disp], 1
static inline void emit_increment(Emitter *e, i32 disp)
{
    x64_add_mem_imm(e, QWORD, x64_at(RCX, disp), 1);
}

// The line of the ring that is written some events later is asked for.
static inline void emit_fetch_ring(Emitter *e, unsigned base, i32 disp)
{
    x64_prefetchw_mem(e, x64_at(base, disp + WIRE_FETCH_BYTES));
}

// reg := the word of shadow at [base]
static inline void emit_load_tag(Emitter *e, unsigned reg, unsigned base)
{
    x64_mov_reg_mem(e, QWORD, reg, x64_gs(x64_at(base, CALLTAGS_DISP)));
}

// Branches to where the event takes the way through C.
typedef struct Slow {
    X64Jump from[24];
    unsigned count;
} Slow;

static inline void unless(Emitter *e, X64Branch condition, Slow *slow)
{
    ASSERT(slow->count < ARRAY_LEN(slow->from));
    slow->from[slow->count++] = x64_branch(e, condition);
}

static inline void land_all(Emitter *e, const Slow *slow)
{
    for (unsigned i = 0; i < slow->count; i++)
        x64_land(e, slow->from[i]);
}

// Where the last stamp may be shared; what it costs is noted.
static inline void emit_take_stamp(Emitter *e)
{
    x64_sub_mem_imm(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), 1);
}

// May it? If any of its stamps are left, and the clock has not ticked since.
static inline void emit_may_share_stamp(Emitter *e, Slow *slow)
{
    x64_cmp_mem_imm(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), 0);
    unless(e, X64_E, slow);
    x64_mov_reg_fs(e, RDX, CTX(relay.wire.shared));
    x64_mov_reg_mem(e, DWORD, RDX, x64_at(RDX, offsetof(WireShared, header.tick)));
    x64_cmp_reg_mem(e, DWORD, RDX, x64_fs(CTX(relay.wire.tick_seen)));
    unless(e, X64_NE, slow);
}

// What is held back in the ring is published. Uses rdx and rsi, which `ring` must not be.
void lean_flush(Emitter *e, unsigned ring, Slow *slow);

// With rcx and rdx spilled and rcx lean.repeat: an allocation that returns to `pc`, from the same
// stack as what is held back. As lean_alloc_event(), which is to be tried else.
X64Jump lean_alloc_again(Emitter *e);

// The same where rdx is the state of a series.
X64Jump lean_alloc_next(Emitter *e);

// An allocation that returns to `pc`, with rcx and rdx spilled: puts its event into the ring.
// Returns the jump behind everything; behind the code it could not, and nothing has changed.
X64Jump lean_alloc_event(Emitter *e, u32 pc);

// In it: rsi is the slot of its caller's return address, whose tag is a landing's without a
// context. Goes on at `named` with that context in edx and the site in r8; behind the code it could
// not. Uses rcx, rdx, rdi, rsi and r8.
void lean_name_caller(Emitter *e, CodePtr named);

#endif
