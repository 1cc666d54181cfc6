// SPDX-License-Identifier: MIT
//
// The questions that the rest of the engine asks about the client's mappings.
#include <sys/sysmacros.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"

Lock engine_lock;

#define MAPS_NAME_COLUMN 73

void aspace_init(void)
{
    range_find_foreign();
}

void aspace_after_fork(void)
{
    for (MapNode *n = tree_next(NULL); n;) {
        GuestAddr start = n->m.start, end = n->m.end;
        if (n->dont_fork) {
            guard_retire_code(start, end);
            guard_forget(start, end);
            tree_remove(start, end);
        }
        n = tree_at_or_after(end);
    }
    range_publish_far();
}

void aspace_adopt(GuestAddr start, GuestAddr end, u32 prot, const char *name)
{
    MapNode node = {
        .m =
            {
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

// Whole lines only: false, and nothing written, when there is no room.
static bool put_line(MapsText *t, const Mapping *m)
{
    char head[128];
    size_t before = t->len;
    size_t len =
        text_format(head, sizeof head, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %lu ", m->start,
                    m->end, m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
                    m->prot & PROT_EXEC ? 'x' : '-', m->flags & MAP_SHARED ? 's' : 'p', m->offset,
                    major(m->dev), minor(m->dev), m->inode);

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
    if (t->len < t->max)
        return true;
    t->len = before;
    return false;
}

// The kernel's, executable for everybody and part of nobody's mappings.
static const Mapping vsyscall = {
    .start = 0xffffffffff600000ull,
    .end = 0xffffffffff601000ull,
    .prot = PROT_EXEC,
    .name = "[vsyscall]",
};

size_t aspace_maps_text(char *dst, size_t max)
{
    MapsText t = {dst, max, 0};

    lock_acquire(&engine_lock);
    range_sync_growing_stacks();
    const Mapping *m = aspace_next(NULL);
    while (m && put_line(&t, m))
        m = aspace_next(m);
    if (!m && range_has_vsyscall)
        put_line(&t, &vsyscall);
    lock_release(&engine_lock);
    return t.len;
}
