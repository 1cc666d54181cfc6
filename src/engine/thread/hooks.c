// SPDX-License-Identifier: MIT
//
// The list of hooks and its traversals. Written at start only, so no lock.
#include "base/assert.h"
#include "engine/thread/thread_internal.h"

void (*thread_run_hook)(ThreadCtx *ctx) __attribute__((noreturn));

static const ThreadHooks *hooks[THREAD_HOOKS_MAX];
static u32 hook_count;

#define FOR_EACH_HOOK(i, member)                                                                   \
    for (u32 i = 0; i < hook_count; i++)                                                           \
        if (hooks[i]->member)

#define FOR_EACH_HOOK_BACKWARDS(i, member)                                                         \
    for (u32 i = hook_count; i-- > 0;)                                                             \
        if (hooks[i]->member)

void thread_add_hooks(const ThreadHooks *added)
{
    ASSERT(hook_count < THREAD_HOOKS_MAX);
    hooks[hook_count++] = added;
}

void hooks_create(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, create)
        hooks[i]->create(ctx);
}

bool hooks_start(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, start) {
        if (!hooks[i]->start(ctx))
            return false;
    }
    return true;
}

void hooks_end(ThreadCtx *ctx)
{
    FOR_EACH_HOOK_BACKWARDS(i, end)
        hooks[i]->end(ctx);
}

void hooks_fork_soon(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, fork_soon)
        hooks[i]->fork_soon(ctx);
}

void hooks_fork_prepare(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, fork_prepare)
        hooks[i]->fork_prepare(ctx);
}

void hooks_fork_parent(ThreadCtx *ctx)
{
    FOR_EACH_HOOK_BACKWARDS(i, fork_parent)
        hooks[i]->fork_parent(ctx);
}

void hooks_fork_child(ThreadCtx *ctx)
{
    FOR_EACH_HOOK_BACKWARDS(i, fork_child)
        hooks[i]->fork_child(ctx);
}

void hooks_vfork_child(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, vfork_child)
        hooks[i]->vfork_child(ctx);
}

void hooks_vfork_parent(ThreadCtx *ctx)
{
    FOR_EACH_HOOK_BACKWARDS(i, vfork_parent)
        hooks[i]->vfork_parent(ctx);
}

int hooks_process_end(ThreadCtx *ctx, int status)
{
    FOR_EACH_HOOK(i, process_end)
        status = hooks[i]->process_end(ctx, status);
    return status;
}

void hooks_exec(ThreadCtx *ctx)
{
    FOR_EACH_HOOK(i, exec)
        hooks[i]->exec(ctx);
}

void hooks_exec_failed(ThreadCtx *ctx, int error)
{
    FOR_EACH_HOOK_BACKWARDS(i, exec_failed)
        hooks[i]->exec_failed(ctx, error);
}
