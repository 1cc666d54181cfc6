// SPDX-License-Identifier: MIT
//
// Whether the records of the client's mappings agree with each other and with the kernel's.
#include <fcntl.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"

// Each of the kernel's mappings is compared with the records of its range.
typedef struct Comparison {
    u64 bytes;          // of the client's that are in both
    const char *breach; // the first
} Comparison;

static const char *protection_breach(const MapNode *n, u64 kernels)
{
    u64 wanted = host_prot(n->m.prot);

    if (kernels & PROT_WRITE && !(wanted & PROT_WRITE))
        return "the kernel lets the client write to what it has write-protected";
    if (wanted & PROT_READ && !(kernels & PROT_READ))
        return "the kernel does not let the client read what it may read";
    if (wanted & PROT_WRITE && !(kernels & PROT_WRITE) &&
        !aspace_may_be_guarded(n->m.start, n->m.end - n->m.start))
        return "the kernel does not let the client write to memory that holds no guarded code";
    return NULL;
}

static void compare_range(Comparison *c, GuestAddr start, GuestAddr end, u64 prot)
{
    while (start < end && !c->breach) {
        MapNode *n = tree_at_or_after(start);
        if (!n || n->m.start > start) {
            c->breach = "the kernel has memory among the client's that is not recorded";
            return;
        }
        GuestAddr common_end = min_u64(end, n->m.end);
        if (!n->foreign) {
            c->breach = protection_breach(n, prot);
            c->bytes += common_end - start;
        }
        start = common_end;
    }
}

// The cache stays out of the records, and what lies above CLIENT_END is mostly the engine's.
static void compare_line(const char *line, void *arg)
{
    GuestAddr start = text_parse_hex(&line);
    if (*line++ != '-')
        return;
    GuestAddr end = min_u64(text_parse_hex(&line), CLIENT_END);
    if (line[0] != ' ')
        return;
    u64 prot = (line[1] == 'r' ? PROT_READ : 0) | (line[2] == 'w' ? PROT_WRITE : 0);
    compare_range(arg, start, min_u64(end, CACHE_START), prot);
    compare_range(arg, max_u64(start, CACHE_END), end, prot);
}

static u64 recorded_bytes(void)
{
    u64 bytes = 0;

    for (MapNode *n = tree_next(NULL); n && n->m.start < CLIENT_END; n = tree_next(n)) {
        if (!n->foreign)
            bytes += min_u64(n->m.end, CLIENT_END) - n->m.start;
    }
    return bytes;
}

const char *aspace_validate(bool ask_kernel)
{
    Comparison c = {0};
    const char *breach = tree_breach();

    if (breach || !ask_kernel)
        return breach;
    range_sync_growing_stacks();
    if (!range_read_maps(compare_line, &c))
        return NULL;
    if (!c.breach && c.bytes != recorded_bytes())
        return "memory of the client's is recorded that the kernel does not have";
    return c.breach;
}
