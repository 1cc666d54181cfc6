// SPDX-License-Identifier: MIT
//
// Tags: where they live, and the turns of a stack's life.
#include "engine/calltags/calltags.h"

#include <sys/mman.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"

bool calltags_wanted;

bool calltags_init(void)
{
    void *start = (void *)PAGE_DOWN(CALLTAGS_OFFSET);
    u64 size = CLIENT_END + PAGE_SIZE;
    void *at = mmap(start, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != start)
        return false;
    madvise(at, size, MADV_NOHUGEPAGE);
    madvise(at, size, MADV_DONTDUMP);
    return true;
}

void calltags_thread_start(ThreadCtx *ctx)
{
    ctx->engine_gs = CALLTAGS_OFFSET - CALLTAGS_DISP;
    __asm__ volatile("wrgsbase %0" : : "r"(ctx->engine_gs));
    if (ctx->gpr[RSP] < CLIENT_END)
        *calltags_word(ctx->gpr[RSP]) = CALLTAG_ROOT;
}

void calltags_unmapped(GuestAddr start, GuestAddr end)
{
    // The words at both ends share their pages with neighbours.
    u64 first = PAGE_UP(start + CALLTAGS_OFFSET), last = PAGE_DOWN(end + CALLTAGS_OFFSET);
    if (end <= CLIENT_END && first < last)
        pages_discard((void *)first, last - first);
}

void calltags_enter_signal(GuestAddr slot, bool on_altstack)
{
    GuestAddr return_address;
    if (slot < CLIENT_END && guest_read(slot, &return_address, sizeof(return_address)))
        *calltags_word(slot) = on_altstack ? CALLTAG_ROOT : calltag_of(return_address);
}
