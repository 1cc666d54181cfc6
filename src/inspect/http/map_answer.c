// SPDX-License-Identifier: MIT
//
// /api/map and /api/blocks: where the live blocks of a moment lie, and how much of the pages
// that they keep is theirs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/blocks.h"

enum {
    REGION_GAP = 1 << 20, // a larger gap begins another region
    REGIONS_MAX = 256,
    CELLS_DEFAULT = 1024,
    CELLS_MAX = 8192,
    CELL_BYTES_MIN = 64,
    FILL_BUCKETS = 10,
    PINNED_MAX = 20,
    HOLE_MIN = 33, // less is the allocator's own and alignment
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
};

typedef struct Region {
    Space space;
    u64 start, end;
    u64 bytes, usable, pages, used_pages;
    u32 first, count; // in the list of blocks
} Region;

typedef struct Fragments {
    u64 used_pages, full_pages, live_bytes, holes, largest_hole;
    u64 fill[FILL_BUCKETS];
    u64 *pinned_pages, *pinned_bytes; // by site
    // The page that is being filled.
    u64 page, page_bytes, page_best;
    u32 page_site;
} Fragments;

typedef struct AddressMap {
    Call *call;
    Chosen chosen;
    const LiveBlocks *live;
    LiveBlock *blocks; // the selected ones, by address; heap first if there are several spaces
    u32 count;
    Region *regions;
    u32 region_count, region_more;
    u64 from, to; // addresses; to 0: all
    Fragments fragments;
} AddressMap;

// -------------------------------------------------------------------------- choosing

static Space block_space(const AddressMap *map, const LiveBlock *block)
{
    return recording_site(map->chosen.view->recording, block->site)->space;
}

static bool is_in_range(const AddressMap *map, const LiveBlock *block)
{
    return (!map->to || block->address < map->to) &&
           block->address + max_u64(block->usable, 1) > map->from;
}

static bool choose_blocks(AddressMap *map)
{
    const Selection *selection = &map->chosen.selection;
    u8 *sites = chosen_sites(map->call, &map->chosen, map->live);

    map->blocks = sites ? call_alloc(map->call, map->live->count, sizeof(LiveBlock)) : NULL;
    if (!map->blocks) {
        free(sites);
        return false;
    }
    // A pass for each space, so that those of one kind lie together.
    for (int space = 0; space < SPACE_COUNT; space++) {
        for (u32 i = 0; i < map->live->count; i++) {
            const LiveBlock *block = &map->live->blocks[i];
            bool fits = block->size >= selection->min_size &&
                        (!selection->max_size || block->size <= selection->max_size);
            if (sites[block->site] && fits && (int)block_space(map, block) == space &&
                is_in_range(map, block))
                map->blocks[map->count++] = *block;
        }
    }
    free(sites);
    return true;
}

// -------------------------------------------------------------------------- regions

static u64 block_end(const LiveBlock *block)
{
    return block->address + max_u64(block->usable, 1);
}

static int compare_by_bytes(const void *left, const void *right)
{
    const Region *a = left, *b = right;

    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : a->start < b->start ? -1 : 1;
}

static int compare_by_place(const void *left, const void *right)
{
    const Region *a = left, *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

static bool begins_region(const AddressMap *map, const Region *last, const LiveBlock *block)
{
    Space space = block_space(map, block);

    if (!last || last->space != space)
        return true;
    return block->address > last->end && (space != SPACE_HEAP ||
                                          block->address - last->end > REGION_GAP);
}

static bool make_regions(AddressMap *map)
{
    Region *region = NULL;

    map->regions = call_alloc(map->call, map->count, sizeof(Region));
    for (u32 i = 0; map->regions && i < map->count; i++) {
        const LiveBlock *block = &map->blocks[i];
        if (begins_region(map, region, block)) {
            region = &map->regions[map->region_count++];
            *region = (Region){.space = block_space(map, block), .first = i,
                               .start = PAGE_DOWN(block->address)};
        }
        region->end = max_u64(region->end, block_end(block));
        saturate_grow_u64(&region->bytes, block->size);
        saturate_grow_u64(&region->usable, block->usable);
        region->count++;
    }
    for (u32 i = 0; map->regions && i < map->region_count; i++)
        map->regions[i].end = PAGE_UP(map->regions[i].end);
    return map->regions != NULL;
}

// The largest are shown, in order of addresses.
static void cut_regions(AddressMap *map)
{
    if (map->region_count > REGIONS_MAX) {
        qsort(map->regions, map->region_count, sizeof(Region), compare_by_bytes);
        map->region_more = map->region_count - REGIONS_MAX;
        map->region_count = REGIONS_MAX;
    }
    qsort(map->regions, map->region_count, sizeof(Region), compare_by_place);
    for (u32 i = 0; i < map->region_count; i++) {
        Region *region = &map->regions[i];
        if (map->from > region->start)
            region->start = map->from;
        if (map->to && map->to < region->end)
            region->end = map->to;
    }
}

// ---------------------------------------------------------------------- fragmentation

static void flush_page(Fragments *at)
{
    if (at->page_bytes == 0)
        return;
    u64 bytes = min_u64(at->page_bytes, PAGE_SIZE);
    u64 bucket = min_u64(bytes * FILL_BUCKETS / PAGE_SIZE, FILL_BUCKETS - 1);
    at->used_pages++;
    at->full_pages += bytes == PAGE_SIZE;
    at->fill[bucket]++;
    if (bucket == 0) {
        at->pinned_pages[at->page_site]++;
        saturate_grow_u64(&at->pinned_bytes[at->page_site], bytes);
    }
    at->page_bytes = at->page_best = 0;
}

static void fill_page(Fragments *at, u64 page, u64 bytes, u32 site)
{
    if (page != at->page)
        flush_page(at);
    at->page = page;
    saturate_grow_u64(&at->page_bytes, bytes);
    if (bytes >= at->page_best) {
        at->page_best = bytes;
        at->page_site = site;
    }
}

// A block of many pages fills those in its middle.
static void fill_pages(Fragments *at, const LiveBlock *block)
{
    u64 size = max_u64(block->size, 1);
    u64 start = block->address, end = start + size;
    u64 first = start / PAGE_SIZE, last = (end - 1) / PAGE_SIZE;

    if (first == last) {
        fill_page(at, first, size, block->site);
        return;
    }
    fill_page(at, first, (first + 1) * PAGE_SIZE - start, block->site);
    u64 middle = last - first - 1;
    if (middle) {
        flush_page(at);
        at->used_pages += middle;
        at->full_pages += middle;
        at->fill[FILL_BUCKETS - 1] += middle;
    }
    fill_page(at, last, end - last * PAGE_SIZE, block->site);
}

static void measure_region(AddressMap *map, Region *region)
{
    Fragments *at = &map->fragments;
    u64 end = 0, before = at->used_pages;

    for (u32 i = region->first; i < region->first + region->count; i++) {
        const LiveBlock *block = &map->blocks[i];
        fill_pages(at, block);
        saturate_grow_u64(&at->live_bytes, block->size);
        if (end && block->address > end && block->address - end >= HOLE_MIN) {
            at->holes++;
            at->largest_hole = max_u64(at->largest_hole, block->address - end);
        }
        end = max_u64(end, block_end(block));
    }
    flush_page(at);
    region->used_pages = at->used_pages - before;
    region->pages = (PAGE_UP(region->end) - PAGE_DOWN(region->start)) / PAGE_SIZE;
}

static bool measure(AddressMap *map)
{
    u32 sites = recording_site_count(map->chosen.view->recording);

    map->fragments.pinned_pages = call_alloc(map->call, sites, sizeof(u64));
    map->fragments.pinned_bytes = call_alloc(map->call, sites, sizeof(u64));
    if (!map->fragments.pinned_pages || !map->fragments.pinned_bytes)
        return false;
    for (u32 i = 0; i < map->region_count; i++) {
        if (map->regions[i].space == SPACE_HEAP)
            measure_region(map, &map->regions[i]);
        else
            map->regions[i].pages = map->regions[i].used_pages =
                (map->regions[i].end - map->regions[i].start) / PAGE_SIZE;
    }
    return true;
}

// --------------------------------------------------------------------------- output

static void put_pinned(AddressMap *map)
{
    Recording *recording = map->chosen.view->recording;
    const Names *names = view_names(map->call, map->chosen.view);
    u64 *pages = map->fragments.pinned_pages;
    Json *out = &map->call->out;
    char name[2048];

    json_key_open(out, "pinned", '[');
    for (int shown = 0; names && shown < PINNED_MAX; shown++) {
        u32 best = 0;
        for (u32 i = 1; i < recording_site_count(recording); i++) {
            if (pages[i] > pages[best])
                best = i;
        }
        if (recording_site_count(recording) == 0 || pages[best] == 0)
            break;
        u32 context = recording_site(recording, best)->context;
        place_put_label(recording, names->owner_of[context], true, name, sizeof(name));
        json_open(out, '{');
        json_key_u64(out, "context", context);
        json_key_text(out, "name", name);
        json_key_u64(out, "pages", pages[best]);
        json_key_u64(out, "bytes", map->fragments.pinned_bytes[best]);
        json_close(out, '}');
        pages[best] = 0;
    }
    json_close(out, ']');
}

static void put_fragments(AddressMap *map)
{
    const Fragments *at = &map->fragments;
    Json *out = &map->call->out;
    double page_bytes = (double)at->used_pages * (double)PAGE_SIZE;

    json_key_open(out, "fragmentation", '{');
    json_key_u64(out, "used_pages", at->used_pages);
    json_key_u64(out, "full_pages", at->full_pages);
    json_key_u64(out, "page_bytes", at->used_pages * PAGE_SIZE);
    json_key_u64(out, "live_bytes", at->live_bytes);
    json_key(out, "lost");
    json_double(out, page_bytes > 0 ? 1 - (double)at->live_bytes / page_bytes : 0);
    json_key_u64s(out, "fill", at->fill, FILL_BUCKETS);
    json_key_u64(out, "holes", at->holes);
    json_key_u64(out, "largest_hole", at->largest_hole);
    put_pinned(map);
    json_close(out, '}');
}

// Adds the part of the block that lies in each cell.
static void add_to_cells(const Region *region, const LiveBlock *block, u64 cell_bytes, u64 cells,
                         u64 *live, u64 *blocks)
{
    u64 start = max_u64(block->address, region->start);
    u64 end = min_u64(block->address + max_u64(block->size, 1), region->end);

    if (end <= start)
        return;
    u64 first = (start - region->start) / cell_bytes;
    u64 last = min_u64((end - 1 - region->start) / cell_bytes, cells - 1);
    blocks[first]++;
    for (u64 cell = first; cell <= last; cell++) {
        u64 cell_start = region->start + cell * cell_bytes;
        live[cell] += min_u64(end, cell_start + cell_bytes) - max_u64(start, cell_start);
    }
}

static void put_region(AddressMap *map, const Region *region, u64 cell_share)
{
    static const char *const kinds[] = {"heap", "mapped", "stack"};
    Json *out = &map->call->out;
    u64 length = region->end - region->start, cell_bytes = CELL_BYTES_MIN;

    while (length / cell_bytes > cell_share)
        cell_bytes *= 2;
    u64 cells = (length + cell_bytes - 1) / cell_bytes;
    u64 *live = call_alloc(map->call, 2 * cells + 1, sizeof(u64));
    if (!live)
        return;
    for (u32 i = region->first; i < region->first + region->count; i++)
        add_to_cells(region, &map->blocks[i], cell_bytes, cells, live, live + cells);
    json_open(out, '{');
    json_key_address(out, "start", region->start);
    json_key_address(out, "end", region->end);
    json_key_text(out, "kind", kinds[region->space]);
    json_key_u64(out, "bytes", region->bytes);
    json_key_u64(out, "usable", region->usable);
    json_key_u64(out, "blocks", region->count);
    json_key_u64(out, "pages", region->pages);
    json_key_u64(out, "used_pages", region->used_pages);
    json_key_u64(out, "cell_bytes", cell_bytes);
    json_key_u64s(out, "cell_live", live, cells);
    json_key_u64s(out, "cell_blocks", live + cells, cells);
    json_close(out, '}');
    free(live);
}

static void put_map(AddressMap *map)
{
    Json *out = &map->call->out;
    u64 cells = request_u64(map->call->request, "cells", CELLS_DEFAULT, CELLS_MAX);
    u64 bytes = 0, usable = 0, length = 0;

    for (u32 i = 0; i < map->count; i++) {
        saturate_grow_u64(&bytes, map->blocks[i].size);
        saturate_grow_u64(&usable, map->blocks[i].usable);
    }
    for (u32 i = 0; i < map->region_count; i++)
        length += map->regions[i].end - map->regions[i].start;
    json_open(out, '{');
    json_key_u64(out, "at", map->live->at_ns);
    json_key_u64(out, "blocks", map->count);
    json_key_u64(out, "bytes", bytes);
    json_key_u64(out, "usable", usable);
    json_key_open(out, "regions", '[');
    for (u32 i = 0; i < map->region_count; i++) {
        const Region *region = &map->regions[i];
        double part = (double)(region->end - region->start) / (double)max_u64(length, 1);
        put_region(map, region, max_u64(1, (u64)(part * (double)cells)));
    }
    json_close(out, ']');
    json_key_u64(out, "regions_more", map->region_more);
    put_fragments(map);
    json_close(out, '}');
}

static bool find_blocks(Call *call, AddressMap *map)
{
    *map = (AddressMap){.call = call};
    map->from = request_address(call->request, "start", 0);
    map->to = request_address(call->request, "end", 0);
    if (map->to && map->to <= map->from)
        request_blame(call->request, "end: it is not behind start");
    if (!chosen_parse(call, false, &map->chosen))
        return false;
    // Those of other programs are made up.
    if (strcmp(call->file->format, "muninn") != 0)
        call_fail(call, 409, "no-events", "addresses of blocks are not in a file of %s",
                  call->file->format);
    map->live = call->code ? NULL : chosen_blocks(call, &map->chosen);
    return map->live && choose_blocks(map);
}

void answer_map(Call *call)
{
    AddressMap map;

    if (find_blocks(call, &map) && make_regions(&map)) {
        cut_regions(&map);
        if (measure(&map))
            put_map(&map);
    }
    free(map.blocks);
    free(map.regions);
    free(map.fragments.pinned_pages);
    free(map.fragments.pinned_bytes);
}

// --------------------------------------------------------------------------- blocks

typedef enum Sort { SORT_ADDRESS, SORT_SIZE, SORT_AGE } Sort;
typedef struct Order {
    Sort sort;
    bool is_up;
} Order;

static int compare_in_order(const void *left, const void *right, void *arg)
{
    const LiveBlock *a = left, *b = right;
    const Order *order = arg;
    u64 x = order->sort == SORT_SIZE ? a->size : order->sort == SORT_AGE ? b->born_ns : a->address;
    u64 y = order->sort == SORT_SIZE ? b->size : order->sort == SORT_AGE ? a->born_ns : b->address;
    int result = x < y ? -1 : x > y;

    if (result == 0)
        return a->address < b->address ? -1 : a->address > b->address;
    return order->is_up ? result : -result;
}

static void put_block(Call *call, const Names *names, const LiveBlock *block)
{
    Recording *recording = call->view->recording;
    const RecordedSite *site = recording_site(recording, block->site);
    Json *out = &call->out;
    char name[2048];

    place_put_label(recording, names->owner_of[site->context], true, name, sizeof(name));
    json_open(out, '{');
    json_key_address(out, "address", block->address);
    json_key_u64(out, "size", block->size);
    json_key_u64(out, "usable", block->usable);
    json_key_u64(out, "born_ns", block->born_ns);
    json_key_null(out, "died_ns");
    json_key_u64(out, "context", site->context);
    json_key_u64(out, "thread", site->thread);
    json_key_text(out, "name", name);
    json_close(out, '}');
}

static void put_blocks(AddressMap *map, const Names *names)
{
    static const char *const sorts[] = {"address", "size", "age"};
    static const char *const orders[] = {"desc", "asc"};
    Request *request = map->call->request;
    Json *out = &map->call->out;
    Order order = {.sort = (Sort)request_choice(request, "sort", sorts, 3, SORT_ADDRESS)};
    order.is_up = request_choice(request, "order", orders, 2, order.sort == SORT_ADDRESS) == 1;
    u64 offset = request_u64(request, "offset", 0, UINT32_MAX);
    u64 limit = request_u64(request, "limit", LIMIT_DEFAULT, LIMIT_MAX);
    u32 first = (u32)min_u64(offset, map->count);
    u32 end = first + (u32)min_u64(limit, map->count - first);

    qsort_r(map->blocks, map->count, sizeof(LiveBlock), compare_in_order, &order);
    json_open(out, '{');
    json_key_u64(out, "rows_total", map->count);
    json_key_u64(out, "offset", first);
    json_key_u64(out, "at", map->live->at_ns);
    json_key_open(out, "rows", '[');
    for (u32 i = first; i < end; i++)
        put_block(map->call, names, &map->blocks[i]);
    json_close(out, ']');
    json_close(out, '}');
}

void answer_blocks(Call *call)
{
    AddressMap map;
    const Names *names = view_names(call, call->view);

    if (find_blocks(call, &map) && names)
        put_blocks(&map, names);
    free(map.blocks);
}
