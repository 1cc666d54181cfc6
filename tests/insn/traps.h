// SPDX-License-Identifier: MIT
//
// The hand-written cases: what translators get wrong.
#ifndef MUNINN_TESTS_INSN_TRAPS_H
#define MUNINN_TESTS_INSN_TRAPS_H

#include "casefile.h"

void traps_write(CaseWriter *writer, u64 *rng);

#endif
