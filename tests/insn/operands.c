// SPDX-License-Identifier: MIT
//
// An address is base + index * scale + disp, plus a segment base. The displacement is part of the
// encoding; a small index is drawn, and the base makes up the rest. What has no base gets it from
// the index or, rip-relative and absolute operands, from a fix of the displacement.
#include "operands.h"

// x87 instruction and data pointers, and the header of an xsave area, as far as they are
// nobody's business: { mnemonic, at, len_bytes }.
static const struct {
    ZydisMnemonic mnemonic;
    u16 operand_size; // bits; 0: any
    u16 at;
    u16 len_bytes;
} unstable[] = {
    { ZYDIS_MNEMONIC_FNSTENV, 224, 12, 16 }, { ZYDIS_MNEMONIC_FNSTENV, 112, 6, 8 },
    { ZYDIS_MNEMONIC_FNSAVE, 864, 12, 16 },  { ZYDIS_MNEMONIC_FNSAVE, 752, 6, 8 },
    { ZYDIS_MNEMONIC_FXSAVE, 0, 5, 19 },     { ZYDIS_MNEMONIC_FXSAVE64, 0, 5, 19 },
    { ZYDIS_MNEMONIC_XSAVE, 0, 5, 19 },      { ZYDIS_MNEMONIC_XSAVE64, 0, 5, 19 },
    { ZYDIS_MNEMONIC_XSAVE, 0, 512, 8 },     { ZYDIS_MNEMONIC_XSAVE64, 0, 512, 8 },
};

typedef struct Target {
    enum CaseBase base;
    i64 offset;
} Target;

static bool is_memory(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN;
}

bool insn_has_memory(const Insn *insn)
{
    for (u32 i = 0; i < insn->info.operand_count; i++)
        if (is_memory(&insn->ops[i]))
            return true;
    return false;
}

static int gpr_number(ZydisRegister reg)
{
    ZydisRegister r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (r < ZYDIS_REGISTER_RAX || r > ZYDIS_REGISTER_R15)
        return -1;
    return (int)(r - ZYDIS_REGISTER_RAX);
}

static bool is_set(const CaseBuilder *c, int gpr)
{
    for (u32 i = 0; i < c->head.n_sets; i++)
        if (c->sets[i].kind == SET_GPR && c->sets[i].index == gpr)
            return true;
    return false;
}

static i64 arena_offset(Where where, u32 size_bytes, u64 *rng)
{
    if (size_bytes == 0)
        size_bytes = 1;
    switch (where) {
    case WHERE_ALIGNED:
        return 0x700 + (rng_below(rng, 0x1200) & ~63u);
    case WHERE_CROSS:
        return (i64)(PAGE_SIZE - rng_below(rng, size_bytes));
    case WHERE_INTO_NONE:
        return (i64)(ARENA_NONE_AT - 1 - rng_below(rng, size_bytes));
    case WHERE_NONE:
        return (i64)(ARENA_NONE_AT + rng_below(rng, PAGE_SIZE));
    case WHERE_READ_ONLY:
        return (i64)(ARENA_RO_AT + rng_below(rng, PAGE_SIZE));
    case WHERE_UNMAPPED:
        return (i64)(ARENA_END + rng_below(rng, PAGE_SIZE / 2));
    default:
        return 0x700 + rng_below(rng, 0x1200);
    }
}

static Target choose_target(Where where, u32 size_bytes, bool near, u64 *rng)
{
    if (where == WHERE_NON_CANONICAL)
        return (Target){ BASE_NONE, (i64)(0x8000dead0000ull + rng_below(rng, 0x10000)) << 8 };
    if (where == WHERE_NULL)
        return (Target){ BASE_NONE, rng_below(rng, PAGE_SIZE) };
    return (Target){ near ? BASE_NEAR : BASE_DATA, arena_offset(where, size_bytes, rng) };
}

// rip-relative and absolute operands: the address is in the code.
static void fix_displacement(CaseBuilder *c, const Insn *insn, u32 at, bool rip, Target t)
{
    u32 disp_at = at + insn->info.raw.disp.offset;
    if (insn->info.raw.disp.size == 64)
        case_fix(c, FIX_ABS64, disp_at, 0, t.base, t.offset);
    else
        case_fix(c, rip ? FIX_REL32 : FIX_ABS32, disp_at, at + insn->len_bytes, t.base, t.offset);
}

// A segment base is not the CPU's business to show: only arena offsets are meaningful with one.
static Target relative_to_segment(Target t, ZydisRegister segment)
{
    i64 seg_at = segment == ZYDIS_REGISTER_FS ? (i64)FS_AT : (i64)GS_AT;
    return t.base == BASE_DATA ? (Target){ BASE_NONE, t.offset - seg_at } : t;
}

static void place_index(CaseBuilder *c, const ZydisDecodedOperand *op, u64 *rng, Target *t)
{
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        u8 number = (u8)ZydisRegisterGetId(op->mem.index);
        case_set(c, SET_VEC_SMALL, number, BASE_NONE, 0);
        c->sets[c->head.n_sets - 1].lane_bytes = rng_one_in(rng, 2) ? 4 : 8;
        return;
    }
    int index = gpr_number(op->mem.index);
    i64 value = (i64)rng_below(rng, 20) - 4;
    if (op->mem.index == ZYDIS_REGISTER_AL) // xlat: eight bits, never negative
        return;
    if (is_set(c, index))
        return;
    bool narrow = ZydisRegisterGetClass(op->mem.index) == ZYDIS_REGCLASS_GPR32;
    t->offset -= value * op->mem.scale;
    if (narrow) // the upper half must not count
        value = (i64)((u64)(u32)value | rng_next(rng) << 32);
    case_set(c, SET_GPR, (u32)index, BASE_NONE, value);
}

static void place_registers(CaseBuilder *c, const ZydisDecodedOperand *op, u64 *rng, Target t)
{
    int base = op->mem.base ? gpr_number(op->mem.base) : -1;
    bool vsib = op->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    bool narrow = ZydisRegisterGetClass(op->mem.base) == ZYDIS_REGCLASS_GPR32;
    t.offset -= op->mem.disp.has_displacement ? op->mem.disp.value : 0;
    if (op->mem.index && !vsib && op->mem.base == op->mem.index) {
        if (!is_set(c, base))
            case_set_divided(c, (u32)base, t.base, t.offset, (u8)(1 + op->mem.scale));
        return;
    }
    if (op->mem.index && !vsib && base < 0) {
        int index = gpr_number(op->mem.index);
        if (index >= 0 && !is_set(c, index))
            case_set_divided(c, (u32)index, t.base, t.offset, op->mem.scale);
        return;
    }
    if (op->mem.index)
        place_index(c, op, rng, &t);
    if (base < 0 || is_set(c, base))
        return;
    if (narrow)
        t.offset += (i64)(rng_next(rng) << 32);
    case_set(c, SET_GPR, (u32)base, t.base, t.offset);
}

static bool ignore_unstable(CaseBuilder *c, const Insn *insn, const ZydisDecodedOperand *op,
                            Target t)
{
    for (u32 i = 0; i < ARRAY_LEN(unstable); i++) {
        if (unstable[i].mnemonic != insn->info.mnemonic)
            continue;
        if (unstable[i].operand_size && unstable[i].operand_size != op->size)
            continue;
        // The bytes can only be named when the address is exact.
        if (op->mem.index || t.base == BASE_NONE)
            return false;
        case_ignore(c, t.base, (u32)t.offset + unstable[i].at, unstable[i].len_bytes);
    }
    return true;
}

static bool place_operand(CaseBuilder *c, const Insn *insn, const ZydisDecodedOperand *op, u32 at,
                          Where where, u64 *rng)
{
    bool narrow = insn->info.address_width == 32;
    bool segmented = op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS;
    bool rip = op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP;
    bool moffs = insn->info.raw.disp.size == 64;
    bool absolute = !op->mem.base && !op->mem.index;
    bool stack = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && gpr_number(op->mem.base) == 4;
    bool near = rip || narrow || (absolute && !moffs) || rng_one_in(rng, 8);
    if (segmented)
        near = false;
    if (rip && segmented)
        return false; // the sum of a code address and fs.base is nowhere
    if ((rip || absolute || narrow) && where >= WHERE_NON_CANONICAL)
        where = WHERE_UNMAPPED;
    if (!rip && !segmented && !stack && (narrow || (absolute && !moffs)))
        c->head.traits |= CASE_LOW_ONLY;
    if (rip && narrow)
        c->head.traits |= CASE_LOW_ONLY;
    Target t = choose_target(where, op->size / 8, near && !stack, rng);
    if (stack) // rsp is in the middle of the arena unless the operand is to fault
        t = where >= WHERE_INTO_NONE ? t : (Target){ BASE_DATA, STACK_AT };
    if (!ignore_unstable(c, insn, op, t))
        return false;
    if (segmented)
        t = relative_to_segment(t, op->mem.segment);
    if (rip || absolute)
        fix_displacement(c, insn, at, rip, t);
    else
        place_registers(c, op, rng, t);
    return true;
}

static void bound_count(CaseBuilder *c, const Insn *insn, u64 *rng)
{
    bool narrow = insn->info.address_width == 32;
    u64 count = rng_below(rng, 12);
    if (narrow)
        count |= rng_next(rng) << 32;
    case_set(c, SET_GPR, 1, BASE_NONE, (i64)count);
}

// Registers that are no address but decide how far the instruction reaches.
static void bound_operands(CaseBuilder *c, const Insn *insn, u64 *rng)
{
    switch (insn->info.mnemonic) {
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS: {
        int bit = insn->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER
                      ? gpr_number(insn->ops[1].reg.value)
                      : -1;
        if (bit >= 0 && insn_has_memory(insn) && !is_set(c, bit))
            case_set(c, SET_GPR, (u32)bit, BASE_NONE, (i64)rng_below(rng, 4000) - 2000);
        break;
    }
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: // else nearly every quotient overflows
        if (!is_set(c, 2) && rng_below(rng, 4))
            case_set(c, SET_GPR, 2, BASE_NONE, rng_below(rng, 3));
        break;
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
        if (!is_set(c, 5))
            case_set(c, SET_GPR, 5, BASE_DATA, STACK_AT + 0x80);
        break;
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
        if (!is_set(c, 0))
            case_set(c, SET_GPR, 0, BASE_NONE, 7);
        if (!is_set(c, 2))
            case_set(c, SET_GPR, 2, BASE_NONE, 0);
        break;
    default:
        break;
    }
    u64 reps = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    if (insn->info.attributes & reps)
        bound_count(c, insn, rng);
}

bool operands_place(CaseBuilder *c, const Insn *insn, u32 at, Where where, u64 *rng)
{
    for (u32 i = 0; i < insn->info.operand_count; i++)
        if (is_memory(&insn->ops[i]) && !place_operand(c, insn, &insn->ops[i], at, where, rng))
            return false;
    bound_operands(c, insn, rng);
    return true;
}
