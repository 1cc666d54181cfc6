// SPDX-License-Identifier: MIT
//
// Checks and marks of shadow memory: the operand of the guest instruction, through
// gs. See toolapi/toolapi.h for what each does.
//
// Where the client's flags are dead a check is a compare and a branch that is not
// taken; where they are live it goes through rcx and jrcxz.
#include "engine/translate/builder.h"

// A memory operand in terms of what can be encoded.
typedef struct ShadowOperand {
    unsigned base, index; // GPR_COUNT: none
    unsigned scale;
    i32 disp;
    bool address32;
    bool on_rcx;          // the address was computed into rcx, which is spilled
} ShadowOperand;

// --------------------------------------------------------------- encoding

// [gs] [67] [66] REX opcode modrm sib disp32
static void put_op(Emitter *e, u8 prefix, bool wide, const u8 *opcode, unsigned opcode_len,
                   unsigned reg, const ShadowOperand *op, i32 extra)
{
    u8 rex = (u8)((wide ? 0x48 : 0x40) | (reg >> 3) << 2);
    put_u8(e, 0x65);
    if (op->address32)
        put_u8(e, 0x67);
    if (prefix)
        put_u8(e, prefix);
    rex |= op->index != GPR_COUNT ? (u8)((op->index >> 3) << 1) : 0;
    rex |= op->base != GPR_COUNT ? (u8)(op->base >> 3) : 0;
    if (rex != 0x40)
        put_u8(e, rex);
    put_bytes(e, opcode, opcode_len);
    i32 disp = op->disp + extra + TOOL_SHADOW_DISP;
    bool plain = op->base != GPR_COUNT && op->index == GPR_COUNT && (op->base & 7) != RSP;
    bool small = disp == (i8)disp && op->base != GPR_COUNT;
    u8 mod = op->base == GPR_COUNT ? 0 : small ? 0x40 : 0x80;
    if (plain) {
        put_u8(e, (u8)(mod | (reg & 7) << 3 | (op->base & 7)));
    } else {
        unsigned scale = op->index == GPR_COUNT ? 0 : (unsigned)__builtin_ctz(op->scale);
        put_u8(e, (u8)(mod | (reg & 7) << 3 | 4));
        put_u8(e, (u8)(scale << 6 | (op->index == GPR_COUNT ? 4 : op->index & 7) << 3 |
                       (op->base == GPR_COUNT ? 5 : op->base & 7)));
    }
    if (small)
        put_u8(e, (u8)disp);
    else
        put_u32(e, (u32)disp);
}

// cmp size gs:[op + extra], 0
static void put_compare(Emitter *e, const ShadowOperand *op, unsigned size, i32 extra)
{
    const u8 opcode = size == 1 ? 0x80 : 0x83;
    put_op(e, size == 2 ? 0x66 : 0, size == 8, &opcode, 1, 7, op, extra);
    put_u8(e, 0);
}

// mov rcx, gs:[op + extra], zero extended
static void put_load_rcx(Emitter *e, const ShadowOperand *op, unsigned size, i32 extra)
{
    static const u8 movzx8[] = {0x0f, 0xb6}, movzx16[] = {0x0f, 0xb7}, mov[] = {0x8b};
    if (size <= 2)
        put_op(e, 0, false, size == 1 ? movzx8 : movzx16, 2, RCX, op, extra);
    else
        put_op(e, 0, size == 8, mov, 1, RCX, op, extra);
}

// mov size gs:[op + extra], value, a byte that is repeated
static void put_store(Emitter *e, const ShadowOperand *op, unsigned size, i32 extra, u8 value)
{
    const u8 opcode = size == 1 ? 0xc6 : 0xc7;
    u32 imm = value * 0x01010101u; // 0 or -1: the sign extension repeats it too
    put_op(e, size == 2 ? 0x66 : 0, size == 8, &opcode, 1, 0, op, extra);
    put_bytes(e, &imm, size == 1 ? 1 : size == 2 ? 2 : 4);
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
    ShadowOperand shadow = {.base = a->base, .index = a->index, .scale = a->scale,
                            .address32 = a->is_narrow};
    i64 disp = a->disp;
    if (a->is_rip)
        disp += (i64)(b->insn->pc + b->insn->len);
    if (access_is_push(access))
        disp -= (i64)access->size_bytes;
    if (is_flat && !shadow.address32 && disp + TOOL_SHADOW_DISP >= INT32_MIN &&
        disp + 64 <= INT32_MAX) {
        shadow.disp = (i32)disp;
        *ret_op = shadow;
        return;
    }
    builder_spill(b, RCX);
    emit_access_address(b, RCX, access);
    *ret_op = (ShadowOperand){.base = RCX, .index = GPR_COUNT, .on_rcx = true};
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

// Flags dead:   cmp gs:[op], 0 ; jne stub                      for each 8 bytes
// Flags live:   spill rcx ; mov rcx, gs:[op] ; jrcxz next ; jmp stub ; next: …
// Returns the first of the guards. Where they go on is still to be said: builder_guards_end().
static unsigned open_guard(Builder *b, const ToolAccess *access, const GuardAction *action)
{
    ShadowOperand op;
    unsigned first = b->guard_count;
    bool live = !tool_flags_are_dead(b);
    open_operand(b, access, &op);
    for (u32 at = 0, step; at < access->size_bytes; at += step) {
        step = piece(access->size_bytes - at);
        if (!live) {
            put_compare(&b->e, &op, step, (i32)at);
            builder_guard(b, OP_JNE_REL32, action);
            continue;
        }
        // rcx may be the operand's own register: its value is there until overwritten.
        if (at > 0) {
            if (op.on_rcx)
                emit_load_fs(&b->e, RCX, CTX(call_address));
            else
                emit_load_fs(&b->e, RCX, CTX_SPILL(RCX));
        } else if (op.on_rcx) {
            emit_store_fs(&b->e, CTX(call_address), RCX);
        } else {
            builder_spill(b, RCX);
        }
        put_load_rcx(&b->e, &op, step, (i32)at);
        put_bytes(&b->e, (u8[]){OP_JRCXZ, 5}, 2);
        builder_guard(b, OP_JMP_REL32, action);
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

// test size gs:[op], bits ; jne stub
void tool_shadow_guard_bits(ToolBlock *b, const ToolAccess *access, u32 bits)
{
    ShadowOperand op;
    unsigned first = b->guard_count, size = access->size_bytes;
    const u8 opcode = size == 1 ? 0xf6 : 0xf7;
    ASSERT(tool_flags_are_dead(b) && size <= 8);
    open_operand(b, access, &op);
    put_op(&b->e, size == 2 ? 0x66 : 0, size == 8, &opcode, 1, 0, &op, 0);
    put_bytes(&b->e, &bits, size < 4 ? size : 4);
    builder_guard(b, OP_JNE_REL32, &(GuardAction){.kind = GUARD_FAIL});
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
            put_compare(&b->e, &op, piece(accesses[i].size_bytes - at), (i32)at);
            builder_guard(b, OP_JNE_REL32, &action);
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

// movups fs:[vector_spill], xmm0, and back
static void put_vector_spill(Emitter *e, u8 opcode)
{
    put_bytes(e, (u8[]){0x64, 0x0f, opcode, 0x04, 0x25}, 5);
    put_u32(e, (u32)CTX(vector_spill));
}

// Much is marked through xmm0, whose upper part stays what it is. If the client has no such
// memory, the stores at both ends find out before xmm0 is lent.
void tool_shadow_fill_stack(ToolBlock *b, i32 disp, u32 size, u8 value)
{
    enum { LOAD = 0x10, STORE = 0x11, WORTH_IT = 80 };
    static const u8 movups[] = {0x0f, STORE};
    const ShadowOperand op = {.base = RSP, .index = GPR_COUNT};
    if (size < WORTH_IT || value != 0xff) {
        for (u32 at = 0; at < size; at += 8)
            put_store(&b->e, &op, 8, disp + (i32)at, value);
        return;
    }
    put_store(&b->e, &op, 8, disp + (i32)size - 8, value);
    put_store(&b->e, &op, 8, disp, value);
    put_vector_spill(&b->e, STORE);
    put_bytes(&b->e, (u8[]){0x66, 0x0f, 0x76, 0xc0}, 4); // pcmpeqd xmm0, xmm0
    for (u32 at = 8; at + 8 < size; at += 16) // the last may have the end once more
        put_op(&b->e, 0, false, movups, 2, 0, &op, disp + (i32)at);
    put_vector_spill(&b->e, LOAD);
}

// prefetcht0 gs:[op]
void tool_shadow_prefetch(ToolBlock *b, const ToolAccess *access)
{
    static const u8 prefetch[] = {0x0f, 0x18};
    ShadowOperand op;
    open_operand(b, access, &op);
    put_op(&b->e, 0, false, prefetch, 2, 1, &op, 0);
    close_operand(b);
}

void tool_shadow_clear(ToolBlock *b, const ToolAccess *access)
{
    ShadowOperand op;
    open_operand(b, access, &op);
    for (u32 at = 0, step; at < access->size_bytes; at += step) {
        step = piece(access->size_bytes - at);
        put_store(&b->e, &op, step, (i32)at, 0);
    }
    close_operand(b);
}
