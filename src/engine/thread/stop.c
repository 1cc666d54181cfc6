// SPDX-License-Identifier: MIT
//
// All threads but one stand still: for whoever must see the client's memory and registers
// as they are at one moment.
//
// A thread that runs emitted code is sent a signal that only makes it leave the cache; it
// then waits at the top of its loop, where it holds no lock. One that is in the kernel on
// the client's behalf counts as standing: its registers are in its context (R2), and when it
// comes back it waits there too. One in engine code is on its way to the loop.
#include <errno.h>

#include "base/raw_syscall.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

enum {
    ROUND_NS = 200000,
    ROUNDS_MAX = 25000, // five seconds: a thread may be stopped by a debugger, or by SIGSTOP
    KICK_EVERY = 50,    // rounds; a signal may have met the thread outside the cache
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
};

u32 thread_stopper;
static u32 depth; // how often more the stopper has stopped them; its own

// ------------------------------------------------------------------ those that wait

// A process that only shares this memory goes on: ours may end, and nobody would wake it.
static bool is_other_process(const ThreadCtx *ctx)
{
    return ctx->thread.vfork_depth > 0 || ctx->live->is_process;
}

void thread_wait_while_stopped(ThreadCtx *ctx)
{
    u32 stopper;
    if (is_other_process(ctx))
        return;
    while ((stopper = __atomic_load_n(&thread_stopper, __ATOMIC_ACQUIRE)) != 0 &&
           stopper != (u32)ctx->thread.tid) {
        __atomic_store_n(&ctx->thread.is_stopped, 1, __ATOMIC_SEQ_CST);
        raw_syscall4(SYS_futex, (u64)&thread_stopper, FUTEX_WAIT, stopper, 0);
    }
    __atomic_store_n(&ctx->thread.is_stopped, 0, __ATOMIC_SEQ_CST);
}

// ------------------------------------------------------------------ the one that stops

typedef struct Round {
    const ThreadCtx *self;
    bool kicks;
    bool kicks_sleepers;
    u32 running;
} Round;

// A thread that has lent its context to the child of a vfork is asleep in the kernel.
static bool is_in_kernel(const ThreadCtx *ctx)
{
    return ctx->thread.vfork_depth > 0 || __atomic_load_n(&ctx->thread.in_kernel, __ATOMIC_SEQ_CST);
}

static void look_at(ThreadCtx *ctx, void *data)
{
    Round *round = data;
    if (ctx == round->self || ctx->live->is_process ||
        __atomic_load_n(&ctx->thread.is_stopped, __ATOMIC_SEQ_CST))
        return;
    if (is_in_kernel(ctx)) {
        if (round->kicks_sleepers)
            signal_kick(ctx->thread.record->tid);
        return;
    }
    round->running++;
    // Outside the cache a signal could only disturb: a system call would be interrupted.
    if (round->kicks && __atomic_load_n(&ctx->dispatch.in_cache, __ATOMIC_SEQ_CST))
        signal_kick(ctx->thread.record->tid);
}

static bool stop_others(ThreadCtx *ctx, bool for_good)
{
    u32 nobody = 0;
    if (__atomic_load_n(&thread_stopper, __ATOMIC_ACQUIRE) == (u32)ctx->thread.tid) {
        depth++;
        return true;
    }
    while (!__atomic_compare_exchange_n(&thread_stopper, &nobody, (u32)ctx->thread.tid, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        thread_wait_while_stopped(ctx); // another one's turn
        nobody = 0;
    }
    for (u32 i = 0; i < ROUNDS_MAX; i++) {
        Round round = {
            .self = ctx,
            .kicks = i % KICK_EVERY == 0,
            .kicks_sleepers = for_good && i == 0,
        };
        ctx_for_each(look_at, &round);
        if (round.running == 0)
            return true;
        const struct { i64 sec, ns; } pause = {0, ROUND_NS};
        raw_syscall2(SYS_nanosleep, (u64)&pause, 0);
    }
    return false;
}

bool thread_stop_others(ThreadCtx *ctx)
{
    return stop_others(ctx, false);
}

bool thread_stop_others_for_good(ThreadCtx *ctx)
{
    return stop_others(ctx, true);
}

static void let_go(void)
{
    __atomic_store_n(&thread_stopper, 0, __ATOMIC_SEQ_CST);
    raw_syscall3(SYS_futex, (u64)&thread_stopper, FUTEX_WAKE, INT32_MAX);
}

void thread_resume_others(ThreadCtx *ctx)
{
    (void)ctx;
    if (depth > 0)
        depth--;
    else
        let_go();
}

void stop_give_up(const ThreadCtx *ctx)
{
    if (__atomic_load_n(&thread_stopper, __ATOMIC_ACQUIRE) != (u32)ctx->thread.tid)
        return;
    depth = 0;
    let_go();
}
