// SPDX-License-Identifier: MIT
//
// The event of an allocation, put into the ring where it returns: as wire_heap_alloc() does it, for
// one thread, if the last stamp may be shared and the tool knows the place (ToolSite).
// Registers: rax is the block, rcx the context, rdx and rsi are at hand, rdi is the ring and r8
// the site.
#include "engine/redirect/redirect.h"
#include "engine/translate/lean_x64.h"

#define SITE(field) ((i32)(tool_site_index(pc) * sizeof(ToolSite) + offsetof(ToolSite, field)))

enum { CHUNK_IS_MAPPED = 2 };

// The functions are those of the site. Not both as one word: they were stored as two, and a load
// would wait for that to be in the cache.
static void emit_check_function(Emitter *e, i32 ctx, i32 site, Slow *slow)
{
    x64_mov_reg_mem(e, DWORD, RDX, x64_fs(ctx));
    x64_cmp_mem_reg(e, DWORD, x64_at(R8, site), RDX);
    unless(e, X64_NE, slow);
}

// rsi := the place of the caller's return address, rdx := its word of shadow
static void emit_find_slot(Emitter *e, u32 pc)
{
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(R8, SITE(up)));
    x64_lea_reg_mem(e, QWORD, RSI, x64_sum(RSP, RSI));
    emit_load_tag(e, RDX, RSI);
}

// Whether edx is the tag of what is at [rsi]: calltag_fits(). Where a word is no tag, there may be
// no stack. ecx := it
static void emit_check_tag(Emitter *e, Slow *unknown)
{
    x64_lea_reg_mem(e, DWORD, RCX, x64_at(RDX, (i32)-CALLTAG_LANDING));
    x64_cmp_reg_imm(e, DWORD, RCX, LANDINGS_MAX);
    X64Jump hashed = x64_jcc_short(e, X64_AE);
    x64_mov_reg_mem(e, QWORD, RCX, x64_indexed(X64_NO_REG, RCX, 8, LANDING_PCS));
    x64_cmp_reg_mem(e, QWORD, RCX, x64_at(RSI, 0));
    unless(e, X64_NE, unknown);
    X64Jump fits = x64_jmp_short(e);
    x64_land(e, hashed);
    x64_mov_reg_reg(e, DWORD, RCX, RDX);
    x64_and_reg_imm(e, DWORD, RCX, (i32)CALLTAG_FIXED);
    x64_cmp_reg_imm(e, DWORD, RCX, (i32)CALLTAG_PATTERN);
    unless(e, X64_NE, unknown);
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RSI, 0));
    x64_mov_reg_reg(e, QWORD, RDI, RCX); // calltag_hash()
    x64_shr_reg_imm(e, QWORD, RDI, 29);
    x64_xor_reg_reg(e, DWORD, RCX, RDI);
    x64_imul_reg_reg_imm(e, DWORD, RCX, RCX, (i32)0x9e3779b1);
    x64_and_reg_imm(e, DWORD, RCX, (i32)(~CALLTAG_FIXED & ~CALLTAG_SIGNAL_BIT));
    x64_or_reg_imm(e, DWORD, RCX, (i32)CALLTAG_PATTERN);
    x64_cmp_reg_reg(e, DWORD, RCX, RDX);
    unless(e, X64_NE, unknown);
    x64_land(e, fits);
    x64_mov_reg_reg(e, DWORD, RCX, RDX);
}

// The caller has been called anew, from where it was the last time; ecx is its tag.
static void emit_name_again(Emitter *e, u32 pc, CodePtr named, Slow *other)
{
    x64_cmp_mem_reg(e, QWORD, x64_at(R8, SITE(sp)), RSP);
    unless(e, X64_NE, other);
    x64_cmp_mem_reg(e, DWORD, x64_at(R8, SITE(word)), RCX);
    unless(e, X64_NE, other);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(R8, SITE(slot_above)));
    emit_load_tag(e, RDX, RDX);
    x64_cmp_mem_reg(e, QWORD, x64_at(R8, SITE(word_above)), RDX);
    unless(e, X64_NE, other);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(R8, SITE(word)));
    x64_mov_mem_reg(e, QWORD, x64_gs(x64_at(RSI, CALLTAGS_DISP)), RDX);
    x64_shr_reg_imm(e, QWORD, RDX, 32);
    x64_jmp_to(e, named);
}

// What calltags_context() finds if the caller's context is known and that of the call was found
// before; ecx := it. Returns the jump to emit_name_again().
static X64Jump emit_find_context(Emitter *e, u32 pc, Slow *slow, Slow *unknown,
                                 CodePtr *ret_named)
{
    _Static_assert(sizeof(CachedContext) == 1 << 4, "");
    x64_mov_reg_fs(e, R8, CTX(lean.sites));
    x64_cmp_mem_imm(e, DWORD, x64_at(R8, SITE(site)), (i32)pc);
    unless(e, X64_NE, slow);
    emit_check_function(e, CTX(lean.hook), SITE(hook), slow);
    emit_check_function(e, CTX(lean.inner), SITE(inner), slow);
    emit_find_slot(e, pc);
    emit_check_tag(e, unknown);
    x64_shr_reg_imm(e, QWORD, RDX, 32);
    X64Jump unnamed = x64_branch(e, X64_E);
    *ret_named = e->pc;
    x64_lea_reg_mem(e, DWORD, RCX, x64_at(RDX, (i32)calltags_cache_index(pc, 0)));
    x64_and_reg_imm(e, DWORD, RCX, CONTEXTS_CACHED - 1);
    x64_shl_reg_imm(e, DWORD, RCX, 4);
    x64_add_reg_mem(e, QWORD, RCX, x64_fs(CTX(lean.contexts)));
    x64_cmp_mem_imm(e, QWORD, x64_at(RCX, offsetof(CachedContext, pc)), (i32)pc);
    unless(e, X64_NE, unknown);
    x64_cmp_mem_reg(e, DWORD, x64_at(RCX, offsetof(CachedContext, parent)), RDX);
    unless(e, X64_NE, unknown);
    x64_mov_reg_mem(e, DWORD, RCX, x64_at(RCX, offsetof(CachedContext, context)));
    x64_test_reg_reg(e, DWORD, RCX, RCX);
    unless(e, X64_E, unknown);
    return unnamed;
}

// Else Tool.lean_context() is asked; the registers that it may change and nobody has spilled are.
static void emit_ask_context(Emitter *e, u32 pc, Slow *slow)
{
    static const u8 registers[] = {RAX, R9, R10, R11};
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        x64_mov_fs_reg(e, CTX_SPILL(registers[i]), registers[i]);
    x64_mov_fs_reg(e, CTX_GPR(RSP), RSP);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_mov_reg_imm(e, RDI, pc);
    x64_mov_reg_address(e, RAX, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)redirect_lean_context);
    x64_call_reg(e, RAX);
    x64_mov_reg_fs(e, RSP, CTX_GPR(RSP));
    x64_mov_reg_reg(e, DWORD, RCX, RAX);
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        x64_mov_reg_fs(e, registers[i], CTX_SPILL(registers[i]));
    x64_mov_reg_fs(e, R8, CTX(lean.sites));
    x64_test_reg_reg(e, DWORD, RCX, RCX);
    unless(e, X64_E, slow);
    x64_cmp_mem_imm(e, QWORD, x64_fs(CTX(gateway.pending_signal)), 0);
    unless(e, X64_NE, slow);
}

// How much more than was asked for is usable, as glibc has it in front of the block.
static void emit_extra(Emitter *e)
{
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RAX, -8));
    x64_and_reg_imm(e, QWORD, RDX, -8);
    x64_sub_reg_imm(e, QWORD, RDX, 8);
    x64_sub_reg_mem(e, QWORD, RDX, x64_fs(CTX(lean.size)));
}

static void emit_check_block(Emitter *e, Slow *slow)
{
    x64_test_reg_imm(e, DWORD, RAX, PAGE_SIZE - 1);
    unless(e, X64_E, slow); // a page, which may be no block of glibc's; or NULL
    x64_test_mem_imm(e, BYTE, x64_at(RAX, -8), CHUNK_IS_MAPPED);
    unless(e, X64_NE, slow);
    emit_extra(e);
    x64_cmp_reg_imm(e, QWORD, RDX, HEAP_EXTRA_MAX);
    unless(e, X64_A, slow);
}

static void emit_find_room(Emitter *e, Slow *slow)
{
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(RDI, RING(write)));
    x64_lea_reg_mem(e, QWORD, RDX, x64_at(RSI, HEAP_RUN_BYTES));
    x64_sub_reg_mem(e, QWORD, RDX, x64_fs(CTX(relay.wire.read_seen)));
    x64_cmp_reg_imm(e, QWORD, RDX, WIRE_RING_BYTES);
    unless(e, X64_A, slow);
    x64_and_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - 1);
    x64_cmp_reg_imm(e, DWORD, RSI, WIRE_RING_BYTES - HEAP_RUN_BYTES);
    unless(e, X64_A, slow);
    x64_lea_reg_mem(e, QWORD, RSI, x64_sum(RDI, RSI));
}

// wire_heap_hold().
static void emit_record(Emitter *e)
{
    emit_fetch_ring(e, RSI, RING(data));
    x64_mov_reg_mem(e, DWORD, RDX, x64_at(RDI, RING(held.run)));
    x64_add_reg_imm(e, DWORD, RDX, 1);
    x64_mov_mem_reg(e, DWORD, x64_at(RDI, RING(held.run)), RDX);
    x64_shr_reg_imm(e, DWORD, RDX, 1);
    x64_add_reg_imm(e, DWORD, RDX, 1);
    x64_movzx8_reg_reg(e, DWORD, RDX, RDX);
    x64_shl_reg_imm(e, DWORD, RDX, 8);
    x64_or_reg_imm(e, DWORD, RDX, WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC));
    x64_shl_reg_imm(e, QWORD, RCX, 32);
    x64_or_reg_reg(e, QWORD, RDX, RCX);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data)), RDX);
    x64_mov_reg_mem(e, QWORD, RDX, x64_at(RDI, RING(begun)));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 8), RDX);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.allocated)), RDX);
    emit_extra(e);
    x64_shl_reg_imm(e, QWORD, RDX, HEAP_PLACE_BITS);
    x64_or_reg_reg(e, QWORD, RDX, RAX);
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 16), RDX);
    x64_mov_reg_fs(e, RDX, CTX(lean.size));
    x64_mov_mem_reg(e, QWORD, x64_at(RSI, RING(data) + 24), RDX);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.repeat.size)), RDX);
}

static void emit_hold(Emitter *e, u32 pc)
{
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.repeat.result)), RAX);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.address)), RAX);
    x64_mov_mem_imm(e, DWORD, x64_at(RDI, RING(held.repeat.site)), (i32)pc);
    x64_mov_reg_mem(e, DWORD, RDX, x64_fs(CTX(lean.inner)));
    x64_mov_mem_reg(e, DWORD, x64_at(RDI, RING(held.repeat.inner)), RDX);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.repeat.sp)), RSP);
    emit_find_slot(e, pc);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.repeat.slot)), RSI);
    x64_mov_mem_reg(e, QWORD, x64_at(RDI, RING(held.repeat.tag)), RDX);
    x64_mov_mem_imm(e, QWORD, x64_at(RDI, RING_STATE), 1);
    x64_add_mem_imm(e, DWORD, x64_at(RDI, RING(held.run)), 1);
}

static void emit_restore(Emitter *e)
{
    static const u8 registers[] = {RSI, RDI, R8, RDX};
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        x64_mov_reg_fs(e, registers[i], CTX_SPILL(registers[i]));
}

X64Jump lean_alloc_event(Emitter *e, u32 pc)
{
    Slow slow = {0}, other = {0}, unknown = {0};
    x64_mov_fs_reg(e, CTX_SPILL(RSI), RSI);
    x64_mov_fs_reg(e, CTX_SPILL(RDI), RDI);
    x64_mov_fs_reg(e, CTX_SPILL(R8), R8);
    emit_may_share_stamp(e, &slow);
    emit_check_block(e, &slow);
    CodePtr named;
    X64Jump unnamed = emit_find_context(e, pc, &slow, &unknown, &named);
    CodePtr known = e->pc;
    x64_mov_reg_fs(e, RDI, CTX(relay.wire.ring));
    lean_flush(e, RDI, &slow);
    emit_find_room(e, &slow);
    emit_record(e);
    emit_hold(e, pc);
    emit_take_stamp(e);
    x64_mov_fs_imm64(e, CTX(lean.told), 0);
    x64_mov_fs_imm64(e, CTX(lean.sp), 0);
    emit_restore(e);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on = x64_branch(e, X64_JMP);
    x64_land(e, unnamed);
    emit_name_again(e, pc, named, &other);
    land_all(e, &other);
    lean_name_caller(e, named);
    land_all(e, &unknown);
    emit_ask_context(e, pc, &slow);
    x64_jmp_to(e, known);
    land_all(e, &slow);
    emit_restore(e);
    return on;
}
