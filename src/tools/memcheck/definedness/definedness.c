// SPDX-License-Identifier: MIT
//
// Taking instructions apart, at translation: from what Zydis says and the row of the
// mnemonic to a step. Where the V bits of an operand are, operands.c says.
#include <string.h>

#include "tools/memcheck/definedness/step.h"

static const RuleRow rows[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define ROW(mnemonic, rule, lane, lane_to) \
    [ZYDIS_MNEMONIC_##mnemonic] = {RULE_##rule, lane, lane_to},
#include "tools/memcheck/definedness/definedness.def"
#undef ROW
};

enum { COARSE = 0, EXACT = 1 };

static const struct {
    const char *name;
    u8 exact, values, blind;
} kinds[RULE_COUNT] = {
#define RULE_KIND(rule, family, precision, values, blind) \
    [RULE_##rule] = {#rule, precision, values, RULE_##blind},
#include "tools/memcheck/definedness/rules.def"
#undef RULE_KIND
};

RuleRow definedness_row(ZydisMnemonic mnemonic)
{
    return rows[mnemonic];
}

const char *definedness_rule_name(u32 rule)
{
    return kinds[rule].name;
}

bool definedness_rule_is_exact(u32 rule)
{
    return kinds[rule].exact;
}

// -------------------------------------------------------------------- operands

static void add_source(DefinednessStep *step, const Place *place)
{
    if (step->source_count < SOURCES_MAX)
        step->source[step->source_count++] = *place;
}

static void add_written(DefinednessStep *step, const Place *place)
{
    if (step->destination.kind == PLACE_NONE)
        step->destination = *place;
    else if (step->place_count < PLACES_MAX)
        step->other[step->place_count++] = *place;
}

static void note_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
                          DefinednessStep *step)
{
    Place place = definedness_place(z, op);
    if (place.kind == PLACE_NONE)
        return;
    if (op->encoding == ZYDIS_OPERAND_ENCODING_MASK &&
        z->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
        if (place.number == 0)
            return; // k0 as a mask means none
        step->mask = place.number;
        step->reads |= definedness_member(&place);
        step->mask_mode = z->avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
                                  z->avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING
                              ? MASK_ZERO : MASK_MERGE;
        return;
    }
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
        step->reads |= definedness_member(&place);
        add_source(step, &place);
    }
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
        step->writes |= definedness_member(&place);
        add_written(step, &place);
    }
}

static void note_address(const ZydisDecodedOperand *op, DefinednessStep *step)
{
    Place base = definedness_register(op->mem.base, true);
    Place index = definedness_register(op->mem.index, true);
    if (op->mem.type != ZYDIS_MEMOP_TYPE_AGEN && op->mem.type != ZYDIS_MEMOP_TYPE_MIB)
        step->address |= definedness_member(&base) | definedness_member(&index);
    else if (step->rule == RULE_LEA)
        step->reads |= definedness_member(&base) | definedness_member(&index);
}

static void note_memory_operand(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
                                DefinednessStep *step)
{
    if (step->rule == RULE_NOTHING)
        return;
    note_address(op, step);
    if (step->rule == RULE_STATE_SAVE || step->rule == RULE_STATE_RESTORE)
        return; // found by its address: what is saved varies
    if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
        op->mem.type != ZYDIS_MEMOP_TYPE_MEM || step->rule == RULE_STRING ||
        step->rule == RULE_XLAT || step->rule == RULE_MASKMOVDQU || step->memory_size)
        return;
    Place place = definedness_place(z, op);
    step->memory_size = op->size / 8;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
        step->memory_reads = true;
        add_source(step, &place);
    }
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
        step->memory_writes = true;
        add_written(step, &place);
    }
}

static void note_flags(const ZydisDecodedInstruction *z, DefinednessStep *step)
{
    const ZydisAccessedFlags *flags = z->cpu_flags;
    const u32 tracked = FLAGS_STATUS | DF;
    if (!flags)
        return;
    step->flags_tested = (u16)(flags->tested & tracked);
    step->flags_written =
        (u16)((flags->modified | flags->set_0 | flags->set_1 | flags->undefined) & tracked);
    step->flags_cleared = (u16)((flags->set_0 | flags->set_1) & ~flags->modified & tracked);
    if (step->flags_tested)
        step->reads |= MEMBER_FLAGS;
    if (step->flags_written)
        step->writes |= MEMBER_FLAGS;
}

static void note_operands(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                          DefinednessStep *step)
{
    for (unsigned i = 0; i < z->operand_count; i++) {
        const ZydisDecodedOperand *op = &operands[i];
        Place constant = definedness_place(z, op);
        switch (op->type) {
        case ZYDIS_OPERAND_TYPE_REGISTER: note_register(z, op, step); break;
        case ZYDIS_OPERAND_TYPE_MEMORY: note_memory_operand(z, op, step); break;
        case ZYDIS_OPERAND_TYPE_IMMEDIATE:
            step->immediate = op->imm.value.u;
            add_source(step, &constant);
            break;
        default: break;
        }
    }
    note_flags(z, step);
}

// --------------------------------------------------------------- special cases

static void note_string(const ZydisDecodedInstruction *z, DefinednessStep *step)
{
    const ZydisInstructionAttributes repeats =
        ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    static const u8 flags[] = {
        [STRING_MOVE] = STRING_READS_SI | STRING_USES_DI,
        [STRING_STORE] = STRING_USES_DI,
        [STRING_LOAD] = STRING_READS_SI,
        [STRING_COMPARE] = STRING_READS_SI | STRING_USES_DI,
        [STRING_SCAN] = STRING_USES_DI,
    };
    step->string = step->lane;
    step->element = step->lane_to;
    step->string_flags = flags[step->string];
    if (!(z->attributes & ZYDIS_ATTRIB_HAS_REPNE))
        step->string_flags |= STRING_WHILE_EQUAL;
    if (z->address_width == 32)
        step->string_flags |= STRING_ADDRESS32;
    if (z->attributes & repeats)
        step->string_flags |= STRING_REPEATED;
    if (step->string_flags & STRING_READS_SI)
        step->address |= MEMBER_GPR(6);
    if (step->string_flags & STRING_USES_DI)
        step->address |= MEMBER_GPR(7);
}

// vp2intersect writes the pair of masks that its operand is one of.
static void note_mask_pair(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                           DefinednessStep *step)
{
    if (z->mnemonic != ZYDIS_MNEMONIC_VP2INTERSECTD && z->mnemonic != ZYDIS_MNEMONIC_VP2INTERSECTQ)
        return;
    ZydisRegister even = (operands[0].reg.value - ZYDIS_REGISTER_K0) / 2 * 2 + ZYDIS_REGISTER_K0;
    Place second = definedness_register(even + 1, false);
    step->destination = definedness_register(even, false);
    step->writes |= definedness_member(&step->destination) | definedness_member(&second);
    add_written(step, &second);
}

// Vectors whose values the rule wants. False: they are not to be had.
static bool note_values(DefinednessStep *step)
{
    u32 wanted = 0;
    for (unsigned i = 0; i < step->source_count; i++) {
        const Place *place = &step->source[i];
        if (place->kind == PLACE_MMX)
            return false;
        if (place->kind == PLACE_VECTOR)
            wanted |= 1u << place->number;
    }
    step->needs_vectors = wanted;
    return true;
}

// cmpsd and movsd are strings and scalars both.
static RuleRow row_of(const ZydisDecodedInstruction *z)
{
    bool string = z->meta.category == ZYDIS_CATEGORY_STRINGOP;
    if (z->mnemonic == ZYDIS_MNEMONIC_MOVSD && string)
        return (RuleRow){RULE_STRING, STRING_MOVE, 4};
    if (z->mnemonic == ZYDIS_MNEMONIC_CMPSD && string)
        return (RuleRow){RULE_STRING, STRING_COMPARE, 4};
    return rows[z->mnemonic];
}

// Of an instruction that is not known, a legacy vector register may be written in part.
static void merge_destination(const ZydisDecodedInstruction *z, DefinednessStep *step)
{
    if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
        step->destination.kind == PLACE_VECTOR) {
        step->reads |= definedness_member(&step->destination);
        add_source(step, &step->destination);
    }
}

// A segment register is defined. A push of one is as wide as the stack's words are.
static void note_segment(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                         DefinednessStep *step)
{
    if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        ZydisRegisterGetClass(operands[0].reg.value) != ZYDIS_REGCLASS_SEGMENT)
        return;
    if (step->rule == RULE_POP)
        step->rule = RULE_NOTHING;
    step->source_count = 0;
    step->source[0] = (Place){.kind = PLACE_NONE};
    for (unsigned i = 0; i < z->operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            step->size = (u8)(operands[i].size / 8);
    }
}

// Forms of one mnemonic with rules of their own.
static void choose_form(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                        DefinednessStep *step)
{
    bool by_immediate = step->source_count > 0 &&
                        step->source[step->source_count - 1].kind == PLACE_IMMEDIATE;
    bool to_mask = step->destination.kind == PLACE_MASK;
    switch (step->rule) {
    case RULE_JCC:
    case RULE_SETCC: step->lane = z->opcode & 15; break;
    case RULE_CMOVCC:
        step->lane = z->opcode & 15;
        step->reads |= definedness_member(&step->destination);
        break;
    case RULE_JUMP_CX:
    case RULE_LOOP: step->size = (u8)(z->address_width / 8); break;
    case RULE_SHUFFLE:
        if (!by_immediate)
            break;
        step->lane_to = step->lane;
        step->lane = step->lane == 8 ? PATTERN_PERMIL_PD : PATTERN_SHUFFLE;
        step->rule = RULE_PERMUTE;
        break;
    case RULE_SHUFFLE_ALL:
        if (!by_immediate)
            break;
        step->rule = RULE_PERMUTE;
        step->lane_to = step->lane;
        step->lane = PATTERN_PERM_QUARTERS;
        break;
    case RULE_SCALAR:
    case RULE_SCALAR_UNARY:
        step->mask_scalar = true;
        if (to_mask)
            step->rule = RULE_COMPARE_MASK;
        break;
    case RULE_VEQUAL:
    case RULE_VGREATER:
        if (!to_mask)
            break;
        step->immediate = step->rule == RULE_VEQUAL ? PREDICATE_EQUAL
                                                    : PREDICATE_LESS_EQUAL | PREDICATE_NOT;
        step->rule = RULE_VCOMPARE;
        step->lane_to = COMPARE_SIGNED;
        break;
    case RULE_ANY:
        if (to_mask)
            step->rule = RULE_COMPARE_MASK;
        break;
    case RULE_PERMUTE: step->mask_scalar = step->lane == PATTERN_MOVE_LOW; break;
    case RULE_XLAT: step->reads |= MEMBER_GPR(0); break; // the index is in no operand
    case RULE_ZEROUPPER:
    case RULE_ZEROALL: step->writes |= 0xffffull << 32; break;
    case RULE_STATE_SAVE:
        definedness_state_init();
        step->reads |= MEMBERS_STATE;
        break;
    case RULE_STATE_RESTORE:
        definedness_state_init();
        step->writes |= MEMBERS_STATE;
        break;
    case RULE_BSWAP: // of 16 bits the manual says nothing
        if (z->mnemonic == ZYDIS_MNEMONIC_BSWAP && step->size == 2)
            step->rule = RULE_COARSE;
        break;
    case RULE_COARSE: merge_destination(z, step); break;
    case RULE_BLSI: step->flags_cleared &= (u16)~CF; break; // the source is not zero
    case RULE_PUSH:
    case RULE_POP: note_segment(z, operands, step); break;
    default: break;
    }
    if (to_mask && step->mask_mode == MASK_MERGE)
        step->mask_mode = MASK_ZERO; // masks are never merged into
}

// The scale, the displacement and the registers of an address that is a value.
static void note_lea(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                     DefinednessStep *step)
{
    const ZydisDecodedOperand *op = &operands[1];
    Place base = definedness_register(op->mem.base, true);
    Place index = definedness_register(op->mem.index, true);
    step->source_count = 0;
    add_source(step, &base);
    add_source(step, &index);
    step->lane = op->mem.scale;
    step->size = (u8)(z->address_width / 8);
    step->immediate = (u64)op->mem.disp.value;
}

static void note_gather(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                        DefinednessStep *step)
{
    const ZydisDecodedOperand *op = NULL;
    for (unsigned i = 0; i < z->operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            op = &operands[i];
    }
    if (!op) {
        step->rule = RULE_COARSE;
        return;
    }
    bool vex = z->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    bool scatters = step->rule == RULE_SCATTER;
    Place mask = vex && step->place_count ? step->other[0] : (Place){0};
    if (!scatters)
        step->source[0] = step->destination;
    step->source[1] = mask;
    step->source[2] = definedness_register(op->mem.index, true);
    step->source[3] = definedness_register(op->mem.base, true);
    step->source_count = 4;
    step->size = op->mem.scale;
    step->immediate = (u64)op->mem.disp.value;
    step->reads |= definedness_member(&step->source[0]) | definedness_member(&mask);
    step->writes |= vex ? definedness_member(&mask) : MEMBER_MASK(step->mask);
}

// What moves elements between lanes loads all of its operand, whatever the mask lets through:
// the manual has these in classes of exceptions without fault suppression. Zydis has some in
// others, where processors do without it, too.
static bool loads_whole(const ZydisDecodedInstruction *z, const DefinednessStep *step)
{
    if (step->memory_writes)
        return false;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_VCVTNE2PS2BF16:
    case ZYDIS_MNEMONIC_VDBPSADBW:
    case ZYDIS_MNEMONIC_VGF2P8AFFINEQB:
    case ZYDIS_MNEMONIC_VGF2P8AFFINEINVQB: return true;
    default: break;
    }
    switch (z->meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_E1NF:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
    case ZYDIS_EXCEPTION_CLASS_E4NF:
    case ZYDIS_EXCEPTION_CLASS_E5NF:
    case ZYDIS_EXCEPTION_CLASS_E6NF:
    case ZYDIS_EXCEPTION_CLASS_E9NF:
    case ZYDIS_EXCEPTION_CLASS_E10NF:
    case ZYDIS_EXCEPTION_CLASS_E11NF: return true;
    default: return false;
    }
}

static LaneKind lanes_of(const ZydisDecodedInstruction *z, const DefinednessStep *step)
{
    switch (step->rule) {
    case RULE_GATHER: return LANES_GATHER;
    case RULE_SCATTER: return LANES_SCATTER;
    case RULE_MASKMOV: return LANES_VECTOR;
    case RULE_MASKMOVDQU: return step->source[0].kind == PLACE_VECTOR ? LANES_DI : LANES_NONE;
    default: break;
    }
    if (step->mask_mode == MASK_NONE || !step->memory_size || loads_whole(z, step))
        return LANES_NONE;
    return z->meta.category == ZYDIS_CATEGORY_COMPRESS ||
                   z->meta.category == ZYDIS_CATEGORY_EXPAND
               ? LANES_PACKED : LANES_MASK;
}

static u8 mask_lane(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands)
{
    u32 bits = operands[0].element_size;
    if (z->mnemonic == ZYDIS_MNEMONIC_VPSHUFBITQMB)
        return 1; // a bit from each byte, of whichever element
    if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        ZydisRegisterGetClass(operands[0].reg.value) == ZYDIS_REGCLASS_MASK)
        bits = operands[z->operand_count > 2 ? 2 : 1].element_size;
    return bits >= 8 ? (u8)(bits / 8) : 1;
}

// What makes lanes narrower leaves zeros above them in a register, whatever the mask is.
static u8 mask_lanes(const ZydisDecodedInstruction *z, const DefinednessStep *step)
{
    bool truncates = step->rule == RULE_PERMUTE && step->lane == PATTERN_TRUNCATE;
    u32 from = truncates ? step->lane_to >> 4 : step->rule == RULE_CONVERT ? step->lane : 0;
    u32 to = truncates ? step->lane_to & 15 : step->lane_to;
    return from > to ? (u8)(z->avx.vector_length / 8 / from) : 0;
}

static bool shifts_by_immediate(const DefinednessStep *step)
{
    bool shifts = step->rule == RULE_VSHL || step->rule == RULE_VSHR || step->rule == RULE_VSAR;
    return shifts && step->source[step->source_count - 1].kind == PLACE_IMMEDIATE;
}

static bool is_known(const ZydisDecodedInstruction *z, const DefinednessStep *step)
{
    return step->rule != RULE_COARSE || rows[z->mnemonic].lane;
}

static void note_x87(const ZydisDecodedInstruction *z, DefinednessStep *step)
{
    step->x87_number = z->raw.modrm.rm & 7;
    // The opcodes dc and de write st(i).
    step->x87_to_number = z->raw.modrm.mod == 3 && (z->opcode == 0xdc || z->opcode == 0xde);
    step->reads |= MEMBER_X87;
    step->writes |= MEMBER_X87;
}

// A merging mask makes Zydis call the destination read. Whether the lanes that are written
// depend on it, the same instruction without its mask tells.
static void forget_merging(const Insn *insn, const ZydisDecodedInstruction *z,
                           ZydisDecodedOperand *operands)
{
    enum { MASK_BITS = 0x87 }; // z and aaa, in the last byte of the prefix
    ZydisDecodedInstruction plain;
    ZydisDecodedOperand plain_operands[ZYDIS_MAX_OPERAND_COUNT];
    u8 bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    Insn copy = *insn;
    if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX || insn->len > sizeof(bytes) ||
        !(operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
        return;
    memcpy(bytes, insn->bytes, insn->len);
    bytes[z->raw.evex.offset + 3] &= (u8)~MASK_BITS;
    copy.bytes = bytes;
    if (decode_operands(&copy, &plain, plain_operands) &&
        !(plain_operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
        operands[0].actions &= (u8)~ZYDIS_OPERAND_ACTION_MASK_READ;
}

// A register and itself, all of which is overwritten with what does not depend on it.
static bool is_constant(const DefinednessStep *step)
{
    const Place *a = &step->source[0], *b = &step->source[1];
    if (step->source_count != 2 || step->mask_mode != MASK_NONE || step->place_count ||
        a->kind != b->kind || a->number != b->number || a->shift || b->shift || a->size != b->size)
        return false;
    switch (step->rule) {
    case RULE_XOR:
    case RULE_SUB: return a->kind == PLACE_GPR && step->destination.written_upper == 8;
    case RULE_VXOR:
    case RULE_VSUB:
    case RULE_VEQUAL:
    case RULE_VGREATER: return a->kind == PLACE_VECTOR && step->destination.kind == PLACE_VECTOR;
    default: return false;
    }
}

// What is moved between registers by a mask. Of memory, lanes that are off are not looked at.
static bool moves_by_mask(const DefinednessStep *step)
{
    return step->mask_mode != MASK_NONE && !step->memory_size &&
           step->destination.kind == PLACE_VECTOR &&
           (step->rule == RULE_MOVE || step->rule == RULE_PERMUTE || step->rule == RULE_BLEND_MASK);
}

bool definedness_prepare(const Insn *insn, DefinednessStep *ret_step)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    DefinednessStep *step = ret_step;
    memset(step, 0, DEFINEDNESS_STEP_BYTES);
    if (!decode_operands(insn, &z, operands)) {
        step->rule = RULE_NOTHING;
        return insn->lowering == LOWER_REQUEST;
    }
    forget_merging(insn, &z, operands);
    RuleRow row = row_of(&z);
    step->rule = row.rule;
    step->lane = row.lane;
    step->lane_to = row.lane_to;
    step->size = (u8)(z.operand_width / 8);
    note_operands(&z, operands, step);
    note_mask_pair(&z, operands, step);
    step->mask_lane = mask_lane(&z, operands);
    step->mask_lanes = mask_lanes(&z, step);
    choose_form(&z, operands, step);
    if (step->rule == RULE_LEA)
        note_lea(&z, operands, step);
    if (step->rule == RULE_COMPARE_MASK || step->rule == RULE_VCOMPARE ||
        z.mnemonic == ZYDIS_MNEMONIC_VPSHUFBITQMB)
        step->size = (u8)(z.avx.vector_length / 8);
    if (step->rule == RULE_GATHER || step->rule == RULE_SCATTER)
        note_gather(&z, operands, step);
    if (step->rule == RULE_BSF || step->rule == RULE_BSR) // of zero they leave it as it is
        step->reads |= definedness_member(&step->destination);
    if (step->rule >= RULE_X87_CONSTANT)
        note_x87(&z, step);
    if (step->rule == RULE_STRING)
        note_string(&z, step);
    if (step->rule == RULE_PERMUTE && !definedness_permutation(&z, operands, step))
        step->rule = RULE_COARSE;
    step->lanes = lanes_of(&z, step);
    step->broadcasts = z.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID;
    step->tuples = step->broadcasts && z.avx.broadcast.is_static;
    if (is_constant(step)) {
        step->constant = true;
        step->reads &= ~definedness_member(&step->source[0]);
    }
    if (kinds[step->rule].values && !shifts_by_immediate(step) && !note_values(step))
        step->rule = kinds[step->rule].blind;
    if (moves_by_mask(step)) {
        step->mask_knows_values = note_values(step);
        step->needs_vectors |= 1u << step->destination.number;
    }
    return is_known(&z, step);
}

// -------------------------------------------------------------------- questions

// A constant may choose which of two vectors is moved.
bool definedness_is_fixed(const Insn *insn)
{
    u8 rule = rows[insn->mnemonic].rule;
    return rule != RULE_PERMUTE && rule != RULE_SHUFFLE && rule != RULE_SHUFFLE_ALL;
}

MemberSet definedness_reads(const DefinednessStep *step)
{
    return step->reads;
}

MemberSet definedness_address(const DefinednessStep *step)
{
    return step->address;
}

MemberSet definedness_writes(const DefinednessStep *step)
{
    return step->writes;
}

void definedness_set_compared(DefinednessStep *step)
{
    step->compared = true;
}

static bool can_move(const Place *place)
{
    return (place->kind == PLACE_GPR || place->kind == PLACE_VECTOR ||
            place->kind == PLACE_MEMORY) &&
           !place->shift && !place->broadcast;
}

bool definedness_move(const DefinednessStep *step, DefinednessMove *ret_move)
{
    const Place *from = &step->source[0], *to = &step->destination;
    u32 size = from->size < to->size ? from->size : to->size;
    if (step->rule != RULE_MOVE || step->mask_mode != MASK_NONE || step->source_count != 1 ||
        step->place_count || step->flags_written || !can_move(from) || !can_move(to) ||
        size == 0 || size > 32 || size & (size - 1) || step->memory_size > size)
        return false;
    bool loads = from->kind == PLACE_MEMORY, stores = to->kind == PLACE_MEMORY;
    // What follows in the register is zeroed by words: not so `movzx r16, r8`.
    if (!stores && to->written_upper > size && to->written_upper % 8)
        return false;
    *ret_move = (DefinednessMove){
        .address = step->address,
        .from = loads ? MOVE_MEMORY : from->at,
        .to = stores ? MOVE_MEMORY : to->at,
        .from_member = loads ? 0 : (u8)__builtin_ctzll(definedness_member(from)),
        .to_member = stores ? 0 : (u8)__builtin_ctzll(definedness_member(to)),
        .size = (u8)size,
        .written = to->written_upper,
        .whole = to->kind == PLACE_GPR ? 8 : 64,
    };
    return !(loads && stores);
}

bool definedness_is_constant(const DefinednessStep *step, DefinednessMove *ret_move)
{
    const Place *to = &step->destination;
    if (!step->constant)
        return false;
    *ret_move = (DefinednessMove){
        .to = to->at,
        .to_member = (u8)__builtin_ctzll(definedness_member(to)),
        .written = to->written_upper,
        .whole = to->kind == PLACE_GPR ? 8 : 64,
    };
    return true;
}

bool definedness_masks(const DefinednessStep *step, unsigned *ret_gpr, u64 *ret_kept)
{
    const Place *to = &step->destination, *from = &step->source[0], *by = &step->source[1];
    if ((step->rule != RULE_AND && step->rule != RULE_OR) || step->source_count != 2 ||
        step->place_count || to->kind != PLACE_GPR || to->size < 4 || to->written_upper != 8 ||
        from->kind != PLACE_GPR || from->at != to->at || by->kind != PLACE_IMMEDIATE)
        return false;
    u64 kept = step->rule == RULE_AND ? step->immediate : ~step->immediate;
    *ret_gpr = to->number;
    *ret_kept = to->size == 4 ? (u32)kept : kept;
    return true;
}

static MemberSet overwritten(const Place *place)
{
    return place->kind == PLACE_GPR && place->written_upper == 8 ? definedness_member(place) : 0;
}

MemberSet definedness_overwrites(const DefinednessStep *step)
{
    if (step->mask_mode != MASK_NONE || step->string)
        return 0;
    MemberSet set = overwritten(&step->destination);
    for (unsigned i = 0; i < step->place_count; i++)
        set |= overwritten(&step->other[i]);
    if ((step->flags_written & FLAGS_STATUS) == FLAGS_STATUS)
        set |= MEMBER_FLAGS;
    return set;
}

u32 definedness_needs_vectors(const DefinednessStep *step)
{
    return step->needs_vectors;
}
