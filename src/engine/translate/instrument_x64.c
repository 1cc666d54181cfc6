// SPDX-License-Identifier: MIT
//
// The primitives with which tools insert code; see toolapi/toolapi.h.
#include "base/assert.h"
#include "engine/gateway/gateway.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

bool tool_sees_all;

u32 tool_version(const ToolBlock *b)
{
    return b->block->version & ~(VERSION_ORIGINAL | VERSION_STEPPED);
}

bool tool_is_first(const ToolBlock *b, const ToolInsn *insn)
{
    return insn == b->insns;
}

void tool_depends_on(ToolBlock *b, GuestAddr start, GuestAddr end)
{
    cache_note_source(b->block, start, end);
}

void tool_store_gpr(ToolBlock *b, unsigned reg)
{
    x64_mov_fs_reg(&b->e, CTX_GPR(reg), reg);
}

bool tool_flags_are_dead_at(const ToolBlock *b, const ToolInsn *insn)
{
    return tool->needs & TOOL_NEEDS_FLAGS && !b->flags_live[insn - b->insns];
}

void tool_keep_whole(ToolBlock *b, const ToolInsn *last)
{
    b->whole_to = last;
}

bool tool_has_room(const ToolBlock *b, u32 insns, u32 guards)
{
    enum { USUAL_ROOM = 256 };
    return b->guard_count + guards + INSN_GUARDS_MAX <= BLOCK_GUARDS_MAX &&
           emit_room(&b->e) >= INSN_ROOM + insns * USUAL_ROOM + guards * USUAL_ROOM / 8;
}

void tool_end_before(ToolBlock *b, const ToolInsn *insn)
{
    ASSERT(insn > b->insns && insn < b->insns + b->insn_count);
    b->insn_count = (unsigned)(insn - b->insns);
    b->next_pc = insn->pc;
}

bool tool_flags_are_dead(const ToolBlock *b)
{
    return tool_flags_are_dead_at(b, b->insn);
}

void tool_state_store(ToolBlock *b, u32 offset, u64 value)
{
    x64_mov_fs_imm64(&b->e, CTX(tool.state) + (i32)offset, value);
}

// Bits of the upper half go one by one. All of it at once: it is soon loaded as a whole, which
// would wait for the store of a part.
void tool_state_and(ToolBlock *b, u64 value)
{
    i64 low = (i32)((u32)value | 1u << 31);
    if (low != -1)
        x64_and_mem_imm(&b->e, QWORD, x64_fs(CTX(tool.state)), (i32)low);
    for (u64 left = ~value >> 31 << 31; left; left &= left - 1)
        x64_btr_mem_imm(&b->e, QWORD, x64_fs(CTX(tool.state)), (u8)__builtin_ctzll(left));
}

// A constant that is not 32 bits, sign-extended, takes an `and` for each half, and a comparison.
void tool_state_mask(ToolBlock *b, u32 offset, u64 kept, u64 value)
{
    i32 at = CTX(tool.state) + (i32)offset;
    if (fits_i32((i64)kept)) {
        x64_and_mem_imm(&b->e, QWORD, x64_fs(at), (i32)kept);
    } else {
        x64_and_mem_imm(&b->e, DWORD, x64_fs(at), (i32)kept);
        x64_and_mem_imm(&b->e, DWORD, x64_fs(at + 4), (i32)(kept >> 32));
        x64_cmp_mem_imm(&b->e, QWORD, x64_fs(at), 0);
    }
    X64Jump end = x64_jcc_short(&b->e, X64_NE);
    tool_state_and(b, value);
    x64_land(&b->e, end);
}

CodePtr tool_state_if(ToolBlock *b, u32 offset)
{
    x64_cmp_mem_imm(&b->e, QWORD, x64_fs(CTX(tool.state) + (i32)offset), 0);
    return x64_branch(&b->e, X64_E).end;
}

void tool_state_end_if(ToolBlock *b, CodePtr site)
{
    x64_land(&b->e, (X64Jump){.end = site});
}

// Where the flags are live, through rax and lea.
void tool_count(ToolBlock *b, unsigned slot, u32 amount)
{
    i32 at = CTX(tool.slot) + 8 * (i32)slot;
    if (tool_flags_are_dead(b)) {
        x64_add_mem_imm(&b->e, QWORD, x64_fs(at), (i32)amount);
        return;
    }
    builder_spill(b, RAX);
    x64_mov_reg_fs(&b->e, RAX, at);
    x64_lea_reg_mem(&b->e, QWORD, RAX, x64_at(RAX, (i32)amount));
    x64_mov_fs_reg(&b->e, at, RAX);
    builder_unspill(b, RAX);
}

// The gateway goes on behind the jump to it.
void emit_tool_call(ToolBlock *b, ToolCallFn *fn, u64 arg)
{
    x64_mov_fs_address(&b->e, CTX(gateway.call_fn), EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)fn);
    x64_mov_fs_imm64(&b->e, CTX(gateway.call_arg), arg);
    x64_mov_fs_address(&b->e, CTX(gateway.call_return), EMIT_CACHE_ADDRESS, 0);
    CodePtr address = b->e.pc - sizeof(u32);
    x64_jmp_to(&b->e, gateway_tool_call());
    u32 here = (u32)(uintptr_t)b->e.pc; // the cache lies below 2 GiB
    memcpy(address, &here, sizeof(here));
}

void tool_note_depth(ToolBlock *b, unsigned slot, ToolCallFn *fn, u64 arg)
{
    i32 at = CTX(tool.slot) + 8 * (i32)slot;
    x64_cmp_reg_mem(&b->e, QWORD, RSP, x64_fs(at));
    X64Jump not_lower = x64_jcc_short(&b->e, X64_AE);
    x64_mov_fs_reg(&b->e, at, RSP);
    x64_cmp_reg_mem(&b->e, QWORD, RSP, x64_fs(at + 8));
    X64Jump not_low = x64_jcc_short(&b->e, X64_AE);
    emit_tool_call(b, fn, arg);
    x64_land(&b->e, not_lower);
    x64_land(&b->e, not_low);
}

void tool_call(ToolBlock *b, ToolCallFn *fn, u64 arg)
{
    emit_tool_call(b, fn, arg);
}

unsigned tool_accesses(const ToolInsn *insn, ToolAccess *ret_accesses, unsigned max)
{
    return insn_accesses(insn, ret_accesses, max);
}

void tool_call_access(ToolBlock *b, const ToolAccess *access, ToolCallFn *fn, u64 arg)
{
    builder_spill(b, RAX);
    bool known = emit_access_address(b, RAX, access);
    if (!known)
        x64_mov_reg_imm(&b->e, RAX, 0);
    x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
    builder_unspill(b, RAX);
    emit_tool_call(b, fn, arg);
}

// ---------------------------------------------------------------- vectors

// All of the register: xsave tells how wide it is.
void tool_store_vector(ToolBlock *b, unsigned vector)
{
    enum { XSTATE_YMM = 1 << 2, XSTATE_ZMM = 7 << 5 };
    i32 disp = CTX(tool.vectors) + 64 * (i32)vector;
    u64 has = gateway_xsave_mask();
    unsigned bytes = (has & XSTATE_ZMM) == XSTATE_ZMM ? 64 : has & XSTATE_YMM ? 32 : 16;
    x64_movups_mem_vector(&b->e, bytes, x64_fs(disp), vector);
}
