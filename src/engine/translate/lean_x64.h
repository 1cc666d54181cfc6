// SPDX-License-Identifier: MIT
//
// The parts of which prologues of lean functions and their stubs are made; private to translate/.
#ifndef MUNINN_ENGINE_TRANSLATE_LEAN_X64_H
#define MUNINN_ENGINE_TRANSLATE_LEAN_X64_H

#include "engine/calltags/calltags.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"
#include "wire/heap_events.h"

#define REPEAT(field) ((i32)offsetof(ToolRepeat, field))
#define RING(field) ((i32)offsetof(WireRing, field))
#define RING_STATE RING(held.repeat.state)
#define HELD(field) (RING(field) - RING(held.repeat)) // a field of the ring, from lean.repeat

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

// Prefetches the line of the ring that will be written some events later.
static inline void emit_fetch_ring(Emitter *e, unsigned base, i32 disp)
{
    x64_prefetchw_mem(e, x64_at(base, disp + WIRE_FETCH_BYTES));
}

// reg := the word of shadow at [base]
static inline void emit_load_tag(Emitter *e, unsigned reg, unsigned base)
{
    x64_mov_reg_mem(e, QWORD, reg, x64_gs(x64_at(base, CALLTAGS_DISP)));
}

// Branches to the slow path, on which C handles the event.
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

// Notes that one more event shares the last stamp. emit_may_share_stamp() must have allowed it.
static inline void emit_take_stamp(Emitter *e)
{
    x64_sub_mem_imm(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), 1);
}

// Takes the slow path unless the last stamp may be shared: shares are left, and the monitor's tick
// has not changed since.
static inline void emit_may_share_stamp(Emitter *e, Slow *slow)
{
    x64_cmp_mem_imm(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), 0);
    unless(e, X64_E, slow);
    x64_mov_reg_fs(e, RDX, CTX(relay.wire.shared));
    x64_mov_reg_mem(e, DWORD, RDX, x64_at(RDX, offsetof(WireShared, header.tick)));
    x64_cmp_reg_mem(e, DWORD, RDX, x64_fs(CTX(relay.wire.tick_seen)));
    unless(e, X64_NE, slow);
}

// Publishes what the ring holds back. Uses rdx and rsi; `ring` must be another register.
void lean_flush(Emitter *e, unsigned ring, Slow *slow);

// Counts an allocation from the same stack as the one that is held back. rcx and rdx must be
// spilled, and rcx must be lean.repeat. Returns as lean_alloc_event() does; if the count fails, the
// code behind tries lean_alloc_event().
X64Jump lean_alloc_again(Emitter *e);

// The same for a series; rdx must be its state.
X64Jump lean_alloc_next(Emitter *e);

// Puts the event of an allocation that returns to `pc` into the ring. rcx and rdx must be spilled.
// Returns the jump that is taken on success. Control reaches the code behind if the event could not
// be put; then nothing has changed.
X64Jump lean_alloc_event(Emitter *e, u32 pc);

// Part of lean_alloc_event(): finds the context of the caller, whose return address is in the slot
// rsi and has a landing's tag without a context. Goes on at `named` with the context in edx and the
// site in r8. Control reaches the code behind if the context could not be found. Uses rcx, rdx,
// rdi, rsi and r8.
void lean_name_caller(Emitter *e, CodePtr named);

#endif
