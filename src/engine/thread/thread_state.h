// SPDX-License-Identifier: MIT
//
// What thread/ keeps in a thread.
#ifndef MUNINN_ENGINE_THREAD_THREAD_STATE_H
#define MUNINN_ENGINE_THREAD_THREAD_STATE_H

#include "base/types.h"

struct ThreadRecord;

typedef struct ThreadState {
    i32 tid;
    u32 vfork_depth;  // >0: running on a suspended parent's context
    struct ThreadRecord *record;
    GuestAddr stack_lowest; // where its stack begins, if clone3 was told; 0: unknown
    // A thread with one of these set counts as standing still (thread_stop_others()):
    u32 is_stopped; // atomic
    u32 in_kernel;  // atomic: in a system call of the client's, which may sleep
} ThreadState;

#endif
