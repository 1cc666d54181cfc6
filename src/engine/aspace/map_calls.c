// SPDX-License-Identifier: MIT
//
// mmap, munmap, mprotect and madvise. The kernel judges every request: the real
// call is made, at the address chosen here and without PROT_EXEC, and the
// records follow what it did.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

#define RECORDED_FLAGS (MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_NORESERVE)
#define RECORDED_PROT  (PROT_READ | PROT_WRITE | PROT_EXEC)
#define PROT_SEM       0x8 // accepted and without effect
#define MOUNT_NOEXEC   0x8 // ST_NOEXEC of statfs.f_flags

// Code up to this size goes low; a larger one would crowd out the others.
#define LOW_CODE_MAX   (64 * MiB)
#define LOW_IMAGE_MAX  (256 * MiB)
#define LOW_2GIB       (2048 * MiB)
#define LOW_WORDS_MAX  (256 * KiB)
#define FAR_HINT_ALIGN (1ull << 40)
#define FAR_HINT_END   (2 * CLIENT_END) // where the tools' shadow begins

typedef struct MapRequest {
    u64 addr, len, prot, flags, fd, offset;
    const char *name; // NULL: the file's path
} MapRequest;

GuestAddr aspace_end = USER_END;

static u64 shared_anonymous_inodes = 1024;

static i64 host_mmap(const MapRequest *r, GuestAddr addr, u64 flags)
{
    return raw_syscall6(SYS_mmap, addr, r->len, host_prot(r->prot), flags, r->fd, r->offset);
}

static bool is_file(const MapRequest *r)
{
    return !(r->flags & MAP_ANONYMOUS);
}

// ---------------------------------------------------------------- records

static void describe_file(const MapRequest *r, MapNode *ret_node, char *path, size_t path_size)
{
    struct stat st;
    char link[64];

    if (raw_syscall2(SYS_fstat, (u64)(i32)r->fd, (u64)&st) == 0) {
        ret_node->m.dev = st.st_dev;
        ret_node->m.inode = st.st_ino;
    }
    ret_node->m.offset = r->offset;
    text_format(link, sizeof link, "/proc/thread-self/fd/%d", (i32)r->fd);
    i64 len = raw_syscall3(SYS_readlink, (u64)link, (u64)path, path_size - 1);
    if (len > 0) {
        path[len] = 0;
        ret_node->m.name = path;
    } else if (opened_name(ret_node->m.dev, ret_node->m.inode, path, path_size)) {
        ret_node->m.name = path;
    }
}

void (*aspace_code_mapped_hook)(const Mapping *mapping, int fd);

static void record_mapping(const MapRequest *r, GuestAddr addr)
{
    char path[4096];
    MapNode node = {
        .m =
            {
                .start = addr,
                .end = addr + r->len,
                .prot = r->prot & RECORDED_PROT,
                .flags = r->flags & RECORDED_FLAGS,
            },
    };

    if ((r->flags & MAP_TYPE) == MAP_SHARED_VALIDATE)
        node.m.flags = (node.m.flags & ~(u32)MAP_TYPE) | MAP_SHARED;
    if (is_file(r)) {
        describe_file(r, &node, path, sizeof path);
    } else if (r->flags & MAP_SHARED) {
        node.m.dev = DEV_SHMEM;
        node.m.inode = shared_anonymous_inodes++;
        node.m.name = "/dev/zero (deleted)";
    }
    if (r->name)
        node.m.name = r->name;
    tree_remove(addr, addr + r->len);
    tree_add(&node);
    if (aspace_code_mapped_hook && is_file(r) && (node.m.prot & PROT_EXEC))
        aspace_code_mapped_hook(&node.m, (i32)r->fd);
    if ((node.m.prot & PROT_WRITE) && (node.m.flags & MAP_SHARED))
        guard_note_writable(addr, addr + r->len);
    if (addr + r->len > CLIENT_END)
        range_publish_far();
}

// ---------------------------------------------------------------- mmap

// ld.so first maps the whole span of a library by its file.
static bool is_elf_image(const MapRequest *r)
{
    char magic[4];

    if (!is_file(r) || (r->flags & MAP_TYPE) != MAP_PRIVATE || r->len > LOW_IMAGE_MAX)
        return false;
    i64 got = raw_syscall3(SYS_pread64, (u64)(i32)r->fd, (u64)magic, sizeof magic);
    return got == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

bool aspace_expects_words;

static bool may_be_first_words(const MapRequest *r)
{
    return aspace_expects_words && !is_file(r) && r->len <= LOW_WORDS_MAX &&
           r->prot == (PROT_READ | PROT_WRITE);
}

static PlaceKind place_kind(const MapRequest *r)
{
    if (r->flags & MAP_32BIT)
        return PLACE_LOW_ONLY;
    if ((r->prot & PROT_EXEC) && r->len <= LOW_CODE_MAX)
        return PLACE_LOW_IF_ROOM;
    return is_elf_image(r) || may_be_first_words(r) ? PLACE_LOW_IF_ROOM : PLACE_HIGH;
}

// The page size of a huge-page mapping, otherwise PAGE_SIZE.
static u64 page_size_of(const MapRequest *r)
{
    struct statfs fs;

    if (!is_file(r)) {
        if (!(r->flags & MAP_HUGETLB))
            return PAGE_SIZE;
        u64 shift = (r->flags >> MAP_HUGE_SHIFT) & MAP_HUGE_MASK;
        return shift >= 12 && shift < 40 ? 1ull << shift : HUGE_PAGE;
    }
    if (raw_syscall2(SYS_fstatfs, (u64)(i32)r->fd, (u64)&fs) == 0 && fs.f_type == 0x958458f6)
        return (u64)fs.f_bsize; // hugetlbfs
    return PAGE_SIZE;
}

static u64 alignment_of(const MapRequest *r, u64 page_size)
{
    if (page_size > PAGE_SIZE)
        return page_size;
    // As the kernel does: transparent huge pages fit such a mapping whole.
    return !is_file(r) && r->len >= HUGE_PAGE && r->len % HUGE_PAGE == 0 ? HUGE_PAGE : PAGE_SIZE;
}

static GuestAddr choose_address(const MapRequest *r, u64 page_size)
{
    PlaceKind kind = place_kind(r);
    u64 align = alignment_of(r, page_size);
    u64 room = r->flags & MAP_GROWSDOWN ? GROWSDOWN_ROOM : 0;

    GuestAddr addr = place_find(kind, r->len + room, align);
    if (!addr && align > page_size)
        addr = place_find(kind, r->len + room, page_size);
    return addr ? addr + room : 0;
}

// Beyond CLIENT_END only round addresses are taken: a program that plans its address space (Java's
// ZGC) insists on them, one that rolls dice (V8) is as happy with another.
static bool hint_is_free(GuestAddr hint, u64 len)
{
    if (hint < CLIENT_END)
        return place_hint_is_free(hint, len);
    GuestAddr end = min_u64(FAR_HINT_END, aspace_end);
    return hint % FAR_HINT_ALIGN == 0 && hint < end && len <= end - hint &&
           !range_hits_engine(hint, hint + len);
}

// The kernel takes a hint with MAP_32BIT too, if the mapping ends below 2 GiB.
static bool hint_may_be_used(const MapRequest *r, GuestAddr hint)
{
    if ((r->flags & MAP_32BIT) && (hint >= LOW_2GIB || r->len > LOW_2GIB - hint))
        return false;
    return hint && hint_is_free(hint, r->len);
}

// io_uring insists on its own choice, as far as it can be asked to be low.
static i64 map_as_it_likes(const MapRequest *r)
{
    i64 result = host_mmap(r, 0, r->flags | MAP_32BIT);
    if (result < 0)
        result = host_mmap(r, 0, r->flags);
    if (result < 0 || (u64)result + r->len <= aspace_end)
        return result;
    raw_syscall2(SYS_munmap, (u64)result, r->len);
    return -ENOMEM;
}

static i64 map_anywhere(MapRequest *r)
{
    u64 page_size = page_size_of(r);
    u64 flags = (r->flags & ~(u64)MAP_32BIT) | MAP_FIXED_NOREPLACE;
    bool searched_foreign = false;

    r->len = (r->len + page_size - 1) & ~(page_size - 1);
    GuestAddr hint = r->addr & ~(page_size - 1);
    bool try_hint = hint_may_be_used(r, hint);
    for (;;) {
        GuestAddr addr = try_hint ? hint : choose_address(r, page_size);
        if (!addr)
            return -ENOMEM;
        i64 result = host_mmap(r, addr, flags);
        if (result == -EEXIST && !searched_foreign) {
            searched_foreign = true;
            try_hint = false;
            range_find_foreign();
            continue;
        }
        if (result == -EINVAL && is_file(r))
            result = map_as_it_likes(r);
        if (result >= 0)
            record_mapping(r, (GuestAddr)result);
        return result == -EEXIST ? -ENOMEM : result;
    }
}

// Above CLIENT_END only what is free or the client's own already may be had.
static i64 map_far(const MapRequest *r)
{
    u64 flags = (r->flags & ~(u64)MAP_FIXED) | MAP_FIXED_NOREPLACE;
    i64 result = host_mmap(r, r->addr, flags);

    if (result != -EEXIST || (r->flags & MAP_FIXED_NOREPLACE))
        return result;
    GuestAddr end = r->addr + r->len;
    for (GuestAddr at = r->addr; at < end;) {
        const MapNode *n = tree_at_or_after(at);
        if (!n || n->m.start >= end)
            break;
        at = max_u64(at, n->m.start);
        raw_syscall2(SYS_munmap, at, min_u64(end, n->m.end) - at);
        at = n->m.end;
    }
    guard_retire_code(r->addr, end);
    guard_forget(r->addr, end);
    tree_remove(r->addr, end);
    range_publish_far();
    result = host_mmap(r, r->addr, flags);
    return result == -EEXIST ? -ENOMEM : result;
}

static i64 map_fixed(MapRequest *r)
{
    bool replaces = !(r->flags & MAP_FIXED_NOREPLACE);
    u64 page_size = page_size_of(r);

    r->len = (r->len + page_size - 1) & ~(page_size - 1);
    if (r->addr % PAGE_SIZE)
        return host_mmap(r, r->addr, r->flags); // refused: the kernel knows with which error
    if (r->len > aspace_end || r->addr > aspace_end - r->len)
        return -ENOMEM;
    GuestAddr end = r->addr + r->len;
    if (range_hits_engine(r->addr, end))
        return replaces ? -ENOMEM : -EEXIST;

    i64 result = end > CLIENT_END ? map_far(r) : host_mmap(r, r->addr, r->flags);
    if (result < 0) {
        if (replaces)
            range_drop_lost(r->addr, end);
        return result;
    }
    guard_retire_code(r->addr, end);
    guard_forget(r->addr, end);
    record_mapping(r, r->addr);
    return result;
}

static bool on_noexec_mount(const MapRequest *r)
{
    struct statfs fs;

    return raw_syscall2(SYS_fstatfs, (u64)(i32)r->fd, (u64)&fs) == 0 && (fs.f_flags & MOUNT_NOEXEC);
}

static i64 map_locked(MapRequest *r)
{
    u64 len = PAGE_UP(r->len);

    if (r->len == 0 || len < r->len || r->offset % PAGE_SIZE)
        return host_mmap(r, 0, r->flags & ~(u64)MAP_FIXED); // always refused
    if (len > USER_END)
        return -ENOMEM;
    r->len = len;
    if (is_file(r) && (r->prot & PROT_EXEC) && on_noexec_mount(r))
        return -EPERM;
    range_sync_growing_stacks();
    if (!account_may_map(r->addr, len, r->prot, r->flags))
        return -ENOMEM;
    return r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? map_fixed(r) : map_anywhere(r);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

// MAP_POPULATE reads or allocates all pages, which takes a fraction of a second per GiB: it is done
// when the lock is free again, with what the kernel would do. As there, failures are forgotten.
static void populate_late(const MapRequest *r, GuestAddr start)
{
    bool writes = (r->prot & PROT_WRITE) && (r->flags & MAP_TYPE) == MAP_PRIVATE;

    if (r->prot != PROT_NONE)
        raw_syscall3(SYS_madvise, start, PAGE_UP(r->len),
                     writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

// Since Linux 5.14.
static bool kernel_populates(void)
{
    static i32 known; // 0: not asked yet; a race asks twice

    if (!known)
        known = raw_syscall3(SYS_madvise, 0, 0, MADV_POPULATE_READ) == 0 ? 1 : -1;
    return known > 0;
}

i64 aspace_map_named(u64 addr, u64 len, u64 prot, u64 flags, int fd, u64 offset, const char *name)
{
    bool late = (flags & MAP_POPULATE) && !(flags & MAP_NONBLOCK) && kernel_populates();
    MapRequest r = {addr, len, prot, late ? flags & ~(u64)MAP_POPULATE : flags, (u64)fd, offset,
                    name};

    lock_acquire(&engine_lock);
    i64 result = map_locked(&r);
    lock_release(&engine_lock);
    if (late && result >= 0)
        populate_late(&r, (GuestAddr)result);
    return result;
}

i64 sys_mmap(u64 addr, u64 len, u64 prot, u64 flags, u64 fd, u64 offset)
{
    return aspace_map_named(addr, len, prot, flags, (int)fd, offset, NULL);
}

// ---------------------------------------------------------------- munmap

// Takes the client's part out of a range that also touches the engine's.
static i64 unmap_pieces(GuestAddr start, GuestAddr end)
{
    bool any = false;

    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end; n = tree_next(n)) {
        GuestAddr from = max_u64(start, n->m.start);
        if (n->foreign)
            continue;
        any = true;
        i64 result = raw_syscall2(SYS_munmap, from, min_u64(end, n->m.end) - from);
        if (result < 0)
            return result;
    }
    return any ? 0 : -EINVAL;
}

static void remove_client_records(GuestAddr start, GuestAddr end)
{
    while (start < end) {
        MapNode *n = tree_at_or_after(start);
        if (!n || n->m.start >= end)
            return;
        GuestAddr from = max_u64(start, n->m.start);
        start = n->m.end;
        if (!n->foreign)
            tree_remove(from, min_u64(end, n->m.end));
    }
}

static i64 unmap_locked(u64 addr, u64 len)
{
    u64 size = PAGE_UP(len);

    if (addr % PAGE_SIZE || size == 0 || size > USER_END || addr > USER_END - size)
        return -EINVAL;
    GuestAddr end = addr + size;
    range_sync_growing_stacks();
    i64 result;
    if (end <= CLIENT_END && !range_hits_engine(addr, end))
        result = raw_syscall2(SYS_munmap, addr, size);
    else
        result = unmap_pieces(addr, end);
    if (result < 0)
        return result;
    guard_retire_code(addr, end);
    guard_forget(addr, end);
    remove_client_records(addr, end);
    if (end > CLIENT_END)
        range_publish_far();
    return 0;
}

i64 sys_munmap(u64 addr, u64 len)
{
    lock_acquire(&engine_lock);
    i64 result = unmap_locked(addr, len);
    lock_release(&engine_lock);
    return result;
}

// ---------------------------------------------------------------- mprotect

typedef struct Protection {
    u32 prot;
    i32 pkey; // -1: keep
} Protection;

static void set_protection(MapNode *n, void *arg)
{
    const Protection *p = arg;

    n->m.prot = p->prot;
    if (p->pkey >= 0)
        n->pkey = (u32)p->pkey;
}

// One member's part of the range: the kernel decides, the guards and blocks follow.
static i64 protect_piece(const MapNode *n, GuestAddr start, GuestAddr end, u64 prot, i32 pkey)
{
    Protection p = {(u32)prot & RECORDED_PROT, pkey};
    u32 old = n->m.prot;

    // Nothing changes, and a real call would open the guarded pages for a moment.
    if (old == p.prot && pkey < 0)
        return 0;
    if (!account_may_become(end - start, prot, old, n->m.flags))
        return -ENOMEM;
    i64 result = host_protect(start, end - start, host_prot(prot), pkey);
    if (result < 0)
        return result;

    bool loses_exec = (old & PROT_EXEC) && !(p.prot & PROT_EXEC);
    bool gains_write = !(old & PROT_WRITE) && (p.prot & PROT_WRITE);
    if (loses_exec || (gains_write && (old & PROT_EXEC)))
        code_changed(start, end);
    if (p.prot & PROT_WRITE)
        guard_release(start, end);
    else
        guard_unmark(start, end);
    tree_update(start, end, set_protection, &p);
    if (gains_write)
        guard_note_writable(start, end);
    if (aspace_mapped_hook) {
        MapNode piece = tree_piece(tree_find(start), start, end);
        aspace_mapped_hook(&piece.m);
    }
    if (aspace_code_mapped_hook && (p.prot & PROT_EXEC) && !(old & PROT_EXEC)) {
        MapNode piece = tree_piece(tree_find(start), start, end);
        if (piece.m.inode)
            aspace_code_mapped_hook(&piece.m, -1);
    }
    return 0;
}

static i64 protect_locked(u64 addr, u64 len, u64 prot, i32 pkey)
{
    u64 size = PAGE_UP(len);
    u64 grows = prot & (PROT_GROWSDOWN | PROT_GROWSUP);

    if (size == 0 || addr % PAGE_SIZE || (prot & ~(u64)(RECORDED_PROT | PROT_SEM | grows)) ||
        grows == (PROT_GROWSDOWN | PROT_GROWSUP)) // changes nothing: the kernel knows the result
        return host_protect(addr, len, prot, pkey);
    GuestAddr end = addr + size;
    if (end <= addr)
        return -ENOMEM;
    range_sync_growing_stacks();

    MapNode *first = tree_find(addr);
    if (grows && first) {
        if (grows == PROT_GROWSUP || !growth_is_stack(first))
            return -EINVAL;
        addr = first->m.start;
    }
    // Piece by piece, as the kernel does it: what comes before an error has changed.
    for (GuestAddr at = addr; at < end;) {
        MapNode *n = tree_find(at);
        if (!n || n->foreign)
            return -ENOMEM;
        GuestAddr piece_end = min_u64(end, n->m.end);
        i64 result = protect_piece(n, at, piece_end, prot & RECORDED_PROT, pkey);
        if (result < 0)
            return result;
        at = piece_end;
    }
    return 0;
}

bool aspace_has_keys;

i64 sys_pkey_mprotect(u64 addr, u64 len, u64 prot, u64 pkey)
{
    if ((i32)pkey > 0)
        __atomic_store_n(&aspace_has_keys, true, __ATOMIC_RELAXED);
    lock_acquire(&engine_lock);
    i64 result = protect_locked(addr, len, prot, (i32)pkey);
    lock_release(&engine_lock);
    return result;
}

i64 sys_mprotect(u64 addr, u64 len, u64 prot)
{
    return sys_pkey_mprotect(addr, len, prot, (u64)-1);
}

// ---------------------------------------------------------------- madvise

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

static void set_dont_fork(MapNode *n, void *arg)
{
    n->dont_fork = *(bool *)arg;
}

static void follow_advice(GuestAddr start, GuestAddr end, u64 advice)
{
    bool dont_fork = advice == MADV_DONTFORK;

    switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_DONTNEED_LOCKED:
        guard_retire_code(start, end);
        break;
    case MADV_DONTFORK:
    case MADV_DOFORK:
        tree_update(start, end, set_dont_fork, &dont_fork);
        break;
    default:
        break;
    }
}

// The client's members of a range that also touches the engine's.
static i64 advise_pieces(GuestAddr start, GuestAddr end, u64 advice)
{
    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end;) {
        GuestAddr from = max_u64(start, n->m.start), to = min_u64(end, n->m.end);
        if (!n->foreign && raw_syscall3(SYS_madvise, from, to - from, advice) >= 0)
            follow_advice(from, to, advice);
        n = tree_at_or_after(to);
    }
    return -ENOMEM; // as for a range with holes
}

static i64 advise_locked(u64 addr, u64 len, u64 advice)
{
    GuestAddr end = addr + PAGE_UP(len);

    range_sync_growing_stacks();
    if (end > CLIENT_END || range_hits_engine(addr, end))
        return advise_pieces(addr, end, advice);
    i64 result = raw_syscall3(SYS_madvise, addr, len, advice);
    if (result >= 0 || result == -ENOMEM) // ENOMEM: done, but there were holes
        follow_advice(addr, end, advice);
    return result;
}

// Faulting pages in may wait for another thread of the client (userfaultfd, FUSE),
// which must be able to take the lock meanwhile.
static i64 populate(u64 addr, u64 len, u64 advice)
{
    GuestAddr end = addr + PAGE_UP(len);

    lock_acquire(&engine_lock);
    bool refused = end > CLIENT_END || range_hits_engine(addr, end);
    if (!refused && advice == MADV_POPULATE_WRITE)
        guard_lift(addr, end);
    lock_release(&engine_lock);
    return refused ? -ENOMEM : raw_syscall3(SYS_madvise, addr, len, advice);
}

i64 sys_madvise(u64 addr, u64 len, u64 advice)
{
    advice = (u32)advice;
    if (addr % PAGE_SIZE || PAGE_UP(len) < len || addr + PAGE_UP(len) < addr)
        return -EINVAL;
    if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE)
        return populate(addr, len, advice);

    lock_acquire(&engine_lock);
    i64 result = advise_locked(addr, len, advice);
    lock_release(&engine_lock);
    return result;
}
