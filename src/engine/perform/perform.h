// SPDX-License-Identifier: MIT
//
// Performs the client's system calls: decides who makes a call (the kernel, or the folder that
// emulates it), and tells the tool before and after. emulated.def lists what the engine performs or
// steers; every other call is passed through.
#ifndef MUNINN_ENGINE_PERFORM_PERFORM_H
#define MUNINN_ENGINE_PERFORM_PERFORM_H

#include "engine/ctx/ctx.h"

// Performs the call whose number and arguments are in the client's registers;
// ctx->pc is behind the `syscall` instruction. A call that must be repeated
// after a signal handler leaves pc at the instruction again.
void syscall_run(ThreadCtx *ctx);

// The rules of --inject: faults in the calls that syscall_run() performs. ret_error is empty if
// all of them are understood.
void inject_init(u32 count, const char *const *texts, char *ret_error, size_t size);
extern u64 inject_count; // how many faults there were

// For a system call of a thread with makes_last_call (run/last_call.h). last_call_permits():
// whether the call is performed. If it is not, last_call_answer() gives its result.
bool last_call_permits(u64 nr, const u64 args[6]);
i64 last_call_answer(u64 nr, const u64 args[6]);
// Set if such a call cannot be answered, since it would wait for somebody: then the function must
// be given up.
extern bool last_call_gives_up;

#endif
