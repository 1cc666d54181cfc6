// SPDX-License-Identifier: MIT
//
// Synchronous signals that somebody sent with kill() and the like while the
// client blocks them, or while another signal waits for its delivery. The host
// cannot keep them blocked (S1), so here is their queue: one of each kind, as
// for every standard signal, for each thread and one for the process. Written by
// our handler in the middle of anything this thread does, so bits change by
// single instructions only, and a bit is set after its siginfo is complete.
#include <string.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/signal/signal_internal.h"
#include "engine/syscall/syscall.h"

// What was sent to the process and every thread blocks, as far as we know. A slot
// belongs to whoever set its bit in `taken` until `ready` has it as well.
static struct {
    u64 taken, ready; // atomic
    siginfo_t info[5];
} shared;

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

// tgkill() says so in its code. Of sigqueue() and its sibling for threads, the first is what
// other processes use. A child on borrowed memory has no other threads.
static bool is_for_process(const ThreadCtx *ctx, const siginfo_t *info)
{
    if (ctx->thread.vfork_depth > 0 || info->si_code == SI_TKILL)
        return false;
    return info->si_code != SI_QUEUE || info->si_pid != (i32)raw_syscall0(SYS_getpid);
}

static void put_shared(ThreadCtx *ctx, const siginfo_t *info)
{
    u64 bit = SIG_BIT(info->si_signo);

    if (__atomic_fetch_or(&shared.taken, bit, __ATOMIC_SEQ_CST) & bit)
        return;
    memcpy(&shared.info[slot_of(info->si_signo)], info, sizeof(*info));
    __atomic_or_fetch(&shared.ready, bit, __ATOMIC_SEQ_CST);
    ctx->signal.must_place = 1;
}

static bool take_shared(u64 bit, siginfo_t *ret_info)
{
    if (!(__atomic_fetch_and(&shared.ready, ~bit, __ATOMIC_SEQ_CST) & bit))
        return false;
    memcpy(ret_info, &shared.info[slot_of(__builtin_ctzll(bit) + 1)], sizeof(*ret_info));
    __atomic_and_fetch(&shared.taken, ~bit, __ATOMIC_SEQ_CST);
    return true;
}

void deferred_put(ThreadCtx *ctx, const siginfo_t *info)
{
    if (is_for_process(ctx, info))
        put_shared(ctx, info);
    else
        deferred_put_own(ctx, info);
}

void deferred_put_own(ThreadCtx *ctx, const siginfo_t *info)
{
    u64 bit = SIG_BIT(info->si_signo);

    if (ctx->signal.deferred & bit)
        return;
    memcpy(&ctx->signal.deferred_info[slot_of(info->si_signo)], info, sizeof(*info));
    __atomic_or_fetch(&ctx->signal.deferred, bit, __ATOMIC_SEQ_CST);
}

u64 deferred_set(const ThreadCtx *ctx)
{
    u64 own = __atomic_load_n(&ctx->signal.deferred, __ATOMIC_SEQ_CST);

    return ctx->thread.vfork_depth > 0 ? own
                                       : own | __atomic_load_n(&shared.ready, __ATOMIC_SEQ_CST);
}

bool deferred_take(ThreadCtx *ctx, u64 allowed, siginfo_t *ret_info)
{
    for (;;) {
        u64 ready = deferred_set(ctx) & allowed;
        if (!ready)
            return false;
        int sig = __builtin_ctzll(ready) + 1;
        if (ctx->signal.deferred & SIG_BIT(sig)) {
            memcpy(ret_info, &ctx->signal.deferred_info[slot_of(sig)], sizeof(*ret_info));
            __atomic_and_fetch(&ctx->signal.deferred, ~SIG_BIT(sig), __ATOMIC_SEQ_CST);
            return true;
        }
        if (take_shared(SIG_BIT(sig), ret_info))
            return true; // else another thread was quicker
    }
}

void deferred_drop(ThreadCtx *ctx, int sig)
{
    siginfo_t ignored;

    if (!signal_is_synchronous(sig))
        return;
    while (deferred_take(ctx, SIG_BIT(sig), &ignored))
        ;
}

void signal_forget_pending(ThreadCtx *ctx)
{
    ctx->gateway.pending_signal = 0;
    ctx->signal.deferred = 0;
    ctx->signal.wait_mask_armed = 0;
    ctx->signal.must_place = 0;
    ctx->signal.lent_set = 0;
    if (ctx->thread.vfork_depth == 0)
        shared.taken = shared.ready = 0;
}

// ---------------------------------------------------------------- finding a thread

// How well a thread suits a signal that its sender meant for the process.
typedef enum Fitness { UNFIT, SLEEPS, WAITS, DOES_NOT_BLOCK } Fitness;

typedef struct Search {
    const ThreadCtx *asker;
    u64 bit;
    Fitness best;
    i32 tid;
} Search;

static Fitness fitness(const ThreadCtx *ctx, u64 bit)
{
    u64 mask = ctx->signal.wait_mask_armed ? ctx->signal.wait_mask : ctx->signal.client_mask;
    u64 lent = __atomic_load_n(&ctx->signal.lent_set, __ATOMIC_SEQ_CST);

    if (ctx->thread.vfork_depth > 0)
        return UNFIT; // of another process
    if (!(mask & bit))
        return DOES_NOT_BLOCK;
    if (!(lent & bit))
        return UNFIT;
    return ctx->signal.lent_nr == NR_rt_sigtimedwait ? WAITS : SLEEPS;
}

static void consider(ThreadCtx *ctx, void *data)
{
    Search *search = data;
    Fitness found = ctx == search->asker ? UNFIT : fitness(ctx, search->bit);

    if (found > search->best) {
        search->best = found;
        search->tid = ctx->thread.tid;
    }
}

void deferred_place(ThreadCtx *ctx)
{
    siginfo_t info;

    ctx->signal.must_place = 0;
    u64 left = __atomic_load_n(&shared.ready, __ATOMIC_SEQ_CST);
    for (; left; left &= left - 1) {
        Search search = { .asker = ctx, .bit = left & -left };
        ctx_for_each(consider, &search);
        if (search.best != UNFIT && take_shared(search.bit, &info))
            host_hand_over(search.tid, &info);
    }
}
