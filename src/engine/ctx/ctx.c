// SPDX-License-Identifier: MIT
//
// The contexts of this process: the calling thread's, and the list of all live ones.
#include "engine/ctx/ctx.h"

#include "base/assert.h"
#include "base/futex_lock.h"

__thread ThreadCtx thread_ctx __attribute__((aligned(64)));
i32 ctx_displacement;

static Lock live_lock;
static LiveThread *live;  // live_lock
static u32 live_count;    // live_lock; threads of this process
static u32 staying_count; // live_lock; those of them that have not begun to end

void ctx_init(void)
{
    ctx_displacement = (i32)((char *)&thread_ctx - (char *)__builtin_thread_pointer());
}

void ctx_live_add(LiveThread *thread)
{
    lock_acquire(&live_lock);
    thread->next = live;
    live = thread;
    live_count += !thread->is_process;
    staying_count += !thread->is_process;
    lock_release(&live_lock);
}

bool ctx_live_begin_end(LiveThread *thread)
{
    lock_acquire(&live_lock);
    staying_count -= !thread->is_process;
    bool last = staying_count == 0;
    lock_release(&live_lock);
    return last;
}

bool ctx_live_remove_if_there(LiveThread *thread)
{
    bool found = false;

    lock_acquire(&live_lock);
    for (LiveThread **link = &live; *link; link = &(*link)->next) {
        if (*link != thread)
            continue;
        *link = thread->next;
        live_count -= !thread->is_process;
        found = true;
        break;
    }
    lock_release(&live_lock);
    return found;
}

void ctx_live_remove(LiveThread *thread)
{
    bool found = ctx_live_remove_if_there(thread);
    ASSERT(found);
}

void ctx_live_lock(void)
{
    lock_acquire(&live_lock);
}

void ctx_live_unlock(void)
{
    lock_release(&live_lock);
}

// The memory of the other threads stays mapped in the child: libc's list of
// thread blocks still runs through it.
void ctx_live_keep_only(LiveThread *thread)
{
    thread->next = NULL;
    thread->is_process = false;
    live = thread;
    live_count = staying_count = 1;
    lock_reset_after_fork(&live_lock);
}

bool ctx_is_only(const ThreadCtx *ctx)
{
    return ctx->thread.vfork_depth > 0 || ctx->live->is_process ||
           __atomic_load_n(&live_count, __ATOMIC_RELAXED) == 1;
}

void ctx_for_each(void (*fn)(ThreadCtx *ctx, void *data), void *data)
{
    lock_acquire(&live_lock);
    for (LiveThread *thread = live; thread; thread = thread->next)
        fn(thread->ctx, data);
    lock_release(&live_lock);
}
