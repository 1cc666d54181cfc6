// SPDX-License-Identifier: MIT
//
// mremap and remap_file_pages. A mapping that has to move gets a place of our
// choice with MREMAP_FIXED; one that can grow where it is does so.
#include <errno.h>
#include <linux/mman.h>

#include "engine/aspace/aspace_internal.h"
#include "engine/aspace/pool.h"
#include "engine/ctx/ctx.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

typedef struct Move {
    u64 old, old_len, new_len, flags, target;
} Move;

static i64 host_mremap(const Move *m, u64 flags, GuestAddr target)
{
    return raw_syscall6(SYS_mremap, m->old, m->old_len, m->new_len, flags, target, 0);
}

// Copies the records of [old, old + old_len) to `target`, the last one stretched or cut to new_len.
static void copy_records(const Move *m, GuestAddr target)
{
    u64 span = m->old_len ? min_u64(m->old_len, m->new_len) : PAGE_SIZE;
    GuestAddr end = m->old + span;

    for (GuestAddr at = m->old; at < end;) {
        MapNode *n = tree_at_or_after(at);
        if (!n || n->m.start >= end)
            return;
        MapNode piece = tree_piece(n, at, end);
        at = piece.m.end;
        u64 from = piece.m.start - m->old;
        u64 to = piece.m.end - m->old;
        piece.m.start = target + from;
        piece.m.end = target + (to == span ? m->new_len : to);
        tree_add(&piece); // interns the name, which its source still holds
    }
}

void (*aspace_moved_hook)(GuestAddr from, GuestAddr to, u64 size);

static void record_move(const Move *m, GuestAddr target)
{
    GuestAddr old_end = m->old + m->old_len;
    bool keeps_old = m->old_len == 0 || (m->flags & MREMAP_DONTUNMAP);

    guard_retire_code(target, target + m->new_len);
    guard_forget(target, target + m->new_len);
    tree_remove(target, target + m->new_len);
    guard_retire_code(m->old, old_end);
    copy_records(m, target);
    if (aspace_moved_hook)
        aspace_moved_hook(m->old, target, min_u64(m->old_len, m->new_len));
    if (!keeps_old) {
        guard_forget(m->old, old_end);
        tree_remove(m->old, old_end);
    }
    guard_note_writable(target, target + m->new_len);
    range_publish_far();
}

static void record_resize(const Move *m)
{
    GuestAddr old_end = m->old + m->old_len, new_end = m->old + m->new_len;

    if (new_end <= old_end) {
        guard_retire_code(new_end, old_end);
        guard_forget(new_end, old_end);
        tree_remove(new_end, old_end);
    } else {
        MapNode *last = tree_find(old_end - 1);
        MapNode more = *last;
        if (last->m.inode)
            more.m.offset += old_end - last->m.start;
        more.m.start = old_end;
        more.m.end = new_end;
        tree_add(&more);
    }
    range_publish_far();
}

static i64 move_fixed(const Move *m)
{
    GuestAddr end = m->target + m->new_len;

    if (range_hits_engine(m->target, end))
        return -ENOMEM;
    if (end > CLIENT_END) {
        // Nothing of the engine's may be replaced there: the target must be free.
        i64 probe = raw_syscall6(SYS_mmap, m->target, m->new_len, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                                 (u64)-1, 0);
        if (probe < 0)
            return -ENOMEM;
        raw_syscall2(SYS_munmap, m->target, m->new_len);
    }
    guard_lift(m->target, end);
    i64 result = host_mremap(m, m->flags, m->target);
    if (result >= 0)
        record_move(m, (GuestAddr)result);
    else
        range_drop_lost(m->target, end);
    return result;
}

static i64 resize_in_place(const Move *m)
{
    GuestAddr new_end = m->old + m->new_len;

    if (m->new_len > m->old_len) {
        if (new_end < m->old || new_end > CLIENT_END)
            return -ENOMEM;
        if (range_hits_engine(m->old + m->old_len, new_end))
            return -ENOMEM;
    }
    i64 result = host_mremap(m, m->flags & ~(u64)(MREMAP_MAYMOVE | MREMAP_DONTUNMAP), 0);
    if (result >= 0)
        record_resize(m);
    return result;
}

static i64 move_anywhere(const Move *m)
{
    MapNode *n = tree_find(m->old);
    u64 align = m->new_len % HUGE_PAGE == 0 ? HUGE_PAGE : PAGE_SIZE;
    bool is_low = n && n->m.start < CACHE_START && (n->m.prot & PROT_EXEC);
    PlaceKind kind = is_low ? PLACE_LOW_IF_ROOM : PLACE_HIGH;

    GuestAddr target = place_find(kind, m->new_len, align);
    if (!target && align > PAGE_SIZE)
        target = place_find(kind, m->new_len, PAGE_SIZE);
    if (!target)
        return -ENOMEM;
    i64 result = host_mremap(m, m->flags | MREMAP_FIXED | MREMAP_MAYMOVE, target);
    if (result >= 0)
        record_move(m, target);
    return result;
}

static bool may_grow(const Move *m)
{
    const MapNode *n = tree_find(m->old);
    bool keeps_old = m->old_len == 0 || (m->flags & MREMAP_DONTUNMAP);
    u64 more = keeps_old ? m->new_len : m->new_len - min_u64(m->old_len, m->new_len);

    return more == 0 || account_may_expand(more, n->m.prot, n->m.flags);
}

// The kernel's own checks of the arguments, which come before the look at the memory.
static bool is_well_formed(const Move *m)
{
    const u64 known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    const u64 placed = MREMAP_FIXED | MREMAP_DONTUNMAP;

    if ((m->flags & ~known) || m->old % PAGE_SIZE || m->new_len == 0)
        return false;
    if (!(m->flags & placed))
        return true;
    if (!(m->flags & MREMAP_MAYMOVE))
        return false;
    if ((m->flags & MREMAP_DONTUNMAP) && m->old_len != m->new_len)
        return false;
    if (m->target % PAGE_SIZE || m->new_len > aspace_end || m->target > aspace_end - m->new_len)
        return false;
    return m->old + m->old_len <= m->target || m->target + m->new_len <= m->old;
}

static i64 remap_locked(Move *m)
{
    u64 old_len = PAGE_UP(m->old_len), new_len = PAGE_UP(m->new_len);

    if (new_len < m->new_len || old_len < m->old_len)
        return -EINVAL;
    m->old_len = old_len;
    m->new_len = new_len;
    if (!is_well_formed(m))
        return -EINVAL;
    range_sync_growing_stacks();

    GuestAddr old_end = m->old + max_u64(old_len, PAGE_SIZE);
    if (old_end < m->old || range_hits_engine(m->old, old_end) || !tree_find(m->old))
        return -EFAULT;
    if (old_end > CLIENT_END && !tree_find(old_end - 1))
        return -EFAULT;
    // On the host, neighbours that differ in PROT_EXEC only may be one.
    if (new_len > old_len && old_len && tree_find(m->old)->m.end < old_end)
        return -EFAULT;
    if (!may_grow(m))
        return -ENOMEM;
    // The guards split what the client believes to be one mapping.
    guard_lift(m->old, old_end);
    if (m->flags & MREMAP_FIXED)
        return move_fixed(m);
    if (!(m->flags & MREMAP_DONTUNMAP) && old_len != 0) {
        i64 result = resize_in_place(m);
        if (result != -ENOMEM || !(m->flags & MREMAP_MAYMOVE))
            return result;
    } else if (!(m->flags & MREMAP_MAYMOVE)) {
        return host_mremap(m, m->flags, 0); // always refused
    }
    return move_anywhere(m);
}

i64 sys_mremap(u64 old_addr, u64 old_len, u64 new_len, u64 flags, u64 new_addr)
{
    Move m = {old_addr, old_len, new_len, flags, new_addr};

    lock_acquire(&engine_lock);
    i64 result = remap_locked(&m);
    lock_release(&engine_lock);
    return result;
}

// ---------------------------------------------------------------- remap_file_pages

static void set_offset(MapNode *n, void *arg)
{
    const Move *m = arg;

    n->m.offset = m->target + (n->m.start - m->old);
}

static i64 remap_file_pages_locked(u64 addr, u64 size, u64 prot, u64 pgoff, u64 flags)
{
    GuestAddr start = PAGE_DOWN(addr);
    u64 len = PAGE_DOWN(size);
    GuestAddr end = start + len;

    if (end < start || range_hits_engine(start, end) || !tree_find(start))
        return -EINVAL;
    guard_lift(start, end);
    i64 result = raw_syscall6(SYS_remap_file_pages, addr, size, prot, pgoff, flags, 0);
    if (result < 0)
        return result;
    guard_retire_code(start, end);
    guard_forget(start, end);
    Move m = {.old = start, .target = pgoff * PAGE_SIZE};
    tree_update(start, end, set_offset, &m);
    guard_note_writable(start, end);
    return result;
}

i64 sys_remap_file_pages(u64 addr, u64 size, u64 prot, u64 pgoff, u64 flags)
{
    lock_acquire(&engine_lock);
    i64 result = remap_file_pages_locked(addr, size, prot, pgoff, flags);
    lock_release(&engine_lock);
    return result;
}
