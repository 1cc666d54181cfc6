// SPDX-License-Identifier: MIT
//
// The assembler: one function for each instruction form of x64.def, named as the instruction is
// written, destination first:
//
//     x64_mov_reg_mem(e, QWORD, RAX, x64_at(RSP, 8));         mov rax, [rsp + 8]
//     x64_cmp_mem_imm(e, BYTE, x64_gs(x64_at(RBX, 16)), 0);   cmp byte gs:[rbx + 16], 0
//
// Each function emits the shortest encoding of the instruction. A function whose instruction exists
// in several operand sizes takes the size in bytes as its second parameter.
//
// Private to emit/: other folders include emit/emit.h.
#ifndef MUNINN_ENGINE_EMIT_X64_H
#define MUNINN_ENGINE_EMIT_X64_H

#include "base/registers_x64.h"
#include "base/types.h"

struct Emitter;

// Operand sizes in bytes.
enum { BYTE = 1, WORD = 2, DWORD = 4, QWORD = 8 };

enum {
    X64_NO_REG = GPR_COUNT,
    X64_HIGH_BYTE = 16, // X64_HIGH_BYTE | RSP is ah, where the size is BYTE
    X64_AH = X64_HIGH_BYTE | RSP,
};

typedef enum X64Segment { X64_NO_SEGMENT = 0, X64_FS = 0x64, X64_GS = 0x65 } X64Segment;

// segment:[base + index * scale + disp]
typedef struct X64Mem {
    i32 disp;
    u8 base;       // X64_NO_REG: none
    u8 index;      // X64_NO_REG: none; never RSP
    u8 scale;      // 1, 2, 4 or 8
    u8 segment;    // X64Segment
    bool is_short; // the address is 32 bits wide (prefix 67)
} X64Mem;

// [base + disp]
static inline X64Mem x64_at(unsigned base, i32 disp)
{
    return (X64Mem){.disp = disp, .base = (u8)base, .index = X64_NO_REG, .scale = 1};
}

// [base + index * scale + disp]
static inline X64Mem x64_indexed(unsigned base, unsigned index, unsigned scale, i32 disp)
{
    return (X64Mem){.disp = disp, .base = (u8)base, .index = (u8)index, .scale = (u8)scale};
}

// [base + index]; rsp cannot be an index, but the sum is the same.
static inline X64Mem x64_sum(unsigned base, unsigned index)
{
    return index == RSP ? x64_indexed(index, base, 1, 0) : x64_indexed(base, index, 1, 0);
}

// [address], below 2 GiB
static inline X64Mem x64_absolute(i32 address)
{
    return x64_at(X64_NO_REG, address);
}

// fs:[disp]
static inline X64Mem x64_fs(i32 disp)
{
    X64Mem mem = x64_absolute(disp);
    mem.segment = X64_FS;
    return mem;
}

// The same operand through gs.
static inline X64Mem x64_gs(X64Mem mem)
{
    mem.segment = X64_GS;
    return mem;
}

// What branches with a displacement of 32 bits: jcc, by the numbers that conditions have in
// opcodes, jmp and call.
typedef enum X64Branch {
    X64_O, X64_NO, X64_B, X64_AE, X64_E, X64_NE, X64_BE, X64_A,
    X64_S, X64_NS, X64_P, X64_NP, X64_L, X64_GE, X64_LE, X64_G,
    X64_CONDITIONS,
    X64_JMP = X64_CONDITIONS, X64_CALL
} X64Branch;

// ------------------------------------------------------------------------- the table

typedef enum X64Trait {
    X64_PREFIX_66 = 1 << 0, // mandatory prefixes
    X64_PREFIX_F2 = 1 << 1,
    X64_PREFIX_F3 = 1 << 2,
    X64_REX_W = 1 << 3,          // always
    X64_NO_IMM8 = 1 << 4,        // there is no form with a sign-extended byte
    X64_SHORT_BY_ONE = 1 << 5,   // there is a form for the constant 1
    X64_SOURCE_IS_BYTE = 1 << 6, // the register in modrm's rm field
} X64Trait;

// Operands in the order of the parameters; what is called `rm` stands in modrm's rm field.
typedef enum X64Form {
    X64_FORM_NONE,
    X64_FORM_REG,             // rm; no operand size
    X64_FORM_REG_SIZED,       // rm
    X64_FORM_OPCODE_REG,      // in the opcode; no operand size
    X64_FORM_MEM,             // no operand size
    X64_FORM_IMM,
    X64_FORM_REG_REG,         // rm, reg
    X64_FORM_REG_RM,          // reg, rm
    X64_FORM_REG_MEM,
    X64_FORM_MEM_REG,
    X64_FORM_REG_IMM,         // a constant of 32 bits, sign-extended; a byte if it fits
    X64_FORM_MEM_IMM,
    X64_FORM_REG_IMM8,        // a constant of 8 bits
    X64_FORM_MEM_IMM8,
    X64_FORM_REG_RM_IMM,      // reg, rm, constant
    X64_FORM_VEX_REG_REG_MEM, // reg, vvvv, memory
    X64_FORM_VEX_REG_RM_REG,  // reg, rm, vvvv
    X64_FORM_VECTOR_MEM,
    X64_FORM_MEM_VECTOR,
    X64_FORM_XMM_XMM,         // reg, rm
    X64_FORMS
} X64Form;

typedef enum X64Op {
#define X64(name, form, opcode, digit, sizes, traits, mnemonic) X64_OP_##name,
#include "engine/emit/x64.def"
#undef X64
    X64_OPS
} X64Op;

typedef struct X64Row {
    const char *name;
    u32 opcode;
    u8 form, digit, sizes, traits;
} X64Row;

extern const X64Row x64_rows[X64_OPS];

// One encoder for each form. `size` is 0 where the form has no operand size.
void x64_encode_none(struct Emitter *e, X64Op op);
void x64_encode_reg(struct Emitter *e, X64Op op, unsigned size, unsigned rm);
void x64_encode_opcode_reg(struct Emitter *e, X64Op op, unsigned reg);
void x64_encode_imm(struct Emitter *e, X64Op op, i32 imm);
void x64_encode_reg_rm(struct Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm);
void x64_encode_mem(struct Emitter *e, X64Op op, unsigned size, unsigned reg, X64Mem mem);
void x64_encode_reg_imm(struct Emitter *e, X64Op op, unsigned size, unsigned rm, i32 imm);
void x64_encode_mem_imm(struct Emitter *e, X64Op op, unsigned size, X64Mem mem, i32 imm);
void x64_encode_reg_imm8(struct Emitter *e, X64Op op, unsigned size, unsigned rm, u8 imm);
void x64_encode_mem_imm8(struct Emitter *e, X64Op op, unsigned size, X64Mem mem, u8 imm);
void x64_encode_reg_rm_imm(struct Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm,
                           i32 imm);
void x64_encode_vex_mem(struct Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned vvvv,
                        X64Mem mem);
void x64_encode_vex_rm(struct Emitter *e, X64Op op, unsigned size, unsigned reg, unsigned rm,
                       unsigned vvvv);
void x64_encode_vector_mem(struct Emitter *e, X64Op op, unsigned size, unsigned vector, X64Mem mem);
void x64_encode_xmm(struct Emitter *e, X64Op op, unsigned reg, unsigned rm);

// The functions, one for each row. The digit of a row takes the place of the reg field.
#define X64_DEFINE_NONE(name) \
    static inline void x64_##name(struct Emitter *e) { x64_encode_none(e, X64_OP_##name); }
#define X64_DEFINE_REG(name) \
    static inline void x64_##name(struct Emitter *e, unsigned reg) \
    { x64_encode_reg(e, X64_OP_##name, 0, reg); }
#define X64_DEFINE_REG_SIZED(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned reg) \
    { x64_encode_reg(e, X64_OP_##name, size, reg); }
#define X64_DEFINE_OPCODE_REG(name) \
    static inline void x64_##name(struct Emitter *e, unsigned reg) \
    { x64_encode_opcode_reg(e, X64_OP_##name, reg); }
#define X64_DEFINE_MEM(name) \
    static inline void x64_##name(struct Emitter *e, X64Mem mem) \
    { x64_encode_mem(e, X64_OP_##name, 0, x64_rows[X64_OP_##name].digit, mem); }
#define X64_DEFINE_IMM(name) \
    static inline void x64_##name(struct Emitter *e, i32 imm) \
    { x64_encode_imm(e, X64_OP_##name, imm); }
#define X64_DEFINE_REG_REG(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, unsigned src) \
    { x64_encode_reg_rm(e, X64_OP_##name, size, src, dst); }
#define X64_DEFINE_REG_RM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, unsigned src) \
    { x64_encode_reg_rm(e, X64_OP_##name, size, dst, src); }
#define X64_DEFINE_REG_MEM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, X64Mem src) \
    { x64_encode_mem(e, X64_OP_##name, size, dst, src); }
#define X64_DEFINE_MEM_REG(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, X64Mem dst, unsigned src) \
    { x64_encode_mem(e, X64_OP_##name, size, src, dst); }
#define X64_DEFINE_REG_IMM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, i32 imm) \
    { x64_encode_reg_imm(e, X64_OP_##name, size, dst, imm); }
#define X64_DEFINE_MEM_IMM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, X64Mem dst, i32 imm) \
    { x64_encode_mem_imm(e, X64_OP_##name, size, dst, imm); }
#define X64_DEFINE_REG_IMM8(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, u8 imm) \
    { x64_encode_reg_imm8(e, X64_OP_##name, size, dst, imm); }
#define X64_DEFINE_MEM_IMM8(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, X64Mem dst, u8 imm) \
    { x64_encode_mem_imm8(e, X64_OP_##name, size, dst, imm); }
#define X64_DEFINE_REG_RM_IMM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, unsigned src, \
                                  i32 imm) \
    { x64_encode_reg_rm_imm(e, X64_OP_##name, size, dst, src, imm); }
#define X64_DEFINE_VEX_REG_REG_MEM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, unsigned src, \
                                  X64Mem mem) \
    { x64_encode_vex_mem(e, X64_OP_##name, size, dst, src, mem); }
#define X64_DEFINE_VEX_REG_RM_REG(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, unsigned src, \
                                  unsigned amount) \
    { x64_encode_vex_rm(e, X64_OP_##name, size, dst, src, amount); }
#define X64_DEFINE_VECTOR_MEM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, unsigned dst, X64Mem src) \
    { x64_encode_vector_mem(e, X64_OP_##name, size, dst, src); }
#define X64_DEFINE_MEM_VECTOR(name) \
    static inline void x64_##name(struct Emitter *e, unsigned size, X64Mem dst, unsigned src) \
    { x64_encode_vector_mem(e, X64_OP_##name, size, src, dst); }
#define X64_DEFINE_XMM_XMM(name) \
    static inline void x64_##name(struct Emitter *e, unsigned dst, unsigned src) \
    { x64_encode_xmm(e, X64_OP_##name, dst, src); }

#define X64(name, form, opcode, digit, sizes, traits, mnemonic) X64_DEFINE_##form(name)
#include "engine/emit/x64.def"
#undef X64

// mov reg, constant; the shortest of the forms for 32 bits zero-extended, 32 bits sign-extended and
// 64 bits.
void x64_mov_reg_imm(struct Emitter *e, unsigned reg, u64 imm);

// mov reg, fs:[disp]; mov fs:[disp], reg; mov dword fs:[disp], imm: the words of the thread's
// context. Four of five emitted instructions are one of these, so they have encoders of their own,
// which write whole words (fs_x64.h); the bytes are those of x64_mov_reg_mem() and its kin.
static inline void x64_mov_reg_fs(struct Emitter *e, unsigned reg, i32 disp);
static inline void x64_mov_fs_reg(struct Emitter *e, i32 disp, unsigned reg);
static inline void x64_mov_fs_imm32(struct Emitter *e, i32 disp, u32 imm);

// Stores a constant of 64 bits in fs:[disp]: one store if it is a sign-extended constant of 32
// bits, two stores otherwise.
static inline void x64_mov_fs_imm64(struct Emitter *e, i32 disp, u64 imm);

// The status flags to ah and al, and back; what else is in rax is lost. They take a few cycles
// where pushfq and popfq take dozens.
static inline void x64_take_status(struct Emitter *e)
{
    x64_lahf(e);
    x64_seto_reg(e, BYTE, RAX);
}

static inline void x64_load_status(struct Emitter *e)
{
    enum { MAKES_OF = 0x7f }; // added to 1 it overflows
    x64_add_reg_imm(e, BYTE, RAX, MAKES_OF);
    x64_sahf(e);
}

// ------------------------------------------------------------------------- jumps

// A jump whose target is not known yet: the address behind its displacement.
typedef struct X64Jump {
    CodePtr end;
    bool is_short;
} X64Jump;

// Forward jumps: with a displacement of 8 bits, and with one of 32 bits.
X64Jump x64_jcc_short(struct Emitter *e, X64Branch condition);
X64Jump x64_jmp_short(struct Emitter *e);
X64Jump x64_jrcxz(struct Emitter *e); // these two have only this size
X64Jump x64_loop(struct Emitter *e);
X64Jump x64_branch(struct Emitter *e, X64Branch branch);

// The same with a prefix that means nothing to the processor. x64_marked_target() is where such a
// branch at `at` leads; NULL if there is none.
X64Jump x64_marked_branch(struct Emitter *e, X64Branch branch);
CodePtr x64_marked_target(CodePtr at, X64Branch branch);

// Makes `jump` go to `target`, or to where the next instruction will stand. The jump must reach.
void x64_link(X64Jump jump, CodePtr target);
void x64_land(struct Emitter *e, X64Jump jump);

// A branch to a known place within 2 GiB. Its displacement always has 32 bits, so that the length
// of what is emitted does not depend on where it is emitted.
void x64_branch_to(struct Emitter *e, X64Branch branch, CodePtr target);
static inline void x64_jmp_to(struct Emitter *e, CodePtr target)
{
    x64_branch_to(e, X64_JMP, target);
}
// The same with a displacement of 8 bits.
void x64_jmp_short_to(struct Emitter *e, CodePtr target);
void x64_loop_to(struct Emitter *e, CodePtr target);

// A branch whose displacement other threads may execute while it is rewritten: such a store must
// not straddle a line of 16 bytes, so prefixes may come first. Returns the address of the
// displacement.
CodePtr x64_link_site(struct Emitter *e, X64Branch branch, CodePtr target);
// Whether the branch whose displacement stands at `site` is a call.
bool x64_is_call_site(const u8 *site);

#endif
