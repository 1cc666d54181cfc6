// SPDX-License-Identifier: MIT
//
// The client's calls on descriptors: what would touch a hidden one is refused or
// steered around it. The common path of a call is one table look-up and one compare.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors_internal.h"
#include "engine/gateway/gateway.h"
#include "engine/syscall/syscall.h"

typedef struct CallRow {
    u8 fds;    // bit i: argument i is a descriptor
    u8 dirfds; // bit i: argument i is a directory, for the path in argument i + 1
    bool makes; // new descriptors, one as its result or some that it stores
} CallRow;

static CallRow rows[NR_LIMIT];

// What the table of system calls does not say.
static const struct Exception {
    u16 nr;
    u8 spared; // bit i: argument i may be a hidden number
    bool makes;
} exceptions[] = {
    { NR_mmap, 1 << 4, false }, // counts without MAP_ANONYMOUS only
    { NR_dup2, 1 << 1, false }, // the number to be had
    { NR_dup3, 1 << 1, false },
    { NR_fcntl, 0, true },
    { NR_pipe, 0, true },
    { NR_pipe2, 0, true },
    { NR_socketpair, 0, true },
};

static CallRow row_of(const SyscallRow *call)
{
    CallRow row = { .makes = call->flags & SYS_NEW_FD };

    for (unsigned i = 0; i < SYSCALL_ARGS; i++) {
        bool has_path = i + 1 < SYSCALL_ARGS && call->args[i + 1].kind == ARG_PATH;
        if (call->args[i].kind == ARG_DIRFD && has_path)
            row.dirfds |= (u8)(1 << i);
        else if (call->args[i].kind == ARG_DIRFD || call->args[i].kind == ARG_FD)
            row.fds |= (u8)(1 << i);
    }
    return row;
}

void calls_learn(void)
{
    static bool is_learned;

    if (is_learned)
        return;
    is_learned = true;
    for (u64 nr = 0; nr < ARRAY_LEN(rows); nr++)
        if (syscall_row(nr))
            rows[nr] = row_of(syscall_row(nr));
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++) {
        rows[exceptions[i].nr].fds &= (u8)~exceptions[i].spared;
        rows[exceptions[i].nr].makes = exceptions[i].makes;
    }
}

// ------------------------------------------------------------------- refusal

// A directory is not looked at when the path is absolute.
static bool path_is_absolute(GuestAddr path)
{
    char first;
    return guest_read(path, &first, 1) && first == '/';
}

bool descriptors_refuse(u64 nr, const u64 args[6])
{
    if (nr >= ARRAY_LEN(rows))
        return false;
    if (nr == SYS_mmap)
        return !(args[3] & MAP_ANONYMOUS) && descriptor_is_hidden((i32)args[4]);
    const CallRow *row = &rows[nr];
    for (unsigned i = 0, left = row->fds; left; i++, left >>= 1)
        if ((left & 1) && descriptor_is_hidden((i32)args[i]))
            return true;
    for (unsigned i = 0, left = row->dirfds; left; i++, left >>= 1)
        if ((left & 1) && descriptor_is_hidden((i32)args[i]) && !path_is_absolute(args[i + 1]))
            return true;
    return false;
}

// ---------------------------------------------------------------------- poll

#define NEVER_OPEN INT32_MAX // above every limit that the kernel accepts

// What cannot be read ends the search, and the kernel says what is wrong with it: each entry behind
// that would be a fault, and there may be a million.
static bool names_hidden(GuestAddr array, u64 count)
{
    struct pollfd entry;

    for (u64 i = 0; i < count; i++) {
        if (!guest_read(array + i * sizeof(entry), &entry, sizeof(entry)))
            return false;
        if (descriptor_is_hidden(entry.fd))
            return true;
    }
    return false;
}

i64 descriptors_poll(ThreadCtx *ctx, const u64 args[6],
                     i64 (*perform)(ThreadCtx *ctx, const u64 args[6]))
{
    u64 count = min_u64((u32)args[1], 1 << 20), size = count * sizeof(struct pollfd);
    u64 changed[6];

    if (LIKELY(!names_hidden(args[0], count)))
        return perform(ctx, args);
    struct pollfd *copy = pages_map(size);
    if (!copy)
        return -ENOMEM;
    i64 result = -EFAULT;
    if (guest_read(args[0], copy, size)) {
        for (u64 i = 0; i < count; i++)
            copy[i].fd = descriptor_is_hidden(copy[i].fd) ? NEVER_OPEN : copy[i].fd;
        memcpy(changed, args, sizeof(changed));
        changed[0] = (u64)copy;
        result = perform(ctx, changed);
        for (u64 i = 0; i < count && result >= 0; i++)
            guest_write(args[0] + i * sizeof(*copy) + offsetof(struct pollfd, revents),
                        &copy[i].revents, sizeof(copy[i].revents));
    }
    pages_unmap(copy, size);
    return result;
}

// ----------------------------------------------------------- new descriptors

// Where our descriptor goes when the client needs `number`: far enough that a
// client which opens ever more does not meet it at every step, as long as the
// table does not grow out of all proportion.
static int retreat_from(int number)
{
    if (number < HIDDEN_START)
        return HIDDEN_START;
    return number < 1 << 20 ? number * 2 : number + 1;
}

// The client was given `fd` because `hidden` is ours: it gets `hidden`.
static i64 exchange(int fd, int hidden)
{
    if (!registry_vacate(hidden, retreat_from(fd)))
        return fd;
    i64 flags = raw_syscall2(SYS_fcntl, (u64)fd, F_GETFD);
    raw_syscall3(SYS_dup3, (u64)fd, (u64)hidden, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    raw_syscall1(SYS_close, (u64)fd);
    return hidden;
}

static bool is_dupfd(u64 command)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

// The client's part of the table is full. If one of ours is in it, out it goes.
static bool make_room(i32 from)
{
    struct rlimit limit;

    raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (u64)&limit);
    u64 outside = min_u64(max_u64(limit.rlim_cur, HIDDEN_START), INT32_MAX);
    i32 fd = registry_lowest_from(from);
    if (fd == INT32_MAX || (u64)fd >= limit.rlim_cur || !registry_expel(fd, (int)outside))
        return false;
    raw_syscall1(SYS_close, (u64)fd);
    return true;
}

bool descriptors_settle(u64 nr, const u64 args[6], i64 *result)
{
    if (nr >= ARRAY_LEN(rows) || !rows[nr].makes)
        return false;
    if (LIKELY(*result < descriptors_lowest && *result != -EMFILE))
        return false;
    if (nr == SYS_fcntl && !is_dupfd(args[1]))
        return false;
    i32 from = nr == SYS_fcntl ? (i32)args[2] : 0;
    if (*result == -EMFILE)
        return make_room(from);
    i32 hidden = registry_lowest_from(from);
    if (hidden < *result)
        *result = exchange((int)*result, hidden);
    return false;
}

// ------------------------------------------------------- close, dup2 and dup3

i64 sys_close(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    if (UNLIKELY(log_takes_over((int)args[0])))
        return 0;
    i64 result = gateway_syscall(SYS_close, args[0], 0, 0, 0, 0, 0);
    if (result == 0)
        log_regain();
    return result;
}

// Whether the client might have `number` if it were free: EBADF from there on.
static bool is_within_limit(i32 number)
{
    struct rlimit limit;

    raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (u64)&limit);
    return (u64)number < limit.rlim_cur;
}

static i64 dup_onto(u64 nr, const u64 a[6])
{
    i32 onto = (i32)a[1];
    bool was_ours = descriptor_is_hidden(onto);

    if (was_ours && (raw_syscall2(SYS_fcntl, a[0], F_GETFD) < 0 || !is_within_limit(onto)))
        return -EBADF;
    if (was_ours && !registry_vacate(onto, retreat_from(onto)))
        return -EBUSY;
    i64 result = gateway_syscall(nr, a[0], a[1], a[2], 0, 0, 0);
    if (was_ours && result < 0)
        raw_syscall1(SYS_close, (u64)onto);
    return result;
}

i64 sys_dup2(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    return dup_onto(SYS_dup2, args);
}

i64 sys_dup3(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    return dup_onto(SYS_dup3, args);
}

// -------------------------------------------------- close_range and unshare

i64 sys_unshare(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    i64 result = gateway_syscall(SYS_unshare, args[0], 0, 0, 0, 0, 0);
    if (result == 0 && (args[0] & CLONE_FILES))
        descriptors_table_is_split();
    return result;
}

// Unsharing comes first, by itself: its effect does not depend on how the range is cut up.
i64 sys_close_range(ThreadCtx *ctx, const u64 args[6])
{
    u64 first = (u32)args[0], last = (u32)args[1], flags = (u32)args[2];
    u64 known = CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC;
    const u64 unshare_files[6] = { CLONE_FILES };
    i64 result = 0;

    if (first > last || (flags & ~known))
        return -EINVAL;
    if (flags & CLOSE_RANGE_UNSHARE)
        result = sys_unshare(ctx, unshare_files);
    flags &= CLOSE_RANGE_CLOEXEC;
    while (result == 0 && first <= last) {
        u64 hidden = first < INT32_MAX ? (u64)registry_lowest_from((i32)first) : INT32_MAX;
        // [first, end) is the client's
        u64 end = hidden < INT32_MAX ? min_u64(hidden, last + 1) : last + 1;
        if (first < end)
            result = gateway_syscall(SYS_close_range, first, end - 1, flags, 0, 0, 0);
        first = end + 1;
    }
    return result;
}
