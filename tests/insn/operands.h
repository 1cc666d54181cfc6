// SPDX-License-Identifier: MIT
//
// Gives the registers of an instruction values that make its memory operands point where a case
// wants them to point: into an arena, across a page boundary, at nothing.
#ifndef MUNINN_TESTS_INSN_OPERANDS_H
#define MUNINN_TESTS_INSN_OPERANDS_H

#include "casefile.h"
#include "forms.h"

typedef enum Where {
    WHERE_ANY,       // anywhere in the arena
    WHERE_ALIGNED,   // the same, aligned to 64 bytes
    WHERE_CROSS,     // over the boundary between two usable pages
    WHERE_INTO_NONE, // the last bytes are on a PROT_NONE page
    WHERE_NONE,
    WHERE_READ_ONLY,
    WHERE_UNMAPPED,
    WHERE_NON_CANONICAL,
    WHERE_NULL,
} Where;

// Adds the sets and fixes that `insn`, which starts at `at` in the code of the case, needs.
// False if the instruction cannot be used with this kind of operand.
bool operands_place(CaseBuilder *c, const Insn *insn, u32 at, Where where, u64 *rng);

bool insn_has_memory(const Insn *insn);

#endif
