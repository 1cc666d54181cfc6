// SPDX-License-Identifier: MIT
//
// See swapped.h: the other test, in the client's code.
#include "tools/memcheck/translate/swapped.h"

#include <string.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"

static bool take_gpr(ZydisRegister reg, u8 *ret_number)
{
    if (reg == ZYDIS_REGISTER_NONE) {
        *ret_number = INSN_NO_REG;
        return true;
    }
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    bool is_high = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
    *ret_number = (u8)(full - ZYDIS_REGISTER_RAX);
    return !is_high && full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15;
}

// Of 64 bits, or none.
static bool is_whole(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP ||
           ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR64;
}

static bool take_memory(const Insn *insn, const ZydisDecodedOperand *op, SwappedOperand *ret)
{
    bool is_rip = op->mem.base == ZYDIS_REGISTER_RIP;
    ret->kind = SWAPPED_MEMORY;
    ret->constant = (u64)op->mem.disp.value + (is_rip ? insn->pc + insn->len : 0);
    ret->scale = op->mem.scale;
    return insn->segment == 0 &&
           is_whole(op->mem.base) && is_whole(op->mem.index) &&
           take_gpr(is_rip ? ZYDIS_REGISTER_NONE : op->mem.base, &ret->reg) &&
           take_gpr(op->mem.index, &ret->index);
}

static bool take_operand(const Insn *insn, const ZydisDecodedOperand *op, SwappedOperand *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->size = (u8)(op->size / 8);
    ret->reg = ret->index = INSN_NO_REG;
    switch (op->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        ret->kind = SWAPPED_REGISTER;
        return take_gpr(op->reg.value, &ret->reg);
    case ZYDIS_OPERAND_TYPE_MEMORY: return take_memory(insn, op, ret);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        ret->kind = SWAPPED_CONSTANT;
        ret->constant = op->imm.value.u;
        return true;
    default: return false;
    }
}

// False: neither a load nor a comparison.
static bool take_op(const Insn *insn, SwappedOp *ret)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    memset(ret, 0, sizeof(*ret));
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_CMP: ret->action = SWAPPED_CMP; break;
    case ZYDIS_MNEMONIC_TEST: ret->action = SWAPPED_TEST; break;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD: ret->extends = true; break;
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX: break;
    default: return false;
    }
    if (!decode_operands(insn, &z, operands) || z.operand_count_visible != 2)
        return false;
    ret->to_size = (u8)(operands[0].size / 8);
    if (ret->action != SWAPPED_LOAD) {
        bool taken = take_operand(insn, &operands[0], &ret->first) &&
                     take_operand(insn, &operands[1], &ret->second);
        ret->second.size = ret->first.size; // a constant may be shorter
        return taken;
    }
    if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || operands[0].size < 32 ||
        !take_gpr(operands[0].reg.value, &ret->to) || ret->to == RSP ||
        !take_operand(insn, &operands[1], &ret->first))
        return false;
    if (ret->first.kind == SWAPPED_CONSTANT)
        ret->first.size = ret->to_size; // it may be shorter, and has its sign
    return true;
}

// What it loads is not wanted there: it would be as undefined as the way is.
static bool is_wanted_at(GuestAddr common, const Swapped *swapped)
{
    for (u32 i = 0; i < swapped->count; i++) {
        const SwappedOp *op = &swapped->ops[i];
        if (op->action == SWAPPED_LOAD && lookahead_is_read(common, op->to))
            return true;
    }
    return false;
}

// From `pc` on nothing but loads, a comparison, and a jump that leads to `common` or does not.
// Returns where that ends; 0: there is something else.
static GuestAddr find_from(GuestAddr pc, GuestAddr common, Swapped *ret)
{
    u8 bytes[DECODE_BYTES_MAX];
    Insn insn;
    for (ret->count = 0; guest_read(pc, bytes, sizeof(bytes)) &&
                         decode_insn(pc, bytes, sizeof(bytes), &insn) == DECODE_OK;
         pc += insn.len) {
        bool is_compared = ret->count && ret->ops[ret->count - 1].action != SWAPPED_LOAD;
        if (is_compared && insn.lowering == LOWER_JCC) {
            bool is_near = insn.len >= 6 && bytes[insn.len - 6] == 0x0f;
            u32 condition = bytes[insn.len - (is_near ? 5 : 2)] & 15;
            ret->condition = insn.target == common ? condition : condition ^ 1;
            return insn.target == common || pc + insn.len == common ? pc + insn.len : 0;
        }
        if (is_compared || ret->count == SWAPPED_OPS_MAX || !take_op(&insn, &ret->ops[ret->count]))
            return 0;
        ret->count++;
    }
    return 0;
}

static u32 gprs_of(const SwappedOperand *operand)
{
    u32 gprs = 0;
    if (operand->kind != SWAPPED_CONSTANT && operand->reg != INSN_NO_REG)
        gprs |= 1u << operand->reg;
    if (operand->kind == SWAPPED_MEMORY && operand->index != INSN_NO_REG)
        gprs |= 1u << operand->index;
    return gprs;
}

void swapped_step(ToolBlock *block, const ToolInsn *jump, ToolStep *step)
{
    const u32 preserved = 1u << RBX | 1u << RBP | 1u << R12 | 1u << R13 | 1u << R14 | 1u << R15;
    GuestAddr behind = jump->pc + jump->len, end = 0;
    const GuestAddr ways[2][2] = {{behind, jump->target}, {jump->target, behind}};
    Swapped swapped;
    for (unsigned i = 0; i < 2 && !end; i++) {
        memset(&swapped, 0, sizeof(swapped));
        end = find_from(ways[i][0], ways[i][1], &swapped);
        if (end && is_wanted_at(ways[i][1], &swapped))
            end = 0;
        if (end)
            tool_depends_on(block, ways[i][0], end);
    }
    if (!end)
        return;
    swapped.step = (const DefinednessStep *)step->arg;
    for (u32 i = 0; i < swapped.count; i++) {
        const SwappedOp *op = &swapped.ops[i];
        step->gprs |= (gprs_of(&op->first) | gprs_of(&op->second)) & preserved;
    }
    step->fn = swapped_jump;
    step->arg = (u64)step_keep(&swapped, sizeof(swapped));
}
