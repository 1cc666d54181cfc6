// SPDX-License-Identifier: MIT
//
// mlockall. The kernel would lock the engine's memory too, and so fill a gigabyte
// of tables that are reserved and mostly never used; here the client's own
// mappings are locked one by one. munlockall needs no such care.
#include <errno.h>
#include <string.h>

#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

// The lowest page of [start, end) that is in memory, or the last one.
static GuestAddr lowest_in_use(GuestAddr start, GuestAddr end)
{
    u8 resident[256];
    const u64 bytes = sizeof(resident) * PAGE_SIZE;

    for (GuestAddr at = start; at < end; at += bytes) {
        u64 size = min_u64(bytes, end - at);
        if (raw_syscall3(SYS_mincore, at, size, (u64)resident) != 0)
            return start;
        for (u64 i = 0; i < size / PAGE_SIZE; i++)
            if (resident[i] & 1)
                return at + i * PAGE_SIZE;
    }
    return end - PAGE_SIZE;
}

// The first stack is mapped with all the room that it may take. The kernel's would have grown to
// what is used of it, and only so much counts against the limit of locked memory.
static bool next_client_mapping(GuestAddr from, GuestAddr *ret_start, GuestAddr *ret_end)
{
    bool is_stack = false;

    lock_acquire(&engine_lock);
    const MapNode *n = tree_at_or_after(from);
    while (n && n->foreign)
        n = tree_next(n);
    if (n) {
        *ret_start = n->m.start;
        *ret_end = n->m.end;
        is_stack = n->m.name && strcmp(n->m.name, "[stack]") == 0;
    }
    lock_release(&engine_lock);
    if (is_stack)
        *ret_start = lowest_in_use(*ret_start, *ret_end);
    return n != NULL;
}

// Without the engine lock: bringing pages in may wait for another thread of the client.
static i64 lock_mappings(u64 mlock2_flags)
{
    GuestAddr start, end = 0;

    while (next_client_mapping(end, &start, &end)) {
        i64 result = raw_syscall3(SYS_mlock2, start, end - start, mlock2_flags);
        // As mlockall: pages that cannot be had (PROT_NONE) are no error. Locking on
        // fault brings nothing in, so there ENOMEM means the limit.
        if (result < 0 && ((mlock2_flags & MLOCK_ONFAULT) || result != -ENOMEM))
            return result;
    }
    return 0;
}

i64 sys_mlockall(u64 flags)
{
    u64 known = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;

    flags = (u32)flags;
    if (!(flags & MCL_CURRENT) || (flags & ~known))
        return raw_syscall1(SYS_mlockall, flags);
    // Whether this process may lock anything the kernel says even for no bytes at all.
    i64 result = flags & MCL_FUTURE ? raw_syscall1(SYS_mlockall, flags & ~(u64)MCL_CURRENT)
                                    : raw_syscall2(SYS_mlock, 0, 0);
    if (result == 0)
        result = lock_mappings(MLOCK_ONFAULT);
    if (result == 0 && !(flags & MCL_ONFAULT))
        result = lock_mappings(0);
    return result;
}
