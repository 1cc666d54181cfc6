// SPDX-License-Identifier: MIT
//
// What run/ keeps in a thread: the words that the gateways and emitted code use (GatewayState), the
// dispatcher's own (DispatchState), and the counters of --stats.
#ifndef MUNINN_ENGINE_RUN_RUN_STATE_H
#define MUNINN_ENGINE_RUN_RUN_STATE_H

#include "base/types.h"

struct RunLoop;
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

// The client's own trap flag: SIGTRAP after its next instruction. Hardware steps
// the thread through the gateway and the cache; the handler tells from this how
// far it has come. It runs blocks of one instruction (VERSION_STEPPED).
typedef enum ClientStep {
    CLIENT_STEP_NONE,
    CLIENT_STEP_ARMED,   // on its way into the cache
    CLIENT_STEP_RUNNING, // in the cache: the next boundary is behind the instruction
    CLIENT_STEP_DONE,    // the instruction has left the cache; C does the rest of it
} ClientStep;

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

typedef struct DispatchState {
    struct RunLoop *loop; // the innermost one of this thread
    u64 in_cache;     // 1 while the thread may be executing emitted code
    u32 stepping;     // single-stepping to a boundary (signal/)
    u32 client_step;  // ClientStep
    u32 stress_steps; // --stress=signals: single steps left before the thread is taken out
    u32 stress_seed;
    u32 stress_taken; // how often that was begun
    u32 makes_last_call; // the client has ended, and a function of its runs once more (last_call.c)
    GuestAddr recent_pc[16]; // for the crash report: the last guest pcs dispatched
    u32 recent_next;
} DispatchState;

// Summed by --stats.
typedef struct RunStats {
    u64 dispatches;
    u64 indirect_misses;
    u64 syscalls;
    u64 signals;
} RunStats;

#endif
