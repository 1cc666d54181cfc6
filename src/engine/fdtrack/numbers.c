// SPDX-License-Identifier: MIT
//
// --modify-fds: what the kernel numbers low gets a high number. A program that goes on using a
// descriptor that it has closed then meets EBADF, and not whatever was opened next.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/raw_syscall.h"
#include "engine/fdtrack/fdtrack_internal.h"
#include "engine/syscall/syscall.h"

u32 fdtrack_numbers = MODIFY_FDS_NO;

// Hidden ones count as open.
static bool is_free(i32 fd)
{
    return raw_syscall3(SYS_fcntl, (u64)fd, F_GETFD, 0) == -EBADF;
}

// -1: none above `low`.
static i32 highest_free(i32 low)
{
    struct rlimit limit;
    if (raw_syscall2(SYS_getrlimit, RLIMIT_NOFILE, (u64)&limit) < 0)
        return -1;
    for (i32 fd = (i32)min_u64(limit.rlim_cur, 1 << 20) - 1; fd > low; fd--) {
        if (is_free(fd))
            return fd;
    }
    return -1;
}

static i32 renumber(ThreadCtx *ctx, i32 fd)
{
    enum { STANDARD_MAX = 2 };
    (void)ctx;
    if (fdtrack_numbers == MODIFY_FDS_YES && fd <= STANDARD_MAX)
        return fd;
    i32 high = highest_free(fd);
    i64 flags = raw_syscall3(SYS_fcntl, (u64)fd, F_GETFD, 0);
    if (high < 0 || flags < 0)
        return fd;
    // Another thread may take the number meanwhile: then it is the next above.
    u64 command = flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD;
    i64 got = raw_syscall3(SYS_fcntl, (u64)fd, command, (u64)high);
    if (got < 0)
        return fd;
    raw_syscall1(SYS_close, (u64)fd);
    return (i32)got;
}

i64 fdtrack_renumber(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result)
{
    if (nr == NR_dup2 || nr == NR_dup3)
        return result; // the program has chosen
    return calls_for_each_new(ctx, nr, args, result, renumber);
}
