// SPDX-License-Identifier: MIT
//
// Numbers for the sets of registers that blocks are made for. A set that has had its
// turn keeps its number; when there are many, one version that assumes everything
// stands for all others.
#include "base/futex_lock.h"
#include "engine/cache/cache.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/translate/translate.h"

enum { SETS_MAX = 4096, SLOTS = 2 * SETS_MAX };

static Lock lock;                 // of what follows, for writers
static MemberSet sets[SETS_MAX];  // by number - 1; complete before count shows it
static u32 count;
static u32 slots[SLOTS];          // number, by hash; 0: free

u64 version_set(u32 version)
{
    u32 number = version & VERSION_NUMBER;
    return number == 0 ? 0 : number > SETS_MAX ? ~0ull : sets[number - 1];
}

static u32 hash(MemberSet set)
{
    return (u32)((set * 0x9e3779b97f4a7c15ull) >> 51) % SLOTS;
}

static u32 find(MemberSet set, u32 *ret_slot)
{
    u32 slot = hash(set);
    u32 number;
    while ((number = __atomic_load_n(&slots[slot], __ATOMIC_ACQUIRE)) != 0) {
        if (sets[number - 1] == set)
            return number;
        slot = (slot + 1) % SLOTS;
    }
    *ret_slot = slot;
    return 0;
}

u32 version_number(MemberSet set)
{
    u32 slot;
    if (set == 0)
        return 0;
    u32 number = find(set, &slot);
    if (number)
        return number;
    lock_acquire(&lock);
    number = find(set, &slot);
    if (!number && count < SETS_MAX) {
        sets[count] = set;
        number = ++count;
        __atomic_store_n(&slots[slot], number, __ATOMIC_RELEASE);
    }
    lock_release(&lock);
    return number ? number : SETS_MAX + 1;
}

void version_fork_prepare(void)
{
    lock_acquire(&lock);
}

void version_fork_done(bool in_child)
{
    if (in_child)
        lock_reset_after_fork(&lock);
    else
        lock_release(&lock);
}

// --stress=random-versions. Few different ones: their sums are versions, too.
static MemberSet random_members(u64 seed)
{
    static const MemberSet some[] = {
        MEMBER_GPR(RAX),
        MEMBER_GPR(RCX) | MEMBER_GPR(RDX),
        MEMBER_GPR(RDI) | MEMBER_GPR(RSI) | MEMBER_FLAGS,
        MEMBER_GPR(RBX) | MEMBER_GPR(RBP) | MEMBER_GPR(R12),
        MEMBER_FLAGS,
        MEMBER_VECTOR(0) | MEMBER_VECTOR(1),
        MEMBER_X87 | MEMBER_MASK(1),
        0xffff & ~MEMBER_GPR(RSP),
    };
    u64 random = seed * 0x9e3779b97f4a7c15ull;
    random ^= random >> 29;
    random *= 0xbf58476d1ce4e5b9ull;
    return random >> 62 ? 0 : some[random >> 32 & 7];
}

static bool is_random(void)
{
    return UNLIKELY(memcheck_options->stress & STRESS_RANDOM_VERSIONS);
}

u32 version_of_thread(ToolThread *thread)
{
    static u64 turn;
    Definedness *d = definedness_of(thread);
    if (is_random())
        d->set |= random_members(__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED));
    return version_number(d->set);
}

u32 version_of_exit(GuestAddr block_end, MemberSet set)
{
    return version_number(set | (is_random() ? random_members(block_end) : 0));
}
