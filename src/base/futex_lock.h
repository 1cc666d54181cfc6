// SPDX-License-Identifier: MIT
//
// A mutex of four bytes that needs no pthread, no thread-local state and no
// vector register. A zeroed Lock is free. Not recursive, not fair. A thread may
// not be interrupted by a signal handler that takes the same lock: engine
// handlers run client-visible work at safe points, where no lock is held.
#ifndef MUNINN_BASE_FUTEX_LOCK_H
#define MUNINN_BASE_FUTEX_LOCK_H

#include "base/types.h"

typedef struct Lock {
    u32 state; // see futex_lock.c
} Lock;

void lock_acquire(Lock *lock);
bool lock_try(Lock *lock);
void lock_release(Lock *lock);
bool lock_is_held(const Lock *lock); // by anyone: for assertions

// In a fork child only the forking thread is left. If it forked holding the lock,
// or while another thread held it, the lock is free again after this call; whatever the lock
// protects must have been made consistent by the caller (fork under the lock).
void lock_reset_after_fork(Lock *lock);

#endif
