// SPDX-License-Identifier: MIT
//
// The words of a thread that the gateways use, and the code of blocks that goes through them.
#ifndef MUNINN_ENGINE_GATEWAY_GATEWAY_STATE_H
#define MUNINN_ENGINE_GATEWAY_GATEWAY_STATE_H

#include "base/types.h"

struct ThreadCtx;

// Why a thread left the cache.
typedef enum ExitReason {
    EXIT_LINK,       // a direct exit whose target is not linked: exit_link names it
    EXIT_CALL,       // the same, and the exit is a `call` (landings/landings.h)
    EXIT_INDIRECT,   // an indirect branch to pc, which the lookup table did not know
    EXIT_RETURN,     // a return to pc, which the return table did not know
    EXIT_SYSCALL,    // pc is behind the `syscall` instruction
    EXIT_RESUME,     // somebody asked the thread to leave (signal, stop, code change); pc is next
    EXIT_STALE,      // the block at pc found that its guest bytes have changed
    EXIT_EMULATE,    // an instruction at pc that C must emulate (iretq, int 0x80, mov fs, …)
    EXIT_REDIRECT,   // pc is the entry of a redirected or wrapped function
    EXIT_REQUEST,    // a client request at pc; exit_link is its RequestKind
    EXIT_VERSIONED,  // the version table did not know (pc, version); see VERSION_TABLE
    EXIT_REMAKE,     // blocks with the instruction at pc must be made anew
    EXIT_REASON_COUNT
} ExitReason;

typedef struct GatewayState {
    u64 engine_rsp;       // the engine's stack, valid while inside the cache
    u64 enter_target;     // where gateway_enter jumps
    u64 second_flags;     // in ah and al while a gateway searches the second table
    i32 second_left;      // finds there until C is asked to put the target into the first table
    u32 exit_reason;      // ExitReason
    u32 exit_link;        // index of the exit taken, for EXIT_LINK
    u32 careful;          // the client may have set DF or AC: C must not be entered with them
    u32 guard_failed;     // the next block is entered because its first instruction's guard failed
    u32 pending_signal;   // signal.pending holds a signal; emitted gateways test this word
    u32 stop_request;     // leave the cache at the next boundary; same test
    struct ThreadCtx *self; // linear address of the thread's context
    u64 call_fn, call_arg, call_address, call_return; // arguments of the tool-call gateway
} GatewayState;

// The record by which code of a block tells a gateway which function of a tool to call.
typedef struct GatewayCall {
    u64 fn, arg, back;
    u64 brief; // a ToolBriefFn, of a fast step; the record of another call ends before it
} GatewayCall;

#endif
