// SPDX-License-Identifier: MIT
//
// The ends of threads and processes, and the small calls about a thread's
// identity that the kernel answers itself.
#include "base/raw_syscall.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

static _Noreturn void exit_native(u64 nr, int status)
{
    for (;;)
        raw_syscall1(nr, (u64)status);
}

static i32 ender; // atomic: tid of the thread that ends this process; 0: nobody does

void exit_reset_after_fork(void)
{
    ender = 0;
}

// A thread that has stopped the others must let them go, or the ender would wait for it.
void process_end_claim(ThreadCtx *ctx)
{
    i32 nobody = 0;

    if (__atomic_compare_exchange_n(&ender, &nobody, ctx->thread.tid, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        nobody == ctx->thread.tid)
        return;
    signal_block_host();
    stop_give_up(ctx);
    __atomic_store_n(&ctx->thread.is_stopped, 1, __ATOMIC_SEQ_CST);
    for (;;)
        raw_syscall0(SYS_pause);
}

static int announce_process_end(ThreadCtx *ctx, int status, const siginfo_t *killer)
{
    process_end_claim(ctx);
    if (!killer)
        return hooks_process_end(ctx, status);
    if (process_dying_hook)
        process_dying_hook(ctx, killer);
    return status;
}

// A child on borrowed memory is not the process that the tools watch; a vfork's
// has nothing of its own, one that shares for good has its place in the registry.
static void end_borrower(ThreadCtx *ctx)
{
    signal_block_host();
    if (ctx->live->is_process && ctx->thread.vfork_depth == 1) {
        hooks_end(ctx);
        ctx_live_remove(ctx->live);
    }
}

void process_exit_at_once(ThreadCtx *ctx, int status)
{
    if (ctx->thread.vfork_depth > 0)
        end_borrower(ctx);
    exit_native(SYS_exit_group, status);
}

void process_exit(ThreadCtx *ctx, int status)
{
    if (ctx->thread.vfork_depth == 0) {
        signal_block_host();
        status = announce_process_end(ctx, status, NULL);
    }
    process_exit_at_once(ctx, status);
}

i64 sys_exit_group(ThreadCtx *ctx, const u64 args[6])
{
    if (ctx->thread.vfork_depth == 0 && !silence_signals(ctx))
        return GATEWAY_RESTART;
    process_exit(ctx, (int)args[0]);
}

static void exit_thread(int status)
{
    exit_native(SYS_exit, status);
}

// The group's leader has the kernel's stack, or that of the thread that forked,
// and its exit status may become the process's: it ends by the plain call. Any
// other thread goes back to libc, which unlinks its block and ends it. The end of the
// process is announced by a thread that still has all of its own: tools may run the client.
static _Noreturn void end_thread(ThreadCtx *ctx, int status, const siginfo_t *killer,
                                 void (*last_call)(int status))
{
    ThreadRecord *record = ctx->thread.record;
    bool leader = ctx->thread.tid == (i32)raw_syscall0(SYS_getpid);

    if (ctx_live_begin_end(ctx->live)) {
        status = announce_process_end(ctx, status, killer);
        last_call(status);
    }
    hooks_end(ctx);
    signal_thread_end(ctx);
    signal_actions_release(ctx->signal.actions);
    lock_acquire(&thread_lock);
    ctx_live_remove(ctx->live);
    if (leader) {
        lock_release(&thread_lock);
        last_call(status);
    }
    record_leave(record);
    lock_release(&thread_lock);
    thread_tell_end(record);
    thread_leave(ctx);
}

void thread_end_by(ThreadCtx *ctx, const siginfo_t *info, void (*last_call)(int sig))
{
    if (ctx->thread.vfork_depth > 0) {
        end_borrower(ctx);
        last_call(info->si_signo);
    }
    signal_block_host();
    end_thread(ctx, info->si_signo, info, last_call);
}

i64 sys_exit(ThreadCtx *ctx, const u64 args[6])
{
    int status = (int)args[0];

    if (ctx->thread.vfork_depth > 0) {
        end_borrower(ctx);
        exit_native(SYS_exit, status);
    }
    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    end_thread(ctx, status, NULL, exit_thread);
}

i64 sys_set_tid_address(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    return raw_syscall1(SYS_set_tid_address, args[0]);
}

i64 sys_set_robust_list(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    return raw_syscall2(SYS_set_robust_list, args[0], args[1]);
}

i64 sys_get_robust_list(ThreadCtx *ctx, const u64 args[6])
{
    (void)ctx;
    return raw_syscall3(SYS_get_robust_list, args[0], args[1], args[2]);
}
