// SPDX-License-Identifier: MIT
//
// The instructions that C performs; private to run/.
#ifndef MUNINN_ENGINE_RUN_EMULATE_H
#define MUNINN_ENGINE_RUN_EMULATE_H

#include "engine/run/run.h"

// Performs the instruction at ctx->pc (LOWER_EMULATE) and advances pc, or raises
// the signal that the hardware would.
void emulate_insn(ThreadCtx *ctx);

// If pc is an entry of the kernel's old vsyscall page, in the upper half of the
// address space: performs the call, returns to the caller, and says so.
bool emulate_vsyscall(ThreadCtx *ctx);

#endif
