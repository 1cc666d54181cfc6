// SPDX-License-Identifier: MIT
//
// --inject: faults in the client's system calls, for tests of programs. A rule names calls and what
// is to happen at them; the words are strace's. A program that is executed counts anew.
//
// What must stay true
//   I1  A call that is made to fail is not performed: the kernel, the address space and the tool's
//       picture of memory are as they were before it.
//   I2  A call counts once, also when it is restarted because a signal came first.
#ifndef MUNINN_ENGINE_PERFORM_INJECT_H
#define MUNINN_ENGINE_PERFORM_INJECT_H

#include "engine/ctx/ctx.h"

extern bool inject_is_on;

// At the beginning of a call: waits, sends signals. True: the call is not to be performed, and
// *ret_result is what the client gets.
bool inject_enter(ThreadCtx *ctx, u64 nr, i64 *ret_result);
// At its end. `is_restarted`: it has not been performed, and will come again.
void inject_leave(ThreadCtx *ctx, u64 nr, bool is_restarted);

#endif
