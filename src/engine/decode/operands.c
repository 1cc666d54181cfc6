// SPDX-License-Identifier: MIT
//
// What matters of an instruction's operands, from all that Zydis knows.
#include "engine/decode/shape.h"

#include <string.h>

#include "engine/ctx/ctx.h"

_Static_assert(INSN_NO_REG == GPR_COUNT, "registers have one numbering");

static u8 gpr_of(ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
        return INSN_NO_REG;
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return ZydisRegisterGetClass(full) == ZYDIS_REGCLASS_GPR64 ? (u8)(full - ZYDIS_REGISTER_RAX)
                                                               : INSN_NO_REG;
}

static u16 gpr_bit(ZydisRegister reg)
{
    u8 number = gpr_of(reg);
    return number == INSN_NO_REG ? 0 : (u16)(1u << number);
}

static u8 whole_gpr(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15 ? (u8)(reg - ZYDIS_REGISTER_RAX)
                                                                  : INSN_NO_REG;
}

static u8 whole_register(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER ? whole_gpr(op->reg.value) : INSN_NO_REG;
}

static bool is_repeated(const ZydisDecodedInstruction *z)
{
    return z->attributes &
           (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

static bool is_masked(const ZydisDecodedInstruction *z)
{
    return z->attributes & ZYDIS_ATTRIB_HAS_EVEX && z->avx.mask.reg != ZYDIS_REGISTER_K0 &&
           z->avx.mask.reg != ZYDIS_REGISTER_NONE;
}

static InsnAddress address_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
    InsnAddress a = {
        .base = gpr_of(op->mem.base),
        .index = gpr_of(op->mem.index),
        .scale = op->mem.scale,
        .segment = op->mem.segment == ZYDIS_REGISTER_FS   ? 0x64
                   : op->mem.segment == ZYDIS_REGISTER_GS ? 0x65
                                                          : 0,
        .is_rip = op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP,
        // The stack's own operands are not narrowed by the prefix (linkers pad calls with it).
        .is_narrow = z->address_width == 32 && op->mem.base != ZYDIS_REGISTER_RSP,
        .is_hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN,
        .is_one = op->mem.type == ZYDIS_MEMOP_TYPE_MEM,
        .disp = op->mem.disp.value,
    };
    // Zydis takes SIB base 101 for r13 when B is set, but with mod 00 there is no
    // base whatever B says.
    if (op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
        (z->attributes & ZYDIS_ATTRIB_HAS_SIB) && z->raw.modrm.mod == 0 && z->raw.sib.base == 5) {
        a.base = INSN_NO_REG;
        a.disp = z->raw.disp.value;
    }
    return a;
}

static unsigned find_accesses(const ZydisDecodedInstruction *z,
                              const ZydisDecodedOperand *operands, InsnAccess *ret_accesses,
                              unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < z->operand_count && n < max; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
            op->mem.type == ZYDIS_MEMOP_TYPE_MIB)
            continue;
        InsnAccess *access = &ret_accesses[n++];
        *access = (InsnAccess){
            .address = address_of(z, op),
            .size_bytes = op->size / 8u,
            .reads = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
            .writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
            .operand = (u8)i,
        };
        access->address.disp += insn_popped_bytes(z->mnemonic, access);
        access->is_plain = access->address.is_one && !is_repeated(z) && !is_masked(z);
    }
    return n;
}

unsigned operands_accesses(const Insn *insn, InsnAccess *ret_accesses, unsigned max)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    return decode_operands(insn, &z, operands) ? find_accesses(&z, operands, ret_accesses, max)
                                               : 0;
}

static InsnForm find_form(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands)
{
    InsnForm form = {.dst = INSN_NO_REG, .src = INSN_NO_REG, .lea_base = INSN_NO_REG};
    for (unsigned i = 0; i < z->operand_count; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            form.gprs_used |= gpr_bit(op->reg.value);
            if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                form.gprs_written |= gpr_bit(op->reg.value);
        }
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
            form.gprs_used |= gpr_bit(op->mem.base) | gpr_bit(op->mem.index);
        form.writes_rsp |= i < z->operand_count_visible && whole_register(op) == RSP &&
                           (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
    }
    if (z->operand_count > 0) {
        form.dst = whole_register(&operands[0]);
        form.writes_dst = operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    }
    if (z->operand_count > 1) {
        form.src = whole_register(&operands[1]);
        form.has_imm = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    }
    if (z->mnemonic == ZYDIS_MNEMONIC_LEA) {
        form.lea_base = whole_gpr(operands[1].mem.base);
        form.lea_indexed = operands[1].mem.index != ZYDIS_REGISTER_NONE;
    }
    form.is_repeated = z->meta.category == ZYDIS_CATEGORY_STRINGOP && is_repeated(z);
    return form;
}

void operands_form(const Insn *insn, InsnForm *ret_form)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (decode_operands(insn, &z, operands))
        *ret_form = find_form(&z, operands);
    else
        *ret_form = (InsnForm){.gprs_used = 0xffff, .gprs_written = 0xffff, .dst = INSN_NO_REG,
                               .src = INSN_NO_REG, .lea_base = INSN_NO_REG};
}

// ----------------------------------------------------------------------- shapes

static u8 target_of(const Insn *insn, const ZydisDecodedInstruction *z)
{
    if (insn->memory == MEMORY_RIP)
        return z->address_width == 32 ? TARGET_RIP_NARROW : TARGET_RIP;
    return insn->lowering != LOWER_COPY && z->raw.imm[0].is_relative ? TARGET_BRANCH : TARGET_NONE;
}

bool shape_make(const Insn *insn, InsnShape *ret_shape)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    InsnAccess accesses[SHAPE_ACCESSES_MAX + 1];
    InsnShape shape = {.flags = insn->flags, .len = insn->len};
    memcpy(shape.traits, &insn->mnemonic, sizeof(shape.traits));
    if (!decode_operands(insn, &z, operands))
        return false;
    shape.form = find_form(&z, operands);
    unsigned last = z.raw.imm[1].size ? 1 : 0;
    shape.disp_at = z.raw.disp.offset;
    shape.disp_size = z.raw.disp.size / 8;
    shape.imm_at = z.raw.imm[last].offset;
    shape.imm_size = z.raw.imm[last].size / 8;
    shape.value_bytes = (u8)((z.raw.disp.size + z.raw.imm[0].size + z.raw.imm[1].size) / 8);
    shape.target = target_of(insn, &z);
    shape.pops = insn->mnemonic == ZYDIS_MNEMONIC_RET && shape.imm_size;
    unsigned count = find_accesses(&z, operands, accesses, ARRAY_LEN(accesses));
    if (count > SHAPE_ACCESSES_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        ZydisOperandVisibility visibility = operands[accesses[i].operand].visibility;
        bool has_disp = visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
        if (accesses[i].address.disp != (has_disp ? z.raw.disp.value : 0))
            return false;
        accesses[i].address.disp = 0;
        shape.has_disp |= (u8)(has_disp << i);
        shape.accesses[i] = accesses[i];
    }
    shape.access_count = (u8)count;
    *ret_shape = shape;
    return true;
}
