// SPDX-License-Identifier: MIT
//
// Encoding of x86-64 instructions from the rows of x64.def. All encoders write the parts of an
// instruction in the order of the manual:
//
//     [segment] [67] [66 | f2 | f3] [rex | vex | evex] opcode
//     [modrm [sib] [displacement]] [constant]
#include "engine/emit/emit.h"

const X64Row x64_rows[X64_OPS] = {
#define X64(name, form, opcode, digit, sizes, traits, mnemonic) \
    {#name, opcode, X64_FORM_##form, digit, sizes, traits},
#include "engine/emit/x64.def"
#undef X64
};

enum {
    REX = 0x40, REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1,
    MOD_NO_DISP = 0x00, MOD_DISP8 = 0x40, MOD_DISP32 = 0x80, MOD_REG = 0xc0,
    RM_SIB = 4, RM_DISP32 = 5, // in the rm field of modrm; RM_DISP32 also in the base field of sib
    SIB_NO_INDEX = 4,
};

static bool fits_i8(i32 v)
{
    return v == (i8)v;
}

// ------------------------------------------------------------------- the parts
//
// Each takes the place of its first byte and returns that behind its last one. The place is kept
// in a register, and in the emitter only when an instruction is whole: a store of a byte may be
// one to anything, so that with e->pc each byte would wait for the one before (1.9 times the time
// of a translation that calls a tool).

static inline u8 *put8(u8 *at, unsigned v)
{
    *at = (u8)v;
    return at + 1;
}

static inline u8 *put32(u8 *at, i32 v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static inline u8 *begin(const Emitter *e)
{
    DEBUG_ASSERT(emit_room(e) >= INSN_MAX);
    return e->pc;
}

// Bits of REX.
static inline unsigned bit_r(unsigned reg)
{
    return reg & 8 ? REX_R : 0;
}

static inline unsigned bit_b(unsigned reg)
{
    return reg & 8 ? REX_B : 0;
}

static inline unsigned bits_of_mem(X64Mem mem)
{
    return (mem.base == X64_NO_REG ? 0 : bit_b(mem.base)) |
           (mem.index != X64_NO_REG && mem.index & 8 ? REX_X : 0);
}

// spl, bpl, sil and dil exist only behind a REX prefix; ah to bh only without one.
static inline bool is_new_byte_reg(unsigned reg)
{
    return reg >= RSP && reg <= RDI;
}

static inline u8 *put_mem_prefixes(u8 *at, X64Mem mem)
{
    if (mem.segment)
        at = put8(at, mem.segment);
    if (mem.is_short)
        at = put8(at, 0x67);
    return at;
}

// The byte form of an opcode is the one below it; what has only one size has no such form.
static inline u8 *put_opcode(u8 *at, const X64Row *row, unsigned size)
{
    u32 opcode = row->opcode - (size == BYTE && row->sizes != BYTE ? 1 : 0);
    if (opcode > 0xff) {
        if (opcode > 0xffff)
            at = put8(at, opcode >> 16);
        at = put8(at, opcode >> 8);
    }
    return put8(at, opcode);
}

// [66 | f2 | f3] [rex] opcode. `rex` has the bits of the registers. `has_new_byte_reg`: one of the
// operands is spl, bpl, sil or dil.
static inline u8 *put_head(u8 *at, const X64Row *row, unsigned size, unsigned rex,
                           bool has_new_byte_reg)
{
    if (size == WORD || row->traits & X64_PREFIX_66)
        at = put8(at, 0x66);
    if (row->traits & (X64_PREFIX_F2 | X64_PREFIX_F3))
        at = put8(at, row->traits & X64_PREFIX_F2 ? 0xf2 : 0xf3);
    if (size == QWORD || row->traits & X64_REX_W)
        rex |= REX_W;
    if (rex || has_new_byte_reg)
        at = put8(at, REX | rex);
    return put_opcode(at, row, size);
}

static inline u8 *put_modrm_reg(u8 *at, unsigned reg, unsigned rm)
{
    return put8(at, MOD_REG | (reg & 7) << 3 | (rm & 7));
}

// A memory operand. `may_be_disp8`: EVEX scales short displacements, so it does without them.
static inline u8 *put_modrm_mem(u8 *at, unsigned reg, X64Mem mem, bool may_be_disp8)
{
    unsigned reg_bits = (reg & 7) << 3;
    unsigned sib = (unsigned)__builtin_ctz(mem.scale) << 6 |
                   (mem.index == X64_NO_REG ? SIB_NO_INDEX : mem.index & 7u) << 3;
    DEBUG_ASSERT(mem.index != RSP);
    if (mem.base == X64_NO_REG) { // without a sib byte it would be relative to rip
        at = put8(at, MOD_NO_DISP | reg_bits | RM_SIB);
        at = put8(at, sib | RM_DISP32);
        return put32(at, mem.disp);
    }
    unsigned base = mem.base & 7;
    bool has_disp = mem.disp != 0 || base == RM_DISP32;
    bool is_disp8 = fits_i8(mem.disp) && may_be_disp8;
    unsigned mod = !has_disp ? MOD_NO_DISP : is_disp8 ? MOD_DISP8 : MOD_DISP32;
    if (mem.index == X64_NO_REG && base != RM_SIB) {
        at = put8(at, mod | reg_bits | base);
    } else {
        at = put8(at, mod | reg_bits | RM_SIB);
        at = put8(at, sib | base);
    }
    if (mod == MOD_DISP8)
        return put8(at, (u8)mem.disp);
    return mod == MOD_DISP32 ? put32(at, mem.disp) : at;
}

static inline u8 *put_imm(u8 *at, unsigned size, i32 imm)
{
    if (size == BYTE)
        return put8(at, (u8)imm);
    if (size == WORD)
        return put8(put8(at, (u8)imm), (u8)(imm >> 8));
    return put32(at, imm);
}

// Whether the constant of an instruction is a byte; if it is, the opcode is another one.
static inline bool take_imm8(X64Row *row, unsigned size, i32 imm)
{
    enum { IMUL = 0x69, IMUL_IMM8 = 0x6b, GROUP1_IMM8 = 0x83 };
    if (size == BYTE || !fits_i8(imm) || row->traits & X64_NO_IMM8)
        return false;
    row->opcode = row->opcode == IMUL ? IMUL_IMM8 : GROUP1_IMM8;
    return true;
}

// ------------------------------------------------------------------- one form each

void x64_encode_none(Emitter *e, X64Op op)
{
    e->pc = put_opcode(begin(e), &x64_rows[op], 0);
}

void x64_encode_reg(Emitter *e, X64Op op, unsigned size, unsigned rm)
{
    const X64Row *row = &x64_rows[op];
    u8 *at = put_head(begin(e), row, size, bit_b(rm), size == BYTE && is_new_byte_reg(rm));
    e->pc = put_modrm_reg(at, row->digit, rm);
}

void x64_encode_opcode_reg(Emitter *e, X64Op op, unsigned reg)
{
    u8 *at = begin(e);
    if (reg >= R8)
        at = put8(at, REX | REX_B);
    e->pc = put8(at, x64_rows[op].opcode | (reg & 7));
}

void x64_encode_imm(Emitter *e, X64Op op, i32 imm)
{
    enum { IMM8_FORM = 2 }; // 68 and 6a
    u32 opcode = x64_rows[op].opcode;
    u8 *at = begin(e);
    if (fits_i8(imm))
        e->pc = put8(put8(at, opcode | IMM8_FORM), (u8)imm);
    else
        e->pc = put32(put8(at, opcode), imm);
}

void x64_encode_reg_rm(Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm)
{
    const X64Row *row = &x64_rows[op];
    bool byte_reg = size == BYTE && (is_new_byte_reg(reg) || is_new_byte_reg(rm));
    bool byte_rm = row->traits & X64_SOURCE_IS_BYTE && is_new_byte_reg(rm);
    u8 *at = put_head(begin(e), row, size, bit_r(reg) | bit_b(rm), byte_reg || byte_rm);
    e->pc = put_modrm_reg(at, reg, rm);
}

void x64_encode_mem(Emitter *e, X64Op op, unsigned size, unsigned reg, X64Mem mem)
{
    u8 *at = put_mem_prefixes(begin(e), mem);
    at = put_head(at, &x64_rows[op], size, bits_of_mem(mem) | bit_r(reg),
                  size == BYTE && is_new_byte_reg(reg));
    e->pc = put_modrm_mem(at, reg, mem, true);
}

// The accumulator has opcodes of its own for constants: one byte less, unless the constant is a
// byte.
static u8 *put_on_rax(u8 *at, const X64Row *row, unsigned size, i32 imm)
{
    enum { TEST_RAX = 0xa9, ALU_RAX = 0x05, GROUP3 = 0xf7 };
    u32 opcode = row->opcode == GROUP3 ? TEST_RAX : ALU_RAX | (u32)row->digit << 3;
    if (size == WORD)
        at = put8(at, 0x66);
    if (size == QWORD)
        at = put8(at, REX | REX_W);
    at = put8(at, opcode - (size == BYTE ? 1 : 0));
    return put_imm(at, size, imm);
}

void x64_encode_reg_imm(Emitter *e, X64Op op, unsigned size, unsigned rm, i32 imm)
{
    X64Row row = x64_rows[op];
    u8 *at = begin(e);
    bool is_imm8 = take_imm8(&row, size, imm);
    if (rm == RAX && !is_imm8) {
        e->pc = put_on_rax(at, &row, size, imm);
        return;
    }
    at = put_head(at, &row, size, bit_b(rm), size == BYTE && is_new_byte_reg(rm));
    at = put_modrm_reg(at, row.digit, rm);
    e->pc = put_imm(at, is_imm8 ? BYTE : size, imm);
}

void x64_encode_mem_imm(Emitter *e, X64Op op, unsigned size, X64Mem mem, i32 imm)
{
    X64Row row = x64_rows[op];
    bool is_imm8 = take_imm8(&row, size, imm);
    u8 *at = put_mem_prefixes(begin(e), mem);
    at = put_head(at, &row, size, bits_of_mem(mem), false);
    at = put_modrm_mem(at, row.digit, mem, true);
    e->pc = put_imm(at, is_imm8 ? BYTE : size, imm);
}

void x64_encode_reg_imm8(Emitter *e, X64Op op, unsigned size, unsigned rm, u8 imm)
{
    enum { BY_ONE = 0x10 }; // c1 and d1
    X64Row row = x64_rows[op];
    bool by_one = imm == 1 && row.traits & X64_SHORT_BY_ONE;
    row.opcode |= by_one ? BY_ONE : 0;
    u8 *at = put_head(begin(e), &row, size, bit_b(rm), size == BYTE && is_new_byte_reg(rm));
    at = put_modrm_reg(at, row.digit, rm);
    e->pc = by_one ? at : put8(at, imm);
}

void x64_encode_mem_imm8(Emitter *e, X64Op op, unsigned size, X64Mem mem, u8 imm)
{
    x64_encode_mem(e, op, size, x64_rows[op].digit, mem);
    emit_u8(e, imm);
}

void x64_encode_reg_rm_imm(Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm, i32 imm)
{
    X64Row row = x64_rows[op];
    bool is_imm8 = take_imm8(&row, size, imm);
    u8 *at = put_head(begin(e), &row, size, bit_r(reg) | bit_b(rm), false);
    at = put_modrm_reg(at, reg, rm);
    e->pc = put_imm(at, is_imm8 ? BYTE : size, imm);
}

// ------------------------------------------------------------------- vex and evex

enum { VEX2 = 0xc5, VEX3 = 0xc4, EVEX = 0x62, VEX_256 = 4, VEX_NO_VVVV = 0x78 };

// R, X and B as these prefixes have them: inverted, at the top of a byte.
static inline unsigned inverted(unsigned rex)
{
    return (~rex & (REX_R | REX_X | REX_B)) << 5;
}

static inline u8 *put_vex(u8 *at, const X64Row *row, unsigned size, unsigned rex, unsigned vvvv)
{
    enum { MAP_0F38 = 2, PP_F3 = 2, PP_F2 = 3 };
    unsigned pp = row->traits & X64_PREFIX_F2 ? PP_F2 : row->traits & X64_PREFIX_F3 ? PP_F3 : 0;
    at = put8(at, VEX3);
    at = put8(at, inverted(rex) | MAP_0F38);
    at = put8(at, (size == QWORD ? 0x80 : 0) | (~vvvv & 15) << 3 | pp);
    return put8(at, row->opcode);
}

void x64_encode_vex_mem(Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned vvvv,
                        X64Mem mem)
{
    u8 *at = put_mem_prefixes(begin(e), mem);
    at = put_vex(at, &x64_rows[op], size, bit_r(reg) | bits_of_mem(mem), vvvv);
    e->pc = put_modrm_mem(at, reg, mem, true);
}

void x64_encode_vex_rm(Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm,
                       unsigned vvvv)
{
    u8 *at = put_vex(begin(e), &x64_rows[op], size, bit_r(reg) | bit_b(rm), vvvv);
    e->pc = put_modrm_reg(at, reg, rm);
}

void x64_encode_vector_mem(Emitter *e, X64Op op, unsigned size, unsigned vector, X64Mem mem)
{
    enum { MAP_0F = 1, EVEX_FIXED = 4, EVEX_512 = 0x48, EVEX_R2 = 0x10 };
    const X64Row *row = &x64_rows[op];
    unsigned rex = bit_r(vector) | bits_of_mem(mem);
    u8 *at = put_mem_prefixes(begin(e), mem);
    if (size == 64) {
        at = put8(at, EVEX);
        at = put8(at, inverted(rex) | (vector & 16 ? 0 : EVEX_R2) | MAP_0F);
        at = put8(at, VEX_NO_VVVV | EVEX_FIXED);
        at = put8(put8(at, EVEX_512), row->opcode);
    } else if (size == 32 && !(rex & (REX_X | REX_B))) {
        at = put8(at, VEX2);
        at = put8(at, (inverted(rex) & 0x80) | VEX_NO_VVVV | VEX_256);
        at = put8(at, row->opcode);
    } else if (size == 32) {
        at = put8(at, VEX3);
        at = put8(at, inverted(rex) | MAP_0F);
        at = put8(put8(at, VEX_NO_VVVV | VEX_256), row->opcode);
    } else {
        at = put_head(at, row, 0, rex, false);
    }
    e->pc = put_modrm_mem(at, vector, mem, size != 64);
}

void x64_encode_xmm(Emitter *e, X64Op op, unsigned reg, unsigned rm)
{
    u8 *at = put_head(begin(e), &x64_rows[op], 0, bit_r(reg) | bit_b(rm), false);
    e->pc = put_modrm_reg(at, reg, rm);
}

// ------------------------------------------------------------------- constants

void x64_mov_reg_imm(Emitter *e, unsigned reg, u64 imm)
{
    enum { MOV_REG_IMM = 0xb8, MOV_RM_IMM32 = 0xc7 };
    u8 *at = begin(e);
    if (imm <= UINT32_MAX) {
        if (reg >= R8)
            at = put8(at, REX | REX_B);
        e->pc = put32(put8(at, MOV_REG_IMM | (reg & 7)), (i32)imm);
        return;
    }
    at = put8(at, REX | REX_W | bit_b(reg));
    if (fits_i32((i64)imm)) {
        at = put_modrm_reg(put8(at, MOV_RM_IMM32), 0, reg);
        e->pc = put32(at, (i32)imm);
        return;
    }
    at = put8(at, MOV_REG_IMM | (reg & 7));
    e->pc = put32(put32(at, (i32)imm), (i32)(imm >> 32));
}

// ------------------------------------------------------------------- jumps

enum { JMP_REL8 = 0xeb, JMP_REL32 = 0xe9, CALL_REL32 = 0xe8, JCC_REL8 = 0x70, JCC_REL32 = 0x0f80,
       JRCXZ = 0xe3, LOOP = 0xe2, CS_PREFIX = 0x2e };

static X64Jump forward_short(Emitter *e, unsigned opcode)
{
    e->pc = put8(put8(begin(e), opcode), 0);
    return (X64Jump){e->pc, true};
}

static u8 *put_branch_opcode(u8 *at, X64Branch branch)
{
    if (branch >= X64_CONDITIONS)
        return put8(at, branch == X64_JMP ? JMP_REL32 : CALL_REL32);
    return put8(put8(at, JCC_REL32 >> 8), (u8)(JCC_REL32 | branch));
}

X64Jump x64_jcc_short(Emitter *e, X64Branch condition)
{
    DEBUG_ASSERT(condition < X64_CONDITIONS);
    return forward_short(e, JCC_REL8 | condition);
}

X64Jump x64_jmp_short(Emitter *e)
{
    return forward_short(e, JMP_REL8);
}

X64Jump x64_jrcxz(Emitter *e)
{
    return forward_short(e, JRCXZ);
}

X64Jump x64_loop(Emitter *e)
{
    return forward_short(e, LOOP);
}

X64Jump x64_branch(Emitter *e, X64Branch branch)
{
    e->pc = put32(put_branch_opcode(begin(e), branch), 0);
    return (X64Jump){e->pc, false};
}

X64Jump x64_marked_branch(Emitter *e, X64Branch branch)
{
    emit_u8(e, CS_PREFIX);
    return x64_branch(e, branch);
}

CodePtr x64_marked_target(CodePtr at, X64Branch branch)
{
    u8 bytes[INSN_MAX];
    Emitter e = {.pc = bytes, .end = bytes + sizeof(bytes)};
    X64Jump like = x64_marked_branch(&e, branch);
    size_t before = (size_t)(like.end - bytes) - sizeof(i32);
    i32 distance;
    if (memcmp(at, bytes, before) != 0)
        return NULL;
    memcpy(&distance, at + before, sizeof(distance));
    return at + before + sizeof(distance) + distance;
}

void x64_link(X64Jump jump, CodePtr target)
{
    i64 distance = target - jump.end;
    if (jump.is_short) {
        ASSERT(distance == (i8)distance);
        jump.end[-1] = (u8)distance;
        return;
    }
    i32 displacement = (i32)distance;
    ASSERT(distance == displacement);
    memcpy(jump.end - sizeof(displacement), &displacement, sizeof(displacement));
}

void x64_land(Emitter *e, X64Jump jump)
{
    x64_link(jump, e->pc);
}

void x64_branch_to(Emitter *e, X64Branch branch, CodePtr target)
{
    u8 *at = put_branch_opcode(begin(e), branch);
    i64 distance = target - (at + sizeof(i32));
    ASSERT(fits_i32(distance));
    e->pc = put32(at, (i32)distance);
}

void x64_jmp_short_to(Emitter *e, CodePtr target)
{
    x64_link(forward_short(e, JMP_REL8), target);
}

void x64_loop_to(Emitter *e, CodePtr target)
{
    x64_link(x64_loop(e), target);
}

// A prefix that means nothing fills up to the next line: a nop would be one instruction more, and
// would part a compare from the branch that the processor joins with it.
CodePtr x64_link_site(Emitter *e, X64Branch branch, CodePtr target)
{
    enum { LINE = 16, SITE = 4 };
    size_t opcode_bytes = branch < X64_CONDITIONS ? 2 : 1;
    for (uintptr_t at = (uintptr_t)e->pc + opcode_bytes; at % LINE > LINE - SITE; at++)
        emit_u8(e, CS_PREFIX);
    x64_branch_to(e, branch, target);
    return e->pc - SITE;
}

bool x64_is_call_site(const u8 *site)
{
    return site[-1] == CALL_REL32;
}
