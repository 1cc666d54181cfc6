// SPDX-License-Identifier: MIT
//
// Calls that may sleep, or look at what is pending (signalfd, sigwaitinfo). In the
// kernel nothing faults, so for the length of such a call the kernel's mask is the
// client's, all of it, and the synchronous signals that wait in our memory are
// lent to its queue: it wakes the right sleepers, and none else. What is left of
// them afterwards comes back through our handler (S5).
#include <stddef.h>
#include <sys/signalfd.h>

#include "engine/aspace/aspace.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal_internal.h"
#include "engine/syscall/syscall.h"

// Other threads give what was sent to the process to those that have `lent_set`; so it
// is set first and the queue emptied then, or a signal could fall between.
void lend_signals(ThreadCtx *ctx, u64 nr, u64 takes)
{
    siginfo_t info;

    ctx->signal.lent_nr = (u32)nr;
    __atomic_store_n(&ctx->signal.lent_set, takes & MASK_SYNCHRONOUS, __ATOMIC_SEQ_CST);
    u64 mask =
        nr == NR_execve ? ctx->signal.client_mask : mask_for_sleep(ctx, ctx->signal.client_mask);
    host_set_mask(mask);
    while (deferred_take(ctx, mask, &info))
        host_queue_to_self(&info);
}

void take_signals_back(ThreadCtx *ctx)
{
    __atomic_store_n(&ctx->signal.lent_set, 0, __ATOMIC_SEQ_CST);
    signal_restore_host_mask(ctx);
}

// Calls that may read signals, from a signalfd in whatever way.
static bool may_read_signals(u64 nr)
{
    switch (nr) {
    case NR_read:
    case NR_poll:
    case NR_select:
    case NR_epoll_wait:
    case NR_io_uring_enter:
    case NR_io_getevents: return true;
    default: return false;
    }
}

void hide_hand_over(GuestAddr code_address)
{
    i32 code;

    if (guest_read(code_address, &code, sizeof(code)) && code == HANDED_OVER) {
        code = SI_USER;
        guest_write(code_address, &code, sizeof(code));
    }
}

// If it is a signalfd that was read, its records tell what the client must not see.
static void hide_hand_overs(GuestAddr records, u64 size_bytes)
{
    if (size_bytes % sizeof(struct signalfd_siginfo) != 0)
        return;
    for (u64 at = 0; at < size_bytes; at += sizeof(struct signalfd_siginfo)) {
        u32 sig;
        if (!guest_read(records + at, &sig, sizeof(sig)) || sig == 0 || sig > SIGNAL_COUNT)
            return;
        if (signal_is_synchronous((int)sig))
            hide_hand_over(records + at + offsetof(struct signalfd_siginfo, ssi_code));
    }
}

i64 signal_sleeping_call(ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    bool lends = (ctx->signal.client_mask & MASK_SYNCHRONOUS) != 0;
    Sleep sleep;
    i64 r;

    sleep_begin(&sleep, nr, args);
    do {
        const u64 *a = sleep.args;
        if (UNLIKELY(lends))
            lend_signals(ctx, nr, may_read_signals(nr) ? ctx->signal.client_mask : 0);
        r = gateway_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (UNLIKELY(lends))
            take_signals_back(ctx);
    } while (UNLIKELY(ctx->relay.kicked) && sleep_goes_on(ctx, &sleep, &r));
    r = sleep_end(ctx, &sleep, r);
    if (UNLIKELY(lends) && nr == NR_read && r > 0)
        hide_hand_overs(args[1], (u64)r);
    return r;
}
