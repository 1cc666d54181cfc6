// SPDX-License-Identifier: MIT
//
// Checks and marks of shadow memory: the operand of the guest instruction, through
// gs. See toolapi/toolapi.h for what each does.
//
// Where the client's flags are dead a check is a compare and a branch that is not
// taken; where they are live it goes through rcx and jrcxz.
#include "engine/translate/builder.h"

// The shadow of an operand.
typedef struct ShadowOperand {
    X64Mem mem;
    bool on_rcx; // the address was computed into rcx, which is spilled
} ShadowOperand;

// The part of it that is `extra` bytes further on.
static X64Mem part(const ShadowOperand *op, i32 extra)
{
    X64Mem mem = op->mem;
    mem.disp += extra + TOOL_SHADOW_DISP;
    return x64_gs(mem);
}

// --------------------------------------------------------------- operands

bool tool_shadow_can_check(const ToolBlock *b, const ToolAccess *access)
{
    (void)b;
    u32 size = access->size_bytes;
    bool even = size && size <= 64 && ((size & (size - 1)) == 0 || size == 10);
    return even && access->is_plain;
}

// Spills rcx and computes the address there if the operand cannot be encoded with gs.
static void open_operand(Builder *b, const ToolAccess *access, ShadowOperand *ret_op)
{
    InsnAddress flat = access->address, *a = &flat;
    bool is_flat = flatten_address(b, a);
    X64Mem mem = x64_indexed(a->base, a->index, a->index == X64_NO_REG ? 1 : a->scale, 0);
    mem.is_short = a->is_narrow;
    i64 disp = a->disp;
    if (a->is_rip)
        disp += (i64)(b->insn->pc + b->insn->len);
    if (access_is_push(access))
        disp -= (i64)access->size_bytes;
    if (is_flat && !mem.is_short && disp + TOOL_SHADOW_DISP >= INT32_MIN &&
        disp + 64 <= INT32_MAX) {
        mem.disp = (i32)disp;
        *ret_op = (ShadowOperand){.mem = mem};
        return;
    }
    builder_spill(b, RCX);
    emit_access_address(b, RCX, access);
    *ret_op = (ShadowOperand){.mem = x64_at(RCX, 0), .on_rcx = true};
}

static void close_operand(Builder *b)
{
    if (b->spilled >> RCX & 1)
        builder_unspill(b, RCX);
}

// ----------------------------------------------------------------- guards

// What is compared or stored at once of `left` bytes; of 10 (long double) 8 and 2.
static u32 piece(u32 left)
{
    return left < 8 ? left : 8;
}

// rcx := what is at `mem`, zero-extended.
static void emit_load_rcx(Emitter *e, unsigned size, X64Mem mem)
{
    if (size == BYTE)
        x64_movzx8_reg_mem(e, DWORD, RCX, mem);
    else if (size == WORD)
        x64_movzx16_reg_mem(e, DWORD, RCX, mem);
    else
        x64_mov_reg_mem(e, size, RCX, mem);
}

// Where the flags are dead each piece is compared with 0; otherwise it is loaded into rcx. Returns
// the first of the guards. Where they go on is still to be said: builder_guards_end().
static unsigned open_guard(Builder *b, const ToolAccess *access, const GuardAction *action)
{
    ShadowOperand op;
    unsigned first = b->guard_count;
    bool live = !tool_flags_are_dead(b);
    open_operand(b, access, &op);
    for (u32 at = 0, step; at < access->size_bytes; at += step) {
        step = piece(access->size_bytes - at);
        if (!live) {
            x64_cmp_mem_imm(&b->e, step, part(&op, (i32)at), 0);
            builder_guard(b, X64_NE, action);
            continue;
        }
        // rcx may be the operand's own register: its value is there until overwritten.
        if (at > 0) {
            if (op.on_rcx)
                x64_mov_reg_fs(&b->e, RCX, CTX(gateway.call_address));
            else
                x64_mov_reg_fs(&b->e, RCX, CTX_SPILL(RCX));
        } else if (op.on_rcx) {
            x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RCX);
        } else {
            builder_spill(b, RCX);
        }
        emit_load_rcx(&b->e, step, part(&op, (i32)at));
        X64Jump next = x64_jrcxz(&b->e);
        builder_guard(b, X64_JMP, action);
        x64_land(&b->e, next);
    }
    close_operand(b);
    return first;
}

static void guard(Builder *b, const ToolAccess *access, const GuardAction *action)
{
    builder_guards_end(b, open_guard(b, access, action));
}

void tool_shadow_guard(ToolBlock *b, const ToolAccess *access)
{
    guard(b, access, &(GuardAction){.kind = GUARD_FAIL});
}

void tool_shadow_guard_bits(ToolBlock *b, const ToolAccess *access, u32 bits)
{
    ShadowOperand op;
    unsigned first = b->guard_count, size = access->size_bytes;
    ASSERT(tool_flags_are_dead(b) && size <= 8);
    open_operand(b, access, &op);
    x64_test_mem_imm(&b->e, size, part(&op, 0), (i32)bits);
    builder_guard(b, X64_NE, &(GuardAction){.kind = GUARD_FAIL});
    close_operand(b);
    builder_guards_end(b, first);
}

void tool_shadow_guard_early(ToolBlock *b, const ToolAccess *access)
{
    ASSERT(tool_flags_are_dead(b));
    guard(b, access, &(GuardAction){.kind = GUARD_FAIL, .is_early = true});
}

unsigned tool_shadow_guard_step(ToolBlock *b, const ToolAccess *access, const ToolStep *step)
{
    const GuardAction action = {.kind = GUARD_STEP, .step = *step, .access = access};
    return open_guard(b, access, &action);
}

void tool_shadow_guards_step(ToolBlock *b, const ToolAccess *accesses, unsigned count, u64 state,
                             const ToolStep *step)
{
    const GuardAction action = {.kind = GUARD_STEP, .is_early = true, .step = *step,
                                .access = &accesses[0]};
    ASSERT(tool_flags_are_dead(b));
    unsigned first = state ? tool_state_guard_step(b, state, &accesses[0], step) : b->guard_count;
    for (unsigned i = 0; i < count; i++) {
        ShadowOperand op;
        open_operand(b, &accesses[i], &op);
        ASSERT(!op.on_rcx);
        for (u32 at = 0; at < accesses[i].size_bytes; at += 8) {
            x64_cmp_mem_imm(&b->e, piece(accesses[i].size_bytes - at), part(&op, (i32)at), 0);
            builder_guard(b, X64_NE, &action);
        }
    }
    builder_guards_end(b, first);
}

void tool_shadow_guard_store(ToolBlock *b, const ToolAccess *access)
{
    const ToolStep step = {.fn = tool->store_slow, .arg = access->size_bytes};
    guard(b, access, &(GuardAction){.kind = GUARD_STORE, .step = step, .access = access});
}

// ------------------------------------------------------------------ marks

// Much is marked through xmm0, whose upper part stays what it is. If the client has no such
// memory, the stores at both ends find out before xmm0 is lent.
void tool_shadow_fill_stack(ToolBlock *b, i32 disp, u32 size, u8 value)
{
    enum { WORTH_IT = 80, XMM0 = 0, XMM_BYTES = 16 };
    const ShadowOperand op = {.mem = x64_at(RSP, 0)};
    const i32 imm = (i8)value; // 0 or -1: the sign extension repeats it
    ASSERT(value == 0 || value == 0xff);
    if (size < WORTH_IT || value != 0xff) {
        for (u32 at = 0; at < size; at += 8)
            x64_mov_mem_imm(&b->e, QWORD, part(&op, disp + (i32)at), imm);
        return;
    }
    x64_mov_mem_imm(&b->e, QWORD, part(&op, disp + (i32)size - 8), imm);
    x64_mov_mem_imm(&b->e, QWORD, part(&op, disp), imm);
    x64_movups_mem_vector(&b->e, XMM_BYTES, x64_fs(CTX(translate.vector_spill)), XMM0);
    x64_pcmpeqd_xmm_xmm(&b->e, XMM0, XMM0);
    for (u32 at = 8; at + 8 < size; at += XMM_BYTES) // the last may have the end once more
        x64_movups_mem_vector(&b->e, XMM_BYTES, part(&op, disp + (i32)at), XMM0);
    x64_movups_vector_mem(&b->e, XMM_BYTES, XMM0, x64_fs(CTX(translate.vector_spill)));
}

void tool_shadow_prefetch(ToolBlock *b, const ToolAccess *access)
{
    ShadowOperand op;
    open_operand(b, access, &op);
    x64_prefetcht0_mem(&b->e, part(&op, 0));
    close_operand(b);
}

void tool_shadow_clear(ToolBlock *b, const ToolAccess *access)
{
    ShadowOperand op;
    open_operand(b, access, &op);
    for (u32 at = 0, step; at < access->size_bytes; at += step) {
        step = piece(access->size_bytes - at);
        x64_mov_mem_imm(&b->e, step, part(&op, (i32)at), 0);
    }
    close_operand(b);
}
