// SPDX-License-Identifier: MIT
//
// Three states: free, held, and held with perhaps someone asleep. Only the third makes
// the release a system call, so an uncontended pair is two atomic instructions.
// A sleeper always leaves the state CONTENDED when it takes the lock, because it
// cannot know whether others still sleep.
#include "base/futex_lock.h"

#include <linux/futex.h>

#include "base/assert.h"
#include "base/raw_syscall.h"

enum { FREE = 0, HELD = 1, CONTENDED = 2 };

#define SPINS_BEFORE_SLEEP 100

// EINTR and EAGAIN need no care: the loop in lock_acquire looks again.
static void futex(u32 *word, u32 operation, u32 value)
{
    raw_syscall4(SYS_futex, (u64)word, operation | FUTEX_PRIVATE_FLAG, value, 0);
}

bool lock_try(Lock *lock)
{
    u32 expected = FREE;

    return __atomic_compare_exchange_n(&lock->state, &expected, HELD, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

void lock_acquire(Lock *lock)
{
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        if (lock_try(lock))
            return;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&lock->state, CONTENDED, __ATOMIC_ACQUIRE) != FREE)
        futex(&lock->state, FUTEX_WAIT, CONTENDED);
}

void lock_release(Lock *lock)
{
    u32 before = __atomic_exchange_n(&lock->state, FREE, __ATOMIC_RELEASE);

    ASSERT(before != FREE);
    if (before == CONTENDED)
        futex(&lock->state, FUTEX_WAKE, 1);
}

bool lock_is_held(const Lock *lock)
{
    return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != FREE;
}

void lock_reset_after_fork(Lock *lock)
{
    __atomic_store_n(&lock->state, FREE, __ATOMIC_RELEASE);
}
