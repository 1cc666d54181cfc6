// SPDX-License-Identifier: MIT
//
// clone, clone3, fork and vfork: reads their arguments into one shape and
// decides which of the four kinds of child is meant.
//
//     CLONE_VM  CLONE_THREAD  CLONE_VFORK
//        no          -             -        a process with a copy: fork
//        yes         yes           -        a thread; with CLONE_VFORK one to wait for
//        yes         no            yes      a process that borrows: vfork, posix_spawn
//        yes         no            no       a process that shares for good
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>

#include "engine/aspace/aspace.h"
#include "engine/thread/thread_internal.h"
#include "engine/translate/translate.h"

#define EXIT_SIGNAL_MASK 0xffull // CSIGNAL
#define SET_TID_MAX 32
#define CLONE3_KNOWN_FLAGS (0xffffffffull | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP)

// What cannot be had together with CLONE_THREAD, by the kernel's rules.
#define NOT_FOR_THREADS                                                                            \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC |     \
     CLONE_NEWCGROUP)

static i64 clone_any(ThreadCtx *ctx, const CloneArgs *args)
{
    u64 flags = args->flags;

    if ((flags & CLONE_THREAD) && !(flags & CLONE_SIGHAND))
        return -EINVAL;
    if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
        return -EINVAL;
    if ((flags & CLONE_THREAD) && (flags & NOT_FOR_THREADS))
        return -EINVAL;
    if ((flags & CLONE_PIDFD) && (flags & CLONE_DETACHED))
        return -EINVAL;
    if ((flags & CLONE_PIDFD) && (flags & CLONE_PARENT_SETTID) && args->pidfd == args->parent_tid)
        return -EINVAL;
    if (flags & (CLONE_SETTLS | CLONE_THREAD) || (flags & CLONE_VM && !(flags & CLONE_VFORK)))
        translate_fs_varies();
    if (!(flags & CLONE_VM))
        return clone_fork(ctx, args);
    if (flags & CLONE_THREAD)
        return clone_thread(ctx, args);
    if (flags & CLONE_VFORK)
        return clone_vfork(ctx, args);
    return clone_sharing_process(ctx, args);
}

i64 sys_clone(ThreadCtx *ctx, const u64 args[6])
{
    u64 flags = (u32)args[0];
    CloneArgs clone = {
        .flags = flags & ~EXIT_SIGNAL_MASK,
        .exit_signal = flags & EXIT_SIGNAL_MASK,
        .stack = args[1],
        .pidfd = args[2],
        .parent_tid = args[2],
        .child_tid = args[3],
        .tls = args[4],
    };

    return clone_any(ctx, &clone);
}

i64 sys_fork(ThreadCtx *ctx, const u64 args[6])
{
    const CloneArgs clone = { .exit_signal = SIGCHLD };

    (void)args;
    return clone_any(ctx, &clone);
}

i64 sys_vfork(ThreadCtx *ctx, const u64 args[6])
{
    const CloneArgs clone = { .flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD };

    (void)args;
    return clone_any(ctx, &clone);
}

// A struct that grows with the kernel: shorter ones end in zeros, longer ones
// are fine as long as what we do not know is zero.
static i64 read_clone_args(GuestAddr addr, u64 size, struct clone_args *ret_args)
{
    if (size > PAGE_SIZE)
        return -E2BIG;
    if (size < CLONE_ARGS_SIZE_VER0)
        return -EINVAL;
    memset(ret_args, 0, sizeof(*ret_args));
    if (!guest_read(addr, ret_args, min_u64(size, sizeof(*ret_args))))
        return -EFAULT;
    for (u64 i = sizeof(*ret_args); i < size; i++) {
        u8 byte;
        if (!guest_read(addr + i, &byte, 1))
            return -EFAULT;
        if (byte)
            return -E2BIG;
    }
    return 0;
}

static bool clone3_args_are_valid(const struct clone_args *args, u64 size)
{
    u64 flags = args->flags;

    if (flags & ~CLONE3_KNOWN_FLAGS)
        return false;
    if (flags & (CLONE_DETACHED | (EXIT_SIGNAL_MASK & ~(u64)CLONE_NEWTIME)))
        return false;
    if ((flags & CLONE_SIGHAND) && (flags & CLONE_CLEAR_SIGHAND))
        return false;
    if ((flags & (CLONE_THREAD | CLONE_PARENT)) && args->exit_signal)
        return false;
    if (args->exit_signal > 64)
        return false;
    if (args->set_tid_size > SET_TID_MAX || !args->set_tid != !args->set_tid_size)
        return false;
    if ((flags & CLONE_INTO_CGROUP) && size < CLONE_ARGS_SIZE_VER2)
        return false;
    return !args->stack == !args->stack_size;
}

i64 sys_clone3(ThreadCtx *ctx, const u64 args[6])
{
    struct clone_args given;
    i64 r = read_clone_args(args[0], args[1], &given);

    if (r < 0)
        return r;
    if (!clone3_args_are_valid(&given, args[1]))
        return -EINVAL;
    CloneArgs clone = {
        .flags = given.flags,
        .exit_signal = given.exit_signal,
        .stack = given.stack + given.stack_size,
        .stack_lowest = given.stack,
        .pidfd = given.pidfd,
        .parent_tid = given.parent_tid,
        .child_tid = given.child_tid,
        .tls = given.tls,
        .set_tid = given.set_tid,
        .set_tid_size = given.set_tid_size,
        .cgroup = given.cgroup,
        .is_clone3 = true,
    };
    return clone_any(ctx, &clone);
}
