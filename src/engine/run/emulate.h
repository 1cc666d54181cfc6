// SPDX-License-Identifier: MIT
//
// The instructions that C performs; private to run/.
#ifndef MUNINN_ENGINE_RUN_EMULATE_H
#define MUNINN_ENGINE_RUN_EMULATE_H

#include "engine/run/run.h"

// Performs the instruction at ctx->pc (LOWER_EMULATE) and advances pc, or raises
// the signal that the hardware would.
void emulate_insn(ThreadCtx *ctx);

#endif
