// SPDX-License-Identifier: MIT
//
// Gateways by which blocks call tools, and what they do for tools without a call.
#include "engine/run/gateway_emit.h"
#include "engine/toolapi/toolapi.h"

// The status flags from the word at [rsp]: popfq takes longer than all the rest of a call. Returns
// the branch for when there is more to restore.
//   test dword [rsp], TF | DF | AC ; jnz unusual ; al := OF ; add al, 0x7f ; mov ah, [rsp] ; sahf
static CodePtr emit_restore_status(Emitter *e)
{
    put_bytes(e, (u8[]){0xf7, 0x04, 0x24}, 3);
    put_u32(e, FLAG_TF | FLAG_DF | FLAG_AC);
    CodePtr unusual = emit_forward(e, 0x0f85);
    put_bytes(e, (u8[]){0x0f, 0xb6, 0x44, 0x24, 1}, 5); // movzx eax, byte [rsp + 1]
    put_bytes(e, (u8[]){0xc1, 0xe8, 3}, 3);             // shr eax, 3
    put_bytes(e, (u8[]){0x83, 0xe0, 1}, 3);             // and eax, 1
    put_bytes(e, (u8[]){0x04, 0x7f}, 2);                // add al, 0x7f
    put_bytes(e, (u8[]){0x8a, 0x24, 0x24}, 3);          // mov ah, [rsp]
    put_u8(e, 0x9e);                                    // sahf
    return unusual;
}

// mov dst, dword fs:[disp] ; mov high, dword fs:[disp + 4] ; shl high, 32 ; or dst, high
// As blocks have stored it (emit_store_fs_imm64()): one load of both would wait until they have
// reached the cache.
static void emit_load_halves(Emitter *e, unsigned dst, unsigned high, i32 disp)
{
    put_bytes(e, (u8[]){0x64, 0x8b, (u8)(0x04 | dst << 3), 0x25}, 4);
    put_u32(e, (u32)disp);
    put_bytes(e, (u8[]){0x64, 0x8b, (u8)(0x04 | high << 3), 0x25}, 4);
    put_u32(e, (u32)disp + 4);
    put_bytes(e, (u8[]){0x48, 0xc1, (u8)(0xe0 | high), 32}, 4);
    put_bytes(e, (u8[]){0x48, 0x09, (u8)(0xc0 | high << 3 | dst)}, 3);
}

static const u8 caller_saved[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, RSP};

// Back to the block, with a word of flags on the stack, which are not restored where they are
// dead. A signal that arrived meanwhile waits for a boundary: set TF, so that the handler
// single-steps the thread to one.
static void emit_tool_return(Emitter *e, unsigned which)
{
    gateway.tool_return[which] = e->pc; // a signal that comes later may be too late for the test
    CodePtr requested = emit_if_requested(e);
    CodePtr unusual = which == 0 ? emit_restore_status(e) : NULL;
    CodePtr registers = e->pc;
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        emit_load_fs(e, caller_saved[i], CTX_GPR(caller_saved[i]));
    emit_jmp_fs(e, CTX(call_return));

    place_label(e, requested);
    emit_store_fs_imm32(e, CTX(stepping), 1);
    put_bytes(e, (u8[]){0x81, 0x0c, 0x24}, 3); // or dword [rsp], TF
    put_u32(e, FLAG_TF);
    if (unusual)
        place_label(e, unusual);
    put_u8(e, 0x9d); // popfq
    emit_jmp(e, registers);
    gateway.tool_return_end[which] = e->pc;
}

// Calls fs:[call_fn](ctx, call_arg, call_address) on the engine's stack. Only
// what a C function may change is saved; it uses no vector registers.
static void emit_tool_call(Emitter *e)
{
    gateway.tool_call[0] = e->pc;
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        emit_store_fs(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    put_u8(e, 0x9c); // pushfq
    emit_push(e, RAX);
    put_u8(e, 0xfc); // cld
    put_bytes(e, (u8[]){0xf7, 0x44, 0x24, 8}, 4); // test dword [rsp + 8], AC
    put_u32(e, FLAG_AC);
    emit_stop_alignment_checks(e);
    emit_load_fs(e, RDI, CTX(self));
    emit_load_halves(e, RSI, RDX, CTX(call_arg));
    emit_load_halves(e, RAX, RDX, CTX(call_fn));
    emit_load_fs(e, RDX, CTX(call_address));
    put_bytes(e, (u8[]){0xff, 0xd0}, 2); // call rax
    emit_pop(e, RAX);

    emit_tool_return(e, 0);
}

// cmp dword fs:[careful], 0
static void emit_is_careful(Emitter *e)
{
    put_bytes(e, (u8[]){0x64, 0x83, 0x3c, 0x25}, 4);
    put_u32(e, (u32)CTX(careful));
    put_u8(e, 0);
}

// push: the word of flags that emit_tool_return() wants, with none of the client's
static void emit_push_flags(Emitter *e)
{
    enum { FLAGS = 0x202 };
    put_u8(e, 0x68);
    put_u32(e, FLAGS);
}

// The same where the flags are dead: rax, which is spilled, points to a GatewayCall. The flags are
// neither saved nor looked at; a client that may have set one of those that C cannot stand takes
// the other way.
static void emit_quick_call(Emitter *e)
{
    gateway.tool_call[1] = e->pc;
    emit_is_careful(e);
    CodePtr careful = emit_forward(e, 0x0f85);
    for (size_t i = 1; i < ARRAY_LEN(caller_saved); i++)
        emit_store_fs(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    emit_load_fs(e, RCX, CTX_SPILL(RAX));
    emit_store_fs(e, CTX_GPR(RAX), RCX);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_push_flags(e);
    emit_push(e, RAX); // alignment
    emit_load_fs(e, RDI, CTX(self));
    emit_op_base(e, 0x8b, RSI, RAX, offsetof(GatewayCall, arg));
    emit_op_base(e, 0x8b, RCX, RAX, offsetof(GatewayCall, back));
    emit_store_fs(e, CTX(call_return), RCX);
    emit_load_fs(e, RDX, CTX(call_address));
    put_bytes(e, (u8[]){0xff, 0x10}, 2); // call [rax]
    emit_pop(e, RAX);

    emit_tool_return(e, 1);

    place_label(e, careful);
    emit_store_fs(e, CTX_SPILL(RCX), RCX);
    static const i32 words[][2] = {{offsetof(GatewayCall, fn), offsetof(ThreadCtx, call_fn)},
                                   {offsetof(GatewayCall, arg), offsetof(ThreadCtx, call_arg)},
                                   {offsetof(GatewayCall, back),
                                    offsetof(ThreadCtx, call_return)}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        emit_op_base(e, 0x8b, RCX, RAX, words[i][0]);
        emit_store_fs(e, ctx_displacement + words[i][1], RCX);
    }
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_jmp(e, gateway.tool_call[0]);
    gateway.quick_careful_end = e->pc;
}

// A call that may do without the registers: of a GatewayCall's `brief`, which preserves all but
// rax. If it answers 0, it has done nothing, and the quick call is made instead.
static void emit_brief_call(Emitter *e)
{
    static const u8 arguments[] = {RDI, RSI, RDX, RSP};
    static const u8 others[] = {RCX, R8, R9, R10, R11};
    gateway.tool_call[2] = e->pc;
    emit_is_careful(e);
    emit_link_site(e, 0x0f85, gateway.tool_call[1]);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        emit_store_fs(e, CTX_GPR(arguments[i]), arguments[i]);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_push_flags(e);
    emit_push(e, RAX);
    emit_load_fs(e, RDI, CTX(self));
    emit_mov_reg(e, RSI, RAX);
    emit_load_fs(e, RDX, CTX(call_address));
    put_bytes(e, (u8[]){0xff, 0x50, offsetof(GatewayCall, brief)}, 3); // call [rax + brief]

    gateway.tool_return[2] = e->pc;
    put_bytes(e, (u8[]){0x85, 0xc0}, 2); // test eax, eax
    CodePtr slow = emit_forward(e, 0x0f84);
    CodePtr requested = emit_if_requested(e);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        emit_load_fs(e, arguments[i], CTX_GPR(arguments[i]));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_jmp_fs(e, CTX(call_return));

    place_label(e, slow);
    emit_pop(e, RAX);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        emit_load_fs(e, arguments[i], CTX_GPR(arguments[i]));
    emit_jmp(e, gateway.tool_call[1]);

    place_label(e, requested);
    emit_pop(e, RAX);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        emit_store_fs(e, CTX_GPR(others[i]), others[i]);
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_store_fs(e, CTX_GPR(RAX), RAX);
    emit_jmp(e, gateway.tool_return[1]);
    gateway.tool_return_end[2] = e->pc;
}

// cmp [rcx], 0 for the bits of 8, 16, 32 or 64 bytes
static void emit_compare_bits(Emitter *e, u32 size)
{
    if (size == 16)
        put_u8(e, 0x66);
    else if (size == 64)
        put_u8(e, 0x48);
    put_bytes(e, (u8[]){size <= 8 ? 0x80 : 0x83, 0x39, 0}, 3);
}

// mov gs:[rax + disp], 0
static void emit_clear_shadow(Emitter *e, u32 size, i32 disp)
{
    put_u8(e, 0x65);
    if (size == 2)
        put_u8(e, 0x66);
    else if (size == 8)
        put_u8(e, 0x48);
    put_bytes(e, (u8[]){size == 1 ? 0xc6 : 0xc7, 0x80}, 2);
    put_u32(e, (u32)(TOOL_SHADOW_DISP + disp));
    put_bytes(e, (u8[4]){0}, size < 4 ? size : 4);
}

// The first store to memory that was undefined, where nothing stands against it:
//     mov fs:[spill rcx], rcx ; cmp rax, fs:[store_below] ; jae high
//   fine: mov rcx, map * 8 ; add rcx, rax ; shr rcx, 3
//     test al, alignment ; jnz unaligned ; cmp [rcx], 0 ; jne slow
//   clear: mov gs:[rax], 0 ; restore rcx, rax ; jmp fs:[call_return]
//   high: lea rcx, [rsp - 128] ; cmp rax, rcx ; jae fine ; jmp slow
//   unaligned: cmp twice as many, 0 ; je clear
//   slow: restore rcx ; mov fs:[call_address], rax ; restore rax ; tool call
static void emit_store(Emitter *e, u32 size)
{
    const u32 whole = size <= 8 ? 8 : size;
    emit_store_fs(e, CTX_SPILL(RCX), RCX);
    put_bytes(e, (u8[]){0x64, 0x48, 0x3b, 0x04, 0x25}, 5);
    put_u32(e, (u32)CTX(store_below));
    CodePtr high = emit_forward(e, 0x0f83), fine = e->pc, unaligned = NULL;
    emit_mov_imm(e, RCX, tool->store_map * 8);
    put_bytes(e, (u8[]){0x48, 0x01, 0xc1, 0x48, 0xc1, 0xe9, 3}, 7);
    if (size > 1) {
        put_bytes(e, (u8[]){0xa8, (u8)((size < 8 ? size : 8) - 1)}, 2);
        unaligned = emit_forward(e, 0x0f85);
    }
    emit_compare_bits(e, whole);
    CodePtr marked = emit_forward(e, 0x0f85);
    CodePtr clear = e->pc;
    for (u32 at = 0; at < size; at += 8)
        emit_clear_shadow(e, size < 8 ? size : 8, (i32)at);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_jmp_fs(e, CTX(call_return));

    place_label(e, high);
    emit_lea(e, RCX, RSP, -128);
    put_bytes(e, (u8[]){0x48, 0x39, 0xc8}, 3);
    emit_link_site(e, 0x0f83, fine);
    CodePtr below = emit_forward(e, OP_JMP_REL32);
    if (unaligned) {
        place_label(e, unaligned);
        emit_compare_bits(e, 2 * whole);
        emit_link_site(e, 0x0f84, clear);
    }
    place_label(e, below);
    place_label(e, marked);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    emit_store_fs(e, CTX(call_address), RAX);
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_store_fs_imm64(e, CTX(call_fn), (u64)(uintptr_t)tool->store_slow);
    emit_store_fs_imm64(e, CTX(call_arg), size);
    emit_jmp(e, gateway.tool_call[0]);
}

static void emit_stores(Emitter *e)
{
    while ((uintptr_t)e->pc % sizeof(u64)) // AC may be set
        put_u8(e, 0xcc);
    gateway.store_map = e->pc;
    put_bytes(e, &tool->store_map, sizeof(u64));
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
