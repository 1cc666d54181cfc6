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
    EXIT_CALL,       // the same, and it is one of a `call` (landings/landings.h)
    EXIT_INDIRECT,   // an indirect branch that the lookup table did not know: pc
    EXIT_RETURN,     // a return that the return table did not know: pc
    EXIT_SYSCALL,    // pc is behind the `syscall` instruction
    EXIT_RESUME,     // somebody asked for it (signal, stop, code change): go on at pc
    EXIT_STALE,      // the block at pc found that its guest bytes have changed
    EXIT_EMULATE,    // an instruction at pc that C must emulate (iretq, int 0x80, mov fs, …)
    EXIT_REDIRECT,   // pc is the entry of a redirected or wrapped function
    EXIT_REQUEST,    // a client request at pc; exit_link is its RequestKind
    EXIT_VERSIONED,  // the version table did not know (pc, version); see VERSION_TABLE
    EXIT_REMAKE,     // blocks with the instruction at pc are to be made anew
    EXIT_REASON_COUNT
} ExitReason;

typedef struct GatewayState {
    u64 engine_rsp;       // the engine's stack, valid while inside the cache
    u64 enter_target;     // where gateway_enter jumps
    u64 second_flags;     // in ah and al while a gateway searches the second table
    i32 second_left;      // what it may find there before C is to prefer the next one
    u32 exit_reason;      // ExitReason
    u32 exit_link;        // index of the exit taken, for EXIT_LINK
    u32 careful;          // the client may have set DF or AC: C must not be entered with them
    u32 guard_failed;     // the next block is entered because its first instruction's guard failed
    u32 pending_signal;   // signal.pending holds a signal; emitted gateways test this word
    u32 stop_request;     // leave the cache at the next boundary; same test
    struct ThreadCtx *self; // linear address of the thread's context
    u64 call_fn, call_arg, call_address, call_return; // arguments of the tool-call gateway
} GatewayState;

// What code of a block leaves for a gateway by which it calls a tool.
typedef struct GatewayCall {
    u64 fn, arg, back;
    u64 brief; // a ToolBriefFn, of a fast step; the record of another call ends before it
} GatewayCall;

#endif
