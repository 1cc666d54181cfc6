// SPDX-License-Identifier: MIT
//
// An allocation from the same place and stack as the pair that is held back: most of what
// lean_alloc_x64.c finds out is known then. The pair is published, and the new block begins
// a series (HEAP_PAIRS) behind it; or there is a series, which gets one block more. Registers:
// rax is the block, rcx points to what is held back (lean.repeat), rdx, rsi and rdi are at hand.
#include "engine/translate/lean_x64.h"

enum { BOTH_BYTES = HEAP_ALLOC_BYTES + HEAP_PAIRS_BYTES, CHUNK_IS_MAPPED = 2 };

static X64Mem held_state(void)
{
    return x64_at(RCX, HELD(held.repeat.state));
}

// A function of the same allocator has returned a block that fits a series. rdx := its word.
static void emit_word(Emitter *e, Slow *no)
{
    x64_mov_reg_mem(e, DWORD, RDX, x64_fs(CTX(lean.inner)));
    x64_cmp_mem_reg(e, DWORD, x64_at(RCX, HELD(held.repeat.inner)), RDX);
    unless(e, X64_NE, no);
    x64_test_reg_imm(e, DWORD, RAX, PAGE_SIZE - 1);
    unless(e, X64_E, no);
    x64_test_reg_imm(e, BYTE, RAX, 15);
    unless(e, X64_NE, no);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RAX, -8));
    x64_test_reg_imm(e, BYTE, RDX, CHUNK_IS_MAPPED);
    unless(e, X64_NE, no);
    x64_and_reg_imm(e, QWORD, RDX, -8);
    x64_mov_reg_fs(e, RSI, CTX(lean.size));
    x64_sub_reg_reg(e, QWORD, RDX, RSI);
    x64_sub_reg_imm(e, QWORD, RDX, 8);
    x64_cmp_reg_imm(e, QWORD, RDX, HEAP_WORD_EXTRA_MAX);
    unless(e, X64_A, no);
    x64_cmp_reg_imm(e, QWORD, RSI, HEAP_WORD_SIZE_MAX);
    unless(e, X64_A, no);
    x64_shl_reg_imm(e, DWORD, RSI, HEAP_WORD_EXTRA_BITS);
    x64_or_reg_reg(e, DWORD, RDX, RSI);
    x64_mov_reg_reg(e, QWORD, RSI, RAX);
    x64_shl_reg_imm(e, QWORD, RSI, HEAP_WORD_BITS - 4);
    x64_or_reg_reg(e, QWORD, RDX, RSI);
}

// A pair is held back that emitted code put, and is not very large.
static void emit_check(Emitter *e, Slow *no)
{
    x64_cmp_mem_imm(e, QWORD, held_state(), 2);
    unless(e, X64_NE, no);
    emit_may_share_stamp(e, no);
    x64_cmp_mem_imm(e, DWORD, x64_at(RCX, HELD(held.repeat.size) + 4),
                    (1 << (HEAP_PAIR_SIZE_BITS - 32)) - 1);
    unless(e, X64_A, no);
}

// Both records fit behind each other. rsi := where the first stands; it becomes a pair.
static void emit_publish_pair(Emitter *e, Slow *no)
{
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(RCX, HELD(write)));
    x64_lea_reg_mem(e, QWORD, RDI, x64_at(RSI, BOTH_BYTES));
    x64_sub_reg_mem(e, QWORD, RDI, x64_fs(CTX(relay.wire.read_seen)));
    x64_cmp_reg_imm(e, QWORD, RDI, WIRE_RING_BYTES);
    unless(e, X64_A, no);
    x64_and_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - 1);
    x64_cmp_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - BOTH_BYTES);
    unless(e, X64_A, no);
    x64_mov_reg_mem(e, QWORD, RDI, x64_at(RCX, HELD(held.lived)));
    x64_cmp_reg_imm(e, QWORD, RDI, HEAP_PAIR_LIVED_MAX);
    unless(e, X64_A, no);
    x64_lea_reg_mem(e, QWORD, RSI, x64_indexed(RCX, RSI, 1, HELD(data)));
    x64_shl_reg_imm(e, QWORD, RDI, HEAP_PAIR_SIZE_BITS);
    x64_or_reg_mem(e, QWORD, RDI, x64_at(RCX, HELD(held.repeat.size)));
    x64_mov_mem_imm(e, BYTE, x64_at(RSI, 0), RECORD_HEAP_PAIR);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, 24), RDI);
    x64_mov_reg_mem(e, QWORD, RDI, x64_at(RCX, HELD(held.stamp)));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, 8), RDI);
    x64_add_mem_imm(e, QWORD, x64_at(RCX, HELD(write)), HEAP_ALLOC_BYTES);
    x64_mov_mem_imm(e, QWORD, held_state(), 0);
}

// A series behind it, in the context of the pair.
static void emit_begin_series(Emitter *e)
{
    emit_fetch_ring(e, RSI, 0);
    emit_fetch_ring(e, RSI, 64);
    x64_mov_reg_mem(e, DWORD, RDI, x64_at(RCX, HELD(held.run)));
    x64_add_reg_imm(e, DWORD, RDI, 1);
    x64_mov_mem_reg(e, DWORD, x64_at(RCX, HELD(held.run)), RDI);
    x64_shr_reg_imm(e, DWORD, RDI, 1);
    x64_add_reg_imm(e, DWORD, RDI, 1);
    x64_movzx8_reg_reg(e, DWORD, RDI, RDI);
    x64_shl_reg_imm(e, DWORD, RDI, 8);
    x64_or_reg_imm(e, DWORD, RDI, RECORD_HEAP_PAIRS);
    x64_mov_mem_reg(e, DWORD, x64_at(RSI, 32), RDI);
    x64_mov_reg_mem(e, DWORD, RDI, x64_at(RSI, 4));
    x64_mov_mem_reg(e, DWORD, x64_at(RSI, 36), RDI);
    x64_mov_reg_mem(e, QWORD, RDI, x64_at(RCX, HELD(begun)));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, 40), RDI);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, HEAP_ALLOC_BYTES + HEAP_PAIRS_HEAD * 8), RDX);
    x64_lea_reg_mem(e, QWORD, RDI, x64_at(RSI, HEAP_ALLOC_BYTES + HEAP_PAIRS_HEAD * 8 + 8));
    x64_sub_reg_reg(e, QWORD, RDI, RCX);
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.next)), RDI);
    x64_mov_reg_mem(e, DWORD, RDI, x64_fs(CTX(relay.wire.stamps_left)));
    x64_lea_reg_mem(e, DWORD, RDI, x64_indexed(RDI, RDI, 1, (i32)WIRE_PAIRS));
    x64_mov_mem_reg(e, DWORD, x64_at(RCX, HELD(held.pairs_end)), RDI);
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.repeat.result)), RAX);
    x64_mov_mem_imm(e, QWORD, held_state(), (i32)(WIRE_PAIRS + 1));
    x64_add_mem_imm(e, DWORD, x64_at(RCX, HELD(held.run)), 1);
}

static X64Jump emit_done(Emitter *e, const u8 *registers, unsigned count)
{
    x64_mov_fs_imm64(e, CTX(lean.told), 0);
    x64_mov_fs_imm64(e, CTX(lean.sp), 0);
    for (unsigned i = 0; i < count; i++)
        x64_mov_reg_fs(e, registers[i], CTX_SPILL(registers[i]));
    return x64_branch(e, X64_JMP);
}

X64Jump lean_alloc_again(Emitter *e)
{
    static const u8 registers[] = {RSI, RDI, RDX, RCX};
    Slow no = {0}, full = {0};
    emit_check(e, &no);
    x64_mov_fs_reg(e, CTX_SPILL(RSI), RSI);
    x64_mov_fs_reg(e, CTX_SPILL(RDI), RDI);
    emit_word(e, &full);
    emit_publish_pair(e, &full);
    emit_begin_series(e);
    X64Jump on = emit_done(e, registers, ARRAY_LEN(registers));
    land_all(e, &full);
    x64_mov_reg_fs(e, RSI, CTX_SPILL(RSI));
    x64_mov_reg_fs(e, RDI, CTX_SPILL(RDI));
    land_all(e, &no);
    return on;
}

X64Jump lean_alloc_next(Emitter *e)
{
    static const u8 registers[] = {RSI, RDX, RCX};
    Slow no = {0}, full = {0};
    x64_cmp_reg_mem(e, DWORD, RDX, x64_at(RCX, HELD(held.pairs_end)));
    unless(e, X64_AE, &no);
    x64_test_reg_imm(e, BYTE, RDX, 1);
    unless(e, X64_NE, &no);
    x64_mov_fs_reg(e, CTX_SPILL(RSI), RSI);
    emit_word(e, &full);
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(RCX, HELD(held.next)));
    x64_mov_mem_reg(e, QWORD, x64_sum(RCX, RSI), RDX);
    x64_prefetchw_mem(e, x64_indexed(RCX, RSI, 1, WIRE_FETCH_BYTES));
    x64_add_reg_imm(e, QWORD, RSI, 8);
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.next)), RSI);
    x64_mov_mem_reg(e, QWORD, x64_at(RCX, HELD(held.repeat.result)), RAX);
    emit_increment(e, HELD(held.repeat.state));
    X64Jump on = emit_done(e, registers, ARRAY_LEN(registers));
    land_all(e, &full);
    x64_mov_reg_fs(e, RSI, CTX_SPILL(RSI));
    land_all(e, &no);
    return on;
}
