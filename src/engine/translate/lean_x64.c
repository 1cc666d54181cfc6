// SPDX-License-Identifier: MIT
//
// The prologues of lean functions and of their return sites (redirect/lean_hot.c). At a
// function's entry and return the flags are dead; all registers are kept.
#include "engine/calltags/calltags.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/lean_x64.h"

enum { SITES_MASK = (LEAN_SITES - 1) << 3 };

static void emit_note_call(Emitter *e, const ToolFunction *function, u32 hook)
{
    static const u8 argument_register[] = {RDI, RSI, RDX, RCX};
    for (unsigned i = 0; i < ARRAY_LEN(argument_register) && !function->size_arg; i++)
        x64_mov_fs_reg(e, CTX(lean.args) + 8 * (i32)i, argument_register[i]);
    if (function->factor_arg) { // a product that overflows is none that is allocated
        x64_lea_reg_mem(e, QWORD, RAX, x64_at(argument_register[function->size_arg - 1], 0));
        x64_imul_reg_reg(e, QWORD, RAX, argument_register[function->factor_arg - 1]);
        x64_mov_fs_reg(e, CTX(lean.size), RAX);
    } else if (function->size_arg)
        x64_mov_fs_reg(e, CTX(lean.size), argument_register[function->size_arg - 1]);
    else
        x64_mov_fs_imm64(e, CTX(lean.size), ~0ull);
    x64_mov_fs_imm32(e, CTX(lean.hook), hook);
    x64_mov_fs_imm32(e, CTX(lean.inner), hook);
}

void lean_entry(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RAX);
    builder_spill(b, RDX);
    x64_mov_reg_fs(e, RAX, CTX(lean.sp));
    x64_test_reg_reg(e, QWORD, RAX, RAX);
    X64Jump nested = x64_branch(e, X64_NE);
    x64_mov_reg_mem(e, QWORD, RAX, x64_at(RSP, 0));
    x64_mov_reg_reg(e, DWORD, RDX, RAX);
    x64_and_reg_imm(e, DWORD, RDX, SITES_MASK);
    X64Mem known = x64_at(RDX, CTX(lean.known));
    known.segment = X64_FS;
    x64_cmp_mem_reg(e, QWORD, known, RAX);
    X64Jump slow = x64_branch(e, X64_NE);
    builder_mark_nowhere(b);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_lea_reg_mem(e, QWORD, RAX, x64_at(RSP, 8));
    x64_neg_reg(e, QWORD, RAX);
    x64_mov_fs_reg(e, CTX(lean.sp), RAX);
    emit_note_call(e, site->lean, site->hook);
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    X64Jump on = x64_branch(e, X64_JMP);
    x64_land(e, nested);
    x64_lea_reg_mem(e, QWORD, RAX, x64_sum(RAX, RSP));
    x64_test_reg_reg(e, QWORD, RAX, RAX);
    X64Jump stale = x64_jcc_short(e, X64_NS);
    x64_mov_fs_imm32(e, CTX(lean.inner), site->hook);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    X64Jump on_nested = x64_branch(e, X64_JMP);
    x64_land(e, stale);
    x64_land(e, slow);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    emit_leave_to_c(b, site->hook);
    x64_land(e, on);
    x64_land(e, on_nested);
    b->spilled = 0;
    builder_mark(b, false); // F3
}

static void emit_repeat(Builder *b, u32 pc, X64Jump ret_on[3])
{
    Emitter *e = &b->e;
    Slow call = {0};
    x64_mov_fs_reg(e, CTX_SPILL(RDX), RDX);
    x64_mov_reg_fs(e, RCX, CTX(lean.repeat));
    x64_cmp_mem_imm(e, DWORD, x64_at(RCX, REPEAT(site)), (i32)pc);
    unless(e, X64_NE, &call);
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, REPEAT(sp)), RSP);
    unless(e, X64_NE, &call);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RCX, REPEAT(slot)));
    emit_load_tag(e, RDX, RDX);
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, REPEAT(tag)), RDX);
    unless(e, X64_NE, &call);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RCX, REPEAT(state)));
    x64_test_reg_reg(e, QWORD, RDX, RDX);
    X64Jump next = x64_branch(e, X64_S);
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, REPEAT(result)), RAX);
    X64Jump other_block = x64_jcc_short(e, X64_NE);
    x64_mov_reg_fs(e, RDX, CTX(lean.size));
    x64_cmp_mem_reg(e, QWORD, x64_at(RCX, REPEAT(size)), RDX);
    X64Jump other_size = x64_jcc_short(e, X64_NE);
    emit_test_byte(e, REPEAT(state), 1);
    unless(e, X64_NE, &call);
    emit_test_byte(e, REPEAT(state), TOOL_REPEAT_TOLD);
    unless(e, X64_E, &call);
    emit_increment(e, REPEAT(state));
    x64_mov_fs_imm64(e, CTX(lean.told), 0);
    x64_mov_fs_imm64(e, CTX(lean.sp), 0);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    ret_on[0] = x64_branch(e, X64_JMP);
    x64_land(e, other_block);
    x64_land(e, other_size);
    ret_on[1] = lean_alloc_again(e);
    X64Jump not_again = x64_branch(e, X64_JMP);
    x64_land(e, next);
    ret_on[2] = lean_alloc_next(e);
    x64_land(e, not_again);
    land_all(e, &call);
}

// Where nothing returns that is intercepted the flags stay as they are.
void lean_return(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    x64_mov_reg_fs(e, RCX, CTX(lean.sp));
    x64_lea_reg_mem(e, QWORD, RCX, x64_sum(RCX, RSP));
    X64Jump mine = x64_jrcxz(e);
    x64_mov_reg_fs(e, RCX, CTX(redirect.count));
    X64Jump none = x64_jrcxz(e);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump other = x64_branch(e, X64_JMP);
    x64_land(e, none);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on_none = x64_branch(e, X64_JMP);
    x64_land(e, mine);
    builder_mark_nowhere(b);
    bool may_repeat = calltags_wanted && b->block->pc <= INT32_MAX;
    X64Jump on_repeat[3], on_event = {0};
    if (may_repeat) {
        emit_repeat(b, (u32)b->block->pc, on_repeat);
        on_event = lean_alloc_event(e, (u32)b->block->pc);
    }
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    b->spilled = 0;
    emit_fast_call(b, redirect_lean_return, site->hook);
    X64Jump on_call = x64_branch(e, X64_JMP);
    x64_land(e, other);
    emit_fast_call(b, redirect_fast_return, site->hook);
    x64_land(e, on_none);
    if (may_repeat) {
        x64_land(e, on_repeat[0]);
        x64_land(e, on_repeat[1]);
        x64_land(e, on_repeat[2]);
        x64_land(e, on_event);
    }
    x64_land(e, on_call);
    builder_mark(b, false);
}
