// SPDX-License-Identifier: MIT
//
// RLIMIT_AS and RLIMIT_DATA, as the kernel counts them, of the client's own mappings.
// Counted anew for each question: limits are rare, and only with one is there a question.
#include <string.h>

#include "engine/aspace/aspace_internal.h"

u64 aspace_limit_bytes = ~0ull;
u64 aspace_data_limit_bytes = ~0ull;

// The first stack is mapped whole; the kernel would count what it had grown to.
#define FIRST_STACK_BYTES (132 * KiB)

static bool is_first_stack(const MapNode *n)
{
    return n->m.name && strcmp(n->m.name, "[stack]") == 0;
}

// Private, writable, and no stack.
static bool is_data(u64 prot, u64 flags)
{
    return (prot & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE && !(flags & MAP_GROWSDOWN);
}

typedef struct Usage {
    u64 all, data;
} Usage;

static Usage usage_of(GuestAddr start, GuestAddr end)
{
    Usage usage = { 0, 0 };

    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end; n = tree_next(n)) {
        u64 bytes = min_u64(end, n->m.end) - max_u64(start, n->m.start);
        if (n->foreign)
            continue;
        if (is_first_stack(n))
            bytes = min_u64(bytes, FIRST_STACK_BYTES);
        else if (is_data(n->m.prot, n->m.flags))
            usage.data += bytes;
        usage.all += bytes;
    }
    return usage;
}

static bool fits(u64 used, u64 more, u64 limit)
{
    return used <= limit && more <= limit - used;
}

bool account_may_expand(u64 bytes, u64 prot, u64 flags)
{
    u64 limit = __atomic_load_n(&aspace_limit_bytes, __ATOMIC_RELAXED);
    u64 data_limit = __atomic_load_n(&aspace_data_limit_bytes, __ATOMIC_RELAXED);

    if (LIKELY(limit == ~0ull && data_limit == ~0ull))
        return true;
    Usage usage = usage_of(0, USER_END);
    return fits(usage.all, bytes, limit) &&
           (!is_data(prot, flags) || fits(usage.data, bytes, data_limit));
}

bool account_may_map(GuestAddr start, u64 len, u64 prot, u64 flags)
{
    if (account_may_expand(len, prot, flags))
        return true;
    if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
        return false;
    u64 replaced = usage_of(start, start + len).all;
    // A mapping that may replace nothing is refused for that reason first.
    if ((flags & MAP_FIXED_NOREPLACE) && replaced)
        return true;
    return account_may_expand(len - replaced, prot, flags);
}

bool account_may_become(u64 bytes, u64 prot, u64 old_prot, u64 flags)
{
    return !(prot & PROT_WRITE) || account_may_expand(bytes, prot, flags) ||
           !account_may_expand(bytes, old_prot, flags);
}
