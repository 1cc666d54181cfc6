// SPDX-License-Identifier: MIT
//
// gen FILE [SEED [VARIANTS]]: writes the cases of the instruction tests: some instances of every
// form, then the hand-written traps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operands.h"
#include "traps.h"

#define SLOT_BYTES 128

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
    traps_write(w, &rng);
    casefile_close(w);
    fprintf(stderr, "gen: %u forms\n", n_forms);
    free(forms);
    return 0;
}
