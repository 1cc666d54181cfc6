// SPDX-License-Identifier: MIT
//
// The client's limits and the kernel's; see limits.h. A child of vfork has limits of its
// own in memory that is its parent's: they are kept in its context, which the parent
// puts right when it wakes.
#include "engine/limits/limits.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"

#define NO_LIMIT (~0ull) // RLIM_INFINITY
#define KINDS LIMIT_KINDS

static const u64 resource_of[KINDS] = { RLIMIT_AS, RLIMIT_DATA };

static Limit client[KINDS]; // of the process; the two words are read and written one by one

_Static_assert(sizeof(Limit) == sizeof(struct rlimit), "the kernel's layout");

static i64 kernel_limit(u64 resource, const Limit *set, Limit *get)
{
    return raw_syscall4(SYS_prlimit64, 0, resource, (u64)set, (u64)get);
}

static void raise_kernel_limit(u64 resource)
{
    const Limit none = { NO_LIMIT, NO_LIMIT };
    Limit now;

    if (kernel_limit(resource, &none, NULL) == 0 || kernel_limit(resource, NULL, &now) != 0)
        return;
    now.soft = now.hard;
    kernel_limit(resource, &now, NULL);
}

// Read by other threads without a lock: each word is one store.
static void enforce(void)
{
    __atomic_store_n(&aspace_limit_bytes, client[LIMIT_AS].soft, __ATOMIC_RELAXED);
    __atomic_store_n(&aspace_data_limit_bytes, client[LIMIT_DATA].soft, __ATOMIC_RELAXED);
}

u64 limits_init(void)
{
    u64 room = NO_LIMIT;

    for (unsigned i = 0; i < KINDS; i++) {
        Limit now = { NO_LIMIT, NO_LIMIT };
        client[i] = (Limit){ NO_LIMIT, NO_LIMIT };
        kernel_limit(resource_of[i], NULL, &client[i]);
        if (client[i].soft != NO_LIMIT)
            raise_kernel_limit(resource_of[i]);
        kernel_limit(resource_of[i], NULL, &now);
        room = min_u64(room, now.soft);
    }
    enforce();
    return room;
}

// The cache's tables take three to four times its own size (cache/unit.h); a quarter of
// the room for all of it leaves the client most of what it was given.
u64 limits_cache_size(u64 wanted, u64 room)
{
    return room == NO_LIMIT ? wanted : min_u64(wanted, room / 20);
}

// ------------------------------------------------------------- the client's calls

static Limit *limits_of(ThreadCtx *ctx)
{
    if (ctx->thread.vfork_depth == 0)
        return client;
    if (!ctx->limits.has_own) {
        memcpy(ctx->limits.own, client, sizeof(client));
        ctx->limits.has_own = 1;
    }
    return ctx->limits.own;
}

static const Limit *limits_seen(const ThreadCtx *ctx)
{
    return ctx->limits.has_own ? ctx->limits.own : client;
}

static bool is_privileged(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2] = { { 0 } };

    return raw_syscall2(SYS_capget, (u64)&header, (u64)data) == 0 &&
           (data[0].effective >> CAP_SYS_RESOURCE & 1);
}

static i64 set_limit(ThreadCtx *ctx, unsigned kind, const Limit *wanted)
{
    Limit *limit = &limits_of(ctx)[kind];

    if (wanted->soft > wanted->hard)
        return -EINVAL;
    if (wanted->hard > limit->hard && !is_privileged())
        return -EPERM;
    *limit = *wanted;
    enforce();
    return 0;
}

static i64 change_limit(ThreadCtx *ctx, unsigned kind, GuestAddr set, GuestAddr get)
{
    Limit wanted, old = limits_seen(ctx)[kind];

    if (set && !guest_read(set, &wanted, sizeof(wanted)))
        return -EFAULT;
    i64 result = set ? set_limit(ctx, kind, &wanted) : 0;
    if (result < 0)
        return result;
    return !get || guest_write(get, &old, sizeof(old)) ? 0 : -EFAULT;
}

static bool is_this_process(u64 pid)
{
    u64 own = (u64)raw_syscall0(SYS_getpid);

    pid = (u64)(i32)pid;
    return pid == 0 || pid == own || ((i32)pid > 0 && raw_syscall3(SYS_tgkill, own, pid, 0) == 0);
}

// The three calls in one shape.
typedef struct LimitCall {
    u64 pid, resource;
    GuestAddr set, get;
} LimitCall;

static LimitCall unpack(u64 nr, const u64 args[6])
{
    if (nr == SYS_prlimit64)
        return (LimitCall){ args[0], (u32)args[1], args[2], args[3] };
    if (nr == SYS_setrlimit)
        return (LimitCall){ 0, (u32)args[0], args[1], 0 };
    return (LimitCall){ 0, (u32)args[0], 0, args[1] };
}

// The kernel sets it; the stack is made to reach as far first, unless it will refuse.
static void prepare_stack(const LimitCall *call)
{
    Limit wanted, now;

    if (call->set && is_this_process(call->pid) &&
        guest_read(call->set, &wanted, sizeof(wanted)) &&
        kernel_limit(RLIMIT_STACK, NULL, &now) == 0 && wanted.soft <= wanted.hard &&
        wanted.soft <= now.hard)
        aspace_limit_stack(wanted.soft);
}

bool limits_call(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result)
{
    LimitCall call = unpack(nr, args);

    if (call.resource == RLIMIT_STACK)
        prepare_stack(&call);

    for (unsigned i = 0; i < KINDS; i++) {
        if (resource_of[i] != call.resource || !is_this_process(call.pid))
            continue;
        if (nr != SYS_prlimit64 && !call.set && !call.get)
            *ret_result = -EFAULT;
        else
            *ret_result = change_limit(ctx, i, call.set, call.get);
        return true;
    }
    return false;
}

void limits_of_client(const ThreadCtx *ctx, bool is_data, u64 *ret_soft, u64 *ret_hard)
{
    const Limit *limit = &limits_seen(ctx)[is_data ? LIMIT_DATA : LIMIT_AS];

    *ret_soft = limit->soft;
    *ret_hard = limit->hard;
}

// ------------------------------------------------------------------------- exec

bool limits_matter_to_exec(const ThreadCtx *ctx)
{
    const Limit *limit = limits_seen(ctx);

    return limit[LIMIT_AS].hard != NO_LIMIT || limit[LIMIT_AS].soft != NO_LIMIT ||
           limit[LIMIT_DATA].hard != NO_LIMIT || limit[LIMIT_DATA].soft != NO_LIMIT;
}

void limits_prepare_exec(const ThreadCtx *ctx)
{
    if (!limits_matter_to_exec(ctx))
        return;
    for (unsigned i = 0; i < KINDS; i++)
        kernel_limit(resource_of[i], &limits_seen(ctx)[i], NULL);
}

void limits_exec_failed(void)
{
    for (unsigned i = 0; i < KINDS; i++)
        raise_kernel_limit(resource_of[i]);
}
