// SPDX-License-Identifier: MIT
//
// The primitives of toolapi/observe.h.
//
// Where the client's flags are live a sum goes through lea; a comparison saves them in rax, which
// is spilled, by lahf and seto.
#include "engine/toolapi/observe.h"
#include "engine/translate/builder.h"

static i32 slot_at(unsigned slot)
{
    return CTX(tool.slot) + 8 * (i32)slot;
}

// --------------------------------------------------------------------- flags

static void save_flags(Builder *b)
{
    builder_spill(b, RAX);
    x64_lahf(&b->e);
    x64_seto_reg(&b->e, BYTE, RAX);
}

static void restore_flags(Builder *b)
{
    x64_add_reg_imm(&b->e, BYTE, RAX, 0x7f); // overflows if al is 1
    x64_sahf(&b->e);
    builder_unspill(b, RAX);
}

// ------------------------------------------------------------------- updates

static void add_constant(Builder *b, X64Mem word, i32 amount)
{
    if (tool_flags_are_dead(b)) {
        x64_add_mem_imm(&b->e, QWORD, word, amount);
        return;
    }
    builder_spill(b, RAX);
    x64_mov_reg_mem(&b->e, QWORD, RAX, word);
    x64_lea_reg_mem(&b->e, QWORD, RAX, x64_at(RAX, amount));
    x64_mov_mem_reg(&b->e, QWORD, word, RAX);
    builder_unspill(b, RAX);
}

void tool_bump(ToolBlock *b, u32 index, i32 amount)
{
    add_constant(b, x64_gs(x64_absolute((i32)(8 * index))), amount);
}

// rcx := the source, with rcx spilled. False, and nothing is spilled: there is none.
static bool load_source(Builder *b, ToolSource source, i64 value, const ToolAccess *access)
{
    if (source == TOOL_ADDRESS && !access->address.is_one)
        return false;
    builder_spill(b, RCX);
    if (source == TOOL_ADDRESS)
        emit_access_address(b, RCX, access);
    else if (source == TOOL_REGISTER)
        x64_mov_reg_reg(&b->e, QWORD, RCX, (unsigned)value);
    else
        x64_mov_reg_imm(&b->e, RCX, (u64)value);
    return true;
}

static void add_rcx(Builder *b, X64Mem word)
{
    if (tool_flags_are_dead(b)) {
        x64_add_mem_reg(&b->e, QWORD, word, RCX);
        return;
    }
    builder_spill(b, RAX);
    x64_mov_reg_mem(&b->e, QWORD, RAX, word);
    x64_lea_reg_mem(&b->e, QWORD, RAX, x64_sum(RAX, RCX));
    x64_mov_mem_reg(&b->e, QWORD, word, RAX);
    builder_unspill(b, RAX);
}

// word := rcx unless it is on the far side of rcx already.
static void limit_rcx(Builder *b, X64Mem word, X64Branch unless)
{
    bool are_live = !tool_flags_are_dead(b);
    if (are_live)
        save_flags(b);
    x64_cmp_reg_mem(&b->e, QWORD, RCX, word);
    X64Jump skip = x64_jcc_short(&b->e, unless);
    x64_mov_mem_reg(&b->e, QWORD, word, RCX);
    x64_land(&b->e, skip);
    if (are_live)
        restore_flags(b);
}

bool tool_slot_update(ToolBlock *b, unsigned slot, ToolUpdate update, ToolSource source, i64 value,
                      const ToolAccess *access)
{
    X64Mem word = x64_fs(slot_at(slot));
    if (source == TOOL_CONSTANT && update == TOOL_ADD) {
        add_constant(b, word, (i32)value);
        return true;
    }
    if (source == TOOL_CONSTANT && update == TOOL_STORE) {
        x64_mov_mem_imm(&b->e, QWORD, word, (i32)value);
        return true;
    }
    if (!load_source(b, source, value, access))
        return false;
    switch (update) {
    case TOOL_ADD: add_rcx(b, word); break;
    case TOOL_STORE: x64_mov_mem_reg(&b->e, QWORD, word, RCX); break;
    case TOOL_MAX: limit_rcx(b, word, X64_BE); break;
    case TOOL_MIN: limit_rcx(b, word, X64_AE); break;
    }
    builder_unspill(b, RCX);
    return true;
}

// --------------------------------------------------------------------- tests

static ToolTest end_test(Builder *b, bool saves_flags, X64Branch otherwise)
{
    X64Jump skip = x64_branch(&b->e, otherwise);
    if (saves_flags)
        restore_flags(b);
    return (ToolTest){.skip = skip.end, .saves_flags = saves_flags};
}

ToolTest tool_slot_if(ToolBlock *b, unsigned slot, ToolCondition condition, i32 constant)
{
    static const X64Branch otherwise[] = {
        [TOOL_EQUAL] = X64_NE, [TOOL_NOT_EQUAL] = X64_E,
        [TOOL_BELOW] = X64_AE, [TOOL_NOT_BELOW] = X64_B,
    };
    bool saves_flags = !tool_flags_are_dead(b);
    if (saves_flags)
        save_flags(b);
    x64_cmp_mem_imm(&b->e, QWORD, x64_fs(slot_at(slot)), constant);
    return end_test(b, saves_flags, otherwise[condition]);
}

ToolTest tool_slot_if_full(ToolBlock *b, unsigned slot, i32 bytes)
{
    bool saves_flags = !tool_flags_are_dead(b);
    builder_spill(b, RCX);
    x64_mov_reg_fs(&b->e, RCX, slot_at(slot));
    x64_lea_reg_mem(&b->e, QWORD, RCX, x64_at(RCX, bytes));
    if (saves_flags)
        save_flags(b);
    x64_cmp_reg_mem(&b->e, QWORD, RCX, x64_fs(slot_at(slot + 1)));
    builder_unspill(b, RCX); // a mov: the comparison stands
    return end_test(b, saves_flags, X64_BE);
}

// The way around what was inserted has its own code to restore the flags.
void tool_end_if(ToolBlock *b, ToolTest test)
{
    if (!test.saves_flags) {
        x64_land(&b->e, (X64Jump){.end = test.skip});
        return;
    }
    X64Jump over = x64_jmp_short(&b->e);
    x64_land(&b->e, (X64Jump){.end = test.skip});
    b->spilled |= 1u << RAX;
    builder_mark(b, false);
    restore_flags(b);
    x64_land(&b->e, over);
}

// ------------------------------------------------------------------- records

bool tool_record_access(ToolBlock *b, unsigned slot, const ToolAccess *access, u64 info, i32 offset,
                        i32 advance)
{
    if (!access->address.is_one)
        return false;
    builder_spill(b, RAX);
    emit_access_address(b, RAX, access);
    builder_spill(b, RCX);
    x64_mov_reg_fs(&b->e, RCX, slot_at(slot));
    x64_mov_mem_reg(&b->e, QWORD, x64_at(RCX, offset), RAX);
    x64_mov_reg_imm(&b->e, RAX, info);
    x64_mov_mem_reg(&b->e, QWORD, x64_at(RCX, offset + 8), RAX);
    if (advance) {
        x64_lea_reg_mem(&b->e, QWORD, RCX, x64_at(RCX, advance));
        x64_mov_fs_reg(&b->e, slot_at(slot), RCX);
    }
    builder_unspill(b, RCX);
    builder_unspill(b, RAX);
    return true;
}

static void hold(Builder *b, unsigned reg)
{
    x64_mov_fs_reg(&b->e, CTX_SPILL(reg), reg);
    b->held |= (u16)(1u << reg);
}

void tool_hold(ToolBlock *b, ToolHold held, unsigned slot, i32 advance)
{
    hold(b, held.pointer);
    hold(b, held.scratch);
    builder_mark(b, false);
    x64_mov_reg_fs(&b->e, held.pointer, slot_at(slot));
    x64_lea_reg_mem(&b->e, QWORD, held.scratch, x64_at(held.pointer, advance));
    x64_mov_fs_reg(&b->e, slot_at(slot), held.scratch);
}

void tool_record_held(ToolBlock *b, ToolHold held, const ToolAccess *access, u64 info, i32 offset)
{
    emit_access_address(b, held.scratch, access);
    x64_mov_mem_reg(&b->e, QWORD, x64_at(held.pointer, offset), held.scratch);
    x64_mov_reg_imm(&b->e, held.scratch, info); // one store more would cost more
    x64_mov_mem_reg(&b->e, QWORD, x64_at(held.pointer, offset + 8), held.scratch);
}

void tool_release(ToolBlock *b, ToolHold held)
{
    x64_mov_reg_fs(&b->e, held.pointer, CTX_SPILL(held.pointer));
    x64_mov_reg_fs(&b->e, held.scratch, CTX_SPILL(held.scratch));
    b->held = 0;
    builder_mark(b, false);
}

// --------------------------------------------------------------------- calls

bool tool_call_with_access(ToolBlock *b, const ToolAccess *access)
{
    if (!access->address.is_one)
        return false;
    builder_spill(b, RAX);
    emit_access_address(b, RAX, access);
    x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
    builder_unspill(b, RAX);
    return true;
}

void tool_call_with_slot(ToolBlock *b, unsigned slot)
{
    builder_spill(b, RAX);
    x64_mov_reg_fs(&b->e, RAX, slot_at(slot));
    x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
    builder_unspill(b, RAX);
}

bool tool_call_with_taken(ToolBlock *b)
{
    if (b->insn->lowering != LOWER_JCC)
        return false;
    x64_mov_mem_imm(&b->e, QWORD, x64_fs(CTX(gateway.call_address)), 0);
    X64Jump not_taken = x64_jcc_short(&b->e, (X64Branch)(b->insn->condition ^ 1));
    x64_mov_mem_imm(&b->e, QWORD, x64_fs(CTX(gateway.call_address)), 1);
    x64_land(&b->e, not_taken);
    return true;
}

// rax := the operand of an indirect branch. If that faults, so would the branch: it is its fault.
static void load_pointer(Builder *b)
{
    ToolAccess accesses[8];
    unsigned count = tool_accesses(b->insn, accesses, ARRAY_LEN(accesses));
    for (unsigned i = 0; i < count; i++) {
        if (accesses[i].operand == 0)
            emit_access_address(b, RAX, &accesses[i]);
    }
    x64_mov_reg_mem(&b->e, QWORD, RAX, x64_at(RAX, 0));
}

// The target of `ret` is at [rsp]; of an indirect branch in its operand.
bool tool_call_with_target(ToolBlock *b)
{
    const Insn *insn = b->insn;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (insn->lowering != LOWER_RET && insn->lowering != LOWER_JMP_INDIRECT &&
        insn->lowering != LOWER_CALL_INDIRECT)
        return false;
    builder_spill(b, RAX);
    if (insn->lowering == LOWER_RET) {
        x64_mov_reg_mem(&b->e, QWORD, RAX, x64_at(RSP, 0));
    } else if (decode_operands(insn, &z, operands) &&
               operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        int id = ZydisRegisterGetId(operands[0].reg.value);
        x64_mov_reg_reg(&b->e, QWORD, RAX, (unsigned)id);
    } else {
        load_pointer(b);
    }
    x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
    builder_unspill(b, RAX);
    return true;
}

static const u8 callee_saved[] = {RBX, RBP, R12, R13, R14, R15};

// The gateway stores the others.
void tool_store_gprs(ToolBlock *b)
{
    for (unsigned i = 0; i < ARRAY_LEN(callee_saved); i++)
        tool_store_gpr(b, callee_saved[i]);
}

void tool_load_gprs(ToolBlock *b)
{
    for (unsigned i = 0; i < ARRAY_LEN(callee_saved); i++)
        x64_mov_reg_fs(&b->e, callee_saved[i], CTX_GPR(callee_saved[i]));
}

u64 *tool_call_flags(ToolThread *thread)
{
    return (u64 *)(thread->gateway.engine_rsp - 8);
}

u32 tool_block_number(const ToolBlock *b)
{
    return cache_number(b->block);
}
