// SPDX-License-Identifier: MIT
//
// --inject: faults in the client's system calls, for tests of programs. A rule names system calls
// and what happens at them, in strace's words. A program that is executed begins to count anew.
//
// What must stay true
//   I1  A call that is made to fail is not performed: the kernel, the address space and the tool's
//       picture of memory are as they were before it.
//   I2  A call counts once, even if it is restarted because a signal came first.
#ifndef MUNINN_ENGINE_PERFORM_INJECT_H
#define MUNINN_ENGINE_PERFORM_INJECT_H

#include "engine/ctx/ctx.h"

extern bool inject_is_on;

// To be called when a system call begins: waits and sends signals as the rules say. True: the call
// must not be performed, and the client gets *ret_result.
bool inject_enter(ThreadCtx *ctx, u64 nr, i64 *ret_result);
// To be called when it ends. `is_restarted`: it was not performed, and will come again.
void inject_leave(ThreadCtx *ctx, u64 nr, bool is_restarted);

#endif
