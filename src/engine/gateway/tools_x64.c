// SPDX-License-Identifier: MIT
//
// Gateways by which blocks call tools, and what they do for tools without a call.
#include "engine/gateway/gateway_emit.h"
#include "engine/toolapi/toolapi.h"

// The status flags from the word at [rsp]: popfq takes longer than all the rest of a call. Returns
// the branch for when there is more to restore.
static X64Jump emit_restore_status(Emitter *e)
{
    enum { OF_IN_SECOND_BYTE = 3 };
    x64_test_mem_imm(e, DWORD, x64_at(RSP, 0), FLAG_TF | FLAG_DF | FLAG_AC);
    X64Jump unusual = x64_branch(e, X64_NE);
    x64_movzx8_reg_mem(e, DWORD, RAX, x64_at(RSP, 1));
    x64_shr_reg_imm(e, DWORD, RAX, OF_IN_SECOND_BYTE);
    x64_and_reg_imm(e, DWORD, RAX, 1);
    x64_add_reg_imm(e, BYTE, RAX, 0x7f); // overflows if al is 1
    x64_mov_reg_mem(e, BYTE, X64_AH, x64_at(RSP, 0));
    x64_sahf(e);
    return unusual;
}

// dst := fs:[disp], in halves, as blocks have stored it (x64_mov_fs_imm64()): one load of both
// would wait until they have reached the cache.
static void emit_load_halves(Emitter *e, unsigned dst, unsigned high, i32 disp)
{
    x64_mov_reg_mem(e, DWORD, dst, x64_fs(disp));
    x64_mov_reg_mem(e, DWORD, high, x64_fs(disp + 4));
    x64_shl_reg_imm(e, QWORD, high, 32);
    x64_or_reg_reg(e, QWORD, dst, high);
}

static const u8 caller_saved[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, RSP};

// Back to the block, with a word of flags on the stack, which are not restored where they are
// dead. A signal that arrived meanwhile waits for a boundary: set TF, so that the handler
// single-steps the thread to one.
static void emit_tool_return(Emitter *e, unsigned which)
{
    gateway.tool_return[which] = e->pc; // a signal that comes later may be too late for the test
    X64Jump requested = emit_if_requested(e);
    X64Jump unusual = {0};
    if (which == 0)
        unusual = emit_restore_status(e);
    CodePtr registers = e->pc;
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        x64_mov_reg_fs(e, caller_saved[i], CTX_GPR(caller_saved[i]));
    x64_jmp_mem(e, x64_fs(CTX(gateway.call_return)));

    x64_land(e, requested);
    x64_mov_fs_imm32(e, CTX(dispatch.stepping), 1);
    x64_or_mem_imm(e, DWORD, x64_at(RSP, 0), FLAG_TF);
    if (which == 0)
        x64_land(e, unusual);
    x64_popfq(e);
    x64_jmp_to(e, registers);
    gateway.tool_return_end[which] = e->pc;
}

// Calls fs:[call_fn](ctx, call_arg, call_address) on the engine's stack. Only
// what a C function may change is saved; it uses no vector registers.
static void emit_tool_call(Emitter *e)
{
    gateway.tool_call[0] = e->pc;
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        x64_mov_fs_reg(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_pushfq(e);
    x64_push_reg(e, RAX); // alignment
    x64_cld(e);
    x64_test_mem_imm(e, DWORD, x64_at(RSP, 8), FLAG_AC);
    emit_stop_alignment_checks(e);
    x64_mov_reg_fs(e, RDI, CTX(gateway.self));
    emit_load_halves(e, RSI, RDX, CTX(gateway.call_arg));
    emit_load_halves(e, RAX, RDX, CTX(gateway.call_fn));
    x64_mov_reg_fs(e, RDX, CTX(gateway.call_address));
    x64_call_reg(e, RAX);
    x64_pop_reg(e, RAX);

    emit_tool_return(e, 0);
}

static void emit_is_careful(Emitter *e)
{
    x64_cmp_mem_imm(e, DWORD, x64_fs(CTX(gateway.careful)), 0);
}

// The word of flags that emit_tool_return() wants, with none of the client's.
static void emit_push_flags(Emitter *e)
{
    enum { FLAGS = 0x202 };
    x64_push_imm(e, FLAGS);
}

// The same where the flags are dead: rax, which is spilled, points to a GatewayCall. The flags are
// neither saved nor looked at; a client that may have set one of those that C cannot stand takes
// the other way.
static void emit_quick_call(Emitter *e)
{
    gateway.tool_call[1] = e->pc;
    emit_is_careful(e);
    X64Jump careful = x64_branch(e, X64_NE);
    for (size_t i = 1; i < ARRAY_LEN(caller_saved); i++)
        x64_mov_fs_reg(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RAX));
    x64_mov_fs_reg(e, CTX_GPR(RAX), RCX);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    emit_push_flags(e);
    x64_push_reg(e, RAX); // alignment
    x64_mov_reg_fs(e, RDI, CTX(gateway.self));
    x64_mov_reg_mem(e, QWORD, RSI, x64_at(RAX, offsetof(GatewayCall, arg)));
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RAX, offsetof(GatewayCall, back)));
    x64_mov_fs_reg(e, CTX(gateway.call_return), RCX);
    x64_mov_reg_fs(e, RDX, CTX(gateway.call_address));
    x64_call_mem(e, x64_at(RAX, offsetof(GatewayCall, fn)));
    x64_pop_reg(e, RAX);

    emit_tool_return(e, 1);

    x64_land(e, careful);
    x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    static const i32 words[][2] = {
        {offsetof(GatewayCall, fn), offsetof(ThreadCtx, gateway.call_fn)},
        {offsetof(GatewayCall, arg), offsetof(ThreadCtx, gateway.call_arg)},
        {offsetof(GatewayCall, back), offsetof(ThreadCtx, gateway.call_return)}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        x64_mov_reg_mem(e, QWORD, RCX, x64_at(RAX, words[i][0]));
        x64_mov_fs_reg(e, ctx_displacement + words[i][1], RCX);
    }
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_jmp_to(e, gateway.tool_call[0]);
    gateway.quick_careful_end = e->pc;
}

// The fast step: calls a GatewayCall's `brief`, which preserves all registers but rax, so this
// gateway saves no other. If `brief` answers 0, it has done nothing, and the full call is made.
static void emit_brief_call(Emitter *e)
{
    static const u8 arguments[] = {RDI, RSI, RDX, RSP};
    static const u8 others[] = {RCX, R8, R9, R10, R11};
    gateway.tool_call[2] = e->pc;
    emit_is_careful(e);
    x64_branch_to(e, X64_NE, gateway.tool_call[1]);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        x64_mov_fs_reg(e, CTX_GPR(arguments[i]), arguments[i]);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    emit_push_flags(e);
    x64_push_reg(e, RAX);
    x64_mov_reg_fs(e, RDI, CTX(gateway.self));
    x64_mov_reg_reg(e, QWORD, RSI, RAX);
    x64_mov_reg_fs(e, RDX, CTX(gateway.call_address));
    x64_call_mem(e, x64_at(RAX, offsetof(GatewayCall, brief)));

    gateway.tool_return[2] = e->pc;
    x64_test_reg_reg(e, DWORD, RAX, RAX);
    X64Jump slow = x64_branch(e, X64_E);
    X64Jump requested = emit_if_requested(e);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        x64_mov_reg_fs(e, arguments[i], CTX_GPR(arguments[i]));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_jmp_mem(e, x64_fs(CTX(gateway.call_return)));

    x64_land(e, slow);
    x64_pop_reg(e, RAX);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        x64_mov_reg_fs(e, arguments[i], CTX_GPR(arguments[i]));
    x64_jmp_to(e, gateway.tool_call[1]);

    x64_land(e, requested);
    x64_pop_reg(e, RAX);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        x64_mov_fs_reg(e, CTX_GPR(others[i]), others[i]);
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_mov_fs_reg(e, CTX_GPR(RAX), RAX);
    x64_jmp_to(e, gateway.tool_return[1]);
    gateway.tool_return_end[2] = e->pc;
}

// Compares with 0 the bits, at [rcx], of 8, 16, 32 or 64 bytes.
static void emit_compare_bits(Emitter *e, u32 size)
{
    x64_cmp_mem_imm(e, size / 8, x64_at(RCX, 0), 0);
}

// The first store to memory that was undefined, where nothing stands against it:
//     is the address below store_below? else high
//   fine: are the bits of all its bytes 0? else slow, or unaligned
//   clear: the shadow becomes 0 ; back to the block
//   high: is it above rsp - 128? then fine, else slow
//   unaligned: are the bits of twice as many bytes 0? then clear
//   slow: the tool's function
static void emit_store(Emitter *e, u32 size)
{
    const u32 whole = size <= 8 ? 8 : size;
    x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    x64_cmp_reg_mem(e, QWORD, RAX, x64_fs(CTX(tool.store_below)));
    X64Jump high = x64_branch(e, X64_AE), unaligned = {0};
    CodePtr fine = e->pc;
    x64_mov_reg_imm(e, RCX, tool->store_map * 8);
    x64_add_reg_reg(e, QWORD, RCX, RAX);
    x64_shr_reg_imm(e, QWORD, RCX, 3);
    if (size > 1) {
        x64_test_reg_imm(e, BYTE, RAX, (size < 8 ? (i32)size : 8) - 1);
        unaligned = x64_branch(e, X64_NE);
    }
    emit_compare_bits(e, whole);
    X64Jump marked = x64_branch(e, X64_NE);
    CodePtr clear = e->pc;
    for (u32 at = 0; at < size; at += 8)
        x64_mov_mem_imm(e, size < 8 ? size : 8, x64_gs(x64_at(RAX, TOOL_SHADOW_DISP + (i32)at)), 0);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_jmp_mem(e, x64_fs(CTX(gateway.call_return)));

    x64_land(e, high);
    x64_lea_reg_mem(e, QWORD, RCX, x64_at(RSP, -128));
    x64_cmp_reg_reg(e, QWORD, RAX, RCX);
    x64_branch_to(e, X64_AE, fine);
    X64Jump below = x64_branch(e, X64_JMP);
    if (size > 1) {
        x64_land(e, unaligned);
        emit_compare_bits(e, 2 * whole);
        x64_branch_to(e, X64_E, clear);
    }
    x64_land(e, below);
    x64_land(e, marked);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_fs_reg(e, CTX(gateway.call_address), RAX);
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_mov_fs_address(e, CTX(gateway.call_fn), EMIT_ENGINE_ADDRESS,
                       (u64)(uintptr_t)tool->store_slow);
    x64_mov_fs_imm64(e, CTX(gateway.call_arg), size);
    x64_jmp_to(e, gateway.tool_call[0]);
}

static void emit_stores(Emitter *e)
{
    emit_align_word(e);
    gateway.store_map = e->pc;
    emit_u64(e, tool->store_map);
    gateway.stores = e->pc;
    for (u32 i = 0; tool->store_slow && i < GATEWAY_STORES; i++) {
        gateway.store[i] = e->pc;
        emit_store(e, 1u << i);
    }
    gateway.stores_end = e->pc;
}

void gateway_emit_tools(Emitter *e)
{
    emit_tool_call(e);
    emit_quick_call(e);
    emit_brief_call(e);
    emit_stores(e);
}

CodePtr gateway_store_map(void)
{
    return gateway.store_map;
}

CodePtr gateway_store(u32 size)
{
    u32 i = (u32)__builtin_ctz(size | 1u << 31);
    return i < GATEWAY_STORES && size == 1u << i ? gateway.store[i] : NULL;
}
