// SPDX-License-Identifier: MIT
//
// The host's side: the kernel's mask and actions for this thread and process,
// always by raw calls, since libc's wrappers hide two signals of their own.
#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/signal/signal_internal.h"

void (*process_dying_hook)(ThreadCtx *ctx, const siginfo_t *info);

void host_set_mask(u64 mask)
{
    mask &= ~host_always_open;
    i64 r = raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (u64)&mask, 0, SIGSET_BYTES);
    ASSERT(r == 0);
}

u64 host_get_mask(void)
{
    u64 mask = 0;
    i64 r = raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, 0, (u64)&mask, SIGSET_BYTES);
    ASSERT(r == 0);
    return mask;
}

void host_set_action(int sig, const KernelAction *action)
{
    i64 r = raw_syscall4(SYS_rt_sigaction, (u64)sig, (u64)action, 0, SIGSET_BYTES);
    ASSERT(r == 0);
}

void host_get_action(int sig, KernelAction *ret_action)
{
    i64 r = raw_syscall4(SYS_rt_sigaction, (u64)sig, 0, (u64)ret_action, SIGSET_BYTES);
    ASSERT(r == 0);
}

i64 host_queue_to_self(const siginfo_t *info)
{
    return raw_syscall4(SYS_rt_tgsigqueueinfo, (u64)raw_syscall0(SYS_getpid),
                        (u64)raw_syscall0(SYS_gettid), (u64)info->si_signo, (u64)info);
}

i64 host_hand_over(i32 tid, const siginfo_t *info)
{
    siginfo_t handed = *info;

    if (handed.si_code >= 0)
        handed.si_code = HANDED_OVER;
    return raw_syscall4(SYS_rt_tgsigqueueinfo, (u64)raw_syscall0(SYS_getpid), (u64)tid,
                        (u64)info->si_signo, (u64)&handed);
}

void signal_kick(i32 tid)
{
    const siginfo_t info = {.si_signo = SIGTRAP, .si_code = KICKED};

    raw_syscall4(SYS_rt_tgsigqueueinfo, (u64)raw_syscall0(SYS_getpid), (u64)tid, SIGTRAP,
                 (u64)&info);
}

// kill(2) aimed at the process, whatever thread the kernel chose; but only the
// main thread may say so. The rest goes back to the thread it came to.
void host_requeue(const siginfo_t *info)
{
    u64 pid = (u64)raw_syscall0(SYS_getpid);

    if (info->si_code != SI_USER ||
        raw_syscall3(SYS_rt_sigqueueinfo, pid, (u64)info->si_signo, (u64)info) < 0)
        host_queue_to_self(info);
}

// Dies as the client would have died: by the same signal with the same siginfo,
// so that the parent's wait() and a core file tell the truth.
void host_die_by(const siginfo_t *info)
{
    const KernelAction dfl = { .handler = HANDLER_DFL };
    u64 sig = (u64)info->si_signo;

    // A child on borrowed memory is not the process that the tools watch.
    if (process_dying_hook && thread_ctx.thread.vfork_depth == 0)
        process_dying_hook(&thread_ctx, info);
    host_set_mask(MASK_ALL);
    host_set_action(info->si_signo, &dfl);
    host_queue_to_self(info);
    host_set_mask(~SIG_BIT(info->si_signo));
    // Only an init process without a handler gets here: the kernel shields it.
    for (;;)
        raw_syscall1(SYS_exit_group, 128 + sig);
}
