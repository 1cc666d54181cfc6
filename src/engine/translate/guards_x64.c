// SPDX-License-Identifier: MIT
//
// Guards: branches of a block that are hardly ever taken, to stubs away from all blocks. What is
// tested is the shadow of an operand (shadow_x64.c) or, here, the tool's state.
#include "engine/translate/builder.h"
#include "engine/translate/lean_x64.h"
#include "engine/translate/translate.h"

enum { EARLY_PREFIX = 0x2e }; // means nothing to a branch; those of early guards have it

CodePtr translate_early_guard_failed(CodePtr at)
{
    enum { GS = 0x65, BYTES_MAX = 24, BRANCH_BYTES = 7 };
    Insn insn;
    i32 distance;
    if (*at != GS || decode_insn((GuestAddr)at, at, BYTES_MAX, &insn) != DECODE_OK)
        return NULL;
    const u8 *branch = at + insn.len;
    if (insn.mnemonic != ZYDIS_MNEMONIC_CMP || branch[0] != EARLY_PREFIX ||
        branch[1] != OP_JNE_REL32 >> 8 || branch[2] != (OP_JNE_REL32 & 0xff))
        return NULL;
    memcpy(&distance, branch + 3, sizeof(distance));
    return (CodePtr)branch + BRANCH_BYTES + distance;
}

// jne or jmp to a stub that is emitted later.
void builder_guard(Builder *b, unsigned opcode, const GuardAction *action)
{
    ASSERT(b->guard_count < BLOCK_GUARDS_MAX);
    if (action->is_early)
        put_u8(&b->e, EARLY_PREFIX);
    if (opcode > 0xff)
        put_u8(&b->e, (u8)(opcode >> 8));
    put_u8(&b->e, (u8)opcode);
    Guard *guard = &b->guards[b->guard_count++];
    guard->branch = b->e.pc;
    guard->back = NULL;
    guard->spilled = b->spilled;
    guard->insn = b->insn;
    guard->kind = action->kind;
    guard->step = action->step;
    guard->has_access = action->access != NULL;
    if (action->access)
        guard->access = *action->access;
    put_u32(&b->e, 0);
}

void builder_guards_end(Builder *b, unsigned first)
{
    for (unsigned i = first; i < b->guard_count; i++) {
        if (!b->guards[i].back)
            b->guards[i].back = b->e.pc;
    }
}

// ------------------------------------------------------------------- the state

// test byte or dword fs:[state + at], mask
static void put_test(Emitter *e, u32 at, u32 mask)
{
    u32 byte = mask ? (u32)__builtin_ctz(mask) / 8 : 0;
    bool is_byte = !(mask & ~(0xffu << 8 * byte));
    put_bytes(e, (u8[]){0x64, is_byte ? 0xf6 : 0xf7, 0x04, 0x25}, 4);
    put_u32(e, (u32)CTX(tool_state) + at + (is_byte ? byte : 0));
    if (is_byte)
        put_u8(e, (u8)(mask >> 8 * byte));
    else
        put_u32(e, mask);
}

// Flags dead:   test fs:[state], mask ; jne stub                  for each half
// Flags live:   spill rcx ; mov rcx, mask ; pext rcx, rcx, fs:[state] ; jrcxz next ; jmp stub
//   next:       restore rcx
static void guard_state(Builder *b, u64 mask, const GuardAction *action)
{
    for (u32 half = 0; half < 2 && tool_flags_are_dead(b); half++) {
        u32 bits = (u32)(mask >> 32 * half);
        if (bits) {
            put_test(&b->e, 4 * half, bits);
            builder_guard(b, OP_JNE_REL32, action);
        }
    }
    if (tool_flags_are_dead(b))
        return;
    builder_spill(b, RCX);
    emit_mov_imm(&b->e, RCX, mask);
    put_bytes(&b->e, (u8[]){0x64, 0xc4, 0xe2, 0xf2, 0xf5, 0x0c, 0x25}, 7);
    put_u32(&b->e, (u32)CTX(tool_state));
    put_bytes(&b->e, (u8[]){OP_JRCXZ, 5}, 2);
    builder_guard(b, OP_JMP_REL32, action);
    builder_unspill(b, RCX);
}

unsigned tool_state_guard_step(ToolBlock *b, u64 mask, const ToolAccess *access,
                               const ToolStep *step)
{
    unsigned first = b->guard_count;
    guard_state(b, mask, &(GuardAction){.kind = GUARD_STEP, .step = *step, .access = access});
    return first;
}

void tool_guard_end(ToolBlock *b, unsigned first)
{
    builder_guards_end(b, first);
}

void tool_state_guard(ToolBlock *b, u64 mask)
{
    guard_state(b, mask, &(GuardAction){.kind = GUARD_LEAVE});
}

// ------------------------------------------------------------------------ stubs

// Of a store, where flags are dead:
//     spill rax ; lea rax, operand ; mov fs:[call_return], back ; jmp store
static bool emit_store_stub(Builder *b, const Guard *guard)
{
    CodePtr store = gateway_store(guard->access.size_bytes);
    if (guard->spilled || !store)
        return false;
    emit_store_fs(&b->e, CTX_SPILL(RAX), RAX);
    emit_access_address(b, RAX, &guard->access);
    emit_store_fs_imm64(&b->e, CTX(call_return), (u64)(uintptr_t)guard->back);
    emit_jmp(&b->e, store);
    return true;
}

// rax and flags, where they are live, are kept meanwhile:
//     spill rax ; [lahf ; seto al ; mov fs:[call_address], rax ; restore rax]
//     [mov rax, fs:[call_address] ; add al, 127 ; sahf] ; restore rax
static void put_keep(Emitter *e, bool flags)
{
    emit_store_fs(e, CTX_SPILL(RAX), RAX);
    if (!flags)
        return;
    put_bytes(e, (u8[]){0x9f, 0x0f, 0x90, 0xc0}, 4);
    emit_store_fs(e, CTX(call_address), RAX);
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
}

static void put_kept(Emitter *e, bool flags)
{
    if (flags) {
        emit_load_fs(e, RAX, CTX(call_address));
        put_bytes(e, (u8[]){0x04, 127, 0x9e}, 3);
    }
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
}

// Of few bytes, which programs store one after the other to memory that they have just got:
//     keep rax ; lea rax, operand ; cmp rax, fs:[store_below] ; jb low ; cmp rax, rsp ; jb slow
//   low: test al, alignment ; jne slow ; shr rax, 3 ; add rax, [map] ; cmp byte [rax], 0 ; jne slow
//     restore ; mov gs:[operand], 0 ; jmp back
//   slow: restore
static void emit_short_store_stub(Builder *b, const Guard *guard)
{
    InsnAddress a = guard->access.address;
    u32 size = guard->access.size_bytes;
    bool flags = guard->spilled != 0;
    if (size > 16 || !flatten_address(b, &a) || a.is_narrow || !gateway_store(size))
        return;
    CodePtr unaligned = NULL;
    put_keep(&b->e, flags);
    emit_access_address(b, RAX, &guard->access);
    put_bytes(&b->e, (u8[]){0x64, 0x48, 0x3b, 0x04, 0x25}, 5);
    put_u32(&b->e, (u32)CTX(store_below));
    CodePtr low = branch(&b->e, JB);
    put_bytes(&b->e, (u8[]){0x48, 0x39, 0xe0}, 3);
    CodePtr below = branch(&b->e, JB);
    land(&b->e, low);
    if (size > 1) {
        put_bytes(&b->e, (u8[]){0xa8, (u8)((size < 8 ? size : 8) - 1)}, 2);
        unaligned = branch(&b->e, JNE);
    }
    put_bytes(&b->e, (u8[]){0x48, 0xc1, 0xe8, 3, 0x48, 0x03, 0x04, 0x25}, 8);
    put_u32(&b->e, (u32)(uintptr_t)gateway_store_map());
    if (size > 8)
        put_bytes(&b->e, (u8[]){0x66, 0x83, 0x38, 0}, 4);
    else
        put_bytes(&b->e, (u8[]){0x80, 0x38, 0}, 3);
    CodePtr marked = branch(&b->e, JNE);
    put_kept(&b->e, flags);
    tool_shadow_clear(b, &guard->access);
    emit_jmp(&b->e, guard->back);
    land(&b->e, below);
    land(&b->e, marked);
    if (unaligned)
        land(&b->e, unaligned);
    put_kept(&b->e, flags);
}

// mov rax, fs:[slot] ; lea rax, [rax + 1] ; mov fs:[slot], rax
static void emit_count(Builder *b, unsigned slot)
{
    i32 at = CTX(tool_slot) + 8 * (i32)slot;
    emit_load_fs(&b->e, RAX, at);
    emit_lea(&b->e, RAX, RAX, 1);
    emit_store_fs(&b->e, at, RAX);
}

// Behind the code, aligned, since AC may be set: what the gateway of quick calls reads.
//     mov eax, call ; jmp quick_call
//   call: fn, arg, back [, brief]
static void emit_quick_call(Builder *b, const Guard *guard)
{
    enum { CODE_BYTES = 10, INT3 = 0xcc };
    CodePtr at = b->e.pc + CODE_BYTES;
    at += -(uintptr_t)at % 8;
    const GatewayCall call = {(u64)(uintptr_t)guard->step.fn, guard->step.arg,
                              (u64)(uintptr_t)guard->back,
                              (u64)(uintptr_t)guard->step.brief};
    put_u8(&b->e, 0xb8);
    put_u32(&b->e, (u32)(uintptr_t)at);
    emit_jmp(&b->e, call.brief ? gateway_brief_call() : gateway_quick_call());
    while (b->e.pc < at)
        put_u8(&b->e, INT3);
    put_bytes(&b->e, &call, call.brief ? sizeof(call) : offsetof(GatewayCall, brief));
}

//     [store registers] ; spill rax ; lea rax, operand ; mov fs:[call_address], rax
//     restore rax ; call ; jmp back
static void emit_step_stub(Builder *b, const Guard *guard)
{
    bool is_quick = !guard->spilled; // the flags are dead
    const ToolStep *step = &guard->step;
    for (u32 left = step->gprs; left; left &= left - 1)
        tool_store_gpr(b, (unsigned)__builtin_ctz(left));
    for (u32 left = step->vectors; left; left &= left - 1)
        tool_store_vector(b, (unsigned)__builtin_ctz(left));
    if (guard->has_access || step->counts || is_quick) {
        emit_store_fs(&b->e, CTX_SPILL(RAX), RAX);
        if (guard->has_access) {
            emit_access_address(b, RAX, &guard->access);
            emit_store_fs(&b->e, CTX(call_address), RAX);
        }
        for (u32 left = step->counts; left; left &= left - 1)
            emit_count(b, (unsigned)__builtin_ctz(left));
        if (is_quick) {
            emit_quick_call(b, guard);
            return;
        }
        emit_load_fs(&b->e, RAX, CTX_SPILL(RAX));
    }
    emit_store_fs_imm64(&b->e, CTX(call_fn), (u64)(uintptr_t)step->fn);
    emit_store_fs_imm64(&b->e, CTX(call_arg), step->arg);
    emit_store_fs_imm64(&b->e, CTX(call_return), (u64)(uintptr_t)guard->back);
    emit_jmp(&b->e, gateway_tool_call());
}

// A failed guard goes on with the version of its instruction that begins with the step; one of the
// state with that of the state.
static void emit_leave_stub(Builder *b, const Guard *guard)
{
    bool stepped = b->block->version & VERSION_STEPPED, fails = guard->kind != GUARD_LEAVE;
    emit_store_fs_imm64(&b->e, CTX(pc), guard->insn->pc);
    if (stepped && fails)
        emit_store_fs_imm32(&b->e, CTX(guard_failed), 1);
    emit_jmp(&b->e, stepped ? gateway_leave(EXIT_VERSIONED)
                    : fails ? gateway_version_guard()
                            : gateway_version_exit());
}

static size_t leave_stub_bytes(const Builder *b, const Guard *guard)
{
    enum { LOAD = 9, STORE = 13, STORE_FAR = 24, STORE_FLAG = 12, JMP = 5 };
    bool stepped = b->block->version & VERSION_STEPPED, fails = guard->kind != GUARD_LEAVE;
    return (guard->spilled >> RCX & 1 ? LOAD : 0) +
           (fits_i32((i64)guard->insn->pc) ? STORE : STORE_FAR) +
           (stepped && fails ? STORE_FLAG : 0) + JMP;
}

static void emit_stub(Builder *b, const Guard *guard, CodePtr at)
{
    b->e = (Emitter){at, at + GUARD_STUB_ROOM};
    b->insn = guard->insn;
    if (guard->spilled >> RCX & 1)
        emit_load_fs(&b->e, RCX, CTX_SPILL(RCX));
    switch (guard->kind) {
    case GUARD_FAIL:
    case GUARD_LEAVE: emit_leave_stub(b, guard); return;
    case GUARD_STORE:
        emit_short_store_stub(b, guard);
        if (emit_store_stub(b, guard))
            return;
        break;
    case GUARD_STEP: break;
    }
    emit_step_stub(b, guard);
}

// The guards of one operand's pieces lead to the same stub.
static bool is_alike(const Guard *a, const Guard *b)
{
    return a->insn == b->insn && a->kind == b->kind && a->back == b->back &&
           a->spilled == b->spilled && a->step.fn == b->step.fn && a->step.arg == b->step.arg &&
           a->step.counts == b->step.counts && a->has_access == b->has_access &&
           (!a->has_access || a->access.operand == b->access.operand);
}

static void lead_to(const Guard *guard, CodePtr stub)
{
    i32 distance = (i32)(stub - (guard->branch + 4));
    memcpy(guard->branch, &distance, 4);
}

void emit_guard_stubs(Builder *b)
{
    Emitter block_emitter = b->e;
    unsigned mark_count = b->mark_count;
    CodePtr at = NULL;
    for (unsigned i = 0; i < b->guard_count; i++) {
        const Guard *guard = &b->guards[i];
        if (i > 0 && is_alike(guard, guard - 1)) {
            lead_to(guard, at);
            continue;
        }
        size_t bytes;
        if (guard->kind == GUARD_FAIL || guard->kind == GUARD_LEAVE) {
            bytes = leave_stub_bytes(b, guard); // most
        } else {
            // Once behind the block, to know its size, and then where it will stay.
            emit_stub(b, guard, block_emitter.pc);
            bytes = (size_t)(b->e.pc - block_emitter.pc) + 7; // what it aligns may need more there
        }
        ASSERT(bytes <= GUARD_STUB_ROOM);
        at = cache_reserve_cold(b->block, bytes);
        ASSERT(at);
        emit_stub(b, guard, at);
        ASSERT(b->e.pc <= at + bytes);
        lead_to(guard, at);
    }
    b->e = block_emitter;
    b->spilled = 0;
    b->mark_count = mark_count; // stubs belong to no instruction
}
