// SPDX-License-Identifier: MIT
//
// Each row of emit/x64.def, in all its sizes and with all kinds of operands, is what Zydis reads: the
// mnemonic, the operands, the length. A second test asks whether an encoding is the shortest.
#include <Zydis/Zydis.h>

#include "engine/emit/emit.h"

#include "unit.h"

typedef struct Expected {
    enum { IS_GPR, IS_VECTOR, IS_MEM, IS_IMM } kind;
    unsigned reg, size;
    X64Mem mem;
    i32 imm;
} Expected;

static const ZydisMnemonic mnemonics[] = {
#define X64(name, form, opcode, digit, sizes, traits, mnemonic) ZYDIS_MNEMONIC_##mnemonic,
#include "engine/emit/x64.def"
#undef X64
};

static u8 code[64];
static u64 checked;
static u8 seen[X64_OPS];
static ZydisDecoder decoder;

static Emitter fresh(void)
{
    memset(code, 0xcc, sizeof(code));
    return (Emitter){.pc = code, .end = code + sizeof(code)};
}

// ------------------------------------------------------------------- what Zydis says

static ZydisRegister gpr_of_size(unsigned reg, unsigned size)
{
    if (size == BYTE && reg & X64_HIGH_BYTE)
        return (ZydisRegister)(ZYDIS_REGISTER_AH + (int)(reg & 3));
    switch (size) {
    case BYTE: return reg < 4 ? (ZydisRegister)(ZYDIS_REGISTER_AL + (int)reg)
                              : (ZydisRegister)(ZYDIS_REGISTER_SPL + (int)reg - 4);
    case WORD: return (ZydisRegister)(ZYDIS_REGISTER_AX + (int)reg);
    case DWORD: return (ZydisRegister)(ZYDIS_REGISTER_EAX + (int)reg);
    default: return (ZydisRegister)(ZYDIS_REGISTER_RAX + (int)reg);
    }
}

static ZydisRegister vector_of_size(unsigned reg, unsigned size)
{
    int first = size == 64 ? ZYDIS_REGISTER_ZMM0 : size == 32 ? ZYDIS_REGISTER_YMM0
                                                               : ZYDIS_REGISTER_XMM0;
    return (ZydisRegister)(first + (int)reg);
}

static ZydisRegister address_register(u8 reg, bool is_short)
{
    if (reg == X64_NO_REG)
        return ZYDIS_REGISTER_NONE;
    return gpr_of_size(reg, is_short ? DWORD : QWORD);
}

static bool same_mem(const ZydisDecodedOperand *op, X64Mem mem)
{
    ZydisRegister segment = mem.segment == X64_FS   ? ZYDIS_REGISTER_FS
                            : mem.segment == X64_GS ? ZYDIS_REGISTER_GS
                                                    : op->mem.segment;
    bool scaled = mem.index != X64_NO_REG;
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.segment == segment &&
           op->mem.base == address_register(mem.base, mem.is_short) &&
           op->mem.index == address_register(mem.index, mem.is_short) &&
           (!scaled || op->mem.scale == mem.scale) && op->mem.disp.value == mem.disp;
}

static bool same_operand(const ZydisDecodedOperand *op, const Expected *expected)
{
    switch (expected->kind) {
    case IS_GPR:
        return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
               op->reg.value == gpr_of_size(expected->reg, expected->size);
    case IS_VECTOR:
        return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
               op->reg.value == vector_of_size(expected->reg, expected->size);
    case IS_MEM: return same_mem(op, expected->mem);
    case IS_IMM:
        return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
               (op->imm.is_signed ? op->imm.value.s == expected->imm
                                  : op->imm.value.u == ((u64)(i64)expected->imm &
                                                        (op->size < 64 ? (1ull << op->size) - 1
                                                                       : ~0ull)));
    }
    return false;
}

// The operands that are written; EVEX has its mask register among them.
static unsigned written_operands(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *all,
                                 ZydisDecodedOperand *ret)
{
    unsigned count = 0;
    for (unsigned i = 0; i < z->operand_count_visible; i++) {
        bool is_mask = all[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                       all[i].reg.value == ZYDIS_REGISTER_K0;
        if (!is_mask)
            ret[count++] = all[i];
    }
    return count;
}

static void check(X64Op op, const Emitter *e, unsigned count, const Expected *expected)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand all[ZYDIS_MAX_OPERAND_COUNT], operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t len = (size_t)(e->pc - code);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, sizeof(code), &z, all)))
        FAIL("%s: not decoded: %02x %02x %02x %02x", x64_rows[op].name, code[0], code[1], code[2],
             code[3]);
    if (z.length != len || z.mnemonic != mnemonics[op])
        FAIL("%s: %zu bytes; Zydis reads %u bytes of %s", x64_rows[op].name, len, z.length,
             ZydisMnemonicGetString(z.mnemonic));
    unsigned found = written_operands(&z, all, operands);
    if (found != count)
        FAIL("%s: %u operands, not %u", x64_rows[op].name, found, count);
    for (unsigned i = 0; i < count; i++) {
        if (!same_operand(&operands[i], &expected[i]))
            FAIL("%s: operand %u is another: %02x %02x %02x %02x %02x %02x", x64_rows[op].name, i,
                 code[0], code[1], code[2], code[3], code[4], code[5]);
    }
    checked++;
    seen[op] = 1;
}

// ------------------------------------------------------------------- all operands

#define FOR_REGS(r) for (unsigned r = 0; r < GPR_COUNT; r++)
#define FOR_SIZES(row, s) \
    for (unsigned s = 1; s <= 8; s *= 2) \
        if ((row)->sizes & s)

static const i32 numbers[] = {0, 1, 2, -1, 127, 128, -128, -129, 0x1234, 0x12345678, INT32_MIN};

static Expected gpr(unsigned reg, unsigned size)
{
    return (Expected){.kind = IS_GPR, .reg = reg, .size = size};
}

static Expected vector(unsigned reg, unsigned size)
{
    return (Expected){.kind = IS_VECTOR, .reg = reg, .size = size};
}

static Expected memory(X64Mem mem)
{
    return (Expected){.kind = IS_MEM, .mem = mem};
}

static Expected constant(i32 imm)
{
    return (Expected){.kind = IS_IMM, .imm = imm};
}

// Every base with every index, and every kind of displacement, segment and width of the address.
static bool next_mem(unsigned *at, X64Mem *ret)
{
    enum { BASES = GPR_COUNT + 1, INDICES = GPR_COUNT + 1, DISPS = ARRAY_LEN(numbers) };
    static const u8 segments[] = {X64_NO_SEGMENT, X64_FS, X64_GS};
    unsigned n = (*at)++;
    X64Mem mem = {.base = (u8)(n % BASES), .index = (u8)(n / BASES % INDICES)};
    unsigned rest = n / (BASES * INDICES);
    if (rest >= DISPS)
        return false;
    if (mem.index == RSP)
        mem.index = X64_NO_REG;
    mem.disp = numbers[rest];
    mem.scale = mem.index == X64_NO_REG ? 1 : (u8)(1u << n % 4);
    mem.segment = segments[n % 3];
    mem.is_short = n % 5 == 0;
    *ret = mem;
    return true;
}

#define FOR_MEMS(m) \
    for (struct { unsigned at; X64Mem mem; } m = {0}; next_mem(&m.at, &m.mem);)

static i32 as_read(i32 imm, unsigned size)
{
    return size == BYTE ? (i8)imm : size == WORD ? (i16)imm : imm;
}

static void try_regs(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_REGS(a) FOR_REGS(b) {
        Emitter e = fresh();
        bool extends = row->form == X64_FORM_REG_RM && (row->opcode & ~1u) == 0x0fb6;
        unsigned source = extends ? (row->opcode & 1 ? WORD : BYTE) : size;
        if (row->form == X64_FORM_REG_REG)
            x64_encode_reg_rm(&e, op, size, b, a);
        else
            x64_encode_reg_rm(&e, op, size, a, b);
        check(op, &e, 2, (Expected[]){gpr(a, size), gpr(b, source)});
    }
}

static void try_reg_imm(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_REGS(a) {
        for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
            Emitter e = fresh();
            if (row->form == X64_FORM_REG_IMM8) {
                x64_encode_reg_imm8(&e, op, size, a, (u8)(i + 1));
                check(op, &e, 2, (Expected[]){gpr(a, size), constant((i32)i + 1)});
            } else {
                x64_encode_reg_imm(&e, op, size, a, numbers[i]);
                check(op, &e, 2, (Expected[]){gpr(a, size), constant(as_read(numbers[i], size))});
            }
        }
    }
}

static void try_mem_imm(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_MEMS(m) {
        Emitter e = fresh();
        i32 imm = numbers[m.at % ARRAY_LEN(numbers)];
        if (row->form == X64_FORM_MEM_IMM8) {
            x64_encode_mem_imm8(&e, op, size, m.mem, m.at % 100);
            check(op, &e, 2, (Expected[]){memory(m.mem), constant((i32)(m.at % 100))});
        } else {
            x64_encode_mem_imm(&e, op, size, m.mem, imm);
            check(op, &e, 2, (Expected[]){memory(m.mem), constant(as_read(imm, size))});
        }
    }
}

static void try_reg_mem(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_MEMS(m) {
        unsigned reg = m.at % GPR_COUNT;
        Emitter e = fresh();
        if (mnemonics[op] == ZYDIS_MNEMONIC_LEA)
            m.mem.segment = X64_NO_SEGMENT; // it adds no base
        x64_encode_mem(&e, op, size, reg, m.mem);
        if (row->form == X64_FORM_REG_MEM)
            check(op, &e, 2, (Expected[]){gpr(reg, size), memory(m.mem)});
        else
            check(op, &e, 2, (Expected[]){memory(m.mem), gpr(reg, size)});
    }
}

static void try_mem(X64Op op, const X64Row *row)
{
    FOR_MEMS(m) {
        Emitter e = fresh();
        x64_encode_mem(&e, op, 0, row->digit, m.mem);
        check(op, &e, 1, (Expected[]){memory(m.mem)});
    }
}

static void try_reg(X64Op op, const X64Row *row)
{
    FOR_REGS(a) {
        Emitter e = fresh();
        if (row->form == X64_FORM_OPCODE_REG)
            x64_encode_opcode_reg(&e, op, a);
        else if (row->form == X64_FORM_REG)
            x64_encode_reg(&e, op, 0, a);
        else
            break;
        check(op, &e, 1, (Expected[]){gpr(a, QWORD)});
    }
    FOR_SIZES(row, size) FOR_REGS(a) {
        Emitter e = fresh();
        x64_encode_reg(&e, op, size, a);
        check(op, &e, 1, (Expected[]){gpr(a, size)});
    }
}

static void try_reg_rm_imm(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_REGS(a) FOR_REGS(b) {
        i32 imm = numbers[(a + b) % ARRAY_LEN(numbers)];
        Emitter e = fresh();
        x64_encode_reg_rm_imm(&e, op, size, a, b, imm);
        check(op, &e, 3,
              (Expected[]){gpr(a, size), gpr(b, size), constant(as_read(imm, size))});
    }
}

static void try_vex(X64Op op, const X64Row *row)
{
    FOR_SIZES(row, size) FOR_MEMS(m) {
        unsigned a = m.at % GPR_COUNT, b = m.at / 3 % GPR_COUNT, c = m.at / 7 % GPR_COUNT;
        Emitter e = fresh();
        if (row->form == X64_FORM_VEX_REG_REG_MEM) {
            x64_encode_vex_mem(&e, op, size, a, b, m.mem);
            check(op, &e, 3, (Expected[]){gpr(a, size), gpr(b, size), memory(m.mem)});
        } else {
            x64_encode_vex_rm(&e, op, size, a, b, c);
            check(op, &e, 3, (Expected[]){gpr(a, size), gpr(b, size), gpr(c, size)});
        }
    }
}

// movups is vmovups to Zydis where it is VEX or EVEX.
static void try_vector(X64Op op, const X64Row *row)
{
    for (unsigned size = 16; size <= 64; size *= 2) FOR_MEMS(m) {
        unsigned reg = m.at % (size == 64 ? 32 : 16);
        Emitter e = fresh();
        x64_encode_vector_mem(&e, op, size, reg, m.mem);
        ZydisDecodedInstruction z;
        ZydisDecodedOperand all[ZYDIS_MAX_OPERAND_COUNT], operands[ZYDIS_MAX_OPERAND_COUNT];
        CHECK(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, sizeof(code), &z, all)));
        CHECK_EQ(z.length, e.pc - code);
        CHECK(z.mnemonic == (size == 16 ? ZYDIS_MNEMONIC_MOVUPS : ZYDIS_MNEMONIC_VMOVUPS));
        CHECK_EQ(written_operands(&z, all, operands), 2);
        bool is_load = row->form == X64_FORM_VECTOR_MEM;
        const Expected mem = memory(m.mem), vec = vector(reg, size);
        CHECK(same_operand(&operands[0], is_load ? &vec : &mem));
        CHECK(same_operand(&operands[1], is_load ? &mem : &vec));
        checked++;
        seen[op] = 1;
    }
}

static void try_row(X64Op op)
{
    const X64Row *row = &x64_rows[op];
    switch ((X64Form)row->form) {
    case X64_FORM_NONE: {
        Emitter e = fresh();
        x64_encode_none(&e, op);
        check(op, &e, 0, NULL);
        return;
    }
    case X64_FORM_REG: case X64_FORM_REG_SIZED: case X64_FORM_OPCODE_REG: try_reg(op, row); return;
    case X64_FORM_MEM: try_mem(op, row); return;
    case X64_FORM_IMM:
        for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
            Emitter e = fresh();
            x64_encode_imm(&e, op, numbers[i]);
            check(op, &e, 1, (Expected[]){constant(numbers[i])});
        }
        return;
    case X64_FORM_REG_REG: case X64_FORM_REG_RM: try_regs(op, row); return;
    case X64_FORM_REG_MEM: case X64_FORM_MEM_REG: try_reg_mem(op, row); return;
    case X64_FORM_REG_IMM: case X64_FORM_REG_IMM8: try_reg_imm(op, row); return;
    case X64_FORM_MEM_IMM: case X64_FORM_MEM_IMM8: try_mem_imm(op, row); return;
    case X64_FORM_REG_RM_IMM: try_reg_rm_imm(op, row); return;
    case X64_FORM_VEX_REG_REG_MEM: case X64_FORM_VEX_REG_RM_REG: try_vex(op, row); return;
    case X64_FORM_VECTOR_MEM: case X64_FORM_MEM_VECTOR: try_vector(op, row); return;
    case X64_FORM_XMM_XMM:
        for (unsigned i = 0; i < 256; i++) {
            Emitter e = fresh();
            x64_encode_xmm(&e, op, i % 16, i / 16);
            check(op, &e, 2, (Expected[]){vector(i % 16, 16), vector(i / 16, 16)});
        }
        return;
    case X64_FORMS: break;
    }
    FAIL("%s: a form without a test", row->name);
}

TEST(every_instruction_of_the_table_is_read_back_with_its_operands)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned op = 0; op < X64_OPS; op++)
        try_row((X64Op)op);
    for (unsigned op = 0; op < X64_OPS; op++) {
        if (!seen[op])
            FAIL("%s was never tried", x64_rows[op].name);
    }
    CHECK(checked > 100000);
}

TEST(ah_is_a_byte_register_without_rex)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    Emitter e = fresh();
    x64_mov_reg_mem(&e, BYTE, X64_AH, x64_at(RSP, 0));
    CHECK_EQ(e.pc - code, 3);
    check(X64_OP_mov_reg_mem, &e, 2, (Expected[]){gpr(X64_AH, BYTE), memory(x64_at(RSP, 0))});
}

// fs_x64.h
TEST(the_encoders_of_thread_words_write_what_the_table_says)
{
    u8 general[INSN_MAX];
    for (unsigned reg = 0; reg < GPR_COUNT; reg++) {
        for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
            Emitter e = fresh();
            x64_mov_reg_mem(&e, QWORD, reg, x64_fs(numbers[i]));
            size_t len = (size_t)(e.pc - code);
            memcpy(general, code, sizeof(general));
            e = fresh();
            x64_mov_reg_fs(&e, reg, numbers[i]);
            CHECK((size_t)(e.pc - code) == len && memcmp(general, code, len) == 0);
            e = fresh();
            x64_mov_mem_reg(&e, QWORD, x64_fs(numbers[i]), reg);
            memcpy(general, code, sizeof(general));
            e = fresh();
            x64_mov_fs_reg(&e, numbers[i], reg);
            CHECK((size_t)(e.pc - code) == len && memcmp(general, code, len) == 0);
            e = fresh();
            x64_mov_mem_imm(&e, DWORD, x64_fs(numbers[i]), (i32)reg);
            len = (size_t)(e.pc - code);
            memcpy(general, code, sizeof(general));
            e = fresh();
            x64_mov_fs_imm32(&e, numbers[i], reg);
            CHECK((size_t)(e.pc - code) == len && memcmp(general, code, len) == 0);
            e = fresh();
            x64_mov_mem_imm(&e, QWORD, x64_fs(numbers[i]), -(i32)reg);
            len = (size_t)(e.pc - code);
            memcpy(general, code, sizeof(general));
            e = fresh();
            x64_mov_fs_imm64(&e, numbers[i], -(u64)reg);
            CHECK((size_t)(e.pc - code) == len && memcmp(general, code, len) == 0);
        }
    }
}

#define CHECK_LENGTH(statement, length) \
    do { \
        Emitter e_ = fresh(), *e = &e_; \
        statement; \
        if (e_.pc - code != (length)) \
            FAIL("%s takes %td bytes, not %d", #statement, e_.pc - code, (length)); \
    } while (0)

TEST(the_shortest_encoding_is_taken)
{
    CHECK_LENGTH(x64_mov_reg_imm(e, RAX, 1), 5);
    CHECK_LENGTH(x64_mov_reg_imm(e, R8, UINT32_MAX), 6);
    CHECK_LENGTH(x64_mov_reg_imm(e, RAX, ~0ull), 7);
    CHECK_LENGTH(x64_mov_reg_imm(e, RAX, 1ull << 40), 10);
    CHECK_LENGTH(x64_add_reg_imm(e, QWORD, RCX, 1), 4);
    CHECK_LENGTH(x64_add_reg_imm(e, QWORD, RCX, 128), 7);
    CHECK_LENGTH(x64_add_reg_imm(e, QWORD, RAX, 128), 6);
    CHECK_LENGTH(x64_test_reg_imm(e, DWORD, RAX, 1), 5);
    CHECK_LENGTH(x64_shr_reg_imm(e, DWORD, RCX, 1), 2);
    CHECK_LENGTH(x64_shr_reg_imm(e, DWORD, RCX, 2), 3);
    CHECK_LENGTH(x64_mov_reg_mem(e, QWORD, RAX, x64_at(RCX, 0)), 3);
    CHECK_LENGTH(x64_mov_reg_mem(e, QWORD, RAX, x64_at(RBP, 0)), 4);
    CHECK_LENGTH(x64_mov_reg_mem(e, QWORD, RAX, x64_at(RSP, 0)), 4);
    CHECK_LENGTH(x64_mov_reg_mem(e, QWORD, RAX, x64_at(RCX, -128)), 4);
    CHECK_LENGTH(x64_mov_reg_mem(e, QWORD, RAX, x64_at(RCX, 128)), 7);
    CHECK_LENGTH(x64_push_imm(e, 2), 2);
    CHECK_LENGTH(x64_movups_mem_vector(e, 32, x64_fs(0), 3), 10);
}

TEST(a_jump_goes_where_it_is_landed)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned branch = 0; branch <= X64_CALL; branch++) {
        ZydisDecodedInstruction z;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        Emitter e = fresh();
        X64Jump jump = x64_branch(&e, (X64Branch)branch);
        x64_nop(&e);
        x64_land(&e, jump);
        CHECK(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, sizeof(code), &z, operands)));
        CHECK_EQ(z.length, jump.end - code);
        CHECK_EQ(operands[0].imm.value.s, 1);
        CHECK(z.meta.category == (branch == X64_JMP    ? ZYDIS_CATEGORY_UNCOND_BR
                                  : branch == X64_CALL ? ZYDIS_CATEGORY_CALL
                                                       : ZYDIS_CATEGORY_COND_BR));
        CHECK(x64_is_call_site(jump.end - 4) == (branch == X64_CALL));
        if (branch >= X64_CONDITIONS)
            continue;
        ZydisMnemonic far = z.mnemonic;
        e = fresh();
        jump = x64_jcc_short(&e, (X64Branch)branch);
        x64_nop(&e);
        x64_land(&e, jump);
        CHECK(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, sizeof(code), &z, operands)));
        CHECK(z.mnemonic == far && z.length == 2 && operands[0].imm.value.s == 1);
    }
}

// Other threads execute the displacement while it is rewritten (x64.h).
TEST(the_displacement_of_a_link_site_never_straddles_a_line)
{
    static _Alignas(64) u8 room[128];
    for (unsigned at = 0; at < 64; at++) {
        for (unsigned branch = 0; branch <= X64_CALL; branch++) {
            Emitter e = {.pc = room + at, .end = room + sizeof(room)};
            CodePtr site = x64_link_site(&e, (X64Branch)branch, room);
            CHECK((uintptr_t)site / 16 == ((uintptr_t)site + 3) / 16);
            CHECK(site + 4 == e.pc);
            i32 displacement;
            memcpy(&displacement, site, sizeof(displacement));
            CHECK(site + 4 + displacement == room);
        }
    }
}

TEST(addresses_are_found_where_they_stand)
{
    static const u64 places[] = {0x555555554000ull, 0x7ffff7fc1230ull};
    static EmitAddresses found[2];
    static _Alignas(8) u8 copies[2][256];
    for (unsigned i = 0; i < 2; i++) {
        found[i].count = 0;
        Emitter e = {.pc = copies[i], .end = copies[i] + sizeof(copies[i]), .addresses = &found[i]};
        x64_mov_reg_address(&e, R9, EMIT_ENGINE_ADDRESS, places[i]);
        x64_mov_fs_address(&e, 64, EMIT_ENGINE_ADDRESS, places[i] + 8);
        while ((uintptr_t)e.pc % 8)
            x64_int3(&e);
        emit_address(&e, EMIT_ENGINE_ADDRESS, places[i] + 16);
        x64_mov_reg_address(&e, RAX, EMIT_CACHE_ADDRESS, 0x61000000);
        x64_mov_fs_address(&e, 72, EMIT_CACHE_ADDRESS, 0x61000010);
        x64_mov_reg_imm(&e, RAX, 7);
        CHECK_EQ(found[i].count, 5);
    }
    for (unsigned i = 0; i < found[0].count; i++) {
        const EmitAddress *address = &found[0].items[i];
        size_t at = (size_t)(address->at - copies[0]), upper = (size_t)(address->upper - copies[0]);
        CHECK_EQ(found[1].items[i].at - copies[1], at);
        memset(copies[0] + at, 0, address->form == EMIT_WORD64 ? 8 : 4);
        memset(copies[1] + at, 0, address->form == EMIT_WORD64 ? 8 : 4);
        if (address->form == EMIT_TWO_STORES) {
            memset(copies[0] + upper, 0, 4);
            memset(copies[1] + upper, 0, 4);
        }
    }
    CHECK(memcmp(copies[0], copies[1], sizeof(copies[0])) == 0);
}
