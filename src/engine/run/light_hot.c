// SPDX-License-Identifier: MIT
//
// The light exit: most departures from the cache only look for a block that
// exists already. This runs while the client's vector state is still in the
// registers, so it is compiled for general registers only and calls no libc.
#include "engine/cache/cache.h"
#include "engine/gateway/gateway.h"
#include "engine/redirect/redirect.h"
#include "engine/run/light.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/toolapi/toolapi.h"

// Of blocks that share a place in the first table the one that is used often should have it:
// one in so many that the second table knows is put there.
enum { SECOND_FOUND_MAX = 31 };

// Finds out where to go on while the thread still counts as inside the cache: the
// record of the exit lives no longer than that (C3, C4). False when C must do more.
static bool note_target(ThreadCtx *ctx)
{
    const Exit *x;
    switch (ctx->gateway.exit_reason) {
    case EXIT_LINK:
    case EXIT_CALL:
        x = cache_exit(ctx->gateway.exit_link);
        ctx->pc = exit_target(x);
        if (x->version & VERSION_ORIGINAL)
            ctx->redirect.armed = 1;
        return true;
    case EXIT_INDIRECT:
    case EXIT_RETURN:
    case EXIT_VERSIONED:
        return true;
    default:
        return false;
    }
}

static void fail_guard(ToolThread *thread, ExitReason reason)
{
    CodePlace place;
    if (!cache_place(thread->gateway.call_return - 1, &place))
        return;
    thread->pc = place.pc;
    thread->gateway.guard_failed = 1;
    thread->gateway.call_return = (u64)gateway_leave(reason);
}

void tool_fail_guard(ToolThread *thread)
{
    fail_guard(thread, EXIT_VERSIONED);
}

void tool_remake(ToolThread *thread)
{
    fail_guard(thread, EXIT_REMAKE);
}

// While the thread waited for the lock, its exit may have been retired and the
// record used for another: then it is left alone.
void run_link_exit(const ThreadCtx *ctx, Block *to)
{
    const Exit *x = cache_exit(ctx->gateway.exit_link);
    const Block *from = cache_numbered(x->from);
    bool is_live =
        from && !from->retired && ctx->gateway.exit_link - from->first_exit < from->exit_count;
    if (is_live && !(x->version & EXIT_DYNAMIC) && exit_target(x) == to->pc &&
        to->version == x->version)
        cache_link(ctx->gateway.exit_link, to);
}

u32 run_version(ThreadCtx *ctx)
{
    u32 version = redirect_version(ctx);
    if (!tool->version)
        return version;
    return version | tool->version(ctx) | (ctx->gateway.guard_failed ? VERSION_FIRST : 0);
}

EntryKind run_entry_kind(const ThreadCtx *ctx)
{
    bool is_clean = *(const u64 *)ctx->tool.state == 0;
    switch (ctx->gateway.exit_reason) {
    case EXIT_INDIRECT: return is_clean ? ENTRY_LOOKUP : ENTRY_NONE;
    case EXIT_RETURN: return is_clean ? ENTRY_RETURN : ENTRY_NONE;
    case EXIT_CALL: return is_clean ? ENTRY_CALL : ENTRY_NONE;
    case EXIT_VERSIONED: return ENTRY_VERSION;
    default: return ENTRY_NONE;
    }
}

// One entry in 16 is interrupted at first and fewer and fewer later: each costs up to 64 traps.
// Where all exits come here (--stress=no-link) a program would not end otherwise.
void stress_maybe_step(ThreadCtx *ctx)
{
    ctx->dispatch.stress_seed = ctx->dispatch.stress_seed * 1664525u + 1013904223u;
    u32 random = ctx->dispatch.stress_seed >> 8;
    if (random % (16 + ctx->dispatch.stress_taken / 64))
        return;
    ctx->dispatch.stress_taken++;
    ctx->dispatch.stress_steps = 1 + random / 16 % 64;
    ctx->dispatch.stepping = 1;
    ctx->flags |= FLAG_TF;
}

CodePtr run_light(void)
{
    ThreadCtx *ctx = &thread_ctx;
    bool has_target = note_target(ctx);
    __atomic_store_n(&ctx->dispatch.in_cache, 0, __ATOMIC_SEQ_CST);
    ctx->flags &= ~(u64)FLAG_TF;
    if (ctx->dispatch.client_step)
        ctx->flags |= FLAG_TF;
    if (!has_target || ctx->dispatch.client_step)
        return NULL;
    ctx->stats.dispatches++;
    ctx->gateway.second_left = SECOND_FOUND_MAX;
    ctx->dispatch.recent_pc[ctx->dispatch.recent_next++ % ARRAY_LEN(ctx->dispatch.recent_pc)] =
        ctx->pc;

    CodePtr code = NULL;
    lock_acquire(&engine_lock);
    Block *block = cache_find(ctx->pc, run_version(ctx));
    if (block) {
        if (ctx->gateway.exit_reason == EXIT_LINK ||
            (ctx->gateway.exit_reason == EXIT_CALL && block->call_entry)) {
            run_link_exit(ctx, block);
            code = code_at(block->body);
        } else if (cache_publish_entry(block, run_entry_kind(ctx))) {
            ctx->stats.indirect_misses++;
            code = code_at(block->body);
        }
    }
    if (code) {
        ctx->gateway.guard_failed = 0;
        cache_enter(ctx);
    }
    lock_release(&engine_lock);
    if (UNLIKELY(signal_stress) && code)
        stress_maybe_step(ctx);
    return code;
}
