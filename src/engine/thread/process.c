// SPDX-License-Identifier: MIT
//
// New processes. A fork's child goes on alone with a copy of everything, so
// the fork happens while all locks are held by the forking thread. A vfork's
// child borrows its parent's thread block, ThreadCtx and memory; the parent is
// asleep in the kernel meanwhile and puts its ThreadCtx right when it wakes.
#include <errno.h>
#include <linux/sched.h>
#include <string.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/cache/cache.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

bool silence_signals(ThreadCtx *ctx)
{
    if (ctx->gateway.pending_signal)
        return false;
    signal_block_host();
    if (!__atomic_load_n(&ctx->gateway.pending_signal, __ATOMIC_SEQ_CST))
        return true;
    signal_restore_host_mask(ctx);
    return false;
}

// The child's registers where they differ from its parent's; rax is the
// dispatcher's to write, or vfork_child()'s.
static void apply_args(ThreadCtx *ctx, const CloneArgs *args)
{
    if (args->stack)
        ctx->gpr[RSP] = args->stack;
    if (args->flags & CLONE_SETTLS)
        ctx->client_fs = args->tls;
    if (args->flags & CLONE_CLEAR_SIGHAND)
        signal_actions_clear_handlers(ctx->signal.actions);
}

static void take_all_locks(ThreadCtx *ctx)
{
    lock_acquire(&thread_lock);
    record_wait_for_leaving();
    hooks_fork_soon(ctx);
    lock_acquire(&engine_lock);
    hooks_fork_prepare(ctx);
    signal_actions_lock(ctx->signal.actions);
    ctx_live_lock();
}

static void go_on_as_parent(ThreadCtx *ctx)
{
    ctx_live_unlock();
    signal_actions_unlock(ctx->signal.actions);
    hooks_fork_parent(ctx);
    lock_release(&engine_lock);
    lock_release(&thread_lock);
}

static void go_on_as_child(ThreadCtx *ctx, const CloneArgs *args)
{
    ctx->thread.tid = (i32)raw_syscall0(SYS_gettid);
    lock_set_owner((u32)ctx->thread.tid);
    ctx->thread.vfork_depth = 0;
    ctx->thread.record->tid = ctx->thread.tid;
    ctx_live_keep_only(ctx->live);
    exit_reset_after_fork();
    signal_actions_reset_lock(ctx->signal.actions);
    hooks_fork_child(ctx);
    lock_reset_after_fork(&engine_lock);
    lock_reset_after_fork(&thread_lock);
    signal_forget_pending(ctx);
    apply_args(ctx, args);
}

i64 clone_fork(ThreadCtx *ctx, const CloneArgs *args)
{
    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    take_all_locks(ctx);
    i64 result = native_clone(args);
    if (result == 0)
        go_on_as_child(ctx, args);
    else
        go_on_as_parent(ctx);
    signal_restore_host_mask(ctx);
    return result;
}

// ---------------------------------------------------------------- vfork

typedef struct VforkChild {
    ThreadCtx *ctx;
    const CloneArgs *args;
    struct SignalActions *actions;
    ThreadRecord *record; // memory only: stack and xsave area
} VforkChild;

static void vfork_child(void *data)
{
    const VforkChild *child = data;
    ThreadCtx *ctx = child->ctx;

    memcpy(child->record->xsave, ctx->xsave, ctx->xsave_size);
    ctx->xsave = child->record->xsave;
    ctx->thread.tid = (i32)raw_syscall0(SYS_gettid);
    lock_set_owner((u32)ctx->thread.tid);
    ctx->thread.vfork_depth++;
    ctx->signal.actions = child->actions;
    ctx->gpr[RAX] = 0;
    signal_forget_pending(ctx);
    apply_args(ctx, child->args);
    hooks_vfork_child(ctx);
    signal_restore_host_mask(ctx);
    thread_run_hook(ctx);
}

static bool get_memory(ThreadCtx *ctx, const CloneArgs *args, VforkChild *ret_child)
{
    lock_acquire(&thread_lock);
    ThreadRecord *record = record_new();
    lock_release(&thread_lock);
    if (!record)
        return false;
    *ret_child = (VforkChild){
        .ctx = ctx,
        .args = args,
        .record = record,
        .actions = args->flags & CLONE_SIGHAND ? signal_actions_share(ctx->signal.actions)
                                               : signal_actions_copy(ctx->signal.actions),
    };
    return true;
}

static void free_memory(const VforkChild *child)
{
    if (child->actions)
        signal_actions_release(child->actions);
    lock_acquire(&thread_lock);
    record_discard(child->record);
    lock_release(&thread_lock);
}

// What the child was doing under the lock when it was killed is unknown. Blocks it made are
// almost always what it was at; the rest is lists, changed by single stores.
static void repair(const Lock *lock)
{
    if (lock == &engine_lock)
        cache_start_again();
}

void locks_free_those_of(i32 own_tid, i32 dead_tid)
{
    lock_set_owner((u32)own_tid);
    lock_free_those_of_dead((u32)dead_tid, repair);
}

i64 clone_vfork(ThreadCtx *ctx, const CloneArgs *args)
{
    VforkChild child;
    i64 result = -ENOMEM;

    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    if (!get_memory(ctx, args, &child)) {
        signal_restore_host_mask(ctx);
        return -ENOMEM;
    }
    if (child.actions) {
        ThreadCtx saved = *ctx;
        result = native_clone_on_stack(args, child.record->stack, child.record->stack_size, 0,
                                       vfork_child, &child);
        *ctx = saved;
        locks_free_those_of(ctx->thread.tid, (i32)result);
        exec_area_close(ctx->thread.record);
        if (result > 0)
            hooks_vfork_parent(ctx);
    }
    free_memory(&child);
    signal_restore_host_mask(ctx);
    return result;
}
