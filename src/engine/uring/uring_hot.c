// SPDX-License-Identifier: MIT
//
// Whether there is news in a ring: asked from the cache.
#include "engine/aspace/aspace.h"
#include "engine/uring/uring_internal.h"

u32 uring_is_watched;
Lock uring_lock;
Ring uring_rings[RINGS_MAX];
u32 uring_ring_count;

// Without the lock: a ring that comes or goes meanwhile has news for nobody yet.
static bool moved(GuestAddr ring, u32 at, u32 seen)
{
    u32 tail;
    return ring && guest_read(ring + at, &tail, sizeof(tail)) && tail != seen;
}

bool uring_has_news(void)
{
    u32 count = __atomic_load_n(&uring_ring_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++) {
        const Ring *r = &uring_rings[i];
        if (!r->is_used)
            continue;
        if (moved(r->cq, r->p.cq.tail, r->cq_seen) ||
            (r->p.flags & SETUP_SQPOLL && moved(r->sq, r->p.sq.tail, r->sq_seen)))
            return true;
    }
    return false;
}
