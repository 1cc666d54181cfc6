// SPDX-License-Identifier: MIT
//
// Writes the instructions that the guest runs: one or two of each mnemonic with operands of each
// kind, found by going through the opcode space. `gen FILE SEED`.
#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forms.h"

enum { KEYS = 1 << 16, OF_A_KIND = 2, INSN_BYTES_MAX = 15 };

static u64 seed;
static u64 keys[KEYS];
static u8 counts[KEYS];
static ZydisDecoder decoder;
static FILE *out;
static u32 written;

static u32 random_below(u32 n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (u32)(((seed * 0x2545f4914f6cdd1dull) >> 33) % n);
}

// ---------------------------------------------------------------- what is left out

static bool is_excluded_mnemonic(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDPRU:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_STMXCSR:
    case ZYDIS_MNEMONIC_VSTMXCSR:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_STD:
    case ZYDIS_MNEMONIC_MOVDIR64B:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FLDCW:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV: // with the address of an instruction
    case ZYDIS_MNEMONIC_XLAT: return true;
    default: return false;
    }
}

static bool is_excluded(const ZydisDecodedInstruction *z)
{
    switch (z->meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_STRINGOP:
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_RDWRFSGS:
    case ZYDIS_CATEGORY_GATHER:
    case ZYDIS_CATEGORY_SCATTER:
    case ZYDIS_CATEGORY_AVX2GATHER:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_CET:
    case ZYDIS_CATEGORY_AMX_TILE:
    case ZYDIS_CATEGORY_PKU: return true;
    case ZYDIS_CATEGORY_MISC: return z->mnemonic != ZYDIS_MNEMONIC_LEA;
    default: break;
    }
    return z->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED || z->address_width != 64 ||
           is_excluded_mnemonic(z->mnemonic);
}

// ------------------------------------------------------------------ its operands

static bool note_register(ZydisRegister reg, FormInsn *insn)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    u8 id = (u8)ZydisRegisterGetId(reg);
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        id = (u8)ZydisRegisterGetId(whole);
        insn->members |= MEMBER_GPR(id);
        return id != RSP_NUMBER && id != RDI_NUMBER;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: insn->members |= MEMBER_VECTOR(id); return true;
    case ZYDIS_REGCLASS_MASK: insn->members |= MEMBER_MASK(id); return true;
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
        insn->members |= MEMBER_X87;
        insn->is_judged = false;
        return true;
    case ZYDIS_REGCLASS_FLAGS: insn->members |= MEMBER_FLAGS; return true;
    case ZYDIS_REGCLASS_IP: return true;
    default: // the words of the x87 come with the rest of it
        insn->members |= MEMBER_X87;
        insn->is_judged = false;
        return reg == ZYDIS_REGISTER_X87CONTROL || reg == ZYDIS_REGISTER_X87STATUS ||
               reg == ZYDIS_REGISTER_X87TAG || reg == ZYDIS_REGISTER_MXCSR;
    }
}

static bool note_memory(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
                        FormInsn *insn)
{
    if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
        return (op->mem.base == ZYDIS_REGISTER_NONE || note_register(op->mem.base, insn)) &&
               (op->mem.index == ZYDIS_REGISTER_NONE || note_register(op->mem.index, insn));
    }
    insn->modrm_at = z->raw.modrm.offset;
    return op->mem.type == ZYDIS_MEMOP_TYPE_MEM && op->mem.base == ZYDIS_REGISTER_RDI &&
           op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value == 0 && op->size <= 512 &&
           op->mem.segment != ZYDIS_REGISTER_FS && op->mem.segment != ZYDIS_REGISTER_GS &&
           op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
}

static bool take_apart(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                       FormInsn *insn)
{
    bool fits = true;
    insn->is_judged = z->meta.category != ZYDIS_CATEGORY_X87_ALU;
    for (u32 i = 0; i < z->operand_count && fits; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
            fits = note_register(op->reg.value, insn);
        else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
            fits = note_memory(z, op, insn);
    }
    if (z->meta.category == ZYDIS_CATEGORY_X87_ALU || z->mnemonic == ZYDIS_MNEMONIC_EMMS)
        insn->members |= MEMBER_X87;
    if (z->cpu_flags)
        insn->flags_open = z->cpu_flags->undefined;
    insn->is_bit_string = z->meta.category == ZYDIS_CATEGORY_BITBYTE;
    if (z->mnemonic == ZYDIS_MNEMONIC_BSF || z->mnemonic == ZYDIS_MNEMONIC_BSR)
        insn->is_bit_string = false;
    return fits;
}

static u64 kind_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands)
{
    u64 key = (u64)z->mnemonic << 8 | z->encoding;
    for (u32 i = 0; i < z->operand_count_visible; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        key = key * 0x9e3779b97f4a7c15ull +
              ((u64)op->type << 32 | (u64)op->size << 8 | (u64)op->encoding);
    }
    key = key * 0x9e3779b97f4a7c15ull + ((u64)z->avx.mask.mode << 8 | z->avx.broadcast.mode);
    return key | 1;
}

static bool is_wanted(u64 key)
{
    u32 at = (u32)(key >> 40) % KEYS;
    while (keys[at] && keys[at] != key)
        at = (at + 1) % KEYS;
    keys[at] = key;
    // Which ones of a kind, the seed decides.
    return counts[at] < OF_A_KIND && random_below(3) == 0 && ++counts[at];
}

static void test_bytes(const u8 *bytes)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    FormInsn insn = {0};
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, INSN_BYTES_MAX, &z, operands)) ||
        is_excluded(&z) || !take_apart(&z, operands, &insn) || !is_wanted(kind_of(&z, operands)))
        return;
    insn.len = z.length;
    memcpy(insn.bytes, bytes, z.length);
    snprintf(insn.name, sizeof(insn.name), "%s", ZydisMnemonicGetString(z.mnemonic));
    fwrite(&insn, sizeof(insn), 1, out);
    written++;
}

// ---------------------------------------------------------------- the opcode space

static u8 modrm_of(u32 reg, bool memory)
{
    u32 rm = random_below(8);
    return memory ? (u8)(reg << 3 | RDI_NUMBER)
                  : (u8)(0xc0 | reg << 3 | (rm == 4 || rm == 7 ? rm - 1 : rm));
}

static void put_tail(u8 *at, u32 n)
{
    for (; n < 16; n++)
        at[n] = (u8)random_below(256);
}

static bool is_prefix(u32 op)
{
    return op == 0x0f || op == 0x26 || op == 0x2e || op == 0x36 || op == 0x3e ||
           (op >= 0x40 && op < 0x50) || op == 0x62 || (op >= 0x64 && op <= 0x67) ||
           op == 0xc4 || op == 0xc5 || op == 0xf0 || op == 0xf2 || op == 0xf3;
}

static void legacy(u32 map, u32 op, u32 variant)
{
    static const u8 prefixes[] = {0, 0x66, 0xf3, 0xf2}, rexes[] = {0, 0x40, 0x48, 0x44, 0x45, 0x4d};
    bool memory = variant >> 5 & 1;
    u8 rex = rexes[random_below(sizeof(rexes))];
    u8 bytes[16];
    u32 n = 0;
    if (prefixes[variant & 3])
        bytes[n++] = prefixes[variant & 3];
    if (rex)
        bytes[n++] = memory ? rex & 0xfe : rex; // rdi is the pointer
    if (map)
        bytes[n++] = 0x0f;
    if (map > 1)
        bytes[n++] = map == 2 ? 0x38 : 0x3a;
    bytes[n++] = (u8)op;
    bytes[n++] = modrm_of(variant >> 2 & 7, memory);
    put_tail(bytes, n);
    test_bytes(bytes);
}

static void vex(u32 map, u32 op, u32 variant)
{
    u32 pp = variant & 3, w = variant >> 2 & 1, l = variant >> 3 & 1;
    u32 vvvv = variant >> 4 & 1 ? 0 : random_below(16);
    u8 bytes[16] = {0xc4, (u8)(0x60 | random_below(2) << 7 | map),
                    (u8)(w << 7 | (~vvvv & 15) << 3 | l << 2 | pp), (u8)op,
                    modrm_of(random_below(8), variant >> 5 & 1)};
    put_tail(bytes, 5);
    test_bytes(bytes);
}

static void evex(u32 map, u32 op, u32 variant)
{
    u32 pp = variant & 3, w = variant >> 2 & 1, memory = variant >> 3 & 1;
    u32 length = (variant >> 4) % 3, mask = (variant >> 4) / 3 % 3;
    u32 zero = mask == 2, broadcast = (variant >> 4) / 9 & memory;
    u32 vvvv = random_below(2) ? 0 : random_below(16);
    u8 bytes[16] = {0x62, (u8)((random_below(8) == 0 ? 0xe0 : 0xf0) | map),
                    (u8)(w << 7 | (~vvvv & 15) << 3 | 4 | pp),
                    (u8)(zero << 7 | length << 5 | broadcast << 4 | 8 |
                         (mask ? 1 + random_below(7) : 0)),
                    (u8)op, modrm_of(random_below(8), memory)};
    put_tail(bytes, 6);
    test_bytes(bytes);
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 6, EVEX_MAPS = 6 };
    if (argc != 3 || !(out = fopen(argv[1], "wb")))
        return 2;
    seed = 0x9e3779b97f4a7c15ull * (strtoull(argv[2], NULL, 0) * 2 + 1);
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (u32 round = 0; round < ROUNDS; round++) {
        for (u32 op = 0; op < 256; op++) {
            for (u32 map = 0; map < 4; map++) {
                for (u32 i = 0; i < 64 && (map || !is_prefix(op)); i++)
                    legacy(map, op, i);
                for (u32 i = 0; i < 64 && map; i++)
                    vex(map, op, i);
            }
            for (u32 map = 1; map <= EVEX_MAPS; map++) {
                for (u32 i = 0; i < 16 * 18; i++)
                    evex(map, op, i);
            }
        }
    }
    printf("%u\n", written);
    return fclose(out) ? 1 : 0;
}
