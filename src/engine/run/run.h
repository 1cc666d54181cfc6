// SPDX-License-Identifier: MIT
//
// The life of one client thread on the synthetic CPU: the loop that enters the cache and does what
// the thread has left it for.
//
// Glossary
//   cache    the code cache; emitted code runs in it with every general,
//            vector and flag register holding the client's own value
//   gateway  code emitted once at start that saves or loads the client's
//            registers and switches stacks: the only doors of the cache (gateway/)
//   boundary a point of the cache where the registers are exactly the client's
//            before some guest instruction, nothing spilled
//   exit     leaving the cache; a light exit keeps the vector state in the
//            registers (only general-register C runs), a full exit saves it
//
// What must stay true
//   R1  %fs is the engine's everywhere, so `thread_ctx` is reachable as
//       fs:[constant] from emitted code and from any signal handler.
//   R2  While a thread is outside the cache after a full exit, its whole client
//       state is in its ThreadCtx: gpr, pc, flags, xsave, client_fs, client_gs.
//       TF in flags is the client's own, never ours.
//   R3  The kernel's signal mask is the client's mask without the five
//       synchronous signals, with two exceptions. While `gateway.pending_signal` is set, every
//       asynchronous signal is blocked until the pending one has been delivered. In system
//       calls that may sleep the mask may hold synchronous signals too: no instruction of the
//       client can fault there.
//   R4  A thread that holds the engine lock reads client memory only through
//       guest_read(), writes none, and never blocks on a client event.
#ifndef MUNINN_ENGINE_RUN_RUN_H
#define MUNINN_ENGINE_RUN_RUN_H

#include "base/types.h"
#include "engine/ctx/ctx.h"

// Runs the client from ctx->pc for ever: the thread leaves through
// thread_exit()/process_exit() only.
void run_thread(ThreadCtx *ctx) __attribute__((noreturn)); // the value of thread_run_hook

// Runs the client from ctx->pc until it returns to GATEWAY_NOWHERE, an address that the caller
// has put at `slot` of its stack, and there is no signal to deliver. `old_sp` is the client's
// stack pointer before the call. If the client leaves the call in another way (longjmp), this does
// not return: the loop that it was called from goes on, and the frames between are dropped.
void run_until_return(ThreadCtx *ctx, GuestAddr slot, u64 old_sp);

// --stress=validate: walks the engine's tables and panics at the first that contradicts another.
// NULL: nobody asked for that. The loop calls it at safe points, that is outside the cache and with
// no lock held: often at first, and ever more rarely, for a walk takes milliseconds.
extern void (*run_validate_hook)(ThreadCtx *ctx);

// With signal_stress, to be called before a thread enters the cache: now and then starts to
// single-step it. Safe in a light exit (uses general registers only).
void stress_maybe_step(ThreadCtx *ctx);

// Called by the leaving gateway on a light exit (GatewayLightFn).
CodePtr run_light(void);

// ------------------------------------------------------- start, end and failure

struct Options;

// --trace-children: remembers the engine's own executable and hooks execve.
void follow_init(const struct Options *options);
void follow_thread_end(void); // frees the memory that the calling thread used for its execve

// Installs the crash report for panics and for faults of engine code.
void crash_init(void);

// --stats: stats_print() prints the counters, those of threads that have ended included:
// stats_thread_end() adds them to the sums.
void stats_init(void);
void stats_print(void);
void stats_thread_end(ThreadCtx *ctx);

#endif
