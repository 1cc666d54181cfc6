// SPDX-License-Identifier: MIT
//
// The instructions that C performs; private to run/.
#ifndef MUNINN_ENGINE_RUN_EMULATE_H
#define MUNINN_ENGINE_RUN_EMULATE_H

#include "engine/decode/decode.h"
#include "engine/run/run.h"

// Performs the instruction at ctx->pc (LOWER_EMULATE) and advances pc, or raises
// the signal that the hardware would.
void emulate_insn(ThreadCtx *ctx);

// If pc is an entry of the kernel's old vsyscall page, in the upper half of the
// address space: performs the call, returns to the caller, and says so.
bool emulate_vsyscall(ThreadCtx *ctx);

// Finds where the indirect branch or return at `pc` would lead now. The `bytes` of *ret_insn are
// NULL. False: there is no such instruction at `pc`, or its operand cannot be read.
bool emulate_branch_operand(ThreadCtx *ctx, GuestAddr pc, Insn *ret_insn, u64 *ret_value);

// To be called when an indirect branch has taken ctx to an address that is not canonical: hardware
// makes the branch itself fault. Gives ctx the state it had before the branch, if the branch can be
// found (branch_fault.c).
void branch_fault_rewind(ThreadCtx *ctx);

#endif
