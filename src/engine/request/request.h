// SPDX-License-Identifier: MIT
//
// Client requests: what a program asks of the engine it runs on, by a sequence of
// instructions that does nothing on a CPU. Sequence and numbers are those of the
// incumbent's valgrind.h, because compilers, runtimes and libraries encode them by
// hand. The decoder takes the sequence for one instruction (LOWER_REQUEST), the
// block leaves by EXIT_REQUEST, and request_run() does what requests.def says.
//
// What must stay true
//   Q1  A request changes rdx (or rax, by its kind), pc, and what it is about;
//       nothing else of the client's state.
//   Q2  Every address in a request is the client's word: read and written through
//       guest_read() and guest_write() only. What cannot be read has the default result.
//   Q3  Nobody asks twice: a request that no one knows has the default result.
#ifndef MUNINN_ENGINE_REQUEST_REQUEST_H
#define MUNINN_ENGINE_REQUEST_REQUEST_H

#include "engine/ctx/ctx.h"

// `verbose`: requests that nobody knows are noted, once each.
void request_init(bool verbose);
void request_set_verbose(bool verbose);

// After EXIT_REQUEST.
void request_run(ThreadCtx *ctx);

// Around a fork: the child has no half line of its parent's.
void request_fork_prepare(void);
void request_fork_done(bool in_child);

// ------------------------------------------------------------------------ text

// No line that the hook is given is longer; the rest comes as the next one.
#define REQUEST_LINE_MAX 960

// A line that the client printed, without its newline. The context is not 0 for the
// last line of a request that wants a backtrace, if there are call stacks. Writes to
// the log unless replaced. Called under a lock that a fork takes after engine_lock, so it
// must not take that one.
extern void (*request_text_hook)(ThreadCtx *ctx, const char *text, u32 context);

// The client prints lines in pieces. Whoever writes something of its own, or ends
// the process, lets the piece out first.
void request_text_flush(ThreadCtx *ctx);

// -------------------------------------------------------- answered by others

// Runs a function of the client's (tool_call_client()). Always set.
extern bool (*request_call_hook)(ThreadCtx *ctx, GuestAddr function, const u64 *args,
                                 unsigned count, u64 *ret_result);

// Errors found so far; NULL: nobody counts, 0.
extern u64 (*request_error_count)(void);

// Performs a command that may also come from outside. False: it is unknown.
extern bool (*request_monitor_hook)(ThreadCtx *ctx, const char *command);

// Changes an option while the program runs. False: it cannot be changed, and why.
extern bool (*request_option_hook)(ThreadCtx *ctx, const char *option, char *ret_error,
                                   size_t error_size);

// Writes "file:line" of a code address, or "" if that is not known.
#define REQUEST_PLACE_MAX 64
extern void (*request_place_hook)(ThreadCtx *ctx, GuestAddr pc, char ret_text[REQUEST_PLACE_MAX]);

// True while the thread has asked for no reports.
static inline bool request_errors_disabled(const ThreadCtx *ctx)
{
    return ctx->relay.errors_disabled != 0;
}

// ----------------------------------------------------------- registered stacks

// The registered stack that `address` lies on: both ends belong to it.
bool request_find_stack(GuestAddr address, GuestAddr *ret_lowest, GuestAddr *ret_highest);

#endif
