// SPDX-License-Identifier: MIT
//
// Functions of the client that run after the client has ended: a library frees the memory that it
// holds, so that a tool does not report it as leaked. Nobody outside of the process may notice such
// a call, and it must end (docs/design/last-calls.md).
//
// What must stay true
//   L1  No system call is made on the client's behalf that has an effect outside of the
//       process; perform/last_calls.def says how each is answered.
//   L2  Nothing is stored into memory that another process may see.
//   L3  The call ends when it returns, when it would wait for somebody, when it faults, when it
//       runs on without progress, or when the user wants the process to end.
//   L4  All other threads stand still.
#ifndef MUNINN_ENGINE_RUN_LAST_CALL_H
#define MUNINN_ENGINE_RUN_LAST_CALL_H

#include "engine/run/run.h"

// At a safe point of a thread that makes such a call: whether the call must be given up now.
bool last_call_is_over(ThreadCtx *ctx);
#endif
