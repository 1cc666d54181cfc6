// SPDX-License-Identifier: MIT
//
// See own_file.h. Where there is a limit, it is raised for the moment of the write, as far
// as we may. Signals that come nevertheless (SIGXFSZ; SIGPIPE of a pipe that nobody reads any
// more) are blocked and taken back: they are not the client's.
#include "base/own_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "base/raw_syscall.h"

static i64 file_size_limit(const struct rlimit *set, struct rlimit *get)
{
    return raw_syscall4(SYS_prlimit64, 0, RLIMIT_FSIZE, (u64)set, (u64)get);
}

static i64 write_all(int fd, const u8 *data, u64 size)
{
    while (size > 0) {
        i64 n = raw_syscall3(SYS_write, (u64)(u32)fd, (u64)data, size);
        if (n <= 0)
            return n ? n : -EIO;
        data += n;
        size -= (u64)n;
    }
    return 0;
}

static void raise_limit(const struct rlimit *limit)
{
    const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
    const struct rlimit highest = { limit->rlim_max, limit->rlim_max };

    if (file_size_limit(&none, NULL) != 0)
        file_size_limit(&highest, NULL);
}

// What is to be done to the file: `data` is NULL to give it a size.
typedef struct FileWork {
    int fd;
    const void *data;
    u64 size;
} FileWork;

static i64 work_on(const FileWork *work)
{
    if (work->data)
        return write_all(work->fd, work->data, work->size);
    return raw_syscall2(SYS_ftruncate, (u64)(u32)work->fd, work->size);
}

static i64 work_under_limit(const FileWork *work, const struct rlimit *limit)
{
    raise_limit(limit);
    i64 result = work_on(work);
    file_size_limit(limit, NULL);
    return result;
}

static i64 work_beyond_limit(const FileWork *work)
{
    struct rlimit limit;

    if (file_size_limit(NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return work_on(work);
    return work_under_limit(work, &limit);
}

// One that was pending before is the client's, and stays.
static i64 work_in_silence(const FileWork *work)
{
    const u64 ours = 1ull << (SIGXFSZ - 1) | 1ull << (SIGPIPE - 1);
    const struct timespec at_once = { 0, 0 };
    u64 mask, pending = 0;

    raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, (u64)&ours, (u64)&mask, sizeof(mask));
    if (mask & ours)
        raw_syscall2(SYS_rt_sigpending, (u64)&pending, sizeof(pending));
    i64 result = work_beyond_limit(work);
    u64 taken = ours & ~pending;
    if (result == -EFBIG || result == -EPIPE)
        raw_syscall4(SYS_rt_sigtimedwait, (u64)&taken, 0, (u64)&at_once, sizeof(taken));
    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (u64)&mask, 0, sizeof(mask));
    return result;
}

bool own_file_write(int fd, const void *data, u64 size_bytes)
{
    return size_bytes == 0 || work_in_silence(&(FileWork){ fd, data, size_bytes }) == 0;
}

i64 own_file_resize(int fd, u64 size_bytes)
{
    return work_in_silence(&(FileWork){ fd, NULL, size_bytes });
}
