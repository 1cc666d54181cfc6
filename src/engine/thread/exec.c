// SPDX-License-Identifier: MIT
//
// execve and execveat. A program that is not followed is the kernel's affair:
// it gets the client's own pointers. To follow it, path and vectors are copied
// first, because whoever rewrites them must not see the client change them.
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

i64 (*exec_follow_hook)(ThreadCtx *ctx, ExecRequest *request);
const char *(*exec_own_path_hook)(void);

// The kernel's limits: one string, and more than it would ever take of all.
#define STRING_MAX (128 * KiB)
#define COPY_BYTES (64 * MiB)

// One mapping, filled from its start; untouched pages cost nothing.
typedef struct CopyArea {
    u8 *base, *next, *end;
} CopyArea;

static bool area_open(CopyArea *area)
{
    i64 r = raw_syscall6(SYS_mmap, 0, COPY_BYTES, 3 /* PROT_READ|PROT_WRITE */,
                         0x4022 /* PRIVATE|ANONYMOUS|NORESERVE */, (u64)-1, 0);

    if (raw_failed(r))
        return false;
    *area = (CopyArea){ .base = (u8 *)r, .next = (u8 *)r, .end = (u8 *)r + COPY_BYTES };
    return true;
}

static void area_close(CopyArea *area)
{
    raw_syscall2(SYS_munmap, (u64)area->base, COPY_BYTES);
}

static i64 copy_string(CopyArea *area, GuestAddr addr, u64 max, i64 too_long, char **ret_copy)
{
    u64 room = min_u64(max, (u64)(area->end - area->next));
    char *copy = (char *)area->next;

    if (room < 2)
        return -E2BIG;
    i64 len = guest_read_string(addr, copy, room);
    if (len < 0)
        return guest_read(addr, copy, room - 1) ? too_long : -EFAULT;
    area->next += (u64)len + 1;
    *ret_copy = copy;
    return 0;
}

static i64 count_vector(GuestAddr vector, u64 *ret_count)
{
    u64 count = 0;

    for (;; count++) {
        u64 entry;
        if (!guest_read(vector + count * sizeof(entry), &entry, sizeof(entry)))
            return -EFAULT;
        if (!entry)
            break;
        if (count >= COPY_BYTES / 2 / sizeof(entry))
            return -E2BIG;
    }
    *ret_count = count;
    return 0;
}

// A NULL vector counts as empty, as on Linux.
static i64 copy_vector(CopyArea *area, GuestAddr vector, char ***ret_copy)
{
    u64 count = 0;
    i64 r = vector ? count_vector(vector, &count) : 0;

    if (r < 0)
        return r;
    area->next = (u8 *)(((u64)area->next + 7) & ~7ull);
    char **copy = (char **)area->next;
    if ((u64)(area->end - area->next) / sizeof(*copy) < count + 1)
        return -E2BIG;
    area->next += (count + 1) * sizeof(*copy);
    for (u64 i = 0; i < count; i++) {
        u64 entry;
        if (!guest_read(vector + i * sizeof(entry), &entry, sizeof(entry)))
            return -EFAULT;
        r = copy_string(area, entry, STRING_MAX, -E2BIG, &copy[i]);
        if (r < 0)
            return r;
    }
    copy[count] = NULL;
    *ret_copy = copy;
    return 0;
}

// The kernel's /proc/self/exe is the engine; the client means itself.
static bool names_own_executable(const char *path)
{
    char by_pid[32];

    if (!exec_own_path_hook)
        return false;
    text_format(by_pid, sizeof(by_pid), "/proc/%d/exe", (int)raw_syscall0(SYS_getpid));
    return strcmp(path, "/proc/self/exe") == 0 || strcmp(path, "/proc/thread-self/exe") == 0 ||
           strcmp(path, by_pid) == 0;
}

static i64 exec_native(ThreadCtx *ctx, int dirfd, u64 path, u64 argv, u64 envp, u32 flags)
{
    i64 r;

    signal_prepare_exec(ctx);
    if (dirfd == AT_FDCWD && flags == 0)
        r = raw_syscall3(SYS_execve, path, argv, envp);
    else
        r = raw_syscall6(SYS_execveat, (u64)(i64)dirfd, path, argv, envp, flags, 0);
    signal_exec_failed(ctx);
    return r;
}

static i64 exec_followed(ThreadCtx *ctx, CopyArea *area, ExecRequest *request, const u64 vectors[2])
{
    i64 r = copy_vector(area, vectors[0], &request->argv);

    if (r == 0)
        r = copy_vector(area, vectors[1], &request->envp);
    if (r == 0)
        r = exec_follow_hook(ctx, request);
    if (r < 0)
        return r;
    return exec_native(ctx, request->dirfd, (u64)request->path, (u64)request->argv,
                       (u64)request->envp, request->flags);
}

static i64 exec_with_area(ThreadCtx *ctx, CopyArea *area, ExecRequest *request, u64 path_addr,
                          const u64 vectors[2])
{
    char *path;
    i64 r = copy_string(area, path_addr, PATH_MAX, -ENAMETOOLONG, &path);

    if (r < 0)
        return r;
    bool own = names_own_executable(path);
    request->path = own ? exec_own_path_hook() : path;
    if (exec_follow_hook)
        return exec_followed(ctx, area, request, vectors);
    return exec_native(ctx, request->dirfd, own ? (u64)request->path : path_addr, vectors[0],
                       vectors[1], request->flags);
}

static i64 exec_any(ThreadCtx *ctx, int dirfd, u64 path_addr, const u64 vectors[2], u32 flags)
{
    ExecRequest request = { .dirfd = dirfd, .flags = flags };
    CopyArea area;

    if (ctx->pending_signal)
        return GATEWAY_RESTART;
    if (!area_open(&area))
        return -ENOMEM;
    i64 r = exec_with_area(ctx, &area, &request, path_addr, vectors);
    area_close(&area);
    return r;
}

i64 sys_execve(ThreadCtx *ctx, const u64 args[6])
{
    return exec_any(ctx, AT_FDCWD, args[0], &args[1], 0);
}

i64 sys_execveat(ThreadCtx *ctx, const u64 args[6])
{
    return exec_any(ctx, (int)args[0], args[1], &args[2], (u32)args[4]);
}
