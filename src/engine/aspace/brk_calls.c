// SPDX-License-Identifier: MIT
//
// The client's break. A program that is linked to fixed addresses has it where the kernel begins
// it, behind the program: images that were dumped from memory (GCL, older Emacs) keep addresses of
// their heap in 32 bits. There it ends at the code cache, or at what the client has mapped in
// between. All others have a region of their own, with room for terabytes.
#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

// Less room than this behind a program is as good as none.
#define ROOM_MIN (64 * MiB)

static GuestAddr brk_start = BRK_START, brk_now = BRK_START; // engine lock

void aspace_set_break(GuestAddr start)
{
    lock_acquire(&engine_lock);
    if (place_hint_is_free(start, ROOM_MIN)) {
        brk_start = brk_now = start;
        placement_keep_low_room(start);
    }
    lock_release(&engine_lock);
}

static bool within_data_limit(GuestAddr wanted)
{
    return wanted - brk_start <= __atomic_load_n(&aspace_data_limit_bytes, __ATOMIC_RELAXED);
}

static bool grow(GuestAddr from, GuestAddr to)
{
    // One page stays free behind the break, as the kernel keeps it.
    if (!place_hint_is_free(from, to - from + PAGE_SIZE) ||
        !account_may_expand(to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE))
        return false;
    i64 result = raw_syscall6(SYS_mmap, from, to - from, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (u64)-1, 0);
    if (result < 0)
        return false;
    MapNode node = {
        .m =
            {
                .start = from,
                .end = to,
                .prot = PROT_READ | PROT_WRITE,
                .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                .name = "[heap]",
            },
    };
    tree_add(&node);
    return true;
}

static bool shrink(GuestAddr from, GuestAddr to)
{
    if (raw_syscall2(SYS_munmap, to, from - to) < 0)
        return false;
    guard_retire_code(to, from);
    guard_forget(to, from);
    tree_remove(to, from);
    return true;
}

static GuestAddr brk_locked(GuestAddr wanted)
{
    if (wanted < brk_start || wanted >= CLIENT_END)
        return brk_now;

    GuestAddr old_end = PAGE_UP(brk_now), new_end = PAGE_UP(wanted);
    if (wanted > brk_now && !within_data_limit(wanted))
        return brk_now;
    if (new_end > old_end && !grow(old_end, new_end))
        return brk_now;
    if (new_end < old_end && !shrink(old_end, new_end))
        return brk_now;
    brk_now = wanted;
    return brk_now;
}

i64 sys_brk(u64 addr)
{
    lock_acquire(&engine_lock);
    GuestAddr now = brk_locked(addr);
    lock_release(&engine_lock);
    return (i64)now;
}
