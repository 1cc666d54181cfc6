// SPDX-License-Identifier: MIT
//
// Performing the client's system calls.
#ifndef MUNINN_ENGINE_SYSCALL_DISPATCH_H
#define MUNINN_ENGINE_SYSCALL_DISPATCH_H

#include "engine/run/run.h"

// Performs the call whose number and arguments are in the client's registers;
// ctx->pc is behind the `syscall` instruction. A call that must be repeated
// after a signal handler leaves pc at the instruction again.
void syscall_run(ThreadCtx *ctx);

#endif
