// SPDX-License-Identifier: MIT
//
// See constants.h.
#include "tools/memcheck/translate/constants.h"

#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

// ------------------------------------------------------------- values of registers

typedef struct Range {
    u64 low, high; // both may be
} Range;

static const Range anything = {0, ~0ull};
static Range ranges[16]; // of the general registers, before the next instruction

// The last comparison with a constant, as long as its flags and its register are there.
static struct {
    u8 reg; // INSN_NO_REG: none
    bool is_wide;
    u64 limit;
} compared;

void constants_begin(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(ranges); i++)
        ranges[i] = anything;
    compared.reg = INSN_NO_REG;
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

static Range cut(Range range, bool is_wide)
{
    return is_wide || range.high <= UINT32_MAX ? range : (Range){0, UINT32_MAX};
}

// What the instruction leaves in *ret_reg. False: nothing that is known.
static bool result_of(const ToolInsn *insn, const Parts *p, u8 *ret_reg, Range *ret_range)
{
    enum { AND = 4, SHR = 5 };
    u8 group = p->reg & 7;
    i64 imm;
    *ret_reg = p->reg;
    if (p->is_long) {
        *ret_range = (Range){0, p->opcode == 0xb6 ? 0xff : 0xffff};
        return insn->mnemonic == ZYDIS_MNEMONIC_MOVZX;
    }
    switch (p->opcode) {
    case 0x89: // mov rm, reg
        *ret_reg = p->rm;
        *ret_range = cut(ranges[p->reg], p->is_wide);
        return p->is_register;
    case 0x8b: // mov reg, rm
        *ret_range = cut(p->is_register ? ranges[p->rm] : anything, p->is_wide);
        return true;
    case 0x8d: // lea
        *ret_range = (Range){insn->target, insn->target};
        return insn->memory == MEMORY_RIP && p->is_wide;
    case 0x81:
    case 0x83:
        imm = insn_imm(insn);
        *ret_reg = p->rm;
        *ret_range = imm < 0 ? cut(anything, p->is_wide) : (Range){0, (u64)imm};
        return p->is_register && group == AND;
    case 0xc1:
        imm = insn_imm(insn) & (p->is_wide ? 63 : 31);
        *ret_reg = p->rm;
        *ret_range = (Range){0, cut(ranges[p->rm], p->is_wide).high >> imm};
        return p->is_register && group == SHR;
    default: return false;
    }
}

static void note_comparison(const ToolInsn *insn, const Parts *p)
{
    enum { CMP = 7 };
    if (p->is_long || (p->opcode != 0x81 && p->opcode != 0x83) || !p->is_register ||
        (p->reg & 7) != CMP || insn_imm(insn) < 0)
        return;
    compared.reg = p->rm;
    compared.is_wide = p->is_wide;
    compared.limit = (u64)insn_imm(insn);
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
static void note_branch(const ToolInsn *insn)
{
    enum { JAE = 3, JA = 7 };
    u8 reg = compared.reg;
    u64 limit = compared.limit;
    if (reg == INSN_NO_REG || (insn->condition != JA && (insn->condition != JAE || !limit)) ||
        (!compared.is_wide && ranges[reg].high > UINT32_MAX))
        return;
    limit -= insn->condition == JAE;
    if (limit < ranges[reg].high)
        ranges[reg] = (Range){0, limit};
}

void constants_after(const ToolInsn *insn)
{
    InsnForm room;
    Parts parts;
    Range range;
    u8 reg;
    if (insn->lowering == LOWER_JCC) {
        note_branch(insn);
        return;
    }
    u32 written = insn_form(insn, &room)->gprs_written;
    bool is_plain = take_apart(insn, &parts) || (!insn->modrm_at && is_of_rax(insn, &parts));
    bool is_known = is_plain && result_of(insn, &parts, &reg, &range);
    if (insn->flags || (compared.reg != INSN_NO_REG && written >> compared.reg & 1))
        compared.reg = INSN_NO_REG;
    for (; written; written &= written - 1)
        ranges[__builtin_ctz(written)] = anything;
    if (is_known)
        ranges[reg] = range;
    if (is_plain)
        note_comparison(insn, &parts);
}

// ------------------------------------------------------------------------- memory

enum { SPAN_MAX = 16 * KiB };

// Where the first byte of the operand may lie. False: anywhere.
static bool find_span(const ToolInsn *insn, const ToolAccess *access, Range *ret_span)
{
    const InsnAddress *a = &access->address;
    i64 disp = a->disp + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    Range base = a->base == INSN_NO_REG ? (Range){0, 0} : ranges[a->base];
    Range index = a->index == INSN_NO_REG ? (Range){0, 0} : ranges[a->index];
    if (base.high > SHADOWED_END || index.high > SPAN_MAX || base.high - base.low > SPAN_MAX)
        return false;
    *ret_span = (Range){base.low + index.low * a->scale + (u64)disp,
                        base.high + index.high * a->scale + (u64)disp};
    return ret_span->low <= ret_span->high && ret_span->high - ret_span->low <= SPAN_MAX;
}

bool constants_has(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    const InsnAddress *a = &access->address;
    Range span;
    if (!access->reads || access->writes || !access->is_plain || !a->is_one || a->segment ||
        a->is_narrow || !find_span(insn, access, &span))
        return false;
    const Mapping *mapping = aspace_find(span.low);
    GuestAddr end = span.high + access->size_bytes;
    if (!mapping || end > mapping->end || mapping->prot & PROT_WRITE ||
        !(mapping->prot & PROT_READ) || shadow_first_undefined(span.low, end - span.low) < end)
        return false;
    constants_note(mapping->start, mapping->end);
    tool_depends_on(block, span.low, end);
    return true;
}
