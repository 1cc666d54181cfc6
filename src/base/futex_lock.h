// SPDX-License-Identifier: MIT
//
// A mutex of four bytes that needs no pthread and no vector register. A zeroed
// Lock is free. Not recursive, not fair. A thread may not be interrupted by a
// signal handler that takes the same lock: engine handlers run client-visible
// work at safe points, where no lock is held.
//
// A lock knows its holder, and a thread what it holds: a child that borrows its
// parent's memory and thread block (vfork) may be killed while it holds one, and
// then the parent sets it free.
#ifndef MUNINN_BASE_FUTEX_LOCK_H
#define MUNINN_BASE_FUTEX_LOCK_H

#include "base/types.h"

typedef struct Lock {
    u32 state; // see futex_lock.c
} Lock;

void lock_acquire(Lock *lock);

// Debug builds ask it before the calling thread waits for a lock; NULL allows everything.
extern bool (*lock_may_wait)(const Lock *lock);
bool lock_try(Lock *lock);
void lock_release(Lock *lock);
bool lock_is_held(const Lock *lock); // by anyone: for assertions

// In a fork child only the forking thread is left. If it forked holding the lock,
// or while another thread held it, the lock is free again after this call; whatever the lock
// protects must have been made consistent by the caller (fork under the lock).
void lock_reset_after_fork(Lock *lock);

// The tid of the calling thread, for locks that it takes from now on.
void lock_set_owner(u32 tid);
// The task `tid` is dead. It ran on the caller's thread block, which held no lock when it
// began: what it holds is free after this call. Before that repair() is called for each, since
// what the lock protects may be half changed.
void lock_free_those_of_dead(u32 tid, void (*repair)(const Lock *lock));

#endif
