// SPDX-License-Identifier: MIT
//
// See constants.h.
#include "tools/memcheck/translate/constants.h"

#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

// ------------------------------------------------------------- values of registers

static const ValueRange anything = {0, ~0ull};

typedef struct Values {
    ValueRange gprs[GPR_COUNT]; // before the next instruction, of those in `known`
    u32 known;
    // The last comparison with a constant, as long as its flags and its register are there.
    struct {
        u8 reg; // INSN_NO_REG: none
        bool is_wide;
        u64 limit;
    } compared;
} Values;

static ValueRange value_of(const Values *v, unsigned reg)
{
    return v->known >> reg & 1 ? v->gprs[reg] : anything;
}

static void set_value(Values *v, unsigned reg, ValueRange range)
{
    v->gprs[reg] = range;
    v->known |= 1u << reg;
}

// Opcode and operands of the forms that matter: no prefix but REX.
typedef struct Parts {
    u8 opcode;
    bool is_long;     // 0f before the opcode
    bool is_wide;     // 64 bits
    bool is_register; // rm is one
    u8 reg, rm;
} Parts;

static bool take_apart(const ToolInsn *insn, Parts *ret_parts)
{
    enum { ESCAPE = 0x0f };
    unsigned at = insn->modrm_at;
    if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !at)
        return false;
    u8 modrm = insn->bytes[at];
    bool is_long = at >= 2 && insn->bytes[at - 2] == ESCAPE;
    unsigned prefixes = at - (is_long ? 2 : 1);
    u8 rex = prefixes ? insn->bytes[0] : 0x40;
    if (prefixes > 1 || rex >> 4 != 4)
        return false;
    *ret_parts = (Parts){insn->bytes[at - 1], is_long, rex & 8, modrm >> 6 == 3,
                         (u8)((modrm >> 3 & 7) | (rex & 4) << 1),
                         (u8)((modrm & 7) | (rex & 1) << 3)};
    return true;
}

static ValueRange cut(ValueRange range, bool is_wide)
{
    return is_wide || range.high <= UINT32_MAX ? range : (ValueRange){0, UINT32_MAX};
}

// What the instruction leaves in *ret_reg. False: nothing that is known.
static bool result_of(const Values *v, const ToolInsn *insn, const Parts *p, u8 *ret_reg,
                      ValueRange *ret_range)
{
    enum { AND = 4, SHR = 5 };
    u8 group = p->reg & 7;
    i64 imm;
    *ret_reg = p->reg;
    if (p->is_long) {
        *ret_range = (ValueRange){0, p->opcode == 0xb6 ? 0xff : 0xffff};
        return insn->mnemonic == ZYDIS_MNEMONIC_MOVZX;
    }
    switch (p->opcode) {
    case 0x89: // mov rm, reg
        *ret_reg = p->rm;
        *ret_range = cut(value_of(v, p->reg), p->is_wide);
        return p->is_register;
    case 0x8b: // mov reg, rm
        *ret_range = cut(p->is_register ? value_of(v, p->rm) : anything, p->is_wide);
        return true;
    case 0x8d: // lea
        *ret_range = (ValueRange){insn->target, insn->target};
        return insn->memory == MEMORY_RIP && p->is_wide;
    case 0x81:
    case 0x83:
        imm = insn_imm(insn);
        *ret_reg = p->rm;
        *ret_range = imm < 0 ? cut(anything, p->is_wide) : (ValueRange){0, (u64)imm};
        return p->is_register && group == AND;
    case 0xc1:
        imm = insn_imm(insn) & (p->is_wide ? 63 : 31);
        *ret_reg = p->rm;
        *ret_range = (ValueRange){0, cut(value_of(v, p->rm), p->is_wide).high >> imm};
        return p->is_register && group == SHR;
    default: return false;
    }
}

static void note_comparison(Values *v, const ToolInsn *insn, const Parts *p)
{
    enum { CMP = 7 };
    if (p->is_long || (p->opcode != 0x81 && p->opcode != 0x83) || !p->is_register ||
        (p->reg & 7) != CMP || insn_imm(insn) < 0)
        return;
    v->compared.reg = p->rm;
    v->compared.is_wide = p->is_wide;
    v->compared.limit = (u64)insn_imm(insn);
}

// The same of `cmp eax, constant` and `and eax, constant`, which have a form of their own.
static bool is_of_rax(const ToolInsn *insn, Parts *ret_parts)
{
    bool is_wide = insn->bytes[0] == 0x48;
    u8 opcode = insn->bytes[is_wide];
    if (opcode != 0x25 && opcode != 0x3d)
        return false;
    *ret_parts = (Parts){0x81, false, is_wide, true, opcode == 0x25 ? 4 : 7, RAX};
    return true;
}

// Behind `cmp reg, constant ; ja elsewhere`, or jae.
static void note_branch(Values *v, const ToolInsn *insn)
{
    enum { JAE = 3, JA = 7 };
    u8 reg = v->compared.reg;
    u64 limit = v->compared.limit;
    if (reg == INSN_NO_REG || (insn->condition != JA && (insn->condition != JAE || !limit)) ||
        (!v->compared.is_wide && value_of(v, reg).high > UINT32_MAX))
        return;
    limit -= insn->condition == JAE;
    if (limit < value_of(v, reg).high)
        set_value(v, reg, (ValueRange){0, limit});
}

// Instructions that result_of() and note_comparison() know: all others only overwrite.
static bool says_values(u16 mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_MOV || mnemonic == ZYDIS_MNEMONIC_LEA ||
           mnemonic == ZYDIS_MNEMONIC_CMP || mnemonic == ZYDIS_MNEMONIC_MOVZX ||
           mnemonic == ZYDIS_MNEMONIC_AND || mnemonic == ZYDIS_MNEMONIC_SHR;
}

static void note_insn(Values *v, const ToolInsn *insn, u32 written)
{
    Parts parts;
    ValueRange range;
    u8 reg;
    if (insn->lowering == LOWER_JCC) {
        note_branch(v, insn);
        return;
    }
    bool is_plain = says_values(insn->mnemonic) &&
                    (take_apart(insn, &parts) || (!insn->modrm_at && is_of_rax(insn, &parts)));
    bool is_known = is_plain && result_of(v, insn, &parts, &reg, &range);
    if (insn->flags || (v->compared.reg != INSN_NO_REG && written >> v->compared.reg & 1))
        v->compared.reg = INSN_NO_REG;
    v->known &= ~written;
    if (is_known)
        set_value(v, reg, range);
    if (is_plain)
        note_comparison(v, insn, &parts);
}

// ------------------------------------------------------------------------- memory

enum { SPAN_MAX = 16 * KiB };

// Where the first byte of the operand may lie. False: anywhere.
static bool find_span(const Values *v, const ToolInsn *insn, const ToolAccess *access,
                      ValueRange *ret_span)
{
    const InsnAddress *a = &access->address;
    if (a->base != INSN_NO_REG && !(v->known >> a->base & 1))
        return false;
    i64 disp = a->disp + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    ValueRange base = a->base == INSN_NO_REG ? (ValueRange){0, 0} : value_of(v, a->base);
    ValueRange index = a->index == INSN_NO_REG ? (ValueRange){0, 0} : value_of(v, a->index);
    if (base.high > SHADOWED_END || index.high > SPAN_MAX || base.high - base.low > SPAN_MAX)
        return false;
    *ret_span = (ValueRange){base.low + index.low * a->scale + (u64)disp,
                             base.high + index.high * a->scale + (u64)disp};
    return ret_span->low <= ret_span->high && ret_span->high - ret_span->low <= SPAN_MAX;
}

static bool is_plain_load(const ToolAccess *access)
{
    const InsnAddress *a = &access->address;
    return access->reads && !access->writes && access->is_plain && a->is_one && !a->segment &&
           !a->is_narrow;
}

void plan_constants(Plan *plan)
{
    Values values;
    values.known = 0;
    values.compared.reg = INSN_NO_REG;
    for (u32 i = 0; i < plan->count; i++) {
        PlanInsn *at = &plan->insns[i];
        for (unsigned k = 0; k < at->named; k++) {
            if (is_plain_load(&at->accesses[k]) &&
                find_span(&values, at->insn, &at->accesses[k], &at->spans[k]))
                at->has_span |= (u8)(1u << k);
        }
        note_insn(&values, at->insn, at->gprs_written);
    }
}

bool constants_has(Plan *plan, const PlanInsn *at, unsigned access)
{
    ValueRange span = at->spans[access];
    if (!(at->has_span >> access & 1))
        return false;
    const Mapping *mapping = aspace_find(span.low);
    GuestAddr end = span.high + at->accesses[access].size_bytes;
    if (!mapping || end > mapping->end || mapping->prot & PROT_WRITE ||
        !(mapping->prot & PROT_READ) || shadow_first_undefined(span.low, end - span.low) < end)
        return false;
    constants_note(mapping->start, mapping->end);
    tool_depends_on(plan->block, span.low, end);
    return true;
}
