// SPDX-License-Identifier: MIT
//
// Tags: where they live, and the turns of a stack's life.
#include "engine/calltags/calltags.h"

#include <sys/mman.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"

bool calltags_wanted, calltags_shared;
u64 calltags_offset;

static bool map_own(void)
{
    void *start = (void *)PAGE_DOWN(CALLTAGS_OFFSET);
    u64 size = CLIENT_END + CALLTAGS_FRAME_MAX + PAGE_SIZE;
    void *at = mmap(start, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != start)
        return false;
    madvise(at, size, MADV_NOHUGEPAGE);
    madvise(at, size, MADV_DONTDUMP);
    return true;
}

bool calltags_init(u64 shared_offset)
{
    calltags_shared = shared_offset != 0;
    calltags_offset = calltags_shared ? shared_offset : CALLTAGS_OFFSET;
    return calltags_shared || map_own();
}

bool calltags_thread_start(ThreadCtx *ctx)
{
    if (!calltags_shared) {
        ctx->engine_gs = CALLTAGS_OFFSET - CALLTAGS_DISP;
        __asm__ volatile("wrgsbase %0" : : "r"(ctx->engine_gs));
    }
    if (ctx->gpr[RSP] < CLIENT_END)
        calltags_add_root(ctx->gpr[RSP]);
    ctx->calltags.contexts = pages_map(sizeof(*ctx->calltags.contexts));
    return ctx->calltags.contexts != NULL;
}

void calltags_thread_end(ThreadCtx *ctx)
{
    if (ctx->calltags.contexts)
        pages_unmap(ctx->calltags.contexts, sizeof(*ctx->calltags.contexts));
    ctx->calltags.contexts = NULL;
}

void calltags_unmapped(GuestAddr start, GuestAddr end)
{
    // The words at both ends share their pages with neighbours.
    u64 first = PAGE_UP(start + CALLTAGS_OFFSET), last = PAGE_DOWN(end + CALLTAGS_OFFSET);
    calltags_drop_roots(start, end);
    if (!calltags_shared && end <= CLIENT_END && first < last)
        pages_discard((void *)first, last - first);
}

// The other threads may be looking: an entry without a context, and a chain without a pc, are empty
// to them. What one of them writes at the same moment is of frames that it runs now.
static void forget_contexts(ThreadCtx *ctx, void *unused)
{
    ContextCache *cache = ctx->calltags.contexts;

    (void)unused;
    for (u32 i = 0; cache && i < CONTEXTS_CACHED; i++)
        __atomic_store_n(&cache->slots[i].context, 0, __ATOMIC_RELAXED);
    for (u32 i = 0; cache && i < CALLTAGS_CHAINS; i++)
        __atomic_store_n(&cache->chains[i].pc, 0, __ATOMIC_RELAXED);
}

void calltags_forget_contexts(void)
{
    ctx_for_each(forget_contexts, NULL);
}
