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

// An address at which the client can have no code. Functions of the client's that the engine
// calls return to it.
#define GATEWAY_NOWHERE (GATEWAY_START + GATEWAY_SIZE - 1)

// Emits the gateways. The leaving gateway calls `light` on the engine's stack while the vector
// registers are still the client's. `light` returns where to go on in the cache, or NULL for a full
// exit.
typedef CodePtr GatewayLightFn(void);
void gateway_init(GatewayLightFn *light);

// Enters the cache at `target` with the full state from thread_ctx. Returns after a full exit.
void gateway_enter(CodePtr target);

// Targets of emitted jumps. gateway_leave() leaves the cache for `reason`. gateway_lookup_miss() is
// for an indirect branch whose target is not in the lookup table: rcx must be the guest target, and
// the client's rcx and rax (with TOOL_LOOSE_FLAGS: r11) must be in ctx->translate.spill.
CodePtr gateway_leave(ExitReason reason);
CodePtr gateway_lookup_miss(void);
// For a return without a landing. The guest target must be at [rsp - 8] and in r11, r11 spilled.
CodePtr gateway_return_by_table(void);
// For a return whose target is not in the return table. The guest target must be at [rsp - 8], and
// rcx (with TOOL_LOOSE_FLAGS: r11) spilled; gateway_far_return_miss() expects rcx in any case.
CodePtr gateway_return_miss(void);
CodePtr gateway_far_return_miss(void);
// For a store of `size` bytes whose shadow is not 0 (Tool.store_map). rax must be the address, and
// spilled; call_return must say where to go on; flags must be dead. NULL: there is none for this
// size.
CodePtr gateway_store(u32 size);
// The address of a word that holds Tool.store_map; the address has at most 31 bits.
CodePtr gateway_store_map(void);

// Look ctx->pc and the thread's state (the first word of tool.state) up in the version table: after
// a guard has failed; at a direct exit; and for an indirect branch, for which rcx must be the
// target and rax and rcx must be spilled.
CodePtr gateway_version_guard(void);
CodePtr gateway_version_exit(void);
CodePtr gateway_version_indirect(void);
CodePtr gateway_version_miss(void);

// Calls call_fn(ctx, call_arg, call_address), then goes on at call_return. Preserves all registers
// and flags.
CodePtr gateway_tool_call(void);
// The same for code that has dead flags, has spilled rax, and has put the address of a GatewayCall
// there. gateway_brief_call() tries the fast step first.
CodePtr gateway_quick_call(void);
CodePtr gateway_brief_call(void);

// The components of the client's vector state that the gateways save and load.
u64 gateway_xsave_mask(void);

// Makes a system call of the client's that may block or be interrupted. Returns
// GATEWAY_RESTART if a signal arrives before the kernel has begun, or if the kernel asks to
// restart the call because of a signal. Then the caller must deliver the signal with the
// client's pc at its `syscall` instruction and all its registers as before the call.
i64 gateway_syscall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);
#define GATEWAY_RESTART (-5000)

// Where in the gateways a host pc lies; signal/ decides by it what to do.
typedef enum GatewayPlace {
    GATEWAY_NOT,            // not in a gateway
    GATEWAY_ENTERING,       // about to enter the cache: set host rip to gateway_abort_pc()
    GATEWAY_RESUMING,       // the same on the way back from a light exit: gateway_abort_pc(), too
    GATEWAY_SYSCALL_BEFORE, // at or before the `syscall`: set rip to gateway_restart_pc()
    GATEWAY_LEAVING,        // any other place in the gateways: C will see pending_signal soon
    GATEWAY_TOOL_CALL,      // in a tool call: the gateway tests pending_signal, then sets TF itself
    GATEWAY_TOOL_RETURN,    // on the way back from a tool into a block: single-step on
    GATEWAY_LOOKUP,         // between two blocks, in the version table: single-step on
} GatewayPlace;

GatewayPlace gateway_place(u64 host_pc);
u64 gateway_abort_pc(GatewayPlace place);
u64 gateway_restart_pc(void);

// The host pc at which a thread goes on that a signal handler takes out of the cache. The
// handler stores the client's complete state in ctx (R2), sets ctx->gateway.exit_reason, and
// returns to this pc with rsp = ctx->gateway.engine_rsp.
u64 gateway_taken_out_pc(void);

#endif