// SPDX-License-Identifier: MIT
//
// The client's signal system calls. What changes signal state first lets a
// recorded signal through: it came before the change, so it is delivered before
// it, and the call is made again (GATEWAY_RESTART).
#include <errno.h>
#include <string.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal_internal.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"
#include "engine/translate/translate.h"

i64 sys_rt_sigaction(ThreadCtx *ctx, const u64 args[6])
{
    int sig = (int)args[0];
    KernelAction act, old;

    if (args[3] != SIGSET_BYTES)
        return -EINVAL;
    if (args[1] && !guest_read(args[1], &act, sizeof(act)))
        return -EFAULT;
    if (args[1] && ctx->gateway.pending_signal)
        return GATEWAY_RESTART;
    if (args[1] && action_is_handler(&act) && sig >= 1 && sig <= SIGNAL_COUNT &&
        signal_is_synchronous(sig))
        translate_faults_are_seen();
    i64 r = actions_change(ctx->signal.actions, sig, args[1] ? &act : NULL, &old);
    if (r < 0)
        return r;
    if (args[1] && act.handler == HANDLER_IGN)
        deferred_drop(ctx, sig);
    if (args[2] && !guest_write(args[2], &old, sizeof(old)))
        return -EFAULT;
    return 0;
}

i64 sys_rt_sigprocmask(ThreadCtx *ctx, const u64 args[6])
{
    u64 old = ctx->signal.client_mask, mask = 0;

    if (args[3] != SIGSET_BYTES)
        return -EINVAL;
    if (args[1]) {
        if (!guest_read(args[1], &mask, sizeof(mask)))
            return -EFAULT;
        switch ((int)args[0]) {
        case SIG_BLOCK: mask = old | mask; break;
        case SIG_UNBLOCK: mask = old & ~mask; break;
        case SIG_SETMASK: break;
        default: return -EINVAL;
        }
        if (ctx->gateway.pending_signal)
            return GATEWAY_RESTART;
        signal_set_client_mask(ctx, mask);
    }
    if (args[2] && !guest_write(args[2], &old, sizeof(old)))
        return -EFAULT;
    return 0;
}

i64 sys_rt_sigpending(ThreadCtx *ctx, const u64 args[6])
{
    u64 pending = 0;

    if (args[1] > SIGSET_BYTES)
        return -EINVAL;
    i64 r = raw_syscall2(SYS_rt_sigpending, (u64)&pending, SIGSET_BYTES);
    if (r < 0)
        return r;
    pending = (pending | deferred_set(ctx)) & ctx->signal.client_mask;
    return guest_write(args[0], &pending, args[1]) ? 0 : -EFAULT;
}

// Does not fall behind a signal that only we know about.
static bool deferred_is_unblocked_by(const ThreadCtx *ctx, u64 mask)
{
    return (deferred_set(ctx) & ~mask) != 0;
}

static i64 attempt_under_mask(ThreadCtx *ctx, const Sleep *sleep, u64 *host_mask)
{
    bool lends = ((ctx->signal.client_mask | ctx->signal.wait_mask) & MASK_SYNCHRONOUS) != 0;
    const u64 *a = sleep->args;

    if (deferred_is_unblocked_by(ctx, ctx->signal.wait_mask))
        return -EINTR;
    *host_mask = mask_for_sleep(ctx, ctx->signal.wait_mask);
    if (UNLIKELY(lends))
        lend_signals(ctx, sleep->nr, ctx->signal.wait_mask);
    i64 r = gateway_syscall(sleep->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (UNLIKELY(lends))
        take_signals_back(ctx);
    return r;
}

// A call that sleeps under a mask of its own. `args` lead the kernel to *host_mask.
static i64 wait_under_mask(ThreadCtx *ctx, u64 nr, const u64 args[6], u64 mask, u64 *host_mask)
{
    Sleep sleep;
    i64 r;

    ctx->signal.wait_mask = mask & ~MASK_UNBLOCKABLE;
    ctx->signal.wait_mask_armed = 1;
    sleep_begin(&sleep, nr, args);
    do
        r = attempt_under_mask(ctx, &sleep, host_mask);
    while (UNLIKELY(ctx->relay.kicked) && sleep_goes_on(ctx, &sleep, &r));
    r = sleep_end(ctx, &sleep, r);
    // As the kernel: a handler that ends the sleep still runs under its mask.
    if (r != -EINTR || !signal_is_deliverable(ctx))
        ctx->signal.wait_mask_armed = 0;
    return r;
}

// `mask_arg` is the mask's address, the next argument its size. What is wrong
// with them the kernel itself shall say.
static i64 wait_call(ThreadCtx *ctx, u64 nr, const u64 args[6], unsigned mask_arg)
{
    u64 mask, host_mask, changed[6];

    if (!args[mask_arg] || args[mask_arg + 1] != SIGSET_BYTES ||
        !guest_read(args[mask_arg], &mask, sizeof(mask)))
        return signal_sleeping_call(ctx, nr, args);
    memcpy(changed, args, sizeof(changed));
    changed[mask_arg] = (u64)&host_mask;
    return wait_under_mask(ctx, nr, changed, mask, &host_mask);
}

// As wait_call(), for the calls whose sixth argument is the address of a pair:
// the mask's address and size.
static i64 wait_call_pair(ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    u64 mask, host_mask, pair[2], changed[6];

    if (!args[5] || !guest_read(args[5], pair, sizeof(pair)) || !pair[0] ||
        pair[1] != SIGSET_BYTES || !guest_read(pair[0], &mask, sizeof(mask)))
        return signal_sleeping_call(ctx, nr, args);
    memcpy(changed, args, sizeof(changed));
    changed[5] = (u64)pair;
    pair[0] = (u64)&host_mask;
    return wait_under_mask(ctx, nr, changed, mask, &host_mask);
}

// Ends only after a handler: that another thread was to be found for a signal
// (S5) is no end.
i64 sys_rt_sigsuspend(ThreadCtx *ctx, const u64 args[6])
{
    i64 r = wait_call(ctx, SYS_rt_sigsuspend, args, 0);

    return r == -EINTR && !signal_is_deliverable(ctx) ? GATEWAY_RESTART : r;
}

i64 sys_ppoll(ThreadCtx *ctx, const u64 args[6])
{
    return wait_call(ctx, SYS_ppoll, args, 3);
}

i64 sys_epoll_pwait(ThreadCtx *ctx, const u64 args[6])
{
    return wait_call(ctx, SYS_epoll_pwait, args, 4);
}

i64 sys_epoll_pwait2(ThreadCtx *ctx, const u64 args[6])
{
    return wait_call(ctx, SYS_epoll_pwait2, args, 4);
}

i64 sys_pselect6(ThreadCtx *ctx, const u64 args[6])
{
    return wait_call_pair(ctx, SYS_pselect6, args);
}

i64 sys_io_pgetevents(ThreadCtx *ctx, const u64 args[6])
{
    return wait_call_pair(ctx, SYS_io_pgetevents, args);
}

// What the client does not block may be in the set as well; it is taken before it
// would be delivered, by the kernel as by us.
i64 sys_rt_sigtimedwait(ThreadCtx *ctx, const u64 args[6])
{
    u64 set = 0, host_set;
    bool has_set = args[3] == SIGSET_BYTES && guest_read(args[0], &set, sizeof(set));
    bool lends = ((ctx->signal.client_mask | set) & MASK_SYNCHRONOUS) != 0;
    Sleep sleep;
    i64 r;

    sleep_begin(&sleep, SYS_rt_sigtimedwait, args);
    if (has_set)
        sleep.args[0] = (u64)&host_set;
    do {
        const u64 *a = sleep.args;
        host_set = mask_for_sleep(ctx, set); // else it would take the monitor's
        if (UNLIKELY(lends))
            lend_signals(ctx, SYS_rt_sigtimedwait, set);
        r = gateway_syscall(SYS_rt_sigtimedwait, a[0], a[1], a[2], a[3], 0, 0);
        if (UNLIKELY(lends))
            take_signals_back(ctx);
    } while (UNLIKELY(ctx->relay.kicked) && sleep_goes_on(ctx, &sleep, &r));
    r = sleep_end(ctx, &sleep, r);
    if (r > 0 && args[1])
        hide_hand_over(args[1] + offsetof(siginfo_t, si_code));
    return r;
}

// A descriptor for the monitor's signal would be ready whenever that is on its way. So it never
// shows that one, not even if somebody else has sent it.
i64 sys_signalfd(ThreadCtx *ctx, const u64 args[6])
{
    u64 mask, nr = ctx->gpr[RAX];

    if (!signal_kicks || args[2] != SIGSET_BYTES || !guest_read(args[1], &mask, sizeof(mask)))
        return gateway_syscall(nr, args[0], args[1], args[2], args[3], 0, 0);
    mask &= ~SIG_BIT(WIRE_KICK_SIGNAL);
    return gateway_syscall(nr, args[0], (u64)&mask, args[2], args[3], 0, 0);
}

i64 sys_rt_sigreturn(ThreadCtx *ctx, const u64 args[6])
{
    (void)args;
    GuestAddr handler_sp = ctx->gpr[RSP];
    if (frame_pop(ctx)) {
        if (ctx->callstack.bottom)
            callstack_load_sp(&ctx->callstack, handler_sp, ctx->gpr[RSP], false);
        if (tool->signal_return)
            tool->signal_return(ctx, handler_sp);
    } else {
        siginfo_t info;
        memset(&info, 0, sizeof(info));
        info.si_signo = SIGSEGV;
        info.si_code = SI_KERNEL;
        // A signal that waits is delivered first, then this one.
        if (ctx->gateway.pending_signal)
            deferred_put(ctx, &info);
        else
            signal_raise_synchronous(ctx, SIGSEGV, SI_KERNEL, 0);
    }
    if (UNLIKELY(trace_bits & TRACE_SIGNALS))
        trace_sigreturn(ctx);
    return (i64)ctx->gpr[RAX];
}
