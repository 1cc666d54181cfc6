// SPDX-License-Identifier: MIT
//
// Client requests: a program asks something of the engine that it runs on, by a sequence of
// instructions that does nothing on a CPU. Sequence and numbers are those of the
// incumbent's valgrind.h, because compilers, runtimes and libraries encode them by
// hand. The decoder takes the sequence for one instruction (LOWER_REQUEST), the
// block leaves by EXIT_REQUEST, and request_run() does what requests.def says.
//
// What must stay true
//   Q1  A request changes rdx (or rax, by its kind), pc, and the thing that it is
//       about; it changes nothing else of the client's state.
//   Q2  The engine trusts no address in a request: it reads and writes through
//       guest_read() and guest_write() only. If memory cannot be read, the request has
//       its default result.
//   Q3  A request that neither the engine nor the tool knows has its default result.
#ifndef MUNINN_ENGINE_REQUEST_REQUEST_H
#define MUNINN_ENGINE_REQUEST_REQUEST_H

#include "engine/ctx/ctx.h"

// With `verbose` each unknown request is noted once in the log.
void request_init(bool verbose);
void request_set_verbose(bool verbose);

// To be called after EXIT_REQUEST.
void request_run(ThreadCtx *ctx);

// To be called around a fork, so that the child does not begin with half a line of its parent's.
void request_fork_prepare(void);
void request_fork_done(bool in_child);

// ------------------------------------------------------------------------ text

// The longest line that the hook gets; the rest of a longer line comes as the next one.
#define REQUEST_LINE_MAX 960

// A line that the client printed, without its newline. The context is not 0 for the
// last line of a request that wants a backtrace, if there are call stacks. Writes to
// the log unless replaced. Called under a lock that a fork takes after engine_lock, so it
// must not take that one.
extern void (*request_text_hook)(ThreadCtx *ctx, const char *text, u32 context);

// Prints the piece of a line that the client has printed so far. To be called by code that writes a
// line of its own, or ends the process.
void request_text_flush(ThreadCtx *ctx);

// -------------------------------------------------------- answered by other folders

// Runs a function of the client's (tool_call_client()). Always set.
extern bool (*request_call_hook)(ThreadCtx *ctx, GuestAddr function, const u64 *args,
                                 unsigned count, u64 *ret_result);

// The number of errors found so far; NULL: 0.
extern u64 (*request_error_count)(void);

// Performs a command that `muninn ctl` may also give. False: it is unknown.
extern bool (*request_monitor_hook)(ThreadCtx *ctx, const char *command);

// Changes an option while the program runs. False: it cannot be changed; ret_error says why.
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

// Finds the registered stack that `address` lies on. Both ends belong to the stack.
bool request_find_stack(GuestAddr address, GuestAddr *ret_lowest, GuestAddr *ret_highest);

#endif
