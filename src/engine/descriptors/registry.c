// SPDX-License-Identifier: MIT
//
// Which descriptors are hidden, and where numbers for them come from. Slots are
// read without a lock (one aligned word each) and changed under one. A number is
// registered before the client could meet it and forgotten only when it is about
// to be closed or replaced.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/futex_lock.h"
#include "base/raw_syscall.h"
#include "engine/descriptors/descriptors_internal.h"

typedef struct HiddenSlot {
    i32 fd_plus_1; // 0: free, so that zeroed memory is an empty registry
    DescriptorMoved *moved;
} HiddenSlot;

static HiddenSlot slots[HIDDEN_MAX];
static Lock registry_lock;
static bool table_is_split;
i32 descriptors_lowest = INT32_MAX;

// ------------------------------------------------------------------- slots

static int slot_fd(const HiddenSlot *slot)
{
    return __atomic_load_n(&slot->fd_plus_1, __ATOMIC_RELAXED) - 1;
}

static HiddenSlot *slot_of(int fd)
{
    for (size_t i = 0; i < HIDDEN_MAX; i++)
        if (slot_fd(&slots[i]) == fd)
            return &slots[i];
    return NULL;
}

i32 registry_lowest_from(i32 from)
{
    i32 lowest = INT32_MAX;

    for (size_t i = 0; i < HIDDEN_MAX; i++) {
        i32 fd = slot_fd(&slots[i]);
        if (fd >= 0 && fd >= from && fd < lowest)
            lowest = fd;
    }
    return lowest;
}

static void slot_set(HiddenSlot *slot, int fd)
{
    __atomic_store_n(&slot->fd_plus_1, fd + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&descriptors_lowest, registry_lowest_from(0), __ATOMIC_RELEASE);
}

bool descriptor_is_hidden(int fd)
{
    return fd >= descriptors_lowest && fd >= 0 && slot_of(fd) != NULL;
}

u32 descriptors_count(void)
{
    u32 count = 0;

    for (size_t i = 0; i < HIDDEN_MAX; i++)
        count += slot_fd(&slots[i]) >= 0;
    return count;
}

// ----------------------------------------------------------------- numbers

static bool set_limit(struct rlimit limit)
{
    return raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, (u64)&limit, 0) == 0;
}

bool descriptors_make_room(struct rlimit *ret_limit)
{
    enum { ENOUGH = 256 };
    struct rlimit limit;

    if (raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (u64)&limit) != 0 ||
        limit.rlim_cur >= ENOUGH)
        return false;
    *ret_limit = limit;
    return set_limit((struct rlimit){ENOUGH, limit.rlim_max < ENOUGH ? ENOUGH : limit.rlim_max}) ||
           set_limit((struct rlimit){limit.rlim_max, limit.rlim_max});
}

void descriptors_give_room_back(const struct rlimit *limit)
{
    set_limit(*limit);
}

// The lowest free number from `from` on that lies below `end`, by raising the limit
// to `end` where that is allowed. -errno otherwise.
static i64 dup_between(int fd, u64 from, u64 end)
{
    struct rlimit limit;

    if (raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (u64)&limit) != 0)
        return -EMFILE;
    bool too_low = limit.rlim_cur < end;
    struct rlimit raised = { end, limit.rlim_max > end ? limit.rlim_max : end };
    if (too_low && !set_limit(raised))
        return -EMFILE;
    i64 home = raw_syscall3(SYS_fcntl, (u64)fd, F_DUPFD_CLOEXEC, from);
    if (too_low)
        set_limit(limit);
    return home == -EINVAL ? -EMFILE : home;
}

// The highest free number below `end` that the hard limit allows: for a user who may
// not raise it. Whether one is free from some number on is asked by halving.
static i64 dup_below(int fd, u64 end)
{
    struct rlimit limit;
    i64 home = -EMFILE;

    if (raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (u64)&limit) != 0)
        return -EMFILE;
    end = min_u64(limit.rlim_max, end);
    for (u64 low = 3, high = end, probe = end - 1; low < high; probe = low + (high - low) / 2) {
        i64 higher = dup_between(fd, probe, end);
        if (higher < 0) {
            high = probe;
            continue;
        }
        if (home >= 0)
            raw_syscall1(SYS_close, (u64)home);
        home = higher;
        low = (u64)higher + 1;
    }
    return home;
}

static i64 dup_above(int fd, u64 from)
{
    i64 home = -EMFILE;

    for (u64 end = from + HIDDEN_ROOM; end <= 16 * from && home == -EMFILE; end *= 2)
        home = dup_between(fd, from, end);
    return home;
}

static i64 find_home(int fd, u64 from)
{
    i64 home = dup_above(fd, from);

    return home == -EMFILE ? dup_below(fd, from) : home;
}

// ------------------------------------------------------------- hide and move

bool registry_adopt(int fd, DescriptorMoved *moved)
{
    lock_acquire(&registry_lock);
    HiddenSlot *slot = slot_of(-1);
    calls_learn();
    if (slot) {
        slot->moved = moved;
        slot_set(slot, fd);
    }
    lock_release(&registry_lock);
    if (slot && moved)
        moved(fd);
    return slot != NULL;
}

int descriptor_hide(int fd, DescriptorMoved *moved)
{
    i64 home = find_home(fd, HIDDEN_START);

    if (home >= 0 && !registry_adopt((int)home, moved)) {
        raw_syscall1(SYS_close, (u64)home);
        home = -EMFILE;
    }
    return (int)home;
}

void descriptor_drop(int fd)
{
    lock_acquire(&registry_lock);
    HiddenSlot *slot = fd < 0 ? NULL : slot_of(fd);
    if (slot) {
        raw_syscall1(SYS_close, (u64)fd);
        slot_set(slot, -1);
    }
    lock_release(&registry_lock);
}

bool registry_may_change(void)
{
    return !table_is_split && thread_ctx.thread.vfork_depth == 0;
}

static bool move(int fd, int from, i64 (*find)(int fd, u64 from))
{
    bool moved = false;

    lock_acquire(&registry_lock);
    HiddenSlot *slot = registry_may_change() ? slot_of(fd) : NULL;
    if (slot) {
        i64 home = find(fd, (u64)from);
        slot_set(slot, home >= 0 ? (int)home : -1);
        if (slot->moved)
            slot->moved(home >= 0 ? (int)home : -1);
        moved = true;
    }
    lock_release(&registry_lock);
    return moved;
}

bool registry_vacate(int fd, int from)
{
    return move(fd, from, find_home);
}

bool registry_expel(int fd, int from)
{
    return move(fd, from, dup_above);
}

void descriptors_table_is_split(void)
{
    table_is_split = true;
}

void descriptors_fork_prepare(void)
{
    lock_acquire(&registry_lock);
}

void descriptors_fork_parent(void)
{
    lock_release(&registry_lock);
}

void registry_after_fork(void)
{
    lock_reset_after_fork(&registry_lock);
    table_is_split = false;
}
