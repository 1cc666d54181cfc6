// SPDX-License-Identifier: MIT
//
// See last_call.h.
#include "engine/run/last_call.h"

#include <sys/mman.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/perform/perform.h"
#include "engine/signal/signal.h"
#include "engine/toolapi/toolapi.h"

#define TICK_NS 1000000000ull
enum { TICKS_WITHOUT_PROGRESS = 4 };

// There is one at a time: all other threads stand still (L4).
static struct {
    bool is_over;
    u64 (*left)(void);
    u64 least_left;
    u32 tick_seen; // the last one at which there was less left than ever
} call;

// ------------------------------------------------------------------- when it ends

static bool makes_no_progress(void)
{
    u32 ticks = signal_ending_ticks();

    if (ticks == call.tick_seen)
        return false;
    u64 now = call.left();
    if (now >= call.least_left)
        return ticks - call.tick_seen >= TICKS_WITHOUT_PROGRESS;
    call.least_left = now;
    call.tick_seen = ticks;
    return false;
}

// Of a store that would succeed, if we had not closed the memory to it.
static bool is_of_our_making(const siginfo_t *info)
{
    lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find((GuestAddr)info->si_addr);
    bool is_ours = mapping && (mapping->flags & MAP_SHARED) && (mapping->prot & PROT_WRITE);
    lock_release(&engine_lock);
    return is_ours;
}

bool last_call_is_over(ThreadCtx *ctx)
{
    if (signal_is_deliverable(ctx)) { // a fault: no other signal gets here
        if (tool->client_fault && ctx->gateway.pending_signal &&
            !is_of_our_making(&ctx->signal.pending.info))
            tool->client_fault(ctx, &ctx->signal.pending.info);
        signal_forget_pending(ctx);
        call.is_over = true;
    }
    if (!call.is_over)
        call.is_over =
            last_call_gives_up || signal_ending_is_urged() || makes_no_progress();
    return call.is_over;
}

// ------------------------------------------------------------------- the call

// A store there would be seen outside (L2): it faults. Afterwards all is as before, since the
// kernel still has words of robust mutexes to write.
static void close_shared_memory(bool closed)
{
    lock_acquire(&engine_lock);
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m)) {
        u64 prot = m->prot & (PROT_READ | PROT_WRITE);
        if ((m->flags & MAP_SHARED) && (prot & PROT_WRITE))
            raw_syscall3(SYS_mprotect, m->start, m->end - m->start,
                         closed ? prot & ~(u64)PROT_WRITE : prot);
    }
    lock_release(&engine_lock);
}

bool tool_call_client_last(ToolThread *thread, GuestAddr function, u64 (*left)(void))
{
    u64 result;
    bool was_made;

    if (signal_ending_is_urged() || !signal_ending_clock(TICK_NS))
        return false;
    call.is_over = last_call_gives_up = false;
    call.left = left;
    call.least_left = left();
    call.tick_seen = signal_ending_ticks();
    signal_admit_last_faults(thread);
    close_shared_memory(true);
    thread->dispatch.makes_last_call = 1;
    was_made = tool_call_client(thread, function, NULL, 0, &result);
    thread->dispatch.makes_last_call = 0;
    close_shared_memory(false);
    signal_block_host();
    signal_ending_clock_stop();
    return was_made && !call.is_over && !last_call_gives_up;
}
