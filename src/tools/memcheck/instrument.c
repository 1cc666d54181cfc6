// SPDX-License-Identifier: MIT
//
// What is inserted into blocks. In a clean block: a guard before each load, a check or a
// mark for each store, marks where the stack grows and shrinks. In a dirty one, also a
// step before each instruction that touches a member of the set.
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "engine/cache/cache.h"
#include "tools/memcheck/memcheck.h"

enum { ACCESSES_MAX = 4, STEP_POOL_BYTES = 1 << 20 };

// Under the engine lock, for the block that is being made.
static MemberSet current;  // members that may be undefined before the next instruction
static bool exact;         // a thread that gets here has just this set

// ---------------------------------------------------------------------- steps

// Steps live as long as the process: blocks name them by address.
static void *keep(const void *what, size_t bytes)
{
    static u8 *pool;
    static u64 left;
    if (left < bytes) {
        pool = pages_map(STEP_POOL_BYTES);
        ASSERT(pool);
        left = STEP_POOL_BYTES;
    }
    void *at = pool;
    memcpy(at, what, bytes);
    pool += bytes;
    left -= bytes;
    return at;
}

static DefinednessStep *keep_step(const void *step)
{
    return keep(step, DEFINEDNESS_STEP_BYTES);
}

static void emit_step(ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step,
                      const ToolAccess *access)
{
    static const u8 preserved[] = {RBX, RBP, R12, R13, R14, R15};
    u32 used = insn_gprs_used(insn);
    for (size_t i = 0; i < ARRAY_LEN(preserved); i++) {
        if (used >> preserved[i] & 1)
            tool_store_gpr(block, preserved[i]);
    }
    for (u32 vectors = definedness_needs_vectors(step); vectors; vectors &= vectors - 1)
        tool_store_vector(block, (unsigned)__builtin_ctz(vectors));
    AccessMove move = {.step = keep_step(step)};
    u64 kept = (u64)move.step;
    ToolCallFn *fn = access_step;
    if (definedness_move(step, &move.move)) {
        kept = (u64)keep(&move, sizeof(move));
        fn = access_move;
    }
    if (access)
        tool_call_access(block, access, fn, kept);
    else
        tool_call(block, fn, kept);
}

// Whether all that the instruction writes of the set is overwritten, so that no step is needed
// to find out what becomes of it.
static bool can_forget(const ToolBlock *block, const DefinednessStep *step)
{
    return !(definedness_writes(step) & current & ~definedness_overwrites(step)) &&
           tool_flags_are_dead(block);
}

static void forget_overwritten(ToolBlock *block, MemberSet members)
{
    if (!members)
        return;
    for (MemberSet left = members; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        tool_state_store(block, member < 16 ? (u32)offsetof(Definedness, gpr) + 8 * member
                                            : (u32)offsetof(Definedness, flags), 0);
    }
    tool_state_and(block, ~members);
    current &= ~members;
}

// ----------------------------------------------------------------------- stack

// rsp goes down: a new frame is undefined. It goes up: what it leaves is so again, and a
// dangling pointer to it will be noticed. What push and call store is marked by them;
// their slots are not marked when they are popped (docs/design/stack-marks.md).
static bool moves_stack(ToolBlock *block, const ToolInsn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    enum { INLINE_BYTES_MAX = 256 };
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
        tool_store_gpr(block, RBP);
        tool_call(block, access_leave_frame, 1);
        return true;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_MOV: break;
    default: return false;
    }
    if (!decode_operands(insn, &z, operands) ||
        operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        operands[0].reg.value != ZYDIS_REGISTER_RSP)
        return false;
    i64 amount;
    if (insn->mnemonic == ZYDIS_MNEMONIC_SUB &&
        operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) { // alloca
        unsigned reg = (unsigned)(operands[1].reg.value - ZYDIS_REGISTER_RAX);
        if (reg < GPR_COUNT) {
            tool_store_gpr(block, reg);
            tool_call(block, access_enter_frame, reg << 1 | 1);
        }
        return true;
    }
    if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn->mnemonic != ZYDIS_MNEMONIC_MOV) {
        amount = operands[1].imm.value.s;
        if (insn->mnemonic == ZYDIS_MNEMONIC_SUB)
            amount = -amount;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA &&
               operands[1].mem.base == ZYDIS_REGISTER_RSP &&
               operands[1].mem.index == ZYDIS_REGISTER_NONE) {
        amount = operands[1].mem.disp.value;
    } else {
        return false; // a load of rsp: the call stack tells
    }
    u64 size = (u64)(amount < 0 ? -amount : amount);
    if (size <= INLINE_BYTES_MAX && size % 8 == 0)
        tool_shadow_fill_stack(block, amount < 0 ? (i32)amount : 0, (u32)size, 0xff);
    else
        tool_call(block, amount < 0 ? access_enter_frame : access_leave_frame, size << 1);
    return true;
}

// -------------------------------------------------------------------- accesses

static bool is_on_stack(const ToolInsn *insn, const ToolAccess *access)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!decode_operands(insn, &z, operands))
        return false;
    const ZydisDecodedOperand *op = &operands[access->operand];
    return op->mem.base == ZYDIS_REGISTER_RSP && op->mem.index == ZYDIS_REGISTER_NONE;
}

static bool is_repeated(const ToolInsn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    return decode_operands(insn, &z, operands) &&
           z.meta.category == ZYDIS_CATEGORY_STRINGOP &&
           (z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE));
}

static bool restores_state(const ToolInsn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64: return true;
    default: return false;
    }
}

static void check_access(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    if (restores_state(insn)) {
        // A step that has saved undefined registers leaves its seal in the first 8 bytes.
        ToolAccess seal = *access;
        seal.size_bytes = 8;
        tool_shadow_guard(block, &seal);
        return;
    }
    if (!tool_shadow_can_check(block, access)) {
        u64 what = access->size_bytes | (access->reads ? ACCESS_READS : 0) |
                   (access->writes ? ACCESS_WRITES : 0);
        tool_call_access(block, access, access_any, what);
        return;
    }
    if (access->reads)
        tool_shadow_guard(block, access);
    else if (is_on_stack(insn, access))
        tool_shadow_clear(block, access);
    else
        tool_shadow_guard_call(block, access, access_store, access->size_bytes);
}

// Instructions that name memory and do not touch it.
static bool touches_nothing(const ToolInsn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB: return true;
    default: return false;
    }
}

void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    (void)insns;
    (void)count;
    current = version_set(tool_version(block));
    exact = current != ~0ull;
}

bool instrument_exit_version(ToolBlock *block, u32 *ret_version)
{
    (void)block;
    *ret_version = version_number(current);
    return exact;
}

void instrument_insn(ToolBlock *block, const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    ToolAccess accesses[ACCESSES_MAX];
    unsigned count = touches_nothing(insn) ? 0 : tool_accesses(insn, accesses, ACCESSES_MAX);
    bool first = tool_version(block) & VERSION_FIRST && tool_is_first(block, insn);

    if (count && is_repeated(insn)) {
        definedness_prepare(insn, step);
        tool_call(block, access_string, (u64)keep_step(step));
        return;
    }
    bool is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    bool leaves = is_call || insn->lowering == LOWER_RET;
    bool overwrites = false;
    if (current || first) {
        definedness_prepare(insn, step);
        MemberSet reads = definedness_reads(step), writes = definedness_writes(step);
        bool uses = first || (reads | definedness_address(step)) & current;
        overwrites = !uses && !leaves && can_forget(block, step);
        if (uses || (writes & current && !overwrites)) {
            emit_step(block, insn, step, count ? &accesses[0] : NULL);
            if (first || (reads & current) || count)
                current |= writes;
            exact = false;
            if (!leaves) {
                moves_stack(block, insn);
                return;
            }
        }
    }
    if (leaves && current & (is_call ? ACCESS_DEAD_AT_CALL : ACCESS_DEAD_AT_RETURN)) {
        tool_call(block, access_call, !is_call);
        exact = false;
    }
    for (unsigned i = 0; i < count && insn->lowering != LOWER_RET; i++)
        check_access(block, insn, &accesses[i]);
    if (overwrites)
        forget_overwritten(block, definedness_writes(step) & current);
    moves_stack(block, insn);
}
