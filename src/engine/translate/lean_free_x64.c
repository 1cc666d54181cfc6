// SPDX-License-Identifier: MIT
//
// The prologue of a lean function that frees. Where there is one thread and the last stamp may be
// shared, the event is put into the ring right here, as wire_heap_free() does it: most are the end
// of the block that is held back, or find another held back or nothing. The flags are dead
// at a function's entry; all registers are kept.
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/lean_x64.h"
#include "wire/heap_events.h"

enum { FREE_BYTES = WIRE_STREAM_FREE * 8 };

// The flags and rdx are those of its state. The event to come has a share of the stamp too.
static void emit_publish_series(Emitter *e, unsigned ring, Slow *slow)
{
    unless(e, X64_NS, slow);
    x64_and_reg_imm(e, DWORD, RDX, INT32_MAX);
    x64_lea_reg_mem(e, DWORD, RSI, x64_at(RDX, 1));
    x64_shr_reg_imm(e, DWORD, RSI, 1);
    x64_cmp_mem_reg(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), RSI);
    unless(e, X64_BE, slow);
    x64_sub_mem_reg(e, DWORD, x64_fs(CTX(relay.wire.stamps_left)), RSI);
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(ring, RING(write)));
    x64_and_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - 1);
    x64_lea_reg_mem(e, QWORD, RSI, x64_sum(ring, RSI));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 16), RDX);
    x64_add_reg_imm(e, DWORD, RDX, 1);
    x64_shr_reg_imm(e, DWORD, RDX, 1);
    x64_add_reg_imm(e, DWORD, RDX, HEAP_PAIRS_HEAD);
    x64_mov_mem_reg(e, WORD, x64_at(RSI, RING(data) + 2), RDX);
    x64_shl_reg_imm(e, DWORD, RDX, 3);
    x64_add_mem_reg(e, QWORD, x64_at(ring, RING(write)), RDX);
}

// What is held back is published: an allocation as it is, a pair when it has been made one.
void lean_flush(Emitter *e, unsigned ring, Slow *slow)
{
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(ring, RING_STATE));
    x64_cmp_reg_imm(e, QWORD, RDX, 1);
    X64Jump none = x64_branch(e, X64_B);
    X64Jump publish = x64_branch(e, X64_E);
    x64_cmp_reg_imm(e, QWORD, RDX, 2);
    X64Jump series = x64_branch(e, X64_NE);
    x64_cmp_mem_imm(e, QWORD, x64_at(ring, RING(held.samples)), 1);
    unless(e, X64_NE, slow);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(ring, RING(held.lived)));
    x64_cmp_reg_imm(e, QWORD, RDX, HEAP_PAIR_LIVED_MAX);
    unless(e, X64_A, slow);
    x64_cmp_mem_imm(e, DWORD, x64_at(ring, RING(held.repeat.size) + 4),
                    (1 << (HEAP_PAIR_SIZE_BITS - 32)) - 1);
    unless(e, X64_A, slow);
    x64_shl_reg_imm(e, QWORD, RDX, HEAP_PAIR_SIZE_BITS);
    x64_or_reg_mem(e, QWORD, RDX, x64_at(ring, RING(held.repeat.size)));
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(ring, RING(write)));
    x64_and_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - 1);
    x64_lea_reg_mem(e, QWORD, RSI, x64_sum(ring, RSI));
    x64_mov_mem_imm(e, BYTE, x64_at(RSI, RING(data)), RECORD_HEAP_PAIR);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 24), RDX);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(ring, RING(held.stamp)));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 8), RDX);
    x64_land(e, publish);
    x64_add_mem_imm(e, QWORD, x64_at(ring, RING(write)), HEAP_ALLOC_BYTES);
    CodePtr end = e->pc;
    x64_mov_mem_imm(e, QWORD, x64_at(ring, RING_STATE), 0);
    x64_mov_mem_imm(e, QWORD, x64_at(ring, RING(held.repeat.result)), 0);
    X64Jump done = x64_branch(e, X64_JMP);
    x64_land(e, series);
    emit_publish_series(e, ring, slow);
    x64_jmp_to(e, end);
    x64_land(e, done);
    x64_land(e, none);
}

// The block that is held back, for the first time (wire_heap_ends_held()); rcx is lean.repeat.
// Returns the jump to `on`.
static X64Jump emit_end_held(Emitter *e)
{
    Slow slow = {0};
    x64_mov_fs_reg(e, CTX_SPILL(RDX), RDX);
    x64_cmp_mem_imm(e, QWORD, x64_at(RCX, HELD(held.repeat.state)), 1);
    unless(e, X64_NE, &slow);
    emit_may_share_stamp(e, &slow);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RCX, HELD(begun)));
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.stamp)), RDX);
    x64_sub_reg_mem(e, QWORD, RDX, x64_at(RCX, HELD(held.allocated)));
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.lived)), RDX);
    x64_mov_mem_imm(e, QWORD, x64_at(RCX, HELD(held.samples)), 1);
    x64_mov_mem_imm(e, QWORD, x64_at(RCX, HELD(held.repeat.state)), 2);
    emit_take_stamp(e);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on = x64_branch(e, X64_JMP);
    land_all(e, &slow);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    return on;
}

// Another block: what is held back is published, and the record follows it.
static void emit_put_free(Emitter *e, Slow *slow)
{
    lean_flush(e, RCX, slow);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RCX, RING(write)));
    x64_lea_reg_mem(e, QWORD, RSI, x64_at(RDX, FREE_BYTES));
    x64_sub_reg_mem(e, QWORD, RSI, x64_fs(CTX(relay.wire.read_seen)));
    x64_cmp_reg_imm(e, QWORD, RSI, WIRE_RING_BYTES);
    unless(e, X64_A, slow);
    x64_and_reg_imm(e, DWORD, RDX, WIRE_RING_BYTES - 1);
    x64_cmp_reg_imm(e, DWORD, RDX, WIRE_RING_BYTES - FREE_BYTES);
    unless(e, X64_A, slow);
    x64_lea_reg_mem(e, QWORD, RSI, x64_sum(RCX, RDX));
    emit_fetch_ring(e, RSI, RING(data));
    x64_mov_mem_imm(e, QWORD, x64_at(RSI, RING(data)),
                    WIRE_STREAM_HEAD(RECORD_HEAP_FREE, WIRE_STREAM_FREE));
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RCX, RING(begun)));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 8), RDX);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 16), RDI);
    x64_add_mem_imm(e, QWORD, x64_at(RCX, RING(write)), FREE_BYTES);
}

static void emit_restore(Emitter *e)
{
    x64_mov_reg_fs(e, RSI, CTX_SPILL(RSI));
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
}

// Returns the jump to `on`; behind the code rcx is spilled.
static X64Jump emit_event(Emitter *e, const RedirectSite *site)
{
    Slow slow = {0};
    x64_mov_fs_reg(e, CTX_SPILL(RDX), RDX);
    x64_mov_fs_reg(e, CTX_SPILL(RSI), RSI);
    emit_may_share_stamp(e, &slow);
    x64_mov_reg_fs(e, RCX, CTX(relay.wire.ring));
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, RING(held.repeat.result)), RDI);
    unless(e, X64_E, &slow);
    emit_put_free(e, &slow);
    x64_mov_fs_reg(e, CTX(lean.told), RDI);
    x64_mov_fs_reg(e, CTX(lean.told_sp), RSP);
    x64_mov_reg_address(e, RDX, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)site->lean);
    x64_mov_fs_reg(e, CTX(lean.told_function), RDX);
    emit_take_stamp(e);
    emit_restore(e);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on = x64_branch(e, X64_JMP);
    land_all(e, &slow);
    emit_restore(e);
    return on;
}

void lean_before(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    builder_mark_nowhere(b);
    x64_cmp_mem_imm(e, QWORD, x64_fs(CTX(lean.sp)), 0);
    X64Jump within = x64_branch(e, X64_NE);
    x64_mov_reg_fs(e, RCX, CTX(lean.repeat));
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, REPEAT(result)), RDI);
    X64Jump other = x64_branch(e, X64_NE);
    emit_test_byte(e, REPEAT(state), 1);
    X64Jump done = x64_jcc_short(e, X64_E);
    x64_cmp_mem_imm(e, DWORD, x64_at(RCX, REPEAT(state) + 4), 0);
    X64Jump series = x64_jcc_short(e, X64_L);
    emit_test_byte(e, REPEAT(state), TOOL_REPEAT_TOLD);
    X64Jump told = x64_jcc_short(e, X64_E);
    emit_increment(e, REPEAT(state));
    x64_land(e, done);
    CodePtr back = e->pc;
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on = x64_branch(e, X64_JMP);
    x64_land(e, series);
    x64_cmp_mem_imm(e, DWORD, x64_at(RCX, HELD(held.pairs_end)), 0);
    X64Jump paused = x64_branch(e, X64_E);
    emit_increment(e, REPEAT(state));
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on_series = x64_branch(e, X64_JMP);
    x64_land(e, told);
    X64Jump on_end = emit_end_held(e);
    x64_land(e, paused);
    x64_land(e, other);
    x64_cmp_mem_reg(e, QWORD, x64_fs(CTX(lean.told)), RDI);
    X64Jump first = x64_jcc_short(e, X64_NE);
    x64_mov_reg_address(e, RCX, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)site->lean);
    x64_cmp_mem_reg(e, QWORD, x64_fs(CTX(lean.told_function)), RCX);
    X64Jump same = x64_jcc_short(e, X64_E);
    x64_cmp_mem_reg(e, QWORD, x64_fs(CTX(lean.told_sp)), RSP);
    x64_branch_to(e, X64_AE, back);
    x64_land(e, first);
    x64_land(e, same);
    x64_test_reg_reg(e, QWORD, RDI, RDI);
    x64_branch_to(e, X64_E, back);
    X64Jump on_event = emit_event(e, site);
    x64_land(e, within);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    b->spilled = 0;
    emit_fast_call(b, redirect_lean_before, site->hook);
    x64_land(e, on);
    x64_land(e, on_series);
    x64_land(e, on_end);
    x64_land(e, on_event);
    builder_mark(b, false); // F3
}
