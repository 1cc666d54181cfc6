// SPDX-License-Identifier: MIT
//
// Decoding through Zydis; see decode.h.
#include "engine/decode/shape.h"

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

// [rax], which Zydis takes for a register that no segment applies to.
static bool has_hidden_address(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_CLZERO || mnemonic == ZYDIS_MNEMONIC_MONITOR ||
           mnemonic == ZYDIS_MNEMONIC_MONITORX || mnemonic == ZYDIS_MNEMONIC_UMONITOR;
}

// The last of the prefixes counts.
static u8 segment_prefix(const ZydisDecodedInstruction *z)
{
    for (unsigned i = z->raw.prefix_count; i-- > 0;) {
        u8 prefix = z->raw.prefixes[i].value;
        if (prefix == 0x64 || prefix == 0x65)
            return prefix;
    }
    return 0;
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
    if (has_hidden_address(z->mnemonic)) {
        insn->segment = segment_prefix(z);
        insn->memory = insn->segment ? MEMORY_SEGMENT_WHOLE : MEMORY_PLAIN;
        return;
    }
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

// rol rdi, 3 ; rol rdi, 13 ; rol rdi, 61 ; rol rdi, 51 leave rdi as it was, and no compiler writes
// them. With one of four exchanges of a register with itself they are a client
// request; without, instructions like any other. So is what a jump into their middle finds.
static const u8 preamble[16] = {0x48, 0xc1, 0xc7, 3,  0x48, 0xc1, 0xc7, 13,
                                0x48, 0xc1, 0xc7, 61, 0x48, 0xc1, 0xc7, 51};

bool decode_may_be_request(const u8 *bytes)
{
    return memcmp(bytes, preamble, 4) == 0;
}

static bool is_request(const u8 *bytes, RequestKind *ret_kind)
{
    static const struct {
        u8 modrm;
        RequestKind kind;
    } exchanges[] = {
        {0xdb, REQUEST_CALL},
        {0xc9, REQUEST_GET_ORIGINAL},
        {0xd2, REQUEST_CALL_ORIGINAL},
        {0xff, REQUEST_NOTHING},
    };
    if (memcmp(bytes, preamble, sizeof(preamble)) || bytes[16] != 0x48 || bytes[17] != 0x87)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(exchanges); i++) {
        if (bytes[18] == exchanges[i].modrm) {
            *ret_kind = exchanges[i].kind;
            return true;
        }
    }
    return false;
}

DecodeResult decode_insn(GuestAddr pc, const u8 *bytes, size_t max, Insn *ret_insn)
{
    RequestKind request;
    bool may_be_request = max >= DECODE_BYTES_MAX && decode_may_be_request(bytes);
    if (UNLIKELY(may_be_request) && is_request(bytes, &request)) {
        *ret_insn = (Insn){.pc = pc, .bytes = bytes, .len = DECODE_BYTES_MAX,
                           .decided_by = DECODE_BYTES_MAX, .lowering = LOWER_REQUEST,
                           .request = (u8)request};
        return DECODE_OK;
    }
    ZydisDecodedInstruction z;
    ZyanStatus status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, max, &z);
    if (ZYAN_FAILED(status)) {
        if (status == ZYDIS_STATUS_NO_MORE_DATA)
            return max >= INSN_BYTES_MAX ? DECODE_TOO_LONG : DECODE_TRUNCATED;
        return status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG ? DECODE_TOO_LONG : DECODE_BAD;
    }

    Insn insn = {.pc = pc, .bytes = bytes, .len = z.length, .mnemonic = (u16)z.mnemonic,
                 .flags = z.cpu_flags, .encoding = (u8)z.encoding};
    insn.decided_by = may_be_request ? DECODE_BYTES_MAX : z.length;
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
    case LOWER_REQUEST:
    case LOWER_EMULATE:
        return true;
    default:
        return false;
    }
}

// A tool and the lowerings ask several times for one instruction: the last answer is kept.
typedef struct LastDecoded {
    u8 bytes[16];
    u8 len; // 0: none yet
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
} LastDecoded;
static __thread LastDecoded last;

bool decode_operands(const Insn *insn, ZydisDecodedInstruction *ret_z,
                     ZydisDecodedOperand ret_operands[ZYDIS_MAX_OPERAND_COUNT])
{
    if (insn->lowering == LOWER_REQUEST)
        return false;
    if (last.len != insn->len || memcmp(last.bytes, insn->bytes, insn->len) != 0) {
        last.len = 0;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, insn->bytes, insn->len, &last.z,
                                                 last.operands)))
            return false;
        memcpy(last.bytes, insn->bytes, insn->len);
        last.len = insn->len;
    }
    *ret_z = last.z;
    memcpy(ret_operands, last.operands, last.z.operand_count * sizeof(last.operands[0]));
    return true;
}
