// SPDX-License-Identifier: MIT
//
// See known.h.
#include "tools/memcheck/translate/known.h"

void known_nothing(Known *known)
{
    known->next = known->used = known->gprs = 0;
}

static KnownFact fact_of(const ToolInsn *insn, const ToolAccess *access)
{
    const InsnAddress *a = &access->address;
    KnownFact fact = {{{a->base, a->index, a->index == INSN_NO_REG ? 0 : a->scale, a->segment}},
                 a->disp, access->is_plain && !a->is_narrow ? access->size_bytes : 0};
    if (a->is_rip)
        fact.disp += (i64)(insn->pc + insn->len);
    if (insn->mnemonic == ZYDIS_MNEMONIC_PUSH && a->is_hidden)
        fact.disp -= (i64)access->size_bytes;
    else if (insn->mnemonic != ZYDIS_MNEMONIC_POP && a->is_hidden)
        fact.size = 0; // pushf, enter: not where rsp is
    return fact;
}

bool known_defined(const Known *known, const ToolInsn *insn, const ToolAccess *access)
{
    KnownFact wanted = fact_of(insn, access);
    for (u32 i = 0; i < known->used && wanted.size; i++) {
        const KnownFact *f = &known->facts[i];
        if (f->registers == wanted.registers && wanted.disp >= f->disp &&
            wanted.disp + wanted.size <= f->disp + f->size)
            return true;
    }
    return false;
}

void known_add(Known *known, const ToolInsn *insn, const ToolAccess *access)
{
    KnownFact fact = fact_of(insn, access);
    if (!fact.size)
        return;
    known->facts[known->next] = fact;
    known->gprs |= 1u << fact.base | 1u << fact.index; // INSN_NO_REG has a bit of its own
    known->next = (known->next + 1) % KNOWN_FACTS;
    known->used = known->used < KNOWN_FACTS ? known->used + 1 : KNOWN_FACTS;
}

bool known_adds(const ToolInsn *insn, unsigned reg, i64 *ret_amount)
{
    InsnForm room;
    const InsnForm *form = insn_form(insn, &room);
    bool is_hidden = reg == RSP && insn->bytes[0] != 0x66;
    bool by_constant = form->dst == reg && form->has_imm;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: *ret_amount = -8; return is_hidden && insn->len <= 7;
    case ZYDIS_MNEMONIC_POP: *ret_amount = 8; return is_hidden && form->dst != RSP;
    case ZYDIS_MNEMONIC_ADD: *ret_amount = insn_imm(insn); return by_constant;
    case ZYDIS_MNEMONIC_SUB: *ret_amount = -insn_imm(insn); return by_constant;
    case ZYDIS_MNEMONIC_INC: *ret_amount = 1; return form->dst == reg;
    case ZYDIS_MNEMONIC_DEC: *ret_amount = -1; return form->dst == reg;
    case ZYDIS_MNEMONIC_LEA:
        *ret_amount = insn_disp(insn);
        return form->dst == reg && form->lea_base == reg && !form->lea_indexed;
    default: return false;
    }
}

// `written`: the registers that the instruction writes.
static void fact_after(KnownFact *f, const ToolInsn *insn, u32 written)
{
    i64 amount = 0;
    if (f->index != INSN_NO_REG && written >> f->index & 1)
        f->size = 0;
    if (f->base == INSN_NO_REG || !(written >> f->base & 1))
        return;
    if (!known_adds(insn, f->base, &amount))
        f->size = 0;
    f->disp -= amount;
    if (f->base == RSP && f->disp < 0) // it is marked again as it is left
        f->size = 0;
}

void known_after(Known *known, const ToolInsn *insn, u32 written)
{
    for (u32 i = 0; i < known->used && written & known->gprs; i++) {
        if (known->facts[i].size)
            fact_after(&known->facts[i], insn, written);
    }
}
