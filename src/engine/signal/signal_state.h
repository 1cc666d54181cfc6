// SPDX-License-Identifier: MIT
//
// What signal delivery keeps in a thread. (`gateway.pending_signal` says that `pending` is set.)
#ifndef MUNINN_ENGINE_SIGNAL_SIGNAL_STATE_H
#define MUNINN_ENGINE_SIGNAL_SIGNAL_STATE_H

#include <signal.h>

#include "base/types.h"

struct SignalActions;

// A signal that the kernel gave us and the client has not seen yet. There is
// at most one per thread (R3); the kernel queues the others.
typedef struct PendingSignal {
    siginfo_t info;
    u64 resume_mask; // the client's mask to restore when its handler returns
    bool synchronous; // a fault of the client's own instruction at ctx->pc
    u64 trapno, err, cr2; // from the kernel's frame; the client's frame repeats them
} PendingSignal;

typedef struct SignalState {
    PendingSignal pending;
    u64 client_mask;         // the mask as the client sees it
    u64 deferred;            // synchronous signals sent by kill() while the client blocks them
    siginfo_t deferred_info[6];
    u32 must_place;          // a signal for the whole process waits for a thread to take it (S5)
    u32 lent_nr;             // the call for which the kernel holds deferred ones, while `lent_set`
    u64 lent_set;            // signals that this call may take from the kernel's queue
    stack_t altstack;        // the client's sigaltstack
    struct SignalActions *actions; // shared as CLONE_SIGHAND says
    u64 wait_mask;           // the mask of a sigsuspend, ppoll, … while wait_mask_armed
    u32 wait_mask_armed;     // inside such a call, or its handler is about to run
    u64 step_rip;            // host pc of the last trap, of a client with its trap flag set
    u32 step_over_pushf;     // the instruction being stepped pushes our TF
    GuestAddr retry_addr;    // last store retried because its page looked writable
    u32 retry_count;
    void *host_altstack;     // guard page, then the stack of our own handlers
} SignalState;

#endif
