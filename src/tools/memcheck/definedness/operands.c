// SPDX-License-Identifier: MIT
//
// Where the V bits of operands are: in which register's part of Definedness, or in memory.
#include "tools/memcheck/definedness/step.h"

static bool is_high_byte(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

static Place gpr_place(ZydisRegister reg, u32 size)
{
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    u8 number = (u8)(full - ZYDIS_REGISTER_RAX);
    return (Place){
        .kind = PLACE_GPR,
        .number = number,
        .shift = is_high_byte(reg) ? 8 : 0,
        .size = (u8)size,
        .at = (u16)(offsetof(Definedness, gpr) + 8u * number),
        .written_upper = size == 4 ? 8 : (u8)size,
    };
}

static Place vector_place(ZydisRegister first, ZydisRegister reg, u32 size, bool legacy)
{
    u8 number = (u8)(reg - first);
    return (Place){
        .kind = PLACE_VECTOR,
        .number = number,
        .size = (u8)size,
        .at = (u16)(offsetof(Definedness, vector) + 64u * number),
        .written_upper = legacy ? (u8)size : 64,
    };
}

Place definedness_register(ZydisRegister reg, bool legacy)
{
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8: return gpr_place(reg, 1);
    case ZYDIS_REGCLASS_GPR16: return gpr_place(reg, 2);
    case ZYDIS_REGCLASS_GPR32: return gpr_place(reg, 4);
    case ZYDIS_REGCLASS_GPR64: return gpr_place(reg, 8);
    case ZYDIS_REGCLASS_XMM: return vector_place(ZYDIS_REGISTER_XMM0, reg, 16, legacy);
    case ZYDIS_REGCLASS_YMM: return vector_place(ZYDIS_REGISTER_YMM0, reg, 32, legacy);
    case ZYDIS_REGCLASS_ZMM: return vector_place(ZYDIS_REGISTER_ZMM0, reg, 64, legacy);
    case ZYDIS_REGCLASS_MASK:
        return (Place){.kind = PLACE_MASK, .number = (u8)(reg - ZYDIS_REGISTER_K0), .size = 8,
                       .at = (u16)(offsetof(Definedness, mask) + 8u * (reg - ZYDIS_REGISTER_K0)),
                       .written_upper = 8};
    case ZYDIS_REGCLASS_MMX:
        return (Place){.kind = PLACE_MMX, .number = (u8)(reg - ZYDIS_REGISTER_MM0), .size = 8,
                       .at = (u16)(offsetof(Definedness, x87) + 16u * (reg - ZYDIS_REGISTER_MM0)),
                       .written_upper = 8};
    case ZYDIS_REGCLASS_X87:
        return (Place){.kind = PLACE_X87, .number = (u8)(reg - ZYDIS_REGISTER_ST0), .size = 10,
                       .at = offsetof(Definedness, x87), .written_upper = 10};
    default: break;
    }
    if (reg == ZYDIS_REGISTER_MXCSR)
        return (Place){.kind = PLACE_MXCSR, .size = 4, .at = offsetof(Definedness, mxcsr),
                       .written_upper = 8};
    if (reg == ZYDIS_REGISTER_X87CONTROL || reg == ZYDIS_REGISTER_X87STATUS ||
        reg == ZYDIS_REGISTER_X87TAG)
        return (Place){.kind = PLACE_ENVIRONMENT, .size = 8,
                       .at = offsetof(Definedness, x87_environment), .written_upper = 8};
    return (Place){0};
}

MemberSet definedness_member(const Place *place)
{
    switch (place->kind) {
    case PLACE_GPR: return MEMBER_GPR(place->number);
    case PLACE_VECTOR: return MEMBER_VECTOR(place->number);
    case PLACE_MASK: return MEMBER_MASK(place->number);
    case PLACE_MMX:
    case PLACE_X87:
    case PLACE_ENVIRONMENT: return MEMBER_X87;
    case PLACE_MXCSR: return MEMBER_MXCSR;
    default: return 0;
    }
}

static u8 broadcast_bytes(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
    bool broadcasts = z->avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
                      !z->avx.broadcast.is_static;
    return broadcasts ? (u8)(op->size / 8) : 0;
}

Place definedness_place(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
    bool legacy = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
                  z->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
    u32 size = op->size / 8 <= 64 ? op->size / 8 : 64;
    switch (op->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: return definedness_register(op->reg.value, legacy);
    case ZYDIS_OPERAND_TYPE_MEMORY:
        return (Place){.kind = PLACE_MEMORY, .size = (u8)size, .written_upper = (u8)size,
                       .broadcast = broadcast_bytes(z, op)};
    case ZYDIS_OPERAND_TYPE_IMMEDIATE: return (Place){.kind = PLACE_IMMEDIATE, .size = 8};
    default: return (Place){0};
    }
}
