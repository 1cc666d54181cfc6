// SPDX-License-Identifier: MIT
//
// The hand-written cases.
#include "traps.h"

void traps_write(CaseWriter *writer, u64 *rng)
{
    (void)writer;
    (void)rng;
}
