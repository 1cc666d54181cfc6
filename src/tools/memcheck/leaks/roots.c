// SPDX-License-Identifier: MIT
//
// The memory from which a leak search starts: all that is writable and not the heap's own, data
// that were until the program had started, stacks from the stack pointer up. What each piece of
// it is, is known here and told with what it holds: so the pieces are ordered by kind, the one that
// says most to people first.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/pages.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

enum {
    RED_ZONE = 128,
    SPARSE_PAGES = 4096, // larger mappings are asked which of their pages were ever touched
    TLS_BELOW = 4 * KiB, // of the first thread, unless others tell: its thread-local variables
    TLS_ABOVE = 4 * KiB, // and what the C library keeps behind them
};

// A part of a thread's memory.
typedef struct Zone {
    GuestAddr low, high;
    LeakRootPlace place;
} Zone;

// What is known while roots are gathered.
typedef struct Search {
    LeakScene *scene;
    LeakRange *holes; // the heap's own memory and the unused parts of stacks
    u64 hole_count, hole_room;
    Zone *zones; // of threads; the innermost comes first
    u64 zone_count, zone_room;
    u64 tls_bytes;       // below %fs, of each thread
    LeakRootPlace place; // of the mapping that is looked at
    int pagemap;
} Search;

bool leaks_grow(LeakScene *scene, void **array, u64 count, u64 *room, u64 element)
{
    if (count < *room)
        return true;
    u64 wanted = *room ? 2 * *room : 4096 / element;
    void *larger = *room ? pages_resize(*array, *room * element, wanted * element)
                         : pages_map(wanted * element);
    if (!larger) {
        scene->failed = true;
        return false;
    }
    *array = larger;
    *room = wanted;
    return true;
}

// ------------------------------------------------------------------ roots

static void add_root(LeakScene *scene, GuestAddr low, GuestAddr high, const LeakRootPlace *place)
{
    u64 room = scene->root_room, places_room = room;
    if (low >= high ||
        !leaks_grow(scene, (void **)&scene->roots, scene->root_count, &scene->root_room,
                    sizeof(LeakRange)))
        return;
    if (room != scene->root_room) {
        u64 bytes = scene->root_room * sizeof(LeakRootPlace);
        void *places = places_room ? pages_resize(scene->root_places,
                                                  places_room * sizeof(LeakRootPlace), bytes)
                                   : pages_map(bytes);
        scene->failed |= !places;
        if (!places)
            return;
        scene->root_places = places;
    }
    scene->root_places[scene->root_count] = *place;
    scene->roots[scene->root_count++] = (LeakRange){low, high};
}

// A range that lies in one mapping, divided where threads have theirs.
static void add_divided(const Search *search, GuestAddr low, GuestAddr high)
{
    for (GuestAddr at = low; at < high;) {
        const LeakRootPlace *place = &search->place;
        GuestAddr next = high;
        for (u64 i = search->zone_count; i-- > 0;) {
            const Zone *zone = &search->zones[i];
            if (zone->low <= at && zone->high > at) {
                place = &zone->place;
                next = min_u64(next, zone->high);
            } else if (zone->low > at) {
                next = min_u64(next, zone->low);
            }
        }
        add_root(search->scene, at, next, place);
        at = next;
    }
}

static void add_constant(LeakScene *scene, GuestAddr low, GuestAddr high)
{
    if (leaks_grow(scene, (void **)&scene->constants, scene->constant_count, &scene->constant_room,
                   sizeof(LeakRange)))
        scene->constants[scene->constant_count++] = (LeakRange){low, high};
}

// What the map of a process's own pages says of one.
static bool is_touched(u64 entry)
{
    return entry >> 62 != 0; // swapped, present
}

static bool is_written(u64 entry)
{
    enum { OF_FILE = 61 }; // still the file's, or shared
    return is_touched(entry) && !(entry >> OF_FILE & 1);
}

// Pages for which `is_wanted`; all, if the map cannot be read and `all_else`. A page that nobody
// has touched holds no pointer; reading it would only make the kernel map it.
static void add_pages(const Search *search, GuestAddr low, GuestAddr high,
                      bool (*is_wanted)(u64 entry), bool all_else)
{
    u64 entries[512];
    GuestAddr from = 0;
    for (GuestAddr at = low; at < high;) {
        u64 pages = min_u64(ARRAY_LEN(entries), (high - at) / PAGE_SIZE);
        ssize_t got = pread(search->pagemap, entries, pages * 8, (off_t)(at / PAGE_SIZE * 8));
        if (got != (ssize_t)(pages * 8)) {
            if (from || all_else)
                add_divided(search, from ? from : at, all_else ? high : at);
            return;
        }
        for (u64 i = 0; i < pages; i++, at += PAGE_SIZE) {
            bool wanted = is_wanted(entries[i]);
            if (wanted && !from) {
                from = at;
            } else if (!wanted && from) {
                add_divided(search, from, at);
                from = 0;
            }
        }
    }
    if (from)
        add_divided(search, from, high);
}

static void add_range(const Search *search, const Mapping *mapping, GuestAddr low, GuestAddr high)
{
    bool is_anonymous = mapping->inode == 0 && mapping->flags & MAP_PRIVATE;
    // The first look at a page for which a userfaultfd stands in may wait for ever: who would fill
    // the page is a thread that stands still.
    bool is_sparse = high - low > SPARSE_PAGES * PAGE_SIZE || syscalls_have_userfaults;
    if (search->pagemap >= 0 && is_anonymous && is_sparse)
        add_pages(search, PAGE_DOWN(low), high, is_touched, true);
    else
        add_divided(search, low, high);
}

// What is left of a mapping without the holes.
static void add_mapping(const Search *search, const Mapping *mapping)
{
    GuestAddr at = mapping->start;
    while (at < mapping->end) {
        GuestAddr next = mapping->end, resume = mapping->end;
        for (u64 i = 0; i < search->hole_count; i++) {
            const LeakRange *hole = &search->holes[i];
            if (hole->high > at && hole->low < next) {
                next = max_u64(hole->low, at);
                resume = hole->high;
            }
        }
        if (next > at)
            add_range(search, mapping, at, next);
        at = max_u64(resume, at + 1);
    }
}

// ------------------------------------------------------------------ what is where

static u32 keep_name(LeakScene *scene, const char *name)
{
    u64 size = name ? strlen(name) + 1 : 0, at = scene->name_bytes;
    if (size == 0)
        return 0;
    for (u64 i = 0; i < size; i++) {
        if (!leaks_grow(scene, (void **)&scene->names, scene->name_bytes, &scene->name_room, 1))
            return 0;
        scene->names[scene->name_bytes++] = name[i];
    }
    return (u32)at;
}

// To know it costs a look at all mappings, and only holders are named by it.
static LeakRootPlace place_of(LeakScene *scene, const Mapping *mapping)
{
    const char *path = NULL;
    if (!leaks_wants_holders())
        return (LeakRootPlace){.kind = HOLDER_MEMORY};
    MappedPlace place = describe_place(mapping, &path);
    bool is_data = place == MAPPED_DATA || place == MAPPED_BSS || place == MAPPED_TEXT;
    return (LeakRootPlace){
        .kind = is_data ? HOLDER_DATA : HOLDER_MEMORY,
        .name = place == MAPPED_ANONYMOUS ? 0 : keep_name(scene, path),
    };
}

static void add_hole(Search *search, GuestAddr low, GuestAddr high)
{
    if (low < high && leaks_grow(search->scene, (void **)&search->holes, search->hole_count,
                                 &search->hole_room, sizeof(LeakRange)))
        search->holes[search->hole_count++] = (LeakRange){low, high};
}

static void add_heap_hole(void *data, GuestAddr start, u64 size)
{
    add_hole(data, start, start + size);
}

static void add_zone(Search *search, GuestAddr low, GuestAddr high, u32 kind, u32 thread)
{
    if (low < high && leaks_grow(search->scene, (void **)&search->zones, search->zone_count,
                                 &search->zone_room, sizeof(Zone)))
        search->zones[search->zone_count++] = (Zone){low, high, {.kind = kind, .thread = thread}};
}

static bool has_tls_on_stack(const MemcheckThread *mt, GuestAddr fs)
{
    return fs >= mt->stack_lo && fs < mt->stack_hi && mt->first_sp <= fs;
}

static void measure_tls(ThreadCtx *ctx, void *data)
{
    Search *search = data;
    const MemcheckThread *mt = memcheck_thread(ctx);
    if (mt && has_tls_on_stack(mt, ctx->client_fs))
        search->tls_bytes = max_u64(search->tls_bytes, ctx->client_fs - mt->first_sp);
}

// A thread that the C library made has its thread-local variables above its stack; the first
// has them in a mapping that the loader made, with other things of the loader's.
static void add_tls(Search *search, const MemcheckThread *mt, GuestAddr fs, u32 thread)
{
    const Mapping *mapping = fs ? aspace_find(fs) : NULL;
    if (has_tls_on_stack(mt, fs))
        add_zone(search, mt->first_sp, mt->stack_hi, HOLDER_TLS, thread);
    else if (mapping && mapping->inode == 0)
        add_zone(search, max_u64(mapping->start, fs - min_u64(fs, search->tls_bytes)),
                 min_u64(mapping->end, fs + TLS_ABOVE), HOLDER_TLS, thread);
}

static void add_thread(ThreadCtx *ctx, void *data)
{
    Search *search = data;
    const MemcheckThread *mt = memcheck_thread(ctx);
    GuestAddr sp = ctx->gpr[RSP];
    if (!mt)
        return;
    if (is_at_home(mt, sp) && !mt->is_guessed)
        add_hole(search, mt->stack_lo, (sp - RED_ZONE) & ~7ull);
    add_tls(search, mt, ctx->client_fs, (u32)ctx->relay.number);
    add_zone(search, mt->stack_lo, mt->stack_hi, HOLDER_STACK, (u32)ctx->relay.number);
}

// Reading from a device may have effects. Shared anonymous memory has the name of /dev/zero.
static bool is_device(const Mapping *mapping)
{
    return mapping->name && strncmp(mapping->name, "/dev/", 5) == 0 &&
           strncmp(mapping->name, "/dev/shm/", 9) != 0 &&
           strncmp(mapping->name, "/dev/zero", 9) != 0;
}

// ------------------------------------------------------------------ all of them

// By kind, and within one by address as they were found.
static void sort_roots(LeakScene *scene)
{
    LeakScene sorted = {0};
    for (u32 kind = HOLDER_DATA; kind <= HOLDER_MEMORY; kind++) {
        for (u64 i = 0; i < scene->root_count; i++) {
            const LeakRange *root = &scene->roots[i];
            if (scene->root_places[i].kind == kind)
                add_root(&sorted, root->low, root->high, &scene->root_places[i]);
        }
        if (kind == HOLDER_STACK)
            scene->coarse_roots = scene->root_count - sorted.root_count;
    }
    scene->failed |= sorted.failed;
    if (!sorted.roots)
        return;
    pages_unmap(scene->roots, scene->root_room * sizeof(LeakRange));
    pages_unmap(scene->root_places, scene->root_room * sizeof(LeakRootPlace));
    scene->roots = sorted.roots;
    scene->root_places = sorted.root_places;
    scene->root_room = sorted.root_room;
}

// Data of a program that were written while it was started, and protected then: in a static one
// libc has pointers there.
static bool may_be_relro(const Mapping *mapping)
{
    return mapping->inode && mapping->prot == PROT_READ && mapping->flags & MAP_PRIVATE;
}

static void look_at_mappings(Search *search)
{
    LeakScene *scene = search->scene;
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m)) {
        if (!(m->prot & PROT_WRITE) || !(m->prot & PROT_READ)) {
            if (m->inode && m->prot & PROT_READ)
                add_constant(scene, m->start, m->end);
            if (may_be_relro(m) && search->pagemap >= 0) {
                search->place = place_of(scene, m);
                add_pages(search, m->start, m->end, is_written, false);
            }
        } else if (!is_device(m)) {
            search->place = place_of(scene, m);
            add_mapping(search, m);
        }
    }
}

void leaks_add_roots(LeakScene *scene)
{
    Search search = {
        .scene = scene,
        .tls_bytes = TLS_BELOW,
        .pagemap = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC),
    };
    keep_name(scene, "");
    heap_for_each_region(add_heap_hole, &search);
    lock_acquire(&engine_lock);
    tool_for_each_thread(measure_tls, &search);
    tool_for_each_thread(add_thread, &search);
    look_at_mappings(&search);
    lock_release(&engine_lock);
    if (search.pagemap >= 0)
        close(search.pagemap);
    if (search.holes)
        pages_unmap(search.holes, search.hole_room * sizeof(LeakRange));
    if (search.zones)
        pages_unmap(search.zones, search.zone_room * sizeof(Zone));
    sort_roots(scene);
}
