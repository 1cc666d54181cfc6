// SPDX-License-Identifier: MIT
//
// Noticing that the client changes code that has been translated. A page that
// blocks were made from and that the client may write loses its write
// permission on the host; the store that faults gives it back and retires the
// blocks. A JIT that maps the same file twice writes through another address
// than it executes: then the writable view is guarded and a fault there retires
// the blocks of the executable views.
//
//   G1  A guarded page is writable for the client and read-only on the host.
//   G2  Blocks exist only for pages that are guarded in every writable view, or
//       not writable, or busy (their blocks check their own bytes).
//
// The table is open-addressed by page number; a page keeps its entry after it
// was unguarded, for the count of its faults.
#include "base/assert.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/aspace/pool.h"

#define GUARD_BUSY_FAULTS     16
// How often a page that is not guarded any more may explain a fault: threads
// that faulted together, before the first of them had the guard lifted.
#define GUARD_MAX_LATE_FAULTS 4096

typedef struct GuardedPage {
    GuestAddr page; // 0: the slot is empty (page 0 can never be guarded)
    bool guarded;
    bool dead; // forgotten; keeps the probe sequence whole
    u16 late_faults;
    u32 faults;
} GuardedPage;

void (*aspace_code_changed_hook)(GuestAddr start, GuestAddr end);

static GuardedPage *guard_table;
static u64 guard_slots;         // a power of two
static u64 guard_used;          // including the dead
static u64 guard_count;         // pages guarded now
static u64 guard_low, guard_high; // they lie in [low, high); atomic: read without the lock
static u64 guard_additions;       // ever; atomic
static u64 code_files = 1;        // grows when another file gets blocks; atomic

void code_changed(GuestAddr start, GuestAddr end)
{
    if (aspace_code_changed_hook)
        aspace_code_changed_hook(start, end);
}

static u64 guard_hash(GuestAddr page)
{
    return (page / PAGE_SIZE * 0x9e3779b97f4a7c15ull) >> 20;
}

static GuardedPage *guard_lookup(GuestAddr page)
{
    if (!guard_slots)
        return NULL;
    for (u64 i = guard_hash(page);; i++) {
        GuardedPage *g = &guard_table[i & (guard_slots - 1)];
        if (!g->page)
            return NULL;
        if (g->page == page)
            return g->dead ? NULL : g;
    }
}

static GuardedPage *guard_slot_for(GuestAddr page)
{
    for (u64 i = guard_hash(page);; i++) {
        GuardedPage *g = &guard_table[i & (guard_slots - 1)];
        if (!g->page || g->page == page)
            return g;
    }
}

static void guard_grow(void)
{
    GuardedPage *old = guard_table;
    u64 old_slots = guard_slots;
    u64 live = 0;

    for (u64 i = 0; i < old_slots; i++)
        live += old[i].page && !old[i].dead;
    guard_slots = 1024;
    while (guard_slots < live * 4)
        guard_slots *= 2;
    guard_table = pool_map(guard_slots * sizeof *guard_table);
    guard_used = live;
    for (u64 i = 0; i < old_slots; i++)
        if (old[i].page && !old[i].dead)
            *guard_slot_for(old[i].page) = old[i];
    if (old)
        pool_unmap(old, old_slots * sizeof *old);
}

static GuardedPage *guard_entry(GuestAddr page)
{
    if (guard_used * 2 >= guard_slots)
        guard_grow();

    GuardedPage *g = guard_slot_for(page);
    if (!g->page) {
        guard_used++;
        *g = (GuardedPage){.page = page};
    } else if (g->dead) {
        *g = (GuardedPage){.page = page};
    }
    return g;
}

// Calls visit() for every entry in [start, end), by whichever way is shorter.
static void guard_each(GuestAddr start, GuestAddr end, void (*visit)(GuardedPage *))
{
    if ((end - start) / PAGE_SIZE <= guard_slots) {
        for (GuestAddr page = start; page < end && guard_slots; page += PAGE_SIZE) {
            GuardedPage *g = guard_lookup(page);
            if (g)
                visit(g);
        }
        return;
    }
    for (u64 i = 0; i < guard_slots; i++) {
        GuardedPage *g = &guard_table[i];
        if (g->page && !g->dead && g->page >= start && g->page < end)
            visit(g);
    }
}

static bool host_protect_page(const MapNode *n, GuestAddr page, u64 prot)
{
    return host_protect(page, PAGE_SIZE, prot, n->pkey ? (i32)n->pkey : -1) == 0;
}

static void note_bounds(GuestAddr page)
{
    u64 low = guard_count ? min_u64(guard_low, page) : page;
    u64 high = guard_count ? max_u64(guard_high, page + PAGE_SIZE) : page + PAGE_SIZE;

    __atomic_store_n(&guard_low, low, __ATOMIC_RELAXED);
    __atomic_store_n(&guard_high, high, __ATOMIC_RELAXED);
    __atomic_store_n(&guard_additions, guard_additions + 1, __ATOMIC_RELEASE);
}

static void guard_page(const MapNode *n, GuestAddr page)
{
    if (page == 0)
        return; // always busy, see aspace_code_is_busy()
    GuardedPage *g = guard_entry(page);
    if (g->guarded || g->faults > GUARD_BUSY_FAULTS)
        return;

    g->guarded = true; // first: we may be killed in between, see cache_start_again()
    if (!host_protect_page(n, page, host_prot(n->m.prot) & ~(u64)PROT_WRITE)) {
        // Sealed, or part of a huge page: only the last way of G2 is left.
        g->guarded = false;
        g->faults = GUARD_BUSY_FAULTS + 1;
        return;
    }
    g->late_faults = 0;
    note_bounds(page);
    guard_count++;
}

// The page of `alias` that shows the file at `offset`, or 0.
static GuestAddr alias_page(const MapNode *alias, const MapNode *n, u64 offset)
{
    const Mapping *a = &alias->m;

    if (a->dev != n->m.dev || a->inode != n->m.inode)
        return 0;
    if (offset < a->offset || offset - a->offset >= a->end - a->start)
        return 0;
    return a->start + (offset - a->offset);
}

static bool is_shared_file(const MapNode *n)
{
    return (n->m.flags & MAP_SHARED) && n->m.inode;
}

static u64 file_offset(const MapNode *n, GuestAddr addr)
{
    return n->m.offset + (addr - n->m.start);
}

static void guard_aliases(const MapNode *n, GuestAddr page)
{
    u64 offset = file_offset(n, page);

    for (MapNode *a = tree_aliases(n->m.dev, n->m.inode); a; a = a->alias_next) {
        GuestAddr view = a->m.prot & PROT_WRITE ? alias_page(a, n, offset) : 0;
        if (view)
            guard_page(a, view);
    }
}

void aspace_guard_code(GuestAddr start, GuestAddr end)
{
    for (GuestAddr page = PAGE_DOWN(start); page < end; page += PAGE_SIZE) {
        MapNode *n = tree_find(page);
        if (!n)
            continue;
        if (n->m.inode && !n->has_code) {
            n->has_code = true;
            __atomic_store_n(&code_files, code_files + 1, __ATOMIC_RELEASE);
        }
        if (n->m.prot & PROT_WRITE)
            guard_page(n, page);
        if (is_shared_file(n))
            guard_aliases(n, page);
    }
}

static void unmark_page(GuardedPage *g)
{
    if (g->guarded)
        guard_count--;
    g->guarded = false;
}

// Retires the blocks made from any executable view of the file page at `page`.
static void retire_views(const MapNode *n, GuestAddr page)
{
    u64 offset = file_offset(n, page);

    for (MapNode *a = tree_aliases(n->m.dev, n->m.inode); a; a = a->alias_next) {
        GuestAddr view = a->m.prot & PROT_EXEC ? alias_page(a, n, offset) : 0;
        if (view)
            code_changed(view, view + PAGE_SIZE);
    }
}

// The page is about to be, or has become, writable: no thread may enter its blocks again.
static const MapNode *release_page(GuardedPage *g)
{
    if (!g->guarded)
        return NULL;

    const MapNode *n = tree_find(g->page);
    ASSERT(n != NULL); // records and guards change together
    unmark_page(g);
    code_changed(g->page, g->page + PAGE_SIZE);
    if (is_shared_file(n))
        retire_views(n, g->page);
    return n;
}

static void lift_page(GuardedPage *g)
{
    const MapNode *n = release_page(g);

    if (n)
        host_protect_page(n, g->page, host_prot(n->m.prot));
}

bool aspace_unguard_code(GuestAddr addr, bool *ret_busy)
{
    GuardedPage *g = guard_lookup(PAGE_DOWN(addr));
    if (!g)
        return false;
    if (!g->guarded) {
        // Another thread faulted here too and was first, or the fault is real.
        const MapNode *n = tree_find(g->page);
        if (!n || !(n->m.prot & PROT_WRITE) || g->late_faults >= GUARD_MAX_LATE_FAULTS)
            return false;
        g->late_faults++;
    } else {
        // Blocks that check themselves read their code, which a protection key may forbid.
        const MapNode *n = tree_find(g->page);
        g->faults += n && n->pkey == 0;
        lift_page(g);
    }
    *ret_busy = g->faults > GUARD_BUSY_FAULTS;
    return true;
}

bool aspace_code_is_busy(GuestAddr addr)
{
    const MapNode *n = tree_find(addr);
    GuardedPage *g = guard_lookup(PAGE_DOWN(addr));

    if (PAGE_DOWN(addr) == 0 || (g && g->faults > GUARD_BUSY_FAULTS))
        return true;
    if (!n || !is_shared_file(n))
        return false;
    u64 offset = file_offset(n, PAGE_DOWN(addr));
    for (MapNode *a = tree_aliases(n->m.dev, n->m.inode); a; a = a->alias_next) {
        GuestAddr view = alias_page(a, n, offset);
        g = view ? guard_lookup(view) : NULL;
        if (g && g->faults > GUARD_BUSY_FAULTS)
            return true;
    }
    return false;
}

bool aspace_may_be_guarded(GuestAddr start, u64 len)
{
    return start < __atomic_load_n(&guard_high, __ATOMIC_RELAXED) &&
           start + len > __atomic_load_n(&guard_low, __ATOMIC_RELAXED);
}

u64 aspace_guards_made(void)
{
    return __atomic_load_n(&guard_additions, __ATOMIC_ACQUIRE);
}

bool aspace_unguard_all(void)
{
    if (!guard_count)
        return false;
    guard_each(0, ~0ull, lift_page);
    return true;
}

bool aspace_unguard_range(GuestAddr start, u64 len)
{
    u64 before = guard_count;

    if (!before || len == 0 || start + len < start)
        return false;
    guard_lift(PAGE_DOWN(start), PAGE_UP(start + len));
    return guard_count != before;
}

void guard_lift(GuestAddr start, GuestAddr end)
{
    if (guard_count)
        guard_each(start, end, lift_page);
}

static void forget_page(GuardedPage *g)
{
    unmark_page(g);
    g->dead = true;
}

void guard_forget(GuestAddr start, GuestAddr end)
{
    guard_each(start, end, forget_page);
}

void guard_unmark(GuestAddr start, GuestAddr end)
{
    if (guard_count)
        guard_each(start, end, unmark_page);
}

static void discard_page(GuardedPage *g)
{
    release_page(g);
}

void guard_release(GuestAddr start, GuestAddr end)
{
    if (guard_count)
        guard_each(start, end, discard_page);
}

void guard_retire_code(GuestAddr start, GuestAddr end)
{
    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end; n = tree_next(n))
        if (n->m.prot & PROT_EXEC)
            code_changed(max_u64(n->m.start, start), min_u64(n->m.end, end));
}

u64 aspace_code_files(void)
{
    return __atomic_load_n(&code_files, __ATOMIC_ACQUIRE);
}

bool aspace_file_written(u64 dev, u64 inode)
{
    bool any = false;

    for (MapNode *n = tree_at_or_after(0); n; n = tree_next(n)) {
        if (!n->has_code || n->m.inode != inode || n->m.dev != dev)
            continue;
        code_changed(n->m.start, n->m.end);
        any = true;
    }
    return any;
}

void guard_note_writable(GuestAddr start, GuestAddr end)
{
    for (MapNode *n = tree_at_or_after(start); n && n->m.start < end; n = tree_next(n)) {
        if (!is_shared_file(n))
            continue;
        MapNode piece = tree_piece(n, start, end);
        u64 low = piece.m.offset, high = low + (piece.m.end - piece.m.start);
        for (MapNode *a = tree_aliases(n->m.dev, n->m.inode); a; a = a->alias_next) {
            if (a->m.dev != n->m.dev || a->m.inode != n->m.inode || !(a->m.prot & PROT_EXEC))
                continue;
            u64 from = max_u64(low, a->m.offset);
            u64 to = min_u64(high, a->m.offset + (a->m.end - a->m.start));
            if (from < to)
                code_changed(a->m.start + (from - a->m.offset),
                                 a->m.start + (to - a->m.offset));
        }
    }
}
