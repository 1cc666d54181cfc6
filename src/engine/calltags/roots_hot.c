// SPDX-License-Identifier: MIT
//
// Where stacks end: a sorted list, read without a lock. General registers only, no libc.
#include "engine/calltags/calltags.h"

enum { ROOTS_MAX = 32768 }; // then one that is there makes room: walks go on beyond that stack

static struct {
    Lock lock;
    u32 turn; // atomic: odd while the list changes
    u32 count;
    u32 victim;
    GuestAddr at[ROOTS_MAX];
} roots;

// The first that is not below the address; as threads may change the list meanwhile, any index
// up to ROOTS_MAX.
static u32 index_from(GuestAddr address)
{
    u32 low = 0, high = __atomic_load_n(&roots.count, __ATOMIC_RELAXED);
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (__atomic_load_n(&roots.at[middle], __ATOMIC_RELAXED) >= address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

GuestAddr calltags_root_above(GuestAddr address)
{
    for (;;) {
        u32 turn = __atomic_load_n(&roots.turn, __ATOMIC_ACQUIRE);
        u32 index = index_from(address);
        GuestAddr root = index < roots.count ? roots.at[index] : ~0ull;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (LIKELY(!(turn & 1) && turn == __atomic_load_n(&roots.turn, __ATOMIC_RELAXED)))
            return root;
        __builtin_ia32_pause();
    }
}

static void begin_change(void)
{
    lock_acquire(&roots.lock);
    __atomic_fetch_add(&roots.turn, 1, __ATOMIC_ACQ_REL);
}

static void end_change(void)
{
    __atomic_fetch_add(&roots.turn, 1, __ATOMIC_RELEASE);
    lock_release(&roots.lock);
}

static void take_out(u32 index)
{
    for (roots.count--; index < roots.count; index++)
        __atomic_store_n(&roots.at[index], roots.at[index + 1], __ATOMIC_RELAXED);
}

void calltags_add_root(GuestAddr root)
{
    begin_change();
    u32 index = index_from(root);
    if (index == roots.count || roots.at[index] != root) {
        if (roots.count == ROOTS_MAX) {
            take_out(roots.victim++ % ROOTS_MAX);
            index = index_from(root);
        }
        for (u32 i = roots.count++; i > index; i--)
            __atomic_store_n(&roots.at[i], roots.at[i - 1], __ATOMIC_RELAXED);
        __atomic_store_n(&roots.at[index], root, __ATOMIC_RELAXED);
    }
    end_change();
}

// Those of stacks that lie in the range: a stack's end is one too.
void calltags_drop_roots(GuestAddr start, GuestAddr end)
{
    GuestAddr first = calltags_root_above(start);
    if (first > end)
        return;
    begin_change();
    for (u32 index = index_from(start); index < roots.count && roots.at[index] <= end;)
        take_out(index);
    end_change();
}

void calltags_fork_prepare(void)
{
    lock_acquire(&roots.lock);
}

void calltags_fork_done(void)
{
    lock_release(&roots.lock);
}
