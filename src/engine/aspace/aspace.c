// SPDX-License-Identifier: MIT
//
// The questions that the rest of the engine asks about the client's mappings.
#include <sys/sysmacros.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/run/run.h"

#define MAPS_NAME_COLUMN 73

void aspace_init(void)
{
    range_find_foreign();
}

void aspace_adopt(GuestAddr start, GuestAddr end, u32 prot, const char *name)
{
    MapNode node = {
        .m = {
            .start = start,
            .end = end,
            .prot = prot,
            .flags = MAP_PRIVATE | MAP_ANONYMOUS,
            .name = name,
        },
    };

    lock_acquire(&engine_lock);
    tree_remove(start, end);
    tree_add(&node);
    range_publish_far();
    lock_release(&engine_lock);
}

const Mapping *aspace_find(GuestAddr addr)
{
    MapNode *n = tree_find(addr);

    if (!n) {
        range_sync_growing_stacks();
        n = tree_find(addr);
    }
    return n && !n->foreign ? &n->m : NULL;
}

const Mapping *aspace_next(const Mapping *after)
{
    MapNode *n = tree_next((const MapNode *)after);

    while (n && n->foreign)
        n = tree_next(n);
    return n ? &n->m : NULL;
}

bool aspace_executable(GuestAddr pc, GuestAddr *ret_end)
{
    const MapNode *n = tree_find(pc);

    if (!n || n->foreign || !(n->m.prot & PROT_EXEC))
        return false;
    GuestAddr end = n->m.end;
    while ((n = tree_find(end)) != NULL && !n->foreign && (n->m.prot & PROT_EXEC))
        end = n->m.end;
    *ret_end = end;
    return true;
}

// ---------------------------------------------------------------- /proc/self/maps

typedef struct MapsText {
    char *dst;
    size_t max, len;
} MapsText;

static void put(MapsText *t, char c)
{
    if (t->len < t->max)
        t->dst[t->len++] = c;
}

static void put_line(MapsText *t, const Mapping *m)
{
    char head[128];
    size_t len = text_format(head, sizeof head, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %lu ", m->start,
                             m->end, m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
                             m->prot & PROT_EXEC ? 'x' : '-', m->flags & MAP_SHARED ? 's' : 'p',
                             m->offset, major(m->dev), minor(m->dev), m->inode);

    for (size_t i = 0; i < len; i++)
        put(t, head[i]);
    if (m->name) {
        for (; len < MAPS_NAME_COLUMN; len++)
            put(t, ' ');
        for (const char *c = m->name; *c; c++) {
            if (*c == '\n') {
                put(t, '\\'), put(t, '0'), put(t, '1'), put(t, '2');
            } else {
                put(t, *c);
            }
        }
    }
    put(t, '\n');
}

size_t aspace_maps_text(char *dst, size_t max)
{
    MapsText t = { dst, max, 0 };

    lock_acquire(&engine_lock);
    range_sync_growing_stacks();
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m)) {
        size_t before = t.len;
        put_line(&t, m);
        if (t.len == max) {
            t.len = before; // whole lines only
            break;
        }
    }
    lock_release(&engine_lock);
    return t.len;
}
