// SPDX-License-Identifier: MIT
//
// Provided buffers: the client gives the kernel groups of buffers, and the completion of a
// request says by number which one was used. They come by a request (PROVIDE_BUFFERS) or through
// a ring of their own in the client's memory, to which buffers are added without any call.
#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/uring/uring_internal.h"

typedef struct Buffer {
    GuestAddr address;
    u32 length;
    u32 used;     // of a buffer that is filled piece by piece
    u32 position; // in the ring of buffers
} Buffer;

typedef struct Group {
    struct Group *next;
    u16 ring, id;
    bool is_ring, is_filled_up; // is_filled_up: IOU_PBUF_RING_INC
    GuestAddr entries;          // of the ring; 0: not mapped yet
    u32 mask;
    u16 seen;                   // the client's tail when we last looked
    Buffer *buffers;            // by number: BUFFER_IDS of them, most of which are never touched
    u16 *at;                    // which number stands at a position of the ring
} Group;

static Group *groups;

static Group *group_of(u16 ring, u16 id, bool make)
{
    for (Group *g = groups; g; g = g->next) {
        if (g->ring == ring && g->id == id)
            return g;
    }
    Group *g = make ? pages_map(sizeof(Group)) : NULL;
    Buffer *buffers = g ? pages_map(BUFFER_IDS * sizeof(Buffer)) : NULL;
    u16 *at = g ? pages_map(BUFFER_IDS * sizeof(u16)) : NULL;
    if (!g || !buffers || !at)
        return NULL;
    *g = (Group){.next = groups, .ring = ring, .id = id, .buffers = buffers, .at = at};
    groups = g;
    return g;
}

// By request: `fd` is how many there are, `off` the number of the first.
void buffers_provide(u16 ring, const Sqe *sqe)
{
    Group *g = group_of(ring, sqe->group, true);
    for (i32 i = 0; g && i < sqe->fd && i < BUFFER_IDS; i++)
        g->buffers[(u16)(sqe->off + (u32)i)] =
            (Buffer){.address = sqe->addr + (u64)i * sqe->len, .length = sqe->len};
}

typedef struct Registration { // the kernel's struct io_uring_buf_reg
    u64 address;
    u32 entries;
    u16 group, flags;
} Registration;

void buffers_register(u16 ring, GuestAddr registration)
{
    Registration r;
    if (!guest_read(registration, &r, sizeof(r)))
        return;
    Group *g = group_of(ring, r.group, true);
    if (!g)
        return;
    g->is_ring = true;
    g->is_filled_up = r.flags & PBUF_INC;
    g->entries = r.flags & PBUF_MMAP ? 0 : r.address;
    g->mask = r.entries - 1;
    g->seen = 0;
}

static void drop(Group **link)
{
    Group *g = *link;
    *link = g->next;
    pages_unmap(g->buffers, BUFFER_IDS * sizeof(Buffer));
    pages_unmap(g->at, BUFFER_IDS * sizeof(u16));
    pages_unmap(g, sizeof(Group));
}

void buffers_unregister(u16 ring, GuestAddr registration)
{
    Registration r;
    if (!guest_read(registration, &r, sizeof(r)))
        return;
    for (Group **link = &groups; *link; link = &(*link)->next) {
        if ((*link)->ring == ring && (*link)->id == r.group) {
            drop(link);
            return;
        }
    }
}

void buffers_forget(u16 ring)
{
    for (Group **link = &groups; *link;) {
        if ((*link)->ring == ring)
            drop(link);
        else
            link = &(*link)->next;
    }
}

void buffers_mapped(u16 ring, u16 group, GuestAddr address)
{
    Group *g = group_of(ring, group, false);
    if (g && g->is_ring && !g->entries)
        g->entries = address;
}

// An entry of the ring of buffers; the tail lies where the first has nothing.
typedef struct Entry {
    u64 address;
    u32 length;
    u16 id, tail;
} Entry;

static void look(Group *g)
{
    Entry entry;
    if (!g->entries || !guest_read(g->entries, &entry, sizeof(entry)))
        return;
    u16 tail = entry.tail;
    if ((u16)(tail - g->seen) > g->mask + 1)
        g->seen = (u16)(tail - (g->mask + 1));
    for (; g->seen != tail; g->seen++) {
        if (!guest_read(g->entries + (g->seen & g->mask) * sizeof(entry), &entry, sizeof(entry)))
            return;
        g->buffers[entry.id] = (Buffer){entry.address, entry.length, 0, g->seen};
        g->at[g->seen] = entry.id;
    }
}

void buffers_look(u16 ring)
{
    for (Group *g = groups; g; g = g->next) {
        if (g->ring == ring && g->is_ring)
            look(g);
    }
}

static void tell(GuestAddr address, u64 size, SyscallRangeFn wrote, void *arg)
{
    SyscallPath path = {NULL, "buf", INDEX_NONE, 0};
    SyscallRange range = {
        .address = address, .size_bytes = size, .dir = RANGE_OUT, .kind = ARG_OUT,
        .call_name = "io_uring", .path = &path,
    };
    if (address && size)
        wrote(&range, arg);
}

// A bundle goes on in the buffers that follow in the ring.
void buffers_written(const Pending *p, u16 id, u64 bytes, SyscallRangeFn wrote, void *arg)
{
    Group *g = group_of(p->ring, p->group, false);
    if (!g)
        return;
    if (g->is_ring && !g->buffers[id].address)
        look(g);
    for (u32 tried = 0; bytes && tried <= g->mask + 1; tried++) {
        Buffer *b = &g->buffers[id];
        u64 size = min_u64(bytes, b->length - b->used);
        tell(b->address + b->used, size, wrote, arg);
        bytes -= size;
        if (g->is_filled_up)
            b->used += (u32)size;
        if (!g->is_ring || !b->address)
            return;
        id = g->at[(u16)(b->position + 1)];
    }
}
