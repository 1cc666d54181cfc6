// SPDX-License-Identifier: MIT
//
// gen FILE [SEED [VARIANTS]]: writes the cases of the instruction tests: some instances of every
// form, bytes that are no instruction, and the hand-written traps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operands.h"
#include "traps.h"

#define SLOT_BYTES 128
#define INVALID_CASES 3000

static Where choose_where(u64 *rng)
{
    static const Where menu[] = {
        WHERE_ANY,     WHERE_ANY,       WHERE_ALIGNED,   WHERE_ALIGNED,  WHERE_ALIGNED,
        WHERE_ALIGNED, WHERE_ANY,       WHERE_CROSS,     WHERE_CROSS,    WHERE_INTO_NONE,
        WHERE_NONE,    WHERE_READ_ONLY, WHERE_READ_ONLY, WHERE_UNMAPPED, WHERE_NON_CANONICAL,
        WHERE_NULL,
    };
    return menu[rng_below(rng, ARRAY_LEN(menu))];
}

static bool one_case(CaseWriter *w, const Form *form, u64 *rng, Where where)
{
    CaseBuilder c;
    Insn insn;
    Choice choice = { .rng = rng };
    if (!form_instantiate(form, &choice, &insn))
        return false;
    case_begin(&c, rng_next(rng));
    if (rng_one_in(rng, 6))
        c.head.traits |= CASE_FP_TRAPS;
    if (!operands_place(&c, &insn, 0, where, rng))
        return false;
    c.head.flags_mask = insn_defined_flags(&insn);
    case_code_add(&c, insn.bytes, insn.len_bytes);
    case_exit(&c, false);
    case_end(w, &c, casefile_group(w, ZydisISASetGetString(form->isa)));
    return true;
}

// The first instances are tame, so that every form is seen doing its work and not only faulting.
static void cases_of_form(CaseWriter *w, const Form *form, u64 *rng, u32 variants)
{
    u32 made = 0;
    u32 wanted = form->is_mem ? 2 * variants : variants;
    for (u32 attempt = 0; made < wanted && attempt < 4 * wanted; attempt++)
        made += one_case(w, form, rng, made < variants / 2 ? WHERE_ALIGNED : choose_where(rng));
    if (!made)
        fprintf(stderr, "gen: no case for %s (%s)\n", ZydisMnemonicGetString(form->mnemonic),
                ZydisISASetGetString(form->isa));
}

static u32 operand_bytes_at(const Insn *insn)
{
    if (insn->info.raw.disp.size)
        return insn->info.raw.disp.offset;
    if (insn->info.raw.imm[0].size)
        return insn->info.raw.imm[0].offset;
    return insn->len_bytes;
}

// A valid instruction with one bit of its opcode, prefixes or ModRM turned, such that the decoder
// rejects it. What follows is int3, and all registers point into the arena, lest a CPU that knows
// more than the decoder does harm.
static bool invalid_case(CaseWriter *w, const Form *form, u64 *rng, u16 group)
{
    CaseBuilder c;
    Insn insn, other;
    u8 bytes[INSN_MAX];
    Choice choice = { .rng = rng, .plain = true };
    if (!form_instantiate(form, &choice, &insn))
        return false;
    u32 len_bytes = operand_bytes_at(&insn);
    memset(bytes, 0xcc, sizeof(bytes));
    memcpy(bytes, insn.bytes, len_bytes);
    bytes[rng_below(rng, len_bytes)] ^= (u8)(1 << rng_below(rng, 8));
    if (insn_decode(bytes, sizeof(bytes), &other))
        return false;
    case_begin(&c, rng_next(rng));
    for (u32 i = 0; i < 16; i++)
        case_set(&c, SET_GPR, i, BASE_DATA, 0xc00 + 16 * (i64)i);
    case_code_add(&c, bytes, sizeof(bytes));
    case_exit(&c, false);
    case_end(w, &c, group);
    return true;
}

static void invalid_cases(CaseWriter *w, const Form *forms, u32 n_forms, u64 *rng)
{
    u16 group = casefile_group(w, "bytes that are no instruction");
    for (u32 made = 0; made < INVALID_CASES;)
        made += invalid_case(w, &forms[rng_below(rng, n_forms)], rng, group);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gen FILE [SEED [VARIANTS]]\n");
        return 2;
    }
    u64 rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    u32 variants = argc > 3 ? (u32)strtoul(argv[3], NULL, 0) : 4;
    u32 n_forms;
    Form *forms = forms_enumerate(&n_forms);
    CaseWriter *w = casefile_create(argv[1], SLOT_BYTES);
    for (u32 i = 0; i < n_forms; i++)
        cases_of_form(w, &forms[i], &rng, variants);
    invalid_cases(w, forms, n_forms, &rng);
    traps_write(w, &rng);
    casefile_close(w);
    fprintf(stderr, "gen: %u forms\n", n_forms);
    free(forms);
    return 0;
}
