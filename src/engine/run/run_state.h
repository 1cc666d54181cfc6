// SPDX-License-Identifier: MIT
//
// What run/ keeps in a thread: the dispatcher's own (DispatchState), and the counters of --stats.
#ifndef MUNINN_ENGINE_RUN_RUN_STATE_H
#define MUNINN_ENGINE_RUN_RUN_STATE_H

#include "base/types.h"

struct RunLoop;

// How far a thread has come whose client has set its trap flag and so gets SIGTRAP after the next
// instruction. The hardware single-steps the thread through the gateway and the cache, and our
// handler follows by this. Such a thread runs blocks of one instruction (VERSION_STEPPED).
typedef enum ClientStep {
    CLIENT_STEP_NONE,
    CLIENT_STEP_ARMED,   // on its way into the cache
    CLIENT_STEP_RUNNING, // in the cache: the next boundary is behind the instruction
    CLIENT_STEP_DONE,    // the instruction has left the cache; C completes it
} ClientStep;

typedef struct DispatchState {
    struct RunLoop *loop; // the innermost run loop of this thread
    u64 in_cache;     // 1 while the thread may be executing emitted code
    u32 stepping;     // single-stepping to a boundary (signal/)
    u32 client_step;  // ClientStep
    u32 stress_steps; // --stress=signals: single steps left before the thread is taken out
    u32 stress_seed;
    u32 stress_taken; // how often such a series of steps was begun
    u32 validate_wait;  // --stress=validate: so many passes of the loop until the next walk
    u32 validate_count; // walks so far
    u32 makes_last_call; // the client has ended, and runs a function once more (last_call.c)
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
