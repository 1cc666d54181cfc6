// SPDX-License-Identifier: MIT
//
// The life of one client thread on the synthetic CPU: its context, the
// gateways between emitted code and C, and the loop that connects them.
//
// Glossary
//   cache    the code cache; emitted code runs in it with every general,
//            vector and flag register holding the client's own value
//   gateway  code emitted once at start that saves or loads the client's
//            registers and switches stacks: the only doors of the cache
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
//       synchronous signals, except while `gateway.pending_signal` is set: then every
//       asynchronous signal is blocked until it has been delivered; and except
//       in system calls that may sleep, which nothing can fault in.
//   R4  A thread that holds the engine lock reads client memory only through
//       guest_read(), writes none, and never blocks on a client event.
#ifndef MUNINN_ENGINE_RUN_RUN_H
#define MUNINN_ENGINE_RUN_RUN_H

#include <signal.h>
#include <stddef.h>

#include "base/futex_lock.h"
#include "base/registers_x64.h"
#include "base/types.h"
#include "engine/ctx/ctx.h"

#define FLAG_TF 0x100u
#define FLAG_DF 0x400u
#define FLAG_AC 0x40000u

// The shadow call stack is kept: for a tool with TOOL_NEEDS_CALLSTACK, or for what the
// engine itself reports. Set before the first block is translated.
extern bool callstack_wanted;

// One lock for the shape of the client's address space and for translation.
// Held for microseconds; execution in the cache never takes it.
extern Lock engine_lock;

// Runs the client from ctx->pc for ever: the thread leaves through
// thread_exit()/process_exit() only.
_Noreturn void run_thread(ThreadCtx *ctx);

// Runs the client from ctx->pc until it returns to RUN_NOWHERE, an address that the caller
// has put at `slot` of its stack, and there is no signal to deliver. `old_sp` is the client's
// stack pointer before the call. If the client leaves the call in another way (longjmp), this does
// not return: the loop that it was called from goes on, and the frames between are dropped.
void run_until_return(ThreadCtx *ctx, GuestAddr slot, u64 old_sp);

// A thread with makes_last_call wants to make a system call. True: like any other; else this is the
// answer (last_call.h).
bool last_call_permits(u64 nr, const u64 args[6]);
i64 last_call_answer(u64 nr, const u64 args[6]);

// An address at which the client can have no code: where functions that the
// engine calls return to.
#define RUN_NOWHERE (GATEWAY_START + GATEWAY_SIZE - 1)

// --stress=signals: now and then a thread is single-stepped for some host
// instructions after it has entered the cache, and taken out wherever it is then.
extern bool stress_signals;
void stress_maybe_step(ThreadCtx *ctx); // before entering; light

// ------------------------------------------------------- start, end and failure

struct Options;

// --trace-children: remembers the engine's own executable and hooks execve.
void follow_init(const struct Options *options);
void follow_thread_end(void); // gives back what the calling thread needed for that

// Installs the crash report for panics and for faults of engine code.
void crash_init(void);

// --stats: prints the counters; keeps those of a thread beyond its end.
void stats_init(void);
void stats_print(void);
void stats_thread_end(ThreadCtx *ctx);

// ---------------------------------------------------------------- gateways

// Everything emitted lives in [CACHE_START, CACHE_END) of aspace.h: first the
// gateways, then the lookup table of indirect branches, then blocks.
#define GATEWAY_START 0x60000000ull
#define GATEWAY_SIZE 0x4000ull

void gateway_init(void);

// For emitted jumps: where the cache is left for `reason`, and where an
// indirect branch goes whose target is not in the lookup table (rcx is the
// guest target; rcx of the client is in ctx->translate.spill, and rax or, with TOOL_LOOSE_FLAGS,
// r11).
CodePtr gateway_leave(ExitReason reason);
CodePtr gateway_lookup_miss(void);
// A return that has no landing: the guest target is at [rsp - 8] and in r11, which is spilled.
CodePtr gateway_return_by_table(void);
// One that is not in the table: the guest target is at [rsp - 8], only rcx, or r11, is spilled.
CodePtr gateway_return_miss(void);
CodePtr gateway_far_return_miss(void);
// Tool.store_map: rax is the address and spilled, call_return where to go on, flags are dead.
// NULL: not for this size.
CodePtr gateway_store(u32 size);
// Where Tool.store_map stands, within 31 bits.
CodePtr gateway_store_map(void);

// Look ctx->pc and the thread's state (the first word of tool.state) up in the version table:
// after a guard has failed, at a
// direct exit, and for an indirect branch, whose target is rcx, with rax and rcx spilled.
CodePtr gateway_version_guard(void);
CodePtr gateway_version_exit(void);
CodePtr gateway_version_indirect(void);
CodePtr gateway_version_miss(void);

// Where emitted code calls call_fn(ctx, call_arg, call_address) and goes on at
// call_return with everything preserved.
CodePtr gateway_tool_call(void);
// For code with dead flags, which has spilled rax and put the address of one of these there.
typedef struct GatewayCall {
    u64 fn, arg, back;
    u64 brief; // a ToolBriefFn, for the brief call; others end before it
} GatewayCall;
CodePtr gateway_quick_call(void);
CodePtr gateway_brief_call(void);

// The components of the client's vector state that the gateways save and load.
u64 gateway_xsave_mask(void);

// The lowest-level system call on behalf of the client, for calls that may
// block or be interrupted. A signal that arrives before the kernel has begun,
// or for which the kernel asks to restart the call, makes this return
// GATEWAY_RESTART: deliver the signal with the client's pc at its `syscall`
// instruction and all its registers as before the call.
i64 gateway_syscall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);
#define GATEWAY_RESTART (-5000)

// Where in the gateways a host pc lies; signal/ decides by it what to do.
typedef enum GatewayPlace {
    GATEWAY_NOT,            // not in a gateway
    GATEWAY_ENTERING,       // about to enter the cache: set host rip to gateway_abort_pc()
    GATEWAY_RESUMING,       // same, returning from a light exit: also gateway_abort_pc()
    GATEWAY_SYSCALL_BEFORE, // at or before the `syscall`: set rip to gateway_restart_pc()
    GATEWAY_LEAVING,        // anything else in the gateways: C will see pending_signal soon
    GATEWAY_TOOL_CALL,      // the same; sets TF and `stepping` itself if a signal is pending
    GATEWAY_TOOL_RETURN,    // on the way back into a block: single-step on
    GATEWAY_LOOKUP,         // the same: from one block to the next through the version table
} GatewayPlace;

GatewayPlace gateway_place(u64 host_pc);
u64 gateway_abort_pc(GatewayPlace place);
u64 gateway_restart_pc(void);

// Host pc and stack at which a handler resumes a thread that it took out of the
// cache by itself: it has stored the client's complete state in ctx (R2), sets
// ctx->gateway.exit_reason, and returns to this pc with rsp = ctx->gateway.engine_rsp.
u64 gateway_taken_out_pc(void);

#endif
