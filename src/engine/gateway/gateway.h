// SPDX-License-Identifier: MIT
//
// The gateways: code emitted once at start that saves or loads the client's registers and switches
// stacks. They are the only doors between emitted code and C.
#ifndef MUNINN_ENGINE_GATEWAY_GATEWAY_H
#define MUNINN_ENGINE_GATEWAY_GATEWAY_H

#include "base/types.h"
#include "engine/ctx/ctx.h"

// Everything emitted lives in [CACHE_START, CACHE_END) of aspace.h: first the
// gateways, then the lookup table of indirect branches, then blocks.
#define GATEWAY_START 0x60000000ull
#define GATEWAY_SIZE 0x4000ull

// An address at which the client can have no code: where functions that the
// engine calls return to.
#define GATEWAY_NOWHERE (GATEWAY_START + GATEWAY_SIZE - 1)

// Emits the gateways. `light` is called by the leaving gateway on the engine's stack with vector
// registers still the client's. It returns where to go on in the cache, or NULL for a full exit.
typedef CodePtr GatewayLightFn(void);
void gateway_init(GatewayLightFn *light);

// From C into the cache, with the full state from thread_ctx, and back.
void gateway_enter(CodePtr target);

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
// For code with dead flags, which has spilled rax and put the address of a GatewayCall there.
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