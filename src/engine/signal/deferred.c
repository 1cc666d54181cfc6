// SPDX-License-Identifier: MIT
//
// Synchronous signals that somebody sent with kill() and the like while the
// client blocks them, or while another signal waits for its delivery. The host
// cannot keep them blocked (S1), so this is their queue: one of each kind, as
// for every standard signal. Written by our handler in the middle of anything
// this thread does, so bits change by single instructions only, and a bit is
// set after its siginfo is complete.
#include <string.h>

#include "base/assert.h"
#include "engine/signal/signal_internal.h"

static unsigned slot_of(int sig)
{
    switch (sig) {
    case SIGSEGV: return 0;
    case SIGBUS: return 1;
    case SIGILL: return 2;
    case SIGFPE: return 3;
    case SIGTRAP: return 4;
    }
    panic_at(__FILE__, __LINE__, "not a synchronous signal");
}

void deferred_put(ThreadCtx *ctx, const siginfo_t *info)
{
    u64 bit = SIG_BIT(info->si_signo);

    if (ctx->deferred_signals & bit)
        return;
    memcpy(&ctx->deferred_info[slot_of(info->si_signo)], info, sizeof(*info));
    __atomic_or_fetch(&ctx->deferred_signals, bit, __ATOMIC_SEQ_CST);
}

bool deferred_take(ThreadCtx *ctx, u64 allowed, siginfo_t *ret_info)
{
    u64 ready = __atomic_load_n(&ctx->deferred_signals, __ATOMIC_SEQ_CST) & allowed;

    if (!ready)
        return false;
    int sig = __builtin_ctzll(ready) + 1;
    memcpy(ret_info, &ctx->deferred_info[slot_of(sig)], sizeof(*ret_info));
    deferred_drop(ctx, sig);
    return true;
}

void deferred_drop(ThreadCtx *ctx, int sig)
{
    __atomic_and_fetch(&ctx->deferred_signals, ~SIG_BIT(sig), __ATOMIC_SEQ_CST);
}

void signal_forget_pending(ThreadCtx *ctx)
{
    ctx->pending_signal = 0;
    ctx->deferred_signals = 0;
    ctx->wait_mask_armed = 0;
}
