// SPDX-License-Identifier: MIT
//
// Guards: branches of a block that are hardly ever taken, to stubs away from all blocks. What is
// tested is the shadow of an operand (shadow_x64.c) or, here, the tool's state.
#include "engine/gateway/gateway.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

CodePtr translate_early_guard_failed(CodePtr at)
{
    enum { BYTES_MAX = 24 };
    Insn insn;
    if (*at != X64_GS || decode_insn((GuestAddr)at, at, BYTES_MAX, &insn) != DECODE_OK ||
        insn.mnemonic != ZYDIS_MNEMONIC_CMP)
        return NULL;
    return x64_marked_target(at + insn.len, X64_NE);
}

// The branch leads to a stub that is emitted later. That of an early guard has a mark, by which
// translate_early_guard_failed() knows it.
void builder_guard(Builder *b, X64Branch branch, const GuardAction *action)
{
    ASSERT(b->guard_count < BLOCK_GUARDS_MAX);
    Guard *guard = &b->guards[b->guard_count++];
    guard->branch = action->is_early ? x64_marked_branch(&b->e, branch)
                                     : x64_branch(&b->e, branch);
    guard->back = NULL;
    guard->spilled = b->spilled;
    guard->insn = b->insn;
    guard->kind = action->kind;
    guard->step = action->step;
    guard->has_access = action->access != NULL;
    if (action->access)
        guard->access = *action->access;
}

void builder_guards_end(Builder *b, unsigned first)
{
    for (unsigned i = first; i < b->guard_count; i++) {
        if (!b->guards[i].back)
            b->guards[i].back = b->e.pc;
    }
}

// ------------------------------------------------------------------- the state

// Tests a half of the state, or the one byte of it that the mask has.
static void emit_test_state(Emitter *e, u32 at, u32 mask)
{
    u32 byte = mask ? (u32)__builtin_ctz(mask) / 8 : 0;
    bool is_byte = !(mask & ~(0xffu << 8 * byte));
    i32 place = CTX(tool.state) + (i32)at;
    if (is_byte)
        x64_test_mem_imm(e, BYTE, x64_fs(place + (i32)byte), (i32)(mask >> 8 * byte));
    else
        x64_test_mem_imm(e, DWORD, x64_fs(place), (i32)mask);
}

// Where the flags are dead, by a test of each half; otherwise through rcx, without a flag.
static void guard_state(Builder *b, u64 mask, const GuardAction *action)
{
    for (u32 half = 0; half < 2 && tool_flags_are_dead(b); half++) {
        u32 bits = (u32)(mask >> 32 * half);
        if (bits) {
            emit_test_state(&b->e, 4 * half, bits);
            builder_guard(b, X64_NE, action);
        }
    }
    if (tool_flags_are_dead(b))
        return;
    builder_spill(b, RCX);
    x64_mov_reg_imm(&b->e, RCX, mask);
    x64_pext_reg_reg_mem(&b->e, QWORD, RCX, RCX, x64_fs(CTX(tool.state)));
    X64Jump next = x64_jrcxz(&b->e);
    builder_guard(b, X64_JMP, action);
    x64_land(&b->e, next);
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

// Of a store, where flags are dead.
static bool emit_store_stub(Builder *b, const Guard *guard)
{
    CodePtr store = gateway_store(guard->access.size_bytes);
    if (guard->spilled || !store)
        return false;
    x64_mov_fs_reg(&b->e, CTX_SPILL(RAX), RAX);
    emit_access_address(b, RAX, &guard->access);
    x64_mov_fs_address(&b->e, CTX(gateway.call_return), EMIT_CACHE_ADDRESS,
                       (u64)(uintptr_t)guard->back);
    x64_jmp_to(&b->e, store);
    return true;
}

// rax, and the flags where they are live, are kept meanwhile.
static void emit_keep(Emitter *e, bool flags)
{
    x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    if (!flags)
        return;
    x64_take_status(e);
    x64_mov_fs_reg(e, CTX(gateway.call_address), RAX);
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
}

static void emit_kept(Emitter *e, bool flags)
{
    if (flags) {
        x64_mov_reg_fs(e, RAX, CTX(gateway.call_address));
        x64_load_status(e);
    }
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
}

// Of few bytes, which programs store one after the other to memory that they have just got:
//     below store_below, or else not below rsp; aligned; and no bit is set in the map:
//     the shadow becomes 0 ; back
//   slow: goes on behind
static void emit_short_store_stub(Builder *b, const Guard *guard)
{
    InsnAddress a = guard->access.address;
    u32 size = guard->access.size_bytes;
    bool flags = guard->spilled != 0;
    if (size > 16 || !flatten_address(b, &a) || a.is_narrow || !gateway_store(size))
        return;
    X64Jump unaligned = {0};
    emit_keep(&b->e, flags);
    emit_access_address(b, RAX, &guard->access);
    x64_cmp_reg_mem(&b->e, QWORD, RAX, x64_fs(CTX(tool.store_below)));
    X64Jump low = x64_jcc_short(&b->e, X64_B);
    x64_cmp_reg_reg(&b->e, QWORD, RAX, RSP);
    X64Jump below = x64_jcc_short(&b->e, X64_B);
    x64_land(&b->e, low);
    if (size > 1) {
        x64_test_reg_imm(&b->e, BYTE, RAX, (size < 8 ? (i32)size : 8) - 1);
        unaligned = x64_jcc_short(&b->e, X64_NE);
    }
    x64_shr_reg_imm(&b->e, QWORD, RAX, 3);
    x64_add_reg_mem(&b->e, QWORD, RAX, x64_absolute((i32)(uintptr_t)gateway_store_map()));
    x64_cmp_mem_imm(&b->e, size > 8 ? WORD : BYTE, x64_at(RAX, 0), 0);
    X64Jump marked = x64_jcc_short(&b->e, X64_NE);
    emit_kept(&b->e, flags);
    tool_shadow_clear(b, &guard->access);
    x64_jmp_to(&b->e, guard->back);
    x64_land(&b->e, below);
    x64_land(&b->e, marked);
    if (size > 1)
        x64_land(&b->e, unaligned);
    emit_kept(&b->e, flags);
}

static void emit_count(Builder *b, unsigned slot)
{
    i32 at = CTX(tool.slot) + 8 * (i32)slot;
    x64_mov_reg_fs(&b->e, RAX, at);
    x64_lea_reg_mem(&b->e, QWORD, RAX, x64_at(RAX, 1));
    x64_mov_fs_reg(&b->e, at, RAX);
}

// Behind the code, aligned, since AC may be set: the record that the gateway of steps reads.
//     rax := call ; jmp quick_call
//   call: fn, arg, back [, brief]
static void emit_quick_call(Builder *b, const Guard *guard)
{
    enum { CODE_BYTES = 10 };
    _Static_assert(offsetof(GatewayCall, fn) == 0 && offsetof(GatewayCall, arg) == 8 &&
                       offsetof(GatewayCall, back) == 16 && offsetof(GatewayCall, brief) == 24,
                   "written word by word");
    const ToolStep *step = &guard->step;
    CodePtr at = b->e.pc + CODE_BYTES;
    at += -(uintptr_t)at % 8;
    x64_mov_reg_address(&b->e, RAX, EMIT_CACHE_ADDRESS, (u64)(uintptr_t)at);
    x64_jmp_to(&b->e, step->brief ? gateway_brief_call() : gateway_quick_call());
    while (b->e.pc < at)
        x64_int3(&b->e);
    emit_address(&b->e, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)step->fn);
    emit_u64(&b->e, step->arg);
    emit_address(&b->e, EMIT_CACHE_ADDRESS, (u64)(uintptr_t)guard->back);
    if (step->brief)
        emit_address(&b->e, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)step->brief);
}

// Registers that the step wants are stored, call_address becomes that of the operand; the step is
// called, and the block goes on at `back`.
static void emit_step_stub(Builder *b, const Guard *guard)
{
    bool is_quick = !guard->spilled; // the flags are dead
    const ToolStep *step = &guard->step;
    for (u32 left = step->gprs; left; left &= left - 1)
        tool_store_gpr(b, (unsigned)__builtin_ctz(left));
    for (u32 left = step->vectors; left; left &= left - 1)
        tool_store_vector(b, (unsigned)__builtin_ctz(left));
    if (guard->has_access || step->counts || is_quick) {
        x64_mov_fs_reg(&b->e, CTX_SPILL(RAX), RAX);
        if (guard->has_access) {
            emit_access_address(b, RAX, &guard->access);
            x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
        }
        for (u32 left = step->counts; left; left &= left - 1)
            emit_count(b, (unsigned)__builtin_ctz(left));
        if (is_quick) {
            emit_quick_call(b, guard);
            return;
        }
        x64_mov_reg_fs(&b->e, RAX, CTX_SPILL(RAX));
    }
    x64_mov_fs_address(&b->e, CTX(gateway.call_fn), EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)step->fn);
    x64_mov_fs_imm64(&b->e, CTX(gateway.call_arg), step->arg);
    x64_mov_fs_address(&b->e, CTX(gateway.call_return), EMIT_CACHE_ADDRESS,
                       (u64)(uintptr_t)guard->back);
    x64_jmp_to(&b->e, gateway_tool_call());
}

// A failed guard goes on with the version of its instruction that begins with the step; one of the
// state with that of the state.
static void emit_leave_stub(Builder *b, const Guard *guard)
{
    bool stepped = b->block->version & VERSION_STEPPED, fails = guard->kind != GUARD_LEAVE;
    x64_mov_fs_imm64(&b->e, CTX(pc), guard->insn->pc);
    if (stepped && fails)
        x64_mov_fs_imm32(&b->e, CTX(gateway.guard_failed), 1);
    x64_jmp_to(&b->e, stepped ? gateway_leave(EXIT_VERSIONED)
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

static void emit_stub(Builder *b, const Guard *guard, CodePtr at, EmitAddresses *addresses)
{
    b->e = (Emitter){.pc = at, .end = at + GUARD_STUB_ROOM, .addresses = addresses};
    b->insn = guard->insn;
    if (guard->spilled >> RCX & 1)
        x64_mov_reg_fs(&b->e, RCX, CTX_SPILL(RCX));
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

void emit_guard_stubs(Builder *b)
{
    Emitter block_emitter = b->e;
    unsigned mark_count = b->mark_count;
    CodePtr at = NULL;
    for (unsigned i = 0; i < b->guard_count; i++) {
        const Guard *guard = &b->guards[i];
        if (i > 0 && is_alike(guard, guard - 1)) {
            x64_link(guard->branch, at);
            continue;
        }
        size_t bytes;
        if (guard->kind == GUARD_FAIL || guard->kind == GUARD_LEAVE) {
            bytes = leave_stub_bytes(b, guard); // most
        } else {
            // Once behind the block, to know its size, and then where it will stay.
            emit_stub(b, guard, block_emitter.pc, NULL);
            bytes = (size_t)(b->e.pc - block_emitter.pc) + 7; // what it aligns may need more there
        }
        ASSERT(bytes <= GUARD_STUB_ROOM);
        at = cache_reserve_cold(b->block, bytes);
        ASSERT(at);
        emit_stub(b, guard, at, block_emitter.addresses);
        ASSERT(b->e.pc <= at + bytes);
        x64_link(guard->branch, at);
    }
    b->e = block_emitter;
    b->spilled = 0;
    b->mark_count = mark_count; // stubs belong to no instruction
}
