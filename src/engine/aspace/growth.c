// SPDX-License-Identifier: MIT
//
// Stacks that grow when memory below them is touched: mappings made with MAP_GROWSDOWN, which the
// kernel grows, and the first stack, which is an ordinary mapping as large as its limit was at the
// start, and is made larger here when the limit has been raised, or is none.
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/aspace/aspace_internal.h"

// A mapping below a stack keeps so far away, as from the kernel's.
#define GUARD_GAP (256 * PAGE_SIZE)
// So much is mapped before it is touched, if the limit allows.
#define GROWN_AHEAD_MAX GiB

bool aspace_stack_is_fixed, aspace_may_grow;

static bool is_first_stack(const MapNode *n)
{
    return n->m.name && strcmp(n->m.name, "[stack]") == 0;
}

bool growth_is_stack(const MapNode *n)
{
    return (n->m.flags & MAP_GROWSDOWN) || is_first_stack(n);
}

// The kernel grows a stack for whoever reads it, also for a system call that fails afterwards: in a
// signal handler that must not fault itself.
static bool touch(GuestAddr addr)
{
    enum { NO_SUCH_WAY = 99, SET_BYTES = 8 };
    return raw_syscall4(SYS_rt_sigprocmask, NO_SUCH_WAY, addr & ~(u64)(SET_BYTES - 1), 0,
                        SET_BYTES) != -EFAULT;
}

static u64 stack_limit(void)
{
    struct rlimit limit;
    i64 result = raw_syscall4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (u64)&limit);
    return result < 0 ? 0 : limit.rlim_cur;
}

// Makes the stack whose lowest part `n` is `size` bytes large.
static bool grow_to(const MapNode *n, u64 size)
{
    GuestAddr start = n->m.end - size;
    u64 more = n->m.start - start;
    if (!place_hint_is_free(start - GUARD_GAP, more + GUARD_GAP))
        return false;
    u64 prot = host_prot(n->m.prot);
    i64 at = raw_syscall6(SYS_mmap, start, more, prot,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK |
                              MAP_FIXED_NOREPLACE, (u64)-1, 0);
    if (at < 0)
        return false;
    if (n->pkey)
        host_protect(start, more, prot, (i32)n->pkey);
    raw_syscall3(SYS_madvise, start, more, MADV_NOHUGEPAGE);
    MapNode grown = tree_piece(n, n->m.start, n->m.end);
    grown.m.start = start;
    grown.m.end = n->m.start;
    tree_add(&grown);
    return true;
}

// Twice as large as it was, so that few faults do, or as large as it must be.
static bool grow_first_stack(const MapNode *n, u64 needed, u64 limit)
{
    u64 size = n->m.end - n->m.start;
    if (needed > limit || n->m.end < needed + GUARD_GAP)
        return false;
    u64 wanted = min_u64(max_u64(2 * size, needed), PAGE_DOWN(limit));
    bool has_room = n->m.end >= wanted + GUARD_GAP;
    return (has_room && wanted >= needed && grow_to(n, wanted)) || grow_to(n, needed);
}

bool aspace_grow(GuestAddr addr)
{
    MapNode *n = tree_at_or_after(addr);
    if (!n || n->foreign || n->m.start <= addr || !growth_is_stack(n))
        return false;
    if (is_first_stack(n))
        return !aspace_stack_is_fixed &&
               grow_first_stack(n, n->m.end - PAGE_DOWN(addr), stack_limit());
    if (!touch(addr))
        return false;
    range_sync_growing_stacks();
    return tree_find(addr) != NULL;
}

void aspace_limit_stack(u64 limit)
{
    lock_acquire(&engine_lock);
    MapNode *n = tree_at_or_after(0);
    while (n && !is_first_stack(n))
        n = tree_next(n);
    u64 wanted = PAGE_DOWN(min_u64(limit, GROWN_AHEAD_MAX));
    if (n && !aspace_stack_is_fixed && n->m.end - n->m.start < wanted)
        grow_first_stack(n, wanted, wanted);
    lock_release(&engine_lock);
}
