// SPDX-License-Identifier: MIT
//
// System V shared memory: attaching is a mapping whose size only the segment knows.
#include <errno.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

static void record_segment(GuestAddr addr, u64 size, u64 shmid, u64 flags, u32 key)
{
    char name[32];
    u32 prot = PROT_READ;

    if (!(flags & SHM_RDONLY))
        prot |= PROT_WRITE;
    if (flags & SHM_EXEC)
        prot |= PROT_EXEC;
    text_format(name, sizeof name, "/SYSV%08x (deleted)", key);
    MapNode node = {
        .m =
            {
                .start = addr,
                .end = addr + size,
                .prot = prot,
                .flags = MAP_SHARED,
                .dev = DEV_SHMEM,
                .inode = shmid + 1, // segment 0 exists, inode 0 means anonymous
                .name = name,
            },
    };
    guard_retire_code(addr, addr + size);
    guard_forget(addr, addr + size);
    tree_remove(addr, addr + size);
    tree_add(&node);
    if (prot & PROT_WRITE)
        guard_note_writable(addr, addr + size);
    if (addr + size > CLIENT_END)
        range_publish_far();
}

// Attaches where there is room. A segment of huge pages wants an address that fits them.
static i64 attach_anywhere(u64 shmid, u64 size, u64 flags)
{
    PlaceKind kind = flags & SHM_EXEC ? PLACE_LOW_IF_ROOM : PLACE_HIGH;
    i64 result = -ENOMEM;

    for (u64 align = PAGE_SIZE; align <= GiB; align *= 512) {
        u64 len = (size + align - 1) & ~(align - 1);
        GuestAddr addr = place_find(kind, len, align);
        if (!addr)
            return -ENOMEM;
        result = raw_syscall3(SYS_shmat, shmid, addr, flags & ~(u64)(SHM_EXEC | SHM_REMAP));
        if (result != -EINVAL)
            break;
    }
    return result;
}

static i64 attach_locked(u64 shmid, u64 addr, u64 flags)
{
    struct shmid_ds info;

    i64 result = raw_syscall3(SYS_shmctl, shmid, IPC_STAT, (u64)&info);
    if (result < 0)
        return result;
    u64 size = PAGE_UP(info.shm_segsz);
    range_sync_growing_stacks();
    if (!account_may_expand(size, PROT_READ, MAP_SHARED))
        return -ENOMEM;
    if (addr == 0) {
        if (flags & SHM_REMAP)
            return -EINVAL;
        result = attach_anywhere(shmid, size, flags);
    } else {
        if (flags & SHM_RND)
            addr = PAGE_DOWN(addr);
        if (addr % PAGE_SIZE || addr == 0 || addr + size > CLIENT_END || addr + size < addr ||
            range_hits_engine(addr, addr + size))
            return -EINVAL;
        result = raw_syscall3(SYS_shmat, shmid, addr, flags & ~(u64)SHM_EXEC);
    }
    if (result >= 0)
        record_segment((GuestAddr)result, size, shmid, flags, (u32)info.shm_perm.__key);
    return result;
}

i64 sys_shmat(u64 shmid, u64 addr, u64 flags)
{
    lock_acquire(&engine_lock);
    i64 result = attach_locked((u64)(i32)shmid, addr, flags);
    lock_release(&engine_lock);
    return result;
}

// The next view of the segment that was attached at `addr`: parts of it may have been unmapped.
static MapNode *view_of(GuestAddr addr, u64 inode)
{
    for (MapNode *n = tree_aliases(DEV_SHMEM, inode); n; n = n->alias_next)
        if (n->m.dev == DEV_SHMEM && n->m.inode == inode && n->m.start - n->m.offset == addr)
            return n;
    return NULL;
}

static i64 detach_locked(GuestAddr addr)
{
    MapNode *n = tree_at_or_after(addr);
    if (!n || n->m.dev != DEV_SHMEM || n->m.start - n->m.offset != addr)
        return -EINVAL;

    u64 inode = n->m.inode;
    i64 result = raw_syscall1(SYS_shmdt, addr);
    if (result < 0)
        return result;
    while ((n = view_of(addr, inode)) != NULL) {
        GuestAddr start = n->m.start, end = n->m.end;
        guard_retire_code(start, end);
        guard_forget(start, end);
        tree_remove(start, end);
    }
    range_publish_far();
    return 0;
}

i64 sys_shmdt(u64 addr)
{
    lock_acquire(&engine_lock);
    i64 result = detach_locked(addr);
    lock_release(&engine_lock);
    return result;
}
