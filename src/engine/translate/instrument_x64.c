// SPDX-License-Identifier: MIT
//
// The primitives with which tools insert code; see toolapi/toolapi.h.
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"
#include "engine/translate/lean_x64.h"

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
    emit_store_fs(&b->e, CTX_GPR(reg), reg);
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

bool tool_flags_are_dead(const ToolBlock *b)
{
    return tool_flags_are_dead_at(b, b->insn);
}

bool tool_flags_die(const ToolBlock *b)
{
    size_t next = (size_t)(b->insn - b->insns) + 1;
    return next < b->insn_count && !b->flags_live[next];
}

void tool_state_store(ToolBlock *b, u32 offset, u64 value)
{
    emit_store_fs_imm64(&b->e, CTX(tool_state) + (i32)offset, value);
}

// and qword fs:[state], value, and for bits of its upper half: btr qword fs:[state], bit
// All of it at once: it is soon loaded as a whole, which would wait for the store of a part.
void tool_state_and(ToolBlock *b, u64 value)
{
    i64 low = (i32)((u32)value | 1u << 31);
    if (low != -1) {
        put_bytes(&b->e, (u8[]){0x64, 0x48, 0x81, 0x24, 0x25}, 5);
        put_u32(&b->e, (u32)CTX(tool_state));
        put_u32(&b->e, (u32)low);
    }
    for (u64 left = ~value >> 31 << 31; left; left &= left - 1) {
        put_bytes(&b->e, (u8[]){0x64, 0x48, 0x0f, 0xba, 0x34, 0x25}, 6);
        put_u32(&b->e, (u32)CTX(tool_state));
        put_u8(&b->e, (u8)__builtin_ctzll(left));
    }
}

// and qword fs:[state + offset], kept, or for what is no such constant: of each half, and a
// comparison with 0; then: jne end ; and … state, value
void tool_state_mask(ToolBlock *b, u32 offset, u64 kept, u64 value)
{
    u32 at = (u32)CTX(tool_state) + offset;
    if (fits_i32((i64)kept)) {
        put_bytes(&b->e, (u8[]){0x64, 0x48, 0x81, 0x24, 0x25}, 5);
        put_u32(&b->e, at);
        put_u32(&b->e, (u32)kept);
    } else {
        for (u32 half = 0; half < 8; half += 4) {
            put_bytes(&b->e, (u8[]){0x64, 0x81, 0x24, 0x25}, 4);
            put_u32(&b->e, at + half);
            put_u32(&b->e, (u32)(kept >> 8 * half));
        }
        put_bytes(&b->e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
        put_u32(&b->e, at);
        put_u8(&b->e, 0);
    }
    put_bytes(&b->e, (u8[]){0x75, 0}, 2);
    CodePtr then = b->e.pc;
    tool_state_and(b, value);
    then[-1] = (u8)(b->e.pc - then);
}

// cmp qword fs:[state + offset], 0 ; je end
CodePtr tool_state_if(ToolBlock *b, u32 offset)
{
    put_bytes(&b->e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(&b->e, (u32)(CTX(tool_state) + (i32)offset));
    put_bytes(&b->e, (u8[]){0, 0x0f, 0x84, 0, 0, 0, 0}, 7);
    return b->e.pc;
}

void tool_state_end_if(ToolBlock *b, CodePtr site)
{
    i32 distance = (i32)(b->e.pc - site);
    memcpy(site - 4, &distance, sizeof(distance));
}

//     add qword fs:[slot], amount
// or, where flags are live:
//     mov fs:[spill rax], rax ; mov rax, fs:[slot] ; lea rax, [rax + amount]
//     mov fs:[slot], rax ; mov rax, fs:[spill rax]
void tool_count(ToolBlock *b, unsigned slot, u32 amount)
{
    i32 at = CTX(tool_slot) + 8 * (i32)slot;
    if (tool_flags_are_dead(b)) {
        put_bytes(&b->e, (u8[]){0x64, 0x48, 0x81, 0x04, 0x25}, 5);
        put_u32(&b->e, (u32)at);
        put_u32(&b->e, amount);
        return;
    }
    builder_spill(b, RAX);
    emit_load_fs(&b->e, RAX, at);
    emit_lea(&b->e, RAX, RAX, (i32)amount);
    emit_store_fs(&b->e, at, RAX);
    builder_unspill(b, RAX);
}

//     call_fn, call_arg, call_return := … ; jmp gateway
//   return:
void emit_tool_call(ToolBlock *b, ToolCallFn *fn, u64 arg)
{
    emit_store_fs_imm64(&b->e, CTX(call_fn), (u64)(uintptr_t)fn);
    emit_store_fs_imm64(&b->e, CTX(call_arg), arg);
    emit_store_fs_imm64(&b->e, CTX(call_return), 0);
    CodePtr return_imm = b->e.pc - 4;
    emit_jmp(&b->e, gateway_tool_call());
    u32 here = (u32)(uintptr_t)b->e.pc; // the cache lies below 2 GiB
    memcpy(return_imm, &here, 4);
}

//     cmp rsp, fs:[slot] ; jae on ; mov fs:[slot], rsp
//     cmp rsp, fs:[slot + 1] ; jae on ; call fn
//   on:
void tool_note_depth(ToolBlock *b, unsigned slot, ToolCallFn *fn, u64 arg)
{
    i32 at = CTX(tool_slot) + 8 * (i32)slot;
    emit_op_fs(&b->e, 0x3b, RSP, at);
    CodePtr not_lower = branch(&b->e, JAE);
    emit_store_fs(&b->e, at, RSP);
    emit_op_fs(&b->e, 0x3b, RSP, at + 8);
    CodePtr not_low = branch(&b->e, JAE);
    emit_tool_call(b, fn, arg);
    land(&b->e, not_lower);
    land(&b->e, not_low);
}

void tool_call(ToolBlock *b, ToolCallFn *fn, u64 arg)
{
    emit_tool_call(b, fn, arg);
}

unsigned tool_accesses(const ToolInsn *insn, ToolAccess *ret_accesses, unsigned max)
{
    return insn_accesses(insn, ret_accesses, max);
}

//     mov fs:[spill rax], rax ; lea rax, operand ; mov fs:[call_address], rax
//     mov rax, fs:[spill rax] ; call
void tool_call_access(ToolBlock *b, const ToolAccess *access, ToolCallFn *fn, u64 arg)
{
    builder_spill(b, RAX);
    bool known = emit_access_address(b, RAX, access);
    if (!known)
        emit_mov_imm(&b->e, RAX, 0);
    emit_store_fs(&b->e, CTX(call_address), RAX);
    builder_unspill(b, RAX);
    emit_tool_call(b, fn, arg);
}

// ---------------------------------------------------------------- vectors

// vmovups fs:[disp], zmm or ymm, or movups where there is no AVX
void tool_store_vector(ToolBlock *b, unsigned vector)
{
    enum { XSTATE_YMM = 1 << 2, XSTATE_ZMM = 7 << 5 };
    i32 disp = CTX(tool_vectors) + 64 * (i32)vector;
    // xsave tells what the machine has.
    u64 has = gateway_xsave_mask();
    put_u8(&b->e, 0x64);
    if ((has & XSTATE_ZMM) == XSTATE_ZMM) {
        u8 extension = (u8)((vector & 8 ? 0 : 0x80) | (vector & 16 ? 0 : 0x10));
        put_bytes(&b->e, (u8[]){0x62, (u8)(0x61 | extension), 0x7c, 0x48, 0x11}, 5);
    } else if (has & XSTATE_YMM) {
        put_bytes(&b->e, (u8[]){0xc5, (u8)(vector & 8 ? 0x7c : 0xfc), 0x11}, 3);
    } else {
        if (vector & 8)
            put_u8(&b->e, 0x44);
        put_bytes(&b->e, (u8[]){0x0f, 0x11}, 2);
    }
    put_u8(&b->e, (u8)(0x04 | (vector & 7) << 3));
    put_u8(&b->e, 0x25);
    put_u32(&b->e, (u32)disp);
}
