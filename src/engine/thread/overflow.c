// SPDX-License-Identifier: MIT
//
// Whether a thread has used up its stack. The stack pointer is below what may be touched of it
// then, or will be: the access lies between the two, for nobody reaches further down than 128 bytes
// below the stack pointer.
#include <string.h>
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"

#define RED_ZONE 128

// What glibc has as guard in front of a thread's stack may be larger by attribute.
#define GUARD_MAX (1 * MiB)

static const Mapping *first_writable_above(GuestAddr address)
{
    const Mapping *m = NULL;

    while ((m = aspace_next(m)) && (m->end <= address || !(m->prot & PROT_WRITE)))
        ;
    return m;
}

static bool is_its_stack(const ThreadCtx *ctx, const Mapping *m)
{
    if (m->name && strcmp(m->name, "[stack]") == 0)
        return ctx->relay.number == 1;
    return ctx->thread.stack_lowest && ctx->thread.stack_lowest < m->end &&
           ctx->thread.stack_lowest + GUARD_MAX >= m->start;
}

bool thread_overflowed_stack(const ThreadCtx *ctx, GuestAddr address, u64 *ret_stack_bytes)
{
    lock_acquire(&engine_lock);
    const Mapping *m = first_writable_above(address);
    bool overflowed = m && address < m->start && is_its_stack(ctx, m) &&
                      address + RED_ZONE >= ctx->gpr[RSP] &&
                      address + 2 * GUARD_MAX >= m->start;
    if (overflowed)
        *ret_stack_bytes = m->end - m->start;
    lock_release(&engine_lock);
    return overflowed;
}
