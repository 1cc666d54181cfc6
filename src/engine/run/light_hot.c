// SPDX-License-Identifier: MIT
//
// The light exit: most departures from the cache only look for a block that
// exists already. This runs while the client's vector state is still in the
// registers, so it is compiled for general registers only and calls no libc.
#include "engine/cache/cache.h"
#include "engine/run/gateway.h"

// The guest pc and version to go on at, or false when C must do more.
static bool next_pc(ThreadCtx *ctx, GuestAddr *ret_pc, u32 *ret_version)
{
    switch (ctx->exit_reason) {
    case EXIT_LINK:
        *ret_pc = cache_exit(ctx->exit_link)->target;
        *ret_version = cache_exit(ctx->exit_link)->original ? VERSION_ORIGINAL : 0;
        return true;
    case EXIT_INDIRECT:
    case EXIT_RETURN:
        *ret_pc = ctx->pc;
        *ret_version = 0;
        return true;
    default:
        return false;
    }
}

bool stress_signals;

void stress_maybe_step(ThreadCtx *ctx)
{
    ctx->stress_seed = ctx->stress_seed * 1664525u + 1013904223u;
    u32 random = ctx->stress_seed >> 8;
    if (random % 16)
        return;
    ctx->stress_steps = 1 + random / 16 % 64;
    ctx->stepping = 1;
    ctx->flags |= FLAG_TF;
}

CodePtr run_light(void)
{
    ThreadCtx *ctx = &thread_ctx;
    GuestAddr pc;
    u32 version;
    __atomic_store_n(&ctx->in_cache, 0, __ATOMIC_SEQ_CST);
    ctx->flags &= ~(u64)FLAG_TF;
    if (ctx->client_step)
        ctx->flags |= FLAG_TF;
    if (!next_pc(ctx, &pc, &version))
        return NULL;
    ctx->pc = pc;
    if (ctx->client_step)
        return NULL;
    ctx->stat_dispatches++;
    ctx->recent_pc[ctx->recent_next++ % ARRAY_LEN(ctx->recent_pc)] = pc;

    CodePtr code = NULL;
    lock_acquire(&engine_lock);
    Block *block = cache_find(pc, version);
    if (block) {
        if (ctx->exit_reason == EXIT_LINK) {
            cache_link(ctx->exit_link, block);
            code = block->body;
        } else if (cache_publish_entry(block, ctx->exit_reason == EXIT_RETURN)) {
            ctx->stat_indirect_misses++;
            code = block->body;
        }
    }
    if (code)
        cache_enter(ctx);
    lock_release(&engine_lock);
    if (UNLIKELY(stress_signals) && code)
        stress_maybe_step(ctx);
    return code;
}
