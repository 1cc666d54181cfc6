// SPDX-License-Identifier: MIT
//
// A word: held, perhaps someone asleep, and the holder's tid. Only with a sleeper is
// the release a system call, so an uncontended pair is two atomic instructions. A
// sleeper always leaves ASLEEP set when it takes the lock, because it cannot know
// whether others still sleep.
#include "base/futex_lock.h"

#include <linux/futex.h>

#include "base/assert.h"
#include "base/raw_syscall.h"

#define FREE 0u
#define HELD 1u
#define ASLEEP 2u
#define OWNER_SHIFT 2

#define SPINS_BEFORE_SLEEP 100
#define TAKEN_MAX 128 // a fork holds them all

static __thread u32 owner;

// The locks that this thread holds or is about to take: one is noted first and taken
// then, so that at no moment a lock is held and not noted.
static __thread struct {
    u32 count;
    Lock *lock[TAKEN_MAX];
} taken;

// EINTR and EAGAIN need no care: the loop in lock_acquire looks again.
static void futex(u32 *word, u32 operation, u32 value)
{
    raw_syscall4(SYS_futex, (u64)word, operation | FUTEX_PRIVATE_FLAG, value, 0);
}

static void note(Lock *lock)
{
    if (taken.count < TAKEN_MAX)
        taken.lock[taken.count] = lock;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    taken.count++;
}

// Mostly the last one.
static void forget(const Lock *lock)
{
    u32 i = taken.count < TAKEN_MAX ? taken.count : TAKEN_MAX;

    while (i > 0 && taken.lock[i - 1] != lock)
        i--;
    if (i == 0 && taken.count <= TAKEN_MAX)
        return; // another thread's, at a fork
    for (; i > 0 && i < taken.count && i < TAKEN_MAX; i++)
        taken.lock[i - 1] = taken.lock[i];
    taken.count--;
}

static bool take(Lock *lock, u32 more)
{
    u32 expected = FREE;

    return __atomic_compare_exchange_n(&lock->state, &expected, owner << OWNER_SHIFT | HELD | more,
                                       false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool lock_try(Lock *lock)
{
    note(lock);
    if (take(lock, 0))
        return true;
    forget(lock);
    return false;
}

// Sleeps while somebody holds the lock.
static void sleep_on(Lock *lock)
{
    u32 state = __atomic_load_n(&lock->state, __ATOMIC_RELAXED);

    if (state == FREE)
        return;
    if (!(state & ASLEEP) &&
        !__atomic_compare_exchange_n(&lock->state, &state, state | ASLEEP, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    futex(&lock->state, FUTEX_WAIT, state | ASLEEP);
}

bool (*lock_may_wait)(const Lock *lock);

void lock_acquire(Lock *lock)
{
    DEBUG_ASSERT(!lock_may_wait || lock_may_wait(lock));
    note(lock);
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        if (take(lock, 0))
            return;
        __builtin_ia32_pause();
    }
    while (!take(lock, ASLEEP))
        sleep_on(lock);
}

static void set_free(Lock *lock)
{
    u32 before = __atomic_exchange_n(&lock->state, FREE, __ATOMIC_RELEASE);

    ASSERT(before != FREE);
    if (before & ASLEEP)
        futex(&lock->state, FUTEX_WAKE, 1);
}

void lock_release(Lock *lock)
{
    set_free(lock);
    forget(lock);
}

bool lock_is_held(const Lock *lock)
{
    return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != FREE;
}

void lock_reset_after_fork(Lock *lock)
{
    __atomic_store_n(&lock->state, FREE, __ATOMIC_RELEASE);
    forget(lock);
}

void lock_set_owner(u32 tid)
{
    owner = tid;
}

// It may also have died between its release and the waking of a sleeper.
void lock_free_those_of_dead(u32 tid, void (*repair)(const Lock *lock))
{
    for (u32 i = 0; i < taken.count && i < TAKEN_MAX; i++) {
        Lock *lock = taken.lock[i];
        if (__atomic_load_n(&lock->state, __ATOMIC_ACQUIRE) >> OWNER_SHIFT == tid) {
            repair(lock);
            set_free(lock);
        } else {
            futex(&lock->state, FUTEX_WAKE, 1);
        }
    }
    taken.count = 0;
}
