// SPDX-License-Identifier: MIT
//
// execve and execveat. A program that is not followed is the kernel's affair:
// it gets the client's own pointers. To follow it, path and vectors are copied
// first, because whoever rewrites them must not see the client change them.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/gateway/gateway.h"
#include "engine/limits/limits.h"
#include "engine/signal/signal.h"
#include "engine/procview/procview.h"
#include "engine/thread/thread_internal.h"

i64 (*exec_follow_hook)(ThreadCtx *ctx, ExecRequest *request);
const char *(*exec_own_path_hook)(void);
i64 (*exec_filters_hook)(const ThreadCtx *ctx);

// The kernel's limits: one string, and more than it would ever take of all.
#define STRING_MAX (128 * KiB)
#define COPY_BYTES (64 * MiB)

// One mapping, filled from its start; untouched pages cost nothing. At its end is the
// stack of the thread that exec_filtered() makes.
typedef struct CopyArea {
    u8 *base, *next, *end;
} CopyArea;

// The record remembers it: when a vfork's child has executed its program, the
// mapping is left to the parent.
static bool area_open(ThreadCtx *ctx, CopyArea *area)
{
    i64 r = raw_syscall6(SYS_mmap, 0, COPY_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (u64)-1, 0);

    if (raw_failed(r))
        return false;
    *area = (CopyArea){ .base = (u8 *)r, .next = (u8 *)r,
                        .end = (u8 *)r + COPY_BYTES - EXEC_STACK_BYTES };
    ctx->thread.record->exec_area = area->base;
    return true;
}

void exec_area_close(ThreadRecord *record)
{
    if (!record->exec_area)
        return;
    raw_syscall2(SYS_munmap, (u64)record->exec_area, COPY_BYTES);
    record->exec_area = NULL;
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
    return exec_own_path_hook && procview_names_exe(path);
}

// Through the gateway: a signal that comes before the kernel has begun is not
// lost with this program's memory, and one that comes later stays in its queue.
i64 exec_native_call(const ExecCall *call)
{
    if (call->dirfd == AT_FDCWD && call->flags == 0)
        return gateway_syscall(SYS_execve, call->path, call->argv, call->envp, 0, 0, 0);
    return gateway_syscall(SYS_execveat, (u64)(i64)call->dirfd, call->path, call->argv,
                           call->envp, call->flags, 0);
}

// What most often is wrong with a call is found before anything is done for it that cannot
// be undone.
static i64 probe(const ExecCall *call)
{
    u64 flags = AT_EACCESS | (call->flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    i64 result = raw_syscall4(SYS_faccessat2, (u64)(i64)call->dirfd, call->path, 1 /* X_OK */,
                              flags);

    // Not known here, or refused by a filter from outside: the execve itself shall tell.
    return result == -ENOSYS || result == -EINVAL || result == -EPERM ? 0 : result;
}

static i64 exec_native(ThreadCtx *ctx, const ExecCall *call)
{
    bool limited = limits_matter_to_exec(ctx);
    i64 r = limited ? probe(call) : 0;

    if (r < 0)
        return r;
    if (ctx->thread.vfork_depth == 0)
        hooks_exec(ctx);
    limits_prepare_exec(ctx);
    signal_prepare_exec(ctx);
    r = exec_native_call(call);
    signal_exec_failed(ctx);
    if (ctx->thread.vfork_depth == 0)
        hooks_exec_failed(ctx, (int)-r);
    if (limited)
        limits_exec_failed();
    return r;
}

// A program that is not followed: from here on it is the kernel's alone.
static i64 exec_away(ThreadCtx *ctx, const ExecCall *call, const CopyArea *area)
{
    CopyArea own;

    if (!ctx->seccomp.filter)
        return exec_native(ctx, call);
    i64 r = probe(call);
    if (r < 0)
        return r;
    if (!area && !area_open(ctx, &own))
        return -ENOMEM;
    if (ctx->thread.vfork_depth == 0)
        hooks_exec(ctx);
    limits_prepare_exec(ctx);
    r = exec_filtered(ctx, call, area ? area->end : own.end);
    if (limits_matter_to_exec(ctx))
        limits_exec_failed();
    if (ctx->thread.vfork_depth == 0)
        hooks_exec_failed(ctx, (int)-r);
    if (!area)
        exec_area_close(ctx->thread.record);
    return r;
}

// What is wrong with the client's pointers the kernel itself shall say.
static i64 exec_unfollowed(ThreadCtx *ctx, ExecCall call)
{
    char path[PATH_MAX];

    if (guest_read_string(call.path, path, sizeof(path)) > 0 && names_own_executable(path))
        call.path = (u64)exec_own_path_hook();
    return exec_away(ctx, &call, NULL);
}

static i64 copy_request(CopyArea *area, const ExecCall *call, ExecRequest *ret_request)
{
    char *path;
    i64 r = copy_string(area, call->path, PATH_MAX, -ENAMETOOLONG, &path);

    if (r < 0)
        return r;
    ret_request->dirfd = call->dirfd;
    ret_request->flags = call->flags;
    ret_request->path = names_own_executable(path) ? exec_own_path_hook() : path;
    r = copy_vector(area, call->argv, &ret_request->argv);
    return r < 0 ? r : copy_vector(area, call->envp, &ret_request->envp);
}

static i64 exec_followed(ThreadCtx *ctx, const ExecCall *call)
{
    ExecRequest request = { .filters_fd = -1 };
    CopyArea area;

    if (!area_open(ctx, &area))
        return -ENOMEM;
    i64 r = copy_request(&area, call, &request);
    if (r == 0)
        r = exec_follow_hook(ctx, &request);
    if (r >= 0) {
        const ExecCall rewritten = {
            .dirfd = request.dirfd,
            .flags = request.flags,
            .path = (u64)request.path,
            .argv = (u64)request.argv,
            .envp = (u64)request.envp,
        };
        r = request.is_followed ? exec_native(ctx, &rewritten)
                                : exec_away(ctx, &rewritten, &area);
        if (request.filters_fd >= 0)
            raw_syscall1(SYS_close, (u64)request.filters_fd);
    }
    exec_area_close(ctx->thread.record);
    return r;
}

static i64 exec_any(ThreadCtx *ctx, const ExecCall *call)
{
    if (ctx->gateway.pending_signal)
        return GATEWAY_RESTART;
    return exec_follow_hook ? exec_followed(ctx, call) : exec_unfollowed(ctx, *call);
}

i64 sys_execve(ThreadCtx *ctx, const u64 args[6])
{
    const ExecCall call = {
        .dirfd = AT_FDCWD, .path = args[0], .argv = args[1], .envp = args[2],
    };

    return exec_any(ctx, &call);
}

i64 sys_execveat(ThreadCtx *ctx, const u64 args[6])
{
    const ExecCall call = {
        .dirfd = (int)args[0],
        .path = args[1],
        .argv = args[2],
        .envp = args[3],
        .flags = (u32)args[4],
    };

    return exec_any(ctx, &call);
}
