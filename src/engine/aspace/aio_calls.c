// SPDX-License-Identifier: MIT
//
// Asynchronous input and output of the old kind (libaio): a context is a ring that the kernel maps
// into the process, and the address of the ring is the number of the context. The kernel maps it
// where it likes; here it moves to where the client's memory is, and the context goes with it.
#include <errno.h>

#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

// As the kernel lays it out (fs/aio.c); libaio reads it, too.
typedef struct AioRing {
    u32 id, nr; // nr: events in the ring, which together with this header fills its pages
    u32 head, tail, magic, compat_features, incompat_features, header_length;
} AioRing;

enum { EVENT_BYTES = 32 };

static u64 ring_bytes(GuestAddr ring)
{
    const AioRing *r = (const AioRing *)ring;
    return PAGE_UP(sizeof(AioRing) + (u64)r->nr * EVENT_BYTES);
}

static void record_ring(GuestAddr start, u64 size)
{
    MapNode node = {
        .m = {
            .start = start,
            .end = start + size,
            .prot = PROT_READ | PROT_WRITE,
            .flags = MAP_SHARED,
            .name = "/[aio] (deleted)",
        },
        .dont_fork = true,
    };
    tree_add(&node);
    if (start + size > CLIENT_END)
        range_publish_far();
}

// A new context whose ring lies at an address of the client's.
static i64 setup_locked(u64 events, u64 *ret_context)
{
    u64 ring = 0;
    i64 result = raw_syscall2(SYS_io_setup, events, (u64)&ring);
    if (result < 0)
        return result;
    u64 size = ring_bytes(ring);
    GuestAddr place = place_find(PLACE_HIGH, size, PAGE_SIZE);
    result = place && account_may_expand(size, PROT_READ | PROT_WRITE, MAP_SHARED) ? 0 : -ENOMEM;
    u64 move = MREMAP_MAYMOVE | MREMAP_FIXED;
    if (result == 0)
        result = raw_syscall6(SYS_mremap, ring, size, size, move, place, 0);
    if (result < 0) {
        raw_syscall1(SYS_io_destroy, ring);
        return result;
    }
    record_ring(place, size);
    *ret_context = place;
    return 0;
}

i64 sys_io_setup(u64 events, u64 context_address)
{
    u64 context;
    if (!guest_read(context_address, &context, sizeof(context)))
        return -EFAULT;
    if (context)
        return -EINVAL;
    lock_acquire(&engine_lock);
    i64 result = setup_locked((u32)events, &context);
    lock_release(&engine_lock);
    if (result == 0 && !guest_write(context_address, &context, sizeof(context))) {
        sys_io_destroy(context);
        return -EFAULT;
    }
    return result;
}

// The kernel waits for what is under way, so the lock is not held meanwhile: until it is
// forgotten here, nothing else is placed where the ring was.
i64 sys_io_destroy(u64 context)
{
    i64 result = raw_syscall1(SYS_io_destroy, context);
    if (result < 0)
        return result;
    lock_acquire(&engine_lock);
    const MapNode *n = tree_at_or_after(context);
    if (n && n->m.start == context) {
        tree_remove(context, n->m.end);
        range_publish_far();
    }
    lock_release(&engine_lock);
    return 0;
}
