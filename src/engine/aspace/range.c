// SPDX-License-Identifier: MIT
//
// Whose memory is it? Below CLIENT_END everything but the cache is the
// client's, apart from "foreign" records: engine memory that the kernel put
// there. At and above CLIENT_END only what the client mapped at a fixed address
// (and a vdso that could not be moved) is its own.
//
// guest_read() asks without a lock, so the ranges above CLIENT_END are published
// in a table under a sequence counter: odd while being written. The table only
// grows; a table that was outgrown stays mapped, for a reader may be in it.
#include <fcntl.h>
#include <stdatomic.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/aspace/pool.h"

#define FAR_READ_TRIES (1u << 20)

typedef struct FarRange {
    _Atomic u64 start, end;
} FarRange;

static FarRange *_Atomic far_ranges;
static _Atomic u32 far_count;
static _Atomic u32 far_sequence;
static u32 far_capacity;

u64 host_prot(u64 prot)
{
    if (!(prot & PROT_EXEC))
        return prot;
    return (prot & ~(u64)PROT_EXEC) | PROT_READ;
}

// A sandbox that the client has put itself into may know only the older call.
i64 host_protect(GuestAddr start, u64 len, u64 prot, i32 pkey)
{
    if (pkey < 0)
        return raw_syscall3(SYS_mprotect, start, len, prot);
    return raw_syscall4(SYS_pkey_mprotect, start, len, prot, (u64)pkey);
}

// ---------------------------------------------------------------- ownership

static bool overlaps(u64 start, u64 end, u64 other_start, u64 other_end)
{
    return start < other_end && other_start < end;
}

bool range_hits_engine(GuestAddr start, GuestAddr end)
{
    if (overlaps(start, end, CACHE_START, CACHE_END))
        return true;
    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end; n = tree_next(n))
        if (n->foreign)
            return true;
    return false;
}

static u32 far_collect(FarRange *table, u32 capacity)
{
    u32 count = 0;
    u64 end = 0;

    for (MapNode *n = tree_at_or_after(CLIENT_END); n; n = tree_next(n)) {
        if (n->foreign)
            continue;
        bool adjoins = count > 0 && n->m.start == end;
        end = n->m.end;
        if (!adjoins)
            count++;
        if (count > capacity)
            continue;
        if (!adjoins)
            atomic_store_explicit(&table[count - 1].start, n->m.start, memory_order_relaxed);
        atomic_store_explicit(&table[count - 1].end, end, memory_order_relaxed);
    }
    return count;
}

void range_publish_far(void)
{
    u32 wanted = far_collect(NULL, 0);

    if (wanted == 0 && atomic_load(&far_count) == 0)
        return;
    atomic_fetch_add(&far_sequence, 1);
    if (wanted > far_capacity) {
        far_capacity = wanted < 64 ? 64 : wanted * 2;
        atomic_store(&far_ranges, pool_map(PAGE_UP(far_capacity * sizeof(FarRange))));
    }
    atomic_store(&far_count, far_collect(far_ranges, far_capacity));
    atomic_fetch_add(&far_sequence, 1);
}

static u64 far_scan(GuestAddr addr)
{
    u32 count = atomic_load(&far_count);
    FarRange *table = atomic_load(&far_ranges);

    for (u32 i = 0; i < count; i++) {
        u64 end = atomic_load_explicit(&table[i].end, memory_order_relaxed);
        if (addr >= atomic_load_explicit(&table[i].start, memory_order_relaxed) && addr < end)
            return end;
    }
    return 0;
}

// The end of the client's memory at `addr`, or 0. A signal may have interrupted
// the writer on this very thread, so patience has an end: then nothing is the client's.
static u64 far_end_of(GuestAddr addr)
{
    for (u32 tries = 0; tries < FAR_READ_TRIES; tries++) {
        u32 before = atomic_load(&far_sequence);
        u64 end = far_scan(addr);
        if (!(before & 1) && atomic_load(&far_sequence) == before)
            return end;
    }
    return 0;
}

u64 range_client_bytes(GuestAddr addr, u64 len)
{
    u64 end = 0;

    if (addr < CACHE_START)
        end = CACHE_START;
    else if (addr >= CLIENT_END)
        end = far_end_of(addr);
    else if (addr >= CACHE_END && len <= CLIENT_END - addr)
        return len;
    else if (addr >= CACHE_END)
        end = max_u64(CLIENT_END, far_end_of(CLIENT_END));
    return end ? min_u64(len, end - addr) : 0;
}

bool range_is_client(GuestAddr addr, u64 len)
{
    return range_client_bytes(addr, len) == len;
}

// ---------------------------------------------------------------- growing stacks

static bool host_has_page(GuestAddr page)
{
    u8 resident;

    return raw_syscall3(SYS_mincore, page, PAGE_SIZE, (u64)&resident) == 0;
}

static void set_start(MapNode *n, void *start)
{
    n->m.start = *(GuestAddr *)start;
}

// How far down the stack that begins at `top` is mapped by now, looking at GROWSDOWN_ROOM at most.
static GuestAddr grown_start(GuestAddr top)
{
    u64 room = min_u64(GROWSDOWN_ROOM, top);
    GuestAddr bottom = top - room; // below this nothing belongs to it

    for (MapNode *p = tree_at_or_after(bottom); p && p->m.start < top; p = tree_next(p))
        bottom = p->m.end;
    while (top > bottom) {
        GuestAddr middle = PAGE_DOWN(bottom + (top - bottom) / 2);
        if (host_has_page(middle))
            top = middle;
        else
            bottom = middle + PAGE_SIZE;
    }
    return top;
}

static void sync_growing_stack(MapNode *n)
{
    GuestAddr start = n->m.start, end = n->m.end;

    for (;;) {
        GuestAddr grown = grown_start(start);
        if (grown == start)
            return;
        tree_update(start, end, set_start, &grown);
        start = grown;
    }
}

void range_sync_growing_stacks(void)
{
    for (MapNode *n = tree_next_growing(0); n;) {
        GuestAddr end = n->m.end;
        sync_growing_stack(n);
        n = tree_next_growing(end);
    }
}

void range_drop_lost(GuestAddr start, GuestAddr end)
{
    while (start < end) {
        MapNode *n = tree_at_or_after(start);
        if (!n || n->m.start >= end)
            return;
        GuestAddr from = max_u64(start, n->m.start), to = min_u64(end, n->m.end);
        start = n->m.end;
        if (n->foreign || host_has_page(from))
            continue;
        guard_retire_code(from, to);
        guard_forget(from, to);
        tree_remove(from, to);
    }
}

// ---------------------------------------------------------------- foreign memory

#define VSYSCALL_PAGE 0xffffffffff600000ull

bool range_has_vsyscall;

static void add_foreign(GuestAddr start, GuestAddr end)
{
    // What is recorded already is the client's own.
    while (start < end) {
        MapNode *n = tree_at_or_after(start);
        GuestAddr free_end = n ? min_u64(max_u64(n->m.start, start), end) : end;
        if (free_end > start) {
            MapNode foreign = {.m = {.start = start, .end = free_end}, .foreign = true};
            tree_add(&foreign);
        }
        if (!n || n->m.start >= end)
            return;
        start = n->m.end;
    }
}

static void note_maps_line(const char *line, void *arg)
{
    (void)arg;
    GuestAddr start = text_parse_hex(&line);
    if (*line++ != '-')
        return;

    if (start == VSYSCALL_PAGE)
        range_has_vsyscall = true;
    GuestAddr end = min_u64(text_parse_hex(&line), CLIENT_END);
    // The cache has its own rule and stays out of the records.
    if (start < CACHE_START)
        add_foreign(start, min_u64(end, CACHE_START));
    if (end > CACHE_END)
        add_foreign(max_u64(start, CACHE_END), end);
}

bool range_read_maps(void (*fn)(const char *line, void *arg), void *arg)
{
    char line[64]; // only the addresses and the protection matter
    char buffer[4096];
    size_t used = 0;
    i64 got;

    i64 fd = raw_syscall3(SYS_openat, (u64)AT_FDCWD, (u64) "/proc/thread-self/maps",
                          O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((got = raw_syscall3(SYS_read, (u64)fd, (u64)buffer, sizeof buffer)) > 0) {
        for (i64 i = 0; i < got; i++) {
            if (buffer[i] == '\n') {
                line[used] = 0;
                fn(line, arg);
                used = 0;
            } else if (used < sizeof line - 1) {
                line[used++] = buffer[i];
            }
        }
    }
    raw_syscall1(SYS_close, (u64)fd);
    return got == 0;
}

void range_find_foreign(void)
{
    range_read_maps(note_maps_line, NULL);
}
