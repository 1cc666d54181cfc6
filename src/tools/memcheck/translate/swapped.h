// SPDX-License-Identifier: MIT
//
// `a && b`, tested the other way round. A compiler may do so if both can be computed at any time,
// and b then is tested although it is undefined, as long as a decides what follows:
//
//     test b ; jne X ; test a ; jne Y ; X:
//
// Where a is defined and leads to X, that b is undefined changes nothing, and is not reported.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_SWAPPED_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_SWAPPED_H

#include "tools/memcheck/memcheck.h"

// The step of a conditional jump, if there is another test behind one of its two ways; the block
// then depends on that, too. Engine lock held.
void swapped_step(ToolBlock *block, const ToolInsn *jump, ToolStep *step);

#endif
