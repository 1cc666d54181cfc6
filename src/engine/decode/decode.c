// SPDX-License-Identifier: MIT
//
// Decoding through Zydis; see decode.h.
#include "engine/decode/decode.h"

#include <cpuid.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/assert.h"

enum { INSN_BYTES_MAX = 15, HWCAP2_FSGSBASE = 2 };

static ZydisDecoder decoder;
static bool has_wrgsbase;
bool decode_as_amd;

static const u8 lowering_of[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define OP(mnemonic, lowering) [ZYDIS_MNEMONIC_##mnemonic] = LOWER_##lowering,
#include "engine/decode/ops.def"
#undef OP
};

static bool is_amd_or_hygon(void)
{
    u32 max, b, c, d;
    __cpuid(0, max, b, c, d);
    return c == signature_AMD_ecx || c == 0x656e6975 /* HygonGenuine */;
}

void decode_init(void)
{
    decode_as_amd = is_amd_or_hygon();
    has_wrgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
    ZyanStatus status =
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ASSERT(ZYAN_SUCCESS(status));
    status = ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES,
                                    decode_as_amd);
    ASSERT(ZYAN_SUCCESS(status));
}

// jmp, call and ret have near and far, direct and indirect forms.
static Lowering branch_lowering(const ZydisDecodedInstruction *z)
{
    if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return LOWER_EMULATE;
    bool call = z->mnemonic == ZYDIS_MNEMONIC_CALL;
    if (z->opcode == 0xff)
        return call ? LOWER_CALL_INDIRECT : LOWER_JMP_INDIRECT;
    return call ? LOWER_CALL : LOWER_JMP;
}

// mov fs, r; mov gs, r; pop fs; pop gs would take the engine's registers away.
static bool loads_engine_segment(const ZydisDecodedInstruction *z)
{
    if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
        return false;
    if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && z->opcode == 0x8e)
        return z->raw.modrm.reg == 4 || z->raw.modrm.reg == 5;
    return z->opcode_map == ZYDIS_OPCODE_MAP_0F && (z->opcode == 0xa1 || z->opcode == 0xa9);
}

// An implicit operand, or moffs, that the fs or gs prefix applies to: string
// instructions, xlat, maskmov and their like.
static bool reaches_through_segment(const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!decode_operands(insn, &z, operands))
        return false;
    for (unsigned i = 0; i < z.operand_count; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && (op->mem.segment == ZYDIS_REGISTER_FS ||
                                                      op->mem.segment == ZYDIS_REGISTER_GS))
            return true;
    }
    return false;
}

// Explicit operands that cannot be moved to another base register: the vector
// of 32-bit addresses of a gather, and pop's, which counts from the new rsp.
static bool needs_whole_segment(const ZydisDecodedInstruction *z)
{
    if (!(z->attributes & ZYDIS_ATTRIB_HAS_SIB))
        return false;
    bool vector_index = z->meta.category == ZYDIS_CATEGORY_GATHER ||
                        z->meta.category == ZYDIS_CATEGORY_SCATTER ||
                        z->meta.category == ZYDIS_CATEGORY_AVX2GATHER;
    return z->mnemonic == ZYDIS_MNEMONIC_POP || (vector_index && z->address_width == 32);
}

// The CPU takes the operand of mov to and from control and debug registers for
// a register, whatever mod says.
static bool has_memory_operand(const ZydisDecodedInstruction *z)
{
    bool system_mov = z->opcode_map == ZYDIS_OPCODE_MAP_0F && z->opcode >= 0x20 &&
                      z->opcode <= 0x23 && z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    return (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod != 3 && !system_mov;
}

static void note_memory(const ZydisDecodedInstruction *z, Insn *insn)
{
    bool has_memory = has_memory_operand(z);
    if (z->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)) {
        insn->segment = z->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS ? 0x64 : 0x65;
        // lea and nop have an operand that they do not access.
        if (z->mnemonic == ZYDIS_MNEMONIC_LEA || z->mnemonic == ZYDIS_MNEMONIC_NOP)
            return;
        if (has_memory ? needs_whole_segment(z) : reaches_through_segment(insn))
            insn->memory = MEMORY_SEGMENT_WHOLE;
        else if (has_memory)
            insn->memory = MEMORY_SEGMENT;
        return;
    }
    if (has_memory && z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5) {
        insn->memory = MEMORY_RIP;
        insn->target = insn->pc + z->length + (u64)z->raw.disp.value;
        if (z->address_width == 32)
            insn->target = (u32)insn->target;
    }
}

static bool is_truncating_branch(const ZydisDecodedInstruction *z, u8 lowering)
{
    bool near_branch = lowering == LOWER_JCC || lowering == LOWER_LOOP ||
                       lowering == LOWER_BRANCH || lowering == LOWER_RET;
    return near_branch && decode_as_amd && z->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR &&
           (z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !z->raw.rex.W;
}

DecodeResult decode_insn(GuestAddr pc, const u8 *bytes, size_t max, Insn *ret_insn)
{
    ZydisDecodedInstruction z;
    ZyanStatus status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, max, &z);
    if (ZYAN_FAILED(status)) {
        if (status == ZYDIS_STATUS_NO_MORE_DATA)
            return max >= INSN_BYTES_MAX ? DECODE_TOO_LONG : DECODE_TRUNCATED;
        return status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG ? DECODE_TOO_LONG : DECODE_BAD;
    }

    Insn insn = {.pc = pc, .bytes = bytes, .len = z.length, .mnemonic = (u16)z.mnemonic,
                 .flags = z.cpu_flags, .encoding = (u8)z.encoding};
    insn.lowering = lowering_of[z.mnemonic];
    if (z.attributes & ZYDIS_ATTRIB_HAS_MODRM) {
        insn.modrm_at = z.raw.modrm.offset;
        insn.disp_at = z.raw.disp.offset;
        note_memory(&z, &insn);
    } else if (z.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)) {
        note_memory(&z, &insn);
    }

    if (insn.lowering == LOWER_COPY) {
        if (loads_engine_segment(&z) || (insn.memory == MEMORY_SEGMENT_WHOLE && !has_wrgsbase))
            insn.lowering = LOWER_EMULATE;
    } else {
        if (is_truncating_branch(&z, insn.lowering))
            insn.lowering = LOWER_EMULATE;
        else if (insn.lowering == LOWER_BRANCH)
            insn.lowering = (u8)branch_lowering(&z);
        else if (insn.lowering == LOWER_RET && z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
            insn.lowering = LOWER_EMULATE;
        insn.condition = z.opcode & 15;
        if (z.raw.imm[0].is_relative)
            insn.target = pc + z.length + (u64)z.raw.imm[0].value.s;
        if (z.mnemonic == ZYDIS_MNEMONIC_RET && z.raw.imm[0].size)
            insn.pop_bytes = (u16)z.raw.imm[0].value.u;
    }
    *ret_insn = insn;
    return DECODE_OK;
}

bool insn_ends_block(const Insn *insn)
{
    switch (insn->lowering) {
    case LOWER_JMP:
    case LOWER_CALL:
    case LOWER_JMP_INDIRECT:
    case LOWER_CALL_INDIRECT:
    case LOWER_RET:
    case LOWER_SYSCALL:
    case LOWER_XBEGIN:
    case LOWER_EMULATE:
        return true;
    default:
        return false;
    }
}

bool decode_operands(const Insn *insn, ZydisDecodedInstruction *ret_z,
                     ZydisDecodedOperand ret_operands[ZYDIS_MAX_OPERAND_COUNT])
{
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder, insn->bytes, insn->len, ret_z, ret_operands));
}

static u32 gpr_bit(ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE)
        return 0;
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64)
        return 0;
    return 1u << (full - ZYDIS_REGISTER_RAX);
}

u32 insn_gprs_used(const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!decode_operands(insn, &z, operands))
        return 0xffff;
    u32 used = 0;
    for (unsigned i = 0; i < z.operand_count; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
            used |= gpr_bit(op->reg.value);
        else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
            used |= gpr_bit(op->mem.base) | gpr_bit(op->mem.index);
    }
    return used;
}
