// SPDX-License-Identifier: MIT
//
// The context of an allocation's caller that was called anew, as name_frames() of calltags/ finds
// it: up from frame to frame, by their sizes, to the first that has a context, and down again,
// each by its caller's context and its return address. What is not remembered, or no landing's,
// is left to that; frames that were named on the way down keep their names.
#include "engine/translate/lean_x64.h"

// calltags_known_frame() of a frame's return address, which is rdi:= [rsi]. rdx := the slot of
// its caller, r8 := the word of that, whose tag is a landing's.
static void emit_find_above(Emitter *e, Slow *unknown)
{
    enum { SHAPES = offsetof(ContextCache, shapes) - offsetof(ContextCache, slots) };
    _Static_assert(sizeof(struct CallShape) == 1 << 4 && CALLTAGS_VARIES % 8 != 0, "");
    x64_mov_reg_mem(e, QWORD, RDI, x64_at(RSI, 0));
    x64_mov_reg_reg(e, QWORD, RDX, RDI);
    x64_shr_reg_imm(e, QWORD, RDX, 11);
    x64_xor_reg_reg(e, DWORD, RDX, RDI);
    x64_and_reg_imm(e, DWORD, RDX, CALLTAGS_SHAPES - 1);
    x64_shl_reg_imm(e, DWORD, RDX, 4);
    x64_add_reg_mem(e, QWORD, RDX, x64_fs(CTX(lean.contexts)));
    x64_cmp_mem_reg(e, QWORD, x64_at(RDX, SHAPES + (i32)offsetof(struct CallShape, pc)), RDI);
    unless(e, X64_NE, unknown);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RDX, SHAPES + (i32)offsetof(struct CallShape, up)));
    x64_test_reg_imm(e, BYTE, RDX, 7);
    unless(e, X64_NE, unknown);
    x64_lea_reg_mem(e, QWORD, RDX, x64_indexed(RSI, RDX, 1, 8));
    emit_load_tag(e, R8, RDX);
    x64_lea_reg_mem(e, DWORD, RCX, x64_at(R8, (i32)-CALLTAG_LANDING));
    x64_cmp_reg_imm(e, DWORD, RCX, LANDINGS_MAX);
    unless(e, X64_AE, unknown);
    x64_mov_reg_mem(e, QWORD, RCX, x64_indexed(X64_NO_REG, RCX, 8, LANDING_PCS));
    x64_cmp_reg_mem(e, QWORD, RCX, x64_at(RDX, 0));
    unless(e, X64_NE, unknown);
}

// The context of a frame whose slot is rsi; r8d is that of its caller. edx := it
static void emit_name_frame(Emitter *e, Slow *unknown)
{
    x64_mov_reg_mem(e, QWORD, RDI, x64_at(RSI, 0));
    x64_mov_reg_imm(e, RCX, CALLTAGS_CACHE_HASH);
    x64_imul_reg_reg(e, QWORD, RCX, RDI);
    x64_shr_reg_imm(e, QWORD, RCX, CALLTAGS_CACHE_SHIFT);
    x64_add_reg_reg(e, DWORD, RCX, R8);
    x64_and_reg_imm(e, DWORD, RCX, CONTEXTS_CACHED - 1);
    x64_shl_reg_imm(e, DWORD, RCX, 4);
    x64_add_reg_mem(e, QWORD, RCX, x64_fs(CTX(lean.contexts)));
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, (i32)offsetof(CachedContext, pc)), RDI);
    unless(e, X64_NE, unknown);
    x64_cmp_mem_reg(e, DWORD, x64_at(RCX, offsetof(CachedContext, parent)), R8);
    unless(e, X64_NE, unknown);
    x64_mov_reg_mem(e, DWORD, RDX, x64_at(RCX, offsetof(CachedContext, context)));
    x64_test_reg_reg(e, DWORD, RDX, RDX);
    unless(e, X64_E, unknown);
    X64Mem tag = x64_gs(x64_at(RSI, CALLTAGS_DISP));
    x64_mov_reg_mem(e, DWORD, RCX, tag);
    x64_mov_reg_reg(e, QWORD, R8, RDX);
    x64_shl_reg_imm(e, QWORD, R8, 32);
    x64_or_reg_reg(e, QWORD, R8, RCX);
    x64_mov_mem_reg(e, QWORD, tag, R8);
}

void lean_name_caller(Emitter *e, CodePtr named)
{
    Slow lost = {0};
    x64_mov_fs_reg(e, CTX_SPILL(R9), R9);
    X64Mem slot = x64_indexed(X64_NO_REG, R9, sizeof(GuestAddr), CTX(lean.slots));
    slot.segment = X64_FS;
    x64_xor_reg_reg(e, DWORD, R9, R9);
    CodePtr up = e->pc;
    x64_mov_mem_reg(e, QWORD, slot, RSI);
    emit_find_above(e, &lost);
    x64_mov_reg_reg(e, QWORD, RSI, RDX);
    x64_shr_reg_imm(e, QWORD, R8, 32);
    X64Jump known = x64_jcc_short(e, X64_NE);
    x64_add_reg_imm(e, DWORD, R9, 1);
    x64_cmp_reg_imm(e, DWORD, R9, LEAN_SLOTS);
    unless(e, X64_AE, &lost);
    x64_jmp_to(e, up);
    x64_land(e, known);
    CodePtr down = e->pc;
    x64_mov_reg_mem(e, QWORD, RSI, slot);
    emit_name_frame(e, &lost);
    x64_mov_reg_reg(e, DWORD, R8, RDX);
    x64_sub_reg_imm(e, DWORD, R9, 1);
    x64_branch_to(e, X64_NS, down);
    x64_mov_reg_fs(e, R9, CTX_SPILL(R9));
    x64_mov_reg_fs(e, R8, CTX(lean.sites));
    x64_jmp_to(e, named);
    land_all(e, &lost);
    x64_mov_reg_fs(e, R9, CTX_SPILL(R9));
}
