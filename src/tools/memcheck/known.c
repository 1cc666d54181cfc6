// SPDX-License-Identifier: MIT
//
// See known.h.
#include "tools/memcheck/known.h"

enum { FACTS = 16 };

typedef struct Fact {
    u8 base, index, scale, segment;
    i64 disp;
    u32 size; // 0: none
} Fact;

static Fact facts[FACTS];
static u32 next, used; // one after the other takes the place of the oldest

void known_nothing(void)
{
    next = used = 0;
}

static Fact fact_of(const ToolInsn *insn, const ToolAccess *access)
{
    const InsnAddress *a = &access->address;
    Fact fact = {a->base, a->index, a->index == INSN_NO_REG ? 0 : a->scale, a->segment, a->disp,
                 access->is_plain && !a->is_narrow ? access->size_bytes : 0};
    if (a->is_rip)
        fact.disp += (i64)(insn->pc + insn->len);
    if (insn->mnemonic == ZYDIS_MNEMONIC_PUSH && a->is_hidden)
        fact.disp -= (i64)access->size_bytes;
    return fact;
}

bool known_defined(const ToolInsn *insn, const ToolAccess *access)
{
    Fact wanted = fact_of(insn, access);
    for (u32 i = 0; i < used && wanted.size; i++) {
        const Fact *f = &facts[i];
        if (f->base == wanted.base && f->index == wanted.index && f->scale == wanted.scale &&
            f->segment == wanted.segment && wanted.disp >= f->disp &&
            wanted.disp + wanted.size <= f->disp + f->size)
            return true;
    }
    return false;
}

void known_add(const ToolInsn *insn, const ToolAccess *access)
{
    Fact fact = fact_of(insn, access);
    if (!fact.size)
        return;
    facts[next] = fact;
    next = (next + 1) % FACTS;
    used = used < FACTS ? used + 1 : FACTS;
}

// How far rsp goes up; false: nobody knows.
static bool stack_moves(const ToolInsn *insn, const InsnForm *form, i64 *ret_up)
{
    bool by_constant = form->dst == RSP && form->has_imm;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: *ret_up = -8; return insn->len <= 7 && insn->bytes[0] != 0x66;
    case ZYDIS_MNEMONIC_POP: *ret_up = 8; return insn->bytes[0] != 0x66 && form->dst != RSP;
    case ZYDIS_MNEMONIC_ADD: *ret_up = insn_imm(insn); return by_constant;
    case ZYDIS_MNEMONIC_SUB: *ret_up = -insn_imm(insn); return by_constant;
    default: return false;
    }
}

void known_after(const ToolInsn *insn)
{
    InsnForm room;
    const InsnForm *form = insn_form(insn, &room);
    u32 written = form->gprs_written;
    i64 up = 0;
    if (!used || !written)
        return;
    bool follows = written >> RSP & 1 && stack_moves(insn, form, &up);
    if (follows)
        written &= ~(1u << RSP);
    for (u32 i = 0; i < used; i++) {
        Fact *f = &facts[i];
        if ((f->base != INSN_NO_REG && written >> f->base & 1) ||
            (f->index != INSN_NO_REG && written >> f->index & 1) ||
            (follows && f->index == RSP))
            f->size = 0;
        if (follows && f->base == RSP) {
            f->disp -= up;
            if (f->disp < 0) // it is marked again as it is left
                f->size = 0;
        }
    }
}
