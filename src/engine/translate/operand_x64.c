// SPDX-License-Identifier: MIT
//
// Copying an instruction whose memory operand does not mean the same in the
// cache: rip-relative ones, and those through fs: or gs:, whose bases the
// client must not set in hardware.
//
// The operand is re-encoded on a scratch register that the instruction itself
// does not use. All other bits of the instruction, whatever they mean, stay.
#include "engine/translate/builder.h"

// Registers that need no REX.B and no SIB byte as a base.
static const u8 scratch_candidates[] = {RAX, RCX, RDX, RBX, RSI, RDI};

static unsigned pick_scratch(u32 used)
{
    for (size_t i = 0; i < ARRAY_LEN(scratch_candidates); i++) {
        if (!(used >> scratch_candidates[i] & 1))
            return scratch_candidates[i];
    }
    return GPR_COUNT;
}

// The explicit memory operand, taken apart.
typedef struct MemoryOperand {
    unsigned base, index; // GPR_COUNT: none (or rip, or a vector index)
    unsigned scale;
    i64 disp;
    bool has_index;       // of any kind
} MemoryOperand;

static unsigned gpr_number(ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
        return GPR_COUNT;
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64)
        return GPR_COUNT;
    return (unsigned)(full - ZYDIS_REGISTER_RAX);
}

// Zydis takes SIB base 101 for r13 when B is set, but with mod 00 there is no
// base whatever B says.
static void correct_absent_base(const ZydisDecodedInstruction *z, MemoryOperand *m)
{
    if ((z->attributes & ZYDIS_ATTRIB_HAS_SIB) && z->raw.modrm.mod == 0 && z->raw.sib.base == 5) {
        m->base = GPR_COUNT;
        m->disp = z->raw.disp.value;
    }
}

static void find_memory_operand(const ZydisDecodedInstruction *z,
                                const ZydisDecodedOperand *operands, MemoryOperand *ret_memory)
{
    *ret_memory = (MemoryOperand){.base = GPR_COUNT, .index = GPR_COUNT};
    for (unsigned i = 0; i < z->operand_count; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
            op->visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
            continue;
        ret_memory->base = gpr_number(op->mem.base);
        ret_memory->index = gpr_number(op->mem.index);
        ret_memory->has_index = op->mem.index != ZYDIS_REGISTER_NONE;
        ret_memory->scale = op->mem.scale;
        ret_memory->disp = op->mem.disp.value;
        correct_absent_base(z, ret_memory);
        return;
    }
}

// Copies prefixes and opcode with the B bit of whichever extended prefix there
// is set for a base below 8. Segment prefixes go, and 67 too: the new base
// register holds the whole address.
static void put_opcode(Emitter *e, const Insn *insn, const ZydisDecodedInstruction *z)
{
    for (unsigned i = 0; i < insn->modrm_at; i++) {
        u8 byte = insn->bytes[i];
        bool legacy_prefix = i < z->raw.prefix_count;
        if (legacy_prefix && (byte == 0x64 || byte == 0x65 || byte == 0x67))
            continue;
        switch (z->encoding) {
        case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
        case ZYDIS_INSTRUCTION_ENCODING_3DNOW:
            if ((z->attributes & ZYDIS_ATTRIB_HAS_REX) && i == z->raw.rex.offset)
                byte &= (u8)~1u;
            break;
        case ZYDIS_INSTRUCTION_ENCODING_VEX:
            if (z->raw.vex.size == 3 && i == z->raw.vex.offset + 1u)
                byte |= 0x20;
            break;
        case ZYDIS_INSTRUCTION_ENCODING_XOP:
            if (i == z->raw.xop.offset + 1u)
                byte |= 0x20;
            break;
        case ZYDIS_INSTRUCTION_ENCODING_EVEX:
            if (i == z->raw.evex.offset + 1u)
                byte |= 0x20;
            break;
        default:
            break;
        }
        emit_u8(e, byte);
    }
}

static unsigned displacement_bytes(const ZydisDecodedInstruction *z)
{
    return z->raw.disp.size / 8;
}

static void put_rest(Emitter *e, const Insn *insn, const ZydisDecodedInstruction *z)
{
    unsigned at = insn->modrm_at + 1u;
    if (z->attributes & ZYDIS_ATTRIB_HAS_SIB)
        at++;
    at += displacement_bytes(z);
    emit_bytes(e, insn->bytes + at, insn->len - at);
}

// The instruction with its operand replaced by [base].
static void copy_on_base(Emitter *e, const Insn *insn, const ZydisDecodedInstruction *z,
                         unsigned base)
{
    put_opcode(e, insn, z);
    emit_u8(e, (u8)(z->raw.modrm.reg << 3 | base));
    put_rest(e, insn, z);
}

// The instruction with the base of its operand replaced; index, scale and
// displacement stay as they are (so EVEX's compressed displacement does too).
// `old_base`, below 8 and not rsp, becomes the index, if there is none; GPR_COUNT: it goes.
static void copy_with_base(Emitter *e, const Insn *insn, const ZydisDecodedInstruction *z,
                           unsigned base, unsigned old_base)
{
    bool sib = z->attributes & ZYDIS_ATTRIB_HAS_SIB;
    bool no_base = sib && z->raw.modrm.mod == 0 && z->raw.sib.base == 5;
    bool vsib = z->attributes & ZYDIS_ATTRIB_HAS_SIB && z->avx.vector_length &&
                z->raw.sib.index == 4 && z->meta.category == ZYDIS_CATEGORY_GATHER;
    u8 index_x = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ? z->raw.rex.X : 1;
    bool index = sib && (z->raw.sib.index != 4 || vsib || index_x);
    u8 mod = no_base ? 2 : z->raw.modrm.mod;

    put_opcode(e, insn, z);
    if (index) {
        emit_u8(e, (u8)(mod << 6 | z->raw.modrm.reg << 3 | 4));
        emit_u8(e, (u8)(z->raw.sib.scale << 6 | z->raw.sib.index << 3 | base));
    } else if (old_base != GPR_COUNT) {
        emit_u8(e, (u8)(mod << 6 | z->raw.modrm.reg << 3 | 4));
        emit_u8(e, (u8)(old_base << 3 | base));
    } else {
        emit_u8(e, (u8)(mod << 6 | z->raw.modrm.reg << 3 | base));
    }
    emit_bytes(e, insn->bytes + insn->disp_at, displacement_bytes(z));
    put_rest(e, insn, z);
}

// dst := the address of the operand, with a 32-bit result if addresses are 32 bits wide.
static void emit_lea_memory(Emitter *e, unsigned dst, const MemoryOperand *m, bool address32)
{
    unsigned scale = m->index == X64_NO_REG ? 1 : m->scale;
    X64Mem mem = x64_indexed(m->base, m->index, scale, (i32)m->disp);
    mem.is_short = address32;
    x64_lea_reg_mem(e, address32 ? DWORD : QWORD, dst, mem);
}

// mov r64/r32, fs:[small constant] or fs:[register + constant], by far the most frequent accesses
// to thread-local data: the destination itself is the scratch register, saved only
// for the case of a fault.
static bool copy_tls_load(Builder *b, const Insn *insn, const ZydisDecodedInstruction *z,
                          const MemoryOperand *m, i32 base_slot)
{
    unsigned reg = z->raw.modrm.reg | (unsigned)z->raw.rex.R << 3;
    bool rip = z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5;
    if (rip || z->mnemonic != ZYDIS_MNEMONIC_MOV || z->opcode != 0x8b || reg == RSP ||
        m->has_index || z->address_width != 64 ||
        (z->operand_width != 64 && z->operand_width != 32))
        return false;
    if (m->base != GPR_COUNT ? m->base == RSP || m->base == reg
                             : reg >= 8 || reg == RBP || m->disp < -4096 || m->disp > 4096)
        return false;
    builder_spill(b, reg);
    x64_mov_reg_fs(&b->e, reg, base_slot);
    if (m->base != GPR_COUNT)
        x64_mov_reg_mem(&b->e, z->operand_width / 8, reg,
                        x64_indexed(reg, m->base, 1, (i32)m->disp));
    else
        copy_with_base(&b->e, insn, z, reg, GPR_COUNT);
    builder_forget_spill(b, reg);
    return true;
}

// Where the base is a constant:
//     the same instruction, without the prefix, on [base + index + disp32]
static bool copy_at_constant(Builder *b, const Insn *insn, const ZydisDecodedInstruction *z,
                             const MemoryOperand *m)
{
    bool sib = z->attributes & ZYDIS_ATTRIB_HAS_SIB;
    bool rip = z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5;
    bool no_base = sib && z->raw.modrm.mod == 0 && z->raw.sib.base == 5;
    i64 disp = m->disp;
    if (insn->segment != 0x64 || rip || !insn->modrm_at || z->address_width != 64 ||
        !fs_base_add(b, &disp))
        return false;
    for (unsigned i = 0; i < insn->modrm_at; i++) {
        u8 byte = insn->bytes[i];
        if (i >= z->raw.prefix_count || (byte != 0x64 && byte != 0x65))
            emit_u8(&b->e, byte);
    }
    emit_u8(&b->e, (u8)((no_base ? 0 : 0x80) | (insn->bytes[insn->modrm_at] & 0x3f)));
    if (sib)
        emit_u8(&b->e, insn->bytes[insn->modrm_at + 1]);
    emit_u32(&b->e, (u32)disp);
    put_rest(&b->e, insn, z);
    return true;
}

static void copy_through_segment(Builder *b, const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    MemoryOperand m;
    ASSERT(decode_operands(insn, &z, operands));
    find_memory_operand(&z, operands, &m);
    i32 base_slot = insn->segment == 0x64 ? CTX(client_fs) : CTX(client_gs);
    if (copy_at_constant(b, insn, &z, &m) || copy_tls_load(b, insn, &z, &m, base_slot))
        return;

    u32 used = insn_gprs_used(insn);
    unsigned scratch = pick_scratch(used);
    ASSERT(scratch != GPR_COUNT);
    bool rip = z.raw.modrm.mod == 0 && z.raw.modrm.rm == 5;
    builder_spill(b, scratch);
    if (!rip && z.address_width == 64) {
        bool may_be_index = m.base < 8 && m.base != RSP && !m.has_index && !z.raw.rex.X &&
                            z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
        x64_mov_reg_fs(&b->e, scratch, base_slot);
        if (m.base != GPR_COUNT && !may_be_index)
            x64_lea_reg_mem(&b->e, QWORD, scratch, x64_sum(scratch, m.base));
        copy_with_base(&b->e, insn, &z, scratch, may_be_index ? m.base : GPR_COUNT);
    } else {
        // The address first, 32 bits wide if need be, then the base on top.
        unsigned second = pick_scratch(used | 1u << scratch);
        ASSERT(second != GPR_COUNT);
        builder_spill(b, second);
        if (rip)
            x64_mov_reg_imm(&b->e, scratch, insn->pc + insn->len + (u64)z.raw.disp.value);
        else
            emit_lea_memory(&b->e, scratch, &m, true);
        x64_mov_reg_fs(&b->e, second, base_slot);
        x64_lea_reg_mem(&b->e, QWORD, scratch, x64_sum(scratch, second));
        builder_unspill(b, second);
        copy_on_base(&b->e, insn, &z, scratch);
    }
    builder_unspill(b, scratch);
}

// Sets the hardware's gs through rax, which is saved around it.
void emit_set_gs(Builder *b, i32 base_slot)
{
    builder_spill(b, RAX);
    x64_mov_reg_fs(&b->e, RAX, base_slot);
    x64_wrgsbase_reg(&b->e, QWORD, RAX);
    builder_unspill(b, RAX);
}

// What has no other form: the base is lent to the hardware's gs, and the
// instruction goes through that. Exact whatever the instruction does on its way
// and wherever it faults (take_out() sets gs right again then), but slow.
static void copy_through_gs(Builder *b, const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ASSERT(decode_operands(insn, &z, operands));
    emit_set_gs(b, insn->segment == 0x64 ? CTX(client_fs) : CTX(client_gs));
    for (unsigned i = 0; i < insn->len; i++) {
        bool fs = i < z.raw.prefix_count && insn->bytes[i] == 0x64;
        emit_u8(&b->e, fs ? X64_GS : insn->bytes[i]);
    }
    emit_set_gs(b, CTX(engine_gs));
}

static void copy_far_rip(Builder *b, const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ASSERT(decode_operands(insn, &z, operands));
    unsigned scratch = pick_scratch(insn_gprs_used(insn));
    ASSERT(scratch != GPR_COUNT);
    builder_spill(b, scratch);
    x64_mov_reg_imm(&b->e, scratch, insn->target);
    copy_on_base(&b->e, insn, &z, scratch);
    builder_unspill(b, scratch);
}

static void copy_rip(Builder *b, const Insn *insn)
{
    i64 disp = (i64)(insn->target - (u64)(b->e.pc + insn->len));
    if (!fits_i32(disp)) {
        copy_far_rip(b, insn);
        return;
    }
    CodePtr start = b->e.pc;
    emit_bytes(&b->e, insn->bytes, insn->len);
    i32 disp32 = (i32)disp;
    memcpy(start + insn->disp_at, &disp32, 4);
}

void lower_copy(Builder *b, const Insn *insn)
{
    switch ((MemoryForm)insn->memory) {
    case MEMORY_PLAIN: emit_bytes(&b->e, insn->bytes, insn->len); break;
    case MEMORY_RIP: copy_rip(b, insn); break;
    case MEMORY_SEGMENT: copy_through_segment(b, insn); break;
    case MEMORY_SEGMENT_WHOLE: copy_through_gs(b, insn); break;
    }
}

// A push stores below the stack pointer it starts with.
bool access_is_push(const InsnAccess *access)
{
    return access->address.is_hidden && access->writes && access->address.base == RSP;
}

bool emit_access_address(Builder *b, unsigned dst, const InsnAccess *access)
{
    InsnAddress flat = access->address, *a = &flat;
    if (!a->is_one)
        return false;
    flatten_address(b, a);
    MemoryOperand m = {.base = a->base, .index = a->index, .scale = a->scale, .disp = a->disp};
    if (access_is_push(access))
        m.disp -= access->size_bytes;
    i32 segment_slot = a->segment == 0x64 ? CTX(client_fs) : CTX(client_gs);
    bool is_constant = m.base == GPR_COUNT && m.index == GPR_COUNT && !a->is_rip;
    if (a->segment && is_constant && !a->is_narrow && fits_i32(m.disp)) {
        x64_mov_reg_fs(&b->e, dst, segment_slot);
        x64_lea_reg_mem(&b->e, QWORD, dst, x64_at(dst, (i32)m.disp));
        return true;
    }
    if (a->is_rip)
        x64_mov_reg_imm(&b->e, dst, b->insn->pc + b->insn->len + (u64)m.disp);
    else if (!fits_i32(m.disp)) // moffs64
        x64_mov_reg_imm(&b->e, dst, (u64)m.disp);
    else
        emit_lea_memory(&b->e, dst, &m, a->is_narrow);

    if (a->segment) {
        unsigned base = dst == RAX ? RCX : RAX;
        builder_spill(b, base);
        x64_mov_reg_fs(&b->e, base, segment_slot);
        x64_lea_reg_mem(&b->e, QWORD, dst, x64_sum(dst, base));
        builder_unspill(b, base);
    }
    return true;
}
