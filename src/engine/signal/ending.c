// SPDX-License-Identifier: MIT
//
// Signals while the process ends: its client has exited, or has died, and what is left to do is
// ours (docs/design/last-calls.md). Natively there would be no process any more, so nothing may be
// delivered; but that work may take long, and the user must be able to stop it.
//
// The signals by which users end programs are caught now, in whichever thread they arrive. The
// first asks the functions of the client that still run to stop; the second ends the process.
// Those that were waiting when the client ended are lost, as they are natively.
#include <errno.h>
#include <time.h>

#include "base/pkru_x64.h"
#include "base/raw_syscall.h"
#include "engine/signal/signal_internal.h"

#define MASK_URGES (SIG_BIT(SIGTERM) | SIG_BIT(SIGINT) | SIG_BIT(SIGHUP) | SIG_BIT(SIGQUIT))
#define MASK_ENDING (MASK_URGES | SIG_BIT(SIGALRM)) // SIGALRM: our own clock's
#define TICK_COOKIE 0x6d756e6e

u64 host_always_open;

static struct {
    i32 tid; // of the thread that ends the process
    u32 urges; // atomic
    u32 ticks; // atomic
    i32 clock; // the kernel's number, -1: there is none
    void (*cut_short)(int sig);
} ending;

static void on_ending_signal(int sig, siginfo_t *info, void *ucontext)
{
    (void)ucontext;
    pkru_open();
    if (sig == SIGALRM) {
        if (info->si_code != SI_TIMER || info->si_value.sival_int != TICK_COOKIE)
            return; // of an alarm that the client has set
        __atomic_add_fetch(&ending.ticks, 1, __ATOMIC_SEQ_CST);
    } else if (__atomic_fetch_add(&ending.urges, 1, __ATOMIC_SEQ_CST) > 0) {
        ending.cut_short(sig);
    }
    signal_kick(ending.tid); // it shall look, if it is in the cache
}

static void drop_waiting(u64 mask)
{
    const struct timespec at_once = { 0, 0 };

    while (raw_syscall4(SYS_rt_sigtimedwait, (u64)&mask, 0, (u64)&at_once, SIGSET_BYTES) > 0)
        ;
}

void signal_ending_begin(ThreadCtx *ctx, void (*cut_short)(int sig))
{
    const KernelAction action = {
        .handler = (u64)on_ending_signal,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | KERNEL_SA_RESTORER,
        .restorer = (u64)host_restorer,
        .mask = MASK_ALL,
    };

    if (host_always_open)
        return;
    ending.tid = ctx->thread.tid;
    ending.cut_short = cut_short;
    ending.clock = -1;
    host_set_mask(MASK_ALL);
    drop_waiting(MASK_ENDING);
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (MASK_ENDING & SIG_BIT(sig))
            host_set_action(sig, &action);
    }
    host_always_open = MASK_ENDING;
    host_set_mask(MASK_ALL);
}

void signal_ending_forget(ThreadCtx *ctx)
{
    if (!host_always_open)
        return;
    host_always_open = 0;
    ending.urges = ending.ticks = 0;
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (MASK_ENDING & SIG_BIT(sig))
            signal_actions_reinstall(ctx->signal.actions, sig);
    }
}

bool signal_ending_clock(u64 period_ns)
{
    const struct timespec period = { (i64)(period_ns / 1000000000), (i64)(period_ns % 1000000000) };
    const struct itimerspec times = { period, period };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

    event.sigev_value.sival_int = TICK_COOKIE;
    i64 r = raw_syscall3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, (u64)&event,
                         (u64)&ending.clock);
    if (r == 0)
        r = raw_syscall4(SYS_timer_settime, (u64)ending.clock, 0, (u64)&times, 0);
    return r == 0;
}

void signal_ending_clock_stop(void)
{
    if (ending.clock >= 0)
        raw_syscall1(SYS_timer_delete, (u64)ending.clock);
    ending.clock = -1;
}

u32 signal_ending_ticks(void)
{
    return __atomic_load_n(&ending.ticks, __ATOMIC_SEQ_CST);
}

bool signal_ending_is_urged(void)
{
    return __atomic_load_n(&ending.urges, __ATOMIC_SEQ_CST) > 0;
}

void signal_end_now(int sig)
{
    const KernelAction dfl = { .handler = HANDLER_DFL };
    const siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

    host_always_open = 0;
    host_set_mask(MASK_ALL);
    host_set_action(sig, &dfl);
    host_queue_to_self(&info);
    host_set_mask(~SIG_BIT(sig));
    for (;;)
        raw_syscall1(SYS_exit_group, 128 + (u64)sig);
}
