// SPDX-License-Identifier: MIT
//
// --trace: events as they happen, one line each, into the log.
//
// A line begins with what was asked for ("blocks:", "plan:", "calls:", "signals:",
// "syscalls:") and, but for blocks and plans, the thread. The tool writes the plans
// (TRACE_PLAN). The hooks are called as
//     if (UNLIKELY(trace_bits & TRACE_X))
//         trace_x(...);
// so that a run without the option pays one test of a word that never changes.
// Lines are written while locks may be held: whoever reads them must not wait
// for the client to go on.
#ifndef MUNINN_ENGINE_TRACE_TRACE_H
#define MUNINN_ENGINE_TRACE_TRACE_H

#include "engine/cache/cache.h"
#include "engine/ctx/ctx.h"
#include "engine/decode/decode.h"
#include "launch/options.h"

extern u32 trace_bits; // TRACE_* of launch/options.h

// After gateway_init(). `verbose` adds listings to blocks.
void trace_init(u32 bits, bool verbose);

// A block is finished. Engine lock held.
void trace_block(const Block *block, const Insn *insns, unsigned count);

// An instruction of the client as a line: its address, its bytes, its text.
void trace_guest(const Insn *insn, void (*put)(const char *line));

// Whether `insn` is a call or a return. trace_on_call() is to be called before it then, as a
// ToolCallFn (toolapi/toolapi.h) with the guest pc as `arg`.
bool trace_wants_call(const Insn *insn);
void trace_on_call(ThreadCtx *ctx, u64 arg, GuestAddr address);

void trace_syscall(const ThreadCtx *ctx, u64 nr, const u64 args[6]);
void trace_syscall_result(const ThreadCtx *ctx, u64 nr, i64 result);

// The kernel gave it to us, or the client's own code caused it.
void trace_signal_arrival(const ThreadCtx *ctx, const siginfo_t *info);
// It takes effect; `handler` is the client's action: 0 default, 1 ignored.
void trace_signal_delivery(const ThreadCtx *ctx, int sig, GuestAddr handler);
// The client's state is the frame's again.
void trace_sigreturn(const ThreadCtx *ctx);

#endif
