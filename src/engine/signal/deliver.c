// SPDX-License-Identifier: MIT
//
// From a recorded signal to the client's handler, at safe points; and the
// client's mask, whose changes decide what is deliverable.
#include <string.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/calltags/calltags.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal_internal.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"


void signal_block_host(void)
{
    host_set_mask(MASK_ALL);
}

u64 signal_admit_faults(void)
{
    u64 before = host_get_mask();

    host_set_mask(MASK_ALL & ~(SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS)));
    return before;
}

void signal_put_host_mask(u64 mask)
{
    host_set_mask(mask);
}

void signal_restore_host_mask(ThreadCtx *ctx)
{
    host_set_mask(ctx->gateway.pending_signal ? ~MASK_SYNCHRONOUS
                                              : mask_for_host(ctx->signal.client_mask));
}

// A signal may come between the test of pending_signal and the change of the
// host's mask; the mask is then open while one is pending, and S4 copes.
void signal_set_client_mask(ThreadCtx *ctx, u64 mask)
{
    ctx->signal.client_mask = mask & ~MASK_UNBLOCKABLE;
    if (!ctx->gateway.pending_signal)
        host_set_mask(mask_for_host(ctx->signal.client_mask));
}

void signal_admit_last_faults(ThreadCtx *ctx)
{
    signal_forget_pending(ctx);
    signal_set_client_mask(ctx, MASK_ALL);
}

void signal_prepare_exec(ThreadCtx *ctx)
{
    const KernelAction ignore = { .handler = HANDLER_IGN };

    lend_signals(ctx, SYS_execve, 0);
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (signal_is_synchronous(sig) && ctx->signal.actions->action[sig].handler == HANDLER_IGN)
            host_set_action(sig, &ignore);
    }
}

void signal_exec_failed(ThreadCtx *ctx)
{
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (signal_is_synchronous(sig))
            signal_actions_reinstall(ctx->signal.actions, sig);
    }
    take_signals_back(ctx);
}

bool signal_is_traced;

// A debugger must see the signal stop, so the kernel has to know of the fault.
// Sent through the gateway: our handler then takes it for a sent signal.
static void send_to_self(int sig, int code, GuestAddr addr)
{
    siginfo_t info = {.si_signo = sig, .si_code = code, .si_addr = (void *)addr};

    gateway_syscall(SYS_rt_tgsigqueueinfo, (u64)raw_syscall0(SYS_getpid),
                    (u64)raw_syscall0(SYS_gettid), (u64)sig, (u64)&info, 0, 0);
}

// False: an asynchronous signal has come first.
static bool record_synchronous(ThreadCtx *ctx, const siginfo_t *info)
{
    signal_block_host();
    bool is_free = !ctx->gateway.pending_signal;
    if (is_free) {
        int sig = info->si_signo;
        memset(&ctx->signal.pending, 0, sizeof(ctx->signal.pending));
        ctx->signal.pending.info = *info;
        ctx->signal.pending.synchronous = true;
        ctx->signal.pending.cr2 = sig == SIGSEGV ? (u64)info->si_addr : 0;
        ctx->signal.pending.trapno = sig == SIGSEGV ? 14 : sig == SIGILL ? 6 : 0;
        ctx->signal.pending.resume_mask = ctx->signal.client_mask;
        ctx->gateway.pending_signal = 1;
        if (UNLIKELY(trace_bits & TRACE_SIGNALS))
            trace_signal_arrival(ctx, &ctx->signal.pending.info);
    }
    signal_restore_host_mask(ctx);
    return is_free;
}

void signal_raise_synchronous(ThreadCtx *ctx, int sig, int code, GuestAddr addr)
{
    siginfo_t info = { 0 };

    // An asynchronous signal that came first is delivered first; the
    // instruction raises its fault again when the handler has returned.
    if (ctx->gateway.pending_signal)
        return;
    if (UNLIKELY(signal_is_traced)) {
        send_to_self(sig, code, addr);
        return;
    }
    info.si_signo = sig;
    info.si_code = code;
    info.si_addr = (void *)addr;
    record_synchronous(ctx, &info);
}

bool signal_raise_by_call(ThreadCtx *ctx, const siginfo_t *info)
{
    if (ctx->gateway.pending_signal)
        return false;
    return record_synchronous(ctx, info);
}

void signal_die(const siginfo_t *info)
{
    host_die_by(info);
}

// The mask that the interrupted code runs under: that of a sigsuspend whose
// sleep the signal ended, else the client's.
static u64 mask_now(const ThreadCtx *ctx)
{
    return ctx->signal.wait_mask_armed ? ctx->signal.wait_mask : ctx->signal.client_mask;
}

bool signal_is_deliverable(const ThreadCtx *ctx)
{
    return ctx->gateway.pending_signal || ctx->signal.must_place ||
           (deferred_set(ctx) & ~mask_now(ctx)) != 0;
}

// The kernel's force_sigsegv(): when SIGSEGV's own frame cannot be written
// there is no handler to tell.
// The call stack sees a handler as called by what it interrupted.
static void note_call_of_handler(ThreadCtx *ctx, GuestAddr pc, GuestAddr sp)
{
    GuestAddr slot = ctx->gpr[RSP];
    GuestAddr alt_lo =
        altstack_contains(&ctx->signal.altstack, slot) ? (u64)ctx->signal.altstack.ss_sp : 0;

    callstack_enter_signal(&ctx->callstack, pc, sp, slot, alt_lo);
}

static void fail_frame(ThreadCtx *ctx, int sig)
{
    siginfo_t info;

    memset(&info, 0, sizeof(info));
    info.si_signo = SIGSEGV;
    info.si_code = SI_KERNEL;
    if (sig == SIGSEGV)
        host_die_by(&info);
    ctx->signal.pending = (PendingSignal){ .synchronous = true };
    memcpy(&ctx->signal.pending.info, &info, sizeof(info));
    ctx->gateway.pending_signal = 1;
}

static void run_handler(ThreadCtx *ctx, const KernelAction *action, PendingSignal *signal)
{
    int sig = signal->info.si_signo;
    u64 mask = mask_now(ctx) | action->mask;

    signal->resume_mask = ctx->signal.client_mask;
    if (!(action->flags & SA_NODEFER))
        mask |= SIG_BIT(sig);
    GuestAddr pc = ctx->pc, sp = ctx->gpr[RSP];
    if (!frame_push(ctx, action, signal)) {
        fail_frame(ctx, sig);
        return;
    }
    if (ctx->callstack.bottom)
        note_call_of_handler(ctx, pc, sp);
    if (calltags_wanted)
        calltags_enter_signal(ctx->gpr[RSP], pc, sp);
    if (tool->signal)
        tool->signal(ctx, sig, sp);
    ctx->signal.wait_mask_armed = 0;
    ctx->signal.client_mask = mask & ~MASK_UNBLOCKABLE;
    ctx->stats.signals++;
}

// Not the client's business: the kernel's default action, or nothing.
static void act_by_default(const PendingSignal *signal, const KernelAction *action)
{
    int sig = signal->info.si_signo;
    bool ignored = action->handler == HANDLER_IGN || (SIG_BIT(sig) & MASK_IGNORED_BY_DEFAULT);

    if (signal->synchronous || (signal_is_synchronous(sig) && !ignored) ||
        death_is_reported(sig, action))
        host_die_by(&signal->info);
    // Another thread took the handler away after the kernel had chosen us; the
    // host's action is the default by now, and the kernel shall carry it out.
    if (!ignored)
        host_requeue(&signal->info);
}

static void deliver_one(ThreadCtx *ctx, PendingSignal *signal)
{
    int sig = signal->info.si_signo;
    bool blocked = (mask_now(ctx) & SIG_BIT(sig)) != 0;

    if (blocked && signal->synchronous)
        host_die_by(&signal->info); // as the kernel: a fault cannot wait
    if (blocked) {
        if (signal_is_synchronous(sig))
            deferred_put(ctx, &signal->info);
        else
            host_requeue(&signal->info);
        return;
    }
    KernelAction action = actions_take(ctx->signal.actions, sig);
    if (UNLIKELY(trace_bits & TRACE_SIGNALS))
        trace_signal_delivery(ctx, sig, action.handler);
    if (action_is_handler(&action))
        run_handler(ctx, &action, signal);
    else
        act_by_default(signal, &action);
}

static bool take_next(ThreadCtx *ctx, PendingSignal *ret_signal)
{
    if (ctx->gateway.pending_signal) {
        *ret_signal = ctx->signal.pending;
        return true;
    }
    memset(ret_signal, 0, sizeof(*ret_signal));
    if (!deferred_take(ctx, ~mask_now(ctx), &ret_signal->info))
        return false;
    // Closed to others until this one is on the client's stack (R3).
    ctx->gateway.pending_signal = 1;
    host_set_mask(~MASK_SYNCHRONOUS);
    return true;
}

void signal_deliver_pending(ThreadCtx *ctx)
{
    PendingSignal signal;

    if (UNLIKELY(ctx->signal.must_place))
        deferred_place(ctx);
    while (take_next(ctx, &signal)) {
        // `pending` has been copied, but stays taken while its frame is built:
        // what arrives now must not find it free before the masks are right.
        ctx->signal.pending.info.si_signo = 0;
        deliver_one(ctx, &signal);
        if (ctx->signal.pending.info.si_signo != 0)
            continue; // the frame failed: SIGSEGV takes its place
        __atomic_store_n(&ctx->gateway.pending_signal, 0, __ATOMIC_SEQ_CST);
        if ((deferred_set(ctx) & ~mask_now(ctx)) == 0)
            host_set_mask(mask_for_host(ctx->signal.client_mask));
    }
    ctx->signal.wait_mask_armed = 0;
}
