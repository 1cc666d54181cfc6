// SPDX-License-Identifier: MIT
//
// See parts.h. Parts are made from the last to the first, because a free tells when its block was
// born: who lived at the beginning of a part are those that lived at its end and were born
// before, and those that it frees and were. Nobody has to be followed by address.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/saturate.h"
#include "inspect/http/parts.h"
#include "recording/format.h"

enum {
    PARTS_MAX = 64,
    EVENTS_MIN = 2 << 20,   // fewer are walked through before anybody notices
    ROWS_MAX = 1 << 16,     // sites of a part, a kilobyte each while it is made
    TABLES_MAX = 96 << 20,  // bytes of all parts
    BLOCKS_MAX = 128 << 20,
    REST_US = 500,          // between slices, for others who wait for the lock
    LOOK_MS = 1000,         // at recordings that grow
    NICE = 5,               // whoever looks at the first picture goes before
};

typedef struct SiteRow {
    u32 sizes[HISTOGRAM_BUCKETS], lifetimes[HISTOGRAM_BUCKETS];
    u64 bytes[HISTOGRAM_BUCKETS];
    u64 largest;
} SiteRow;

typedef struct Part {
    size_t first_slice, end_slice;
    u64 start_ns, end_ns;
    BlockCounts counts[SPACE_COUNT];
    Bytes table;  // of every site, see put_row(); empty: has none
    Bytes blocks; // who lived at start_ns, see put_blocks()
    bool has_table, has_blocks;
} Part;

typedef struct BlockList {
    LiveBlock *blocks;
    size_t count, capacity;
} BlockList;

struct Parts {
    u64 version; // of the view, when it was begun
    Part parts[PARTS_MAX];
    u32 count;
    u32 made;    // those from here on are; 0: all
    u64 table_bytes, block_bytes;
    bool keeps_blocks;
    // The part that is being made.
    const Recording *recording;
    size_t next_slice;
    SiteRow **rows; // by site; NULL: nothing yet
    u32 *row_sites; // which have one
    u32 row_count, site_count;
    BlockList living; // at its end; then at its beginning
    bool failed;      // no memory: there will be no more
};

// --------------------------------------------------------------------------- counting

static u32 bucket_of(u64 value)
{
    return value ? 64 - (u32)__builtin_clzll(value) : 0;
}

void counts_add_alloc(BlockCounts *counts, u64 size)
{
    u32 bucket = bucket_of(size);

    counts->sizes[bucket]++;
    saturate_grow_u64(&counts->bytes[bucket], size);
    counts->largest = max_u64(counts->largest, size);
}

void counts_add_free(BlockCounts *counts, u64 lifetime_ns)
{
    counts->lifetimes[bucket_of(lifetime_ns)]++;
}

static SiteRow *row_of(Parts *parts, u32 site)
{
    SiteRow *row = parts->rows[site];

    if (row || parts->row_count == ROWS_MAX)
        return row;
    row = parts->rows[site] = calloc(1, sizeof(*row));
    if (row)
        parts->row_sites[parts->row_count++] = site;
    parts->failed |= !row;
    return row;
}

static void add_living(Parts *parts, const HeapEvent *event)
{
    BlockList *list = &parts->living;

    if (!array_reserve(&list->blocks, &list->capacity, list->count + 1, sizeof(LiveBlock))) {
        parts->failed = true;
        return;
    }
    list->blocks[list->count++] = (LiveBlock){
        event->address, event->size, max_u64(event->usable, event->size), event->born_ns,
        event->site,
    };
}

static bool count_event(void *arg, const HeapEvent *event)
{
    Parts *parts = arg;
    Part *part = &parts->parts[parts->made - 1];
    Space space = recording_site(parts->recording, event->site)->space;
    SiteRow *row = row_of(parts, event->site);

    if (event->kind == EVENT_ALLOC) {
        u32 bucket = bucket_of(event->size);
        counts_add_alloc(&part->counts[space], event->size);
        if (row) {
            row->sizes[bucket]++;
            saturate_grow_u64(&row->bytes[bucket], event->size);
            row->largest = max_u64(row->largest, event->size);
        }
        return true;
    }
    u64 lifetime = event->time.ns - min_u64(event->born_ns, event->time.ns);
    counts_add_free(&part->counts[space], lifetime);
    if (row)
        row->lifetimes[bucket_of(lifetime)]++;
    if (parts->keeps_blocks && space == SPACE_HEAP && event->born_ns < part->start_ns)
        add_living(parts, event);
    return !parts->failed;
}

// ------------------------------------------------------------------------- what is kept

static void put_row(Bytes *table, const SiteRow *row)
{
    u32 sizes = 0, lifetimes = 0;

    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sizes += row->sizes[i] != 0;
        lifetimes += row->lifetimes[i] != 0;
    }
    bytes_put_varint(table, row->largest);
    bytes_put_varint(table, sizes);
    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (!row->sizes[i])
            continue;
        bytes_put_varint(table, i);
        bytes_put_varint(table, row->sizes[i]);
        bytes_put_varint(table, row->bytes[i]);
    }
    bytes_put_varint(table, lifetimes);
    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (!row->lifetimes[i])
            continue;
        bytes_put_varint(table, i);
        bytes_put_varint(table, row->lifetimes[i]);
    }
}

static void take_row(Cursor *cursor, BlockCounts *to)
{
    to->largest = max_u64(to->largest, cursor_varint(cursor));
    for (u64 left = cursor_varint(cursor); left; left--) {
        u64 bucket = cursor_varint(cursor);
        saturate_grow_u64(&to->sizes[bucket], cursor_varint(cursor));
        saturate_grow_u64(&to->bytes[bucket], cursor_varint(cursor));
    }
    for (u64 left = cursor_varint(cursor); left; left--) {
        u64 bucket = cursor_varint(cursor);
        saturate_grow_u64(&to->lifetimes[bucket], cursor_varint(cursor));
    }
}

static void keep_table(Parts *parts, Part *part)
{
    part->has_table = parts->row_count < ROWS_MAX && parts->table_bytes < TABLES_MAX;
    for (u32 i = 0; i < parts->row_count; i++) {
        u32 site = parts->row_sites[i];
        if (part->has_table) {
            bytes_put_varint(&part->table, site);
            put_row(&part->table, parts->rows[site]);
        }
        free(parts->rows[site]);
        parts->rows[site] = NULL;
    }
    parts->row_count = 0;
    part->has_table &= !part->table.failed;
    parts->table_bytes += part->table.capacity;
}

static int compare_blocks(const void *left, const void *right)
{
    const LiveBlock *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

// Every second one goes; what is found by a walk is then found by a longer one.
static void thin_out(Parts *parts)
{
    bool goes = false;

    for (u32 i = parts->made - 1; i < parts->count; i++) {
        Part *part = &parts->parts[i];
        if (!part->has_blocks)
            continue;
        if (goes) {
            parts->block_bytes -= part->blocks.capacity;
            bytes_free(&part->blocks);
            part->blocks = (Bytes){0};
            part->has_blocks = false;
        }
        goes = !goes;
    }
}

static void put_blocks(Parts *parts, Part *part)
{
    const BlockList *list = &parts->living;
    u64 address = 0;

    for (size_t i = 0; i < list->count; i++) {
        const LiveBlock *block = &list->blocks[i];
        bytes_put_varint(&part->blocks, block->address - address);
        bytes_put_varint(&part->blocks, block->size);
        bytes_put_varint(&part->blocks, block->usable - block->size);
        bytes_put_varint(&part->blocks, part->start_ns - block->born_ns);
        bytes_put_varint(&part->blocks, block->site);
        address = block->address;
    }
    part->has_blocks = !part->blocks.failed;
    parts->block_bytes += part->blocks.capacity;
    if (parts->block_bytes > BLOCKS_MAX)
        thin_out(parts);
}

static void keep_living(Parts *parts, Part *part)
{
    BlockList *list = &parts->living;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->blocks[i].born_ns < part->start_ns)
            list->blocks[kept++] = list->blocks[i];
    }
    list->count = kept;
    parts->keeps_blocks &= list->count <= LIVE_BLOCKS_MAX;
    if (!parts->keeps_blocks)
        return;
    if (list->count)
        qsort(list->blocks, list->count, sizeof(LiveBlock), compare_blocks);
    put_blocks(parts, part);
}

// ------------------------------------------------------------------------------ making

static bool keep_listed(void *arg, const RecordedBlock *block)
{
    Parts *parts = arg;
    HeapEvent event = {.site = block->site, .address = block->address, .size = block->size,
                       .usable = block->usable, .born_ns = block->born_ns};

    add_living(parts, &event);
    return !parts->failed && parts->living.count <= LIVE_BLOCKS_MAX;
}

static u64 count_kept_events(const Recording *recording, size_t *ret_first)
{
    size_t slices = recording_slice_count(recording), first = slices;
    u64 events = 0;

    while (first > 0 && recording_slice(recording, first - 1)->has_events)
        events += recording_slice(recording, --first)->events;
    *ret_first = first;
    return events;
}

// Cuts at the ends of slices, so that parts have about as many events each.
static void cut(Parts *parts, const Recording *recording)
{
    size_t slice;
    u64 all = count_kept_events(recording, &slice), before = 0;

    while (all >= EVENTS_MIN && slice < recording_slice_count(recording)) {
        Part *part = &parts->parts[parts->count++];
        *part = (Part){.first_slice = slice,
                       .start_ns = recording_slice(recording, slice)->start.ns};
        do
            before += recording_slice(recording, slice++)->events;
        while (slice < recording_slice_count(recording) &&
               (parts->count == PARTS_MAX || before < all / PARTS_MAX * parts->count));
        part->end_slice = slice;
        part->end_ns = recording_slice(recording, slice - 1)->end.ns;
    }
    parts->made = parts->count;
}

static Parts *parts_begin(View *view)
{
    Recording *recording = view->recording;
    Parts *parts = calloc(1, sizeof(*parts));

    if (!parts)
        return NULL;
    parts->version = view->version;
    cut(parts, recording);
    if (!parts->count)
        return parts;
    parts->recording = recording;
    parts->site_count = recording_site_count(recording);
    parts->rows = calloc(parts->site_count + 1u, sizeof(*parts->rows));
    parts->row_sites = calloc(ROWS_MAX, sizeof(*parts->row_sites));
    parts->failed = !parts->rows || !parts->row_sites;
    parts->keeps_blocks = recording_lists_living(recording);
    parts->next_slice = parts->parts[parts->made - 1].first_slice;
    if (parts->keeps_blocks)
        recording_each_living(recording, 1u << SPACE_HEAP, UINT64_MAX, keep_listed, parts);
    return parts;
}

static void free_making(Parts *parts)
{
    for (u32 i = 0; i < parts->row_count; i++)
        free(parts->rows[parts->row_sites[i]]);
    parts->row_count = 0;
    free(parts->rows);
    free(parts->row_sites);
    free(parts->living.blocks);
    parts->rows = NULL;
    parts->row_sites = NULL;
    parts->living = (BlockList){0};
}

void parts_free(Parts *parts)
{
    if (!parts)
        return;
    free_making(parts);
    for (u32 i = 0; i < parts->count; i++) {
        bytes_free(&parts->parts[i].table);
        bytes_free(&parts->parts[i].blocks);
    }
    free(parts);
}

// One slice more. False: nothing is left to do.
static bool parts_step(Parts *parts, Recording *recording)
{
    if (parts->made == 0 || parts->failed) {
        free_making(parts);
        return false;
    }
    Part *part = &parts->parts[parts->made - 1];
    const SliceInfo *slice = recording_slice(recording, parts->next_slice++);
    recording_each_event(recording, slice->start.ns, slice->end.ns, count_event, parts);
    if (parts->next_slice < part->end_slice || parts->failed)
        return true;
    keep_table(parts, part);
    if (parts->keeps_blocks)
        keep_living(parts, part);
    if (--parts->made)
        parts->next_slice = parts->parts[parts->made - 1].first_slice;
    return true;
}

// ------------------------------------------------------------------------------ asking

void parts_add_counts(const Parts *parts, u64 from_ns, u64 to_ns, const u8 *chosen,
                      u32 all_spaces, BlockCounts *counts, u64 *ret_from, u64 *ret_to)
{
    BlockCounts left_out = {0}; // what is not chosen has to be read over

    *ret_from = *ret_to = from_ns;
    for (u32 i = parts ? parts->made : 0; parts && i < parts->count; i++) {
        const Part *part = &parts->parts[i];
        if (part->start_ns < from_ns)
            continue;
        if (part->end_ns > to_ns || (!all_spaces && !part->has_table))
            break;
        if (*ret_to == *ret_from)
            *ret_from = part->start_ns;
        *ret_to = part->end_ns;
        for (u32 space = 0; space < SPACE_COUNT; space++) {
            const BlockCounts *own = &part->counts[space];
            if (!(all_spaces >> space & 1))
                continue;
            for (u32 k = 0; k < HISTOGRAM_BUCKETS; k++) {
                saturate_grow_u64(&counts->sizes[k], own->sizes[k]);
                saturate_grow_u64(&counts->bytes[k], own->bytes[k]);
                saturate_grow_u64(&counts->lifetimes[k], own->lifetimes[k]);
            }
            counts->largest = max_u64(counts->largest, own->largest);
        }
        Cursor cursor = cursor_of(part->table.data, all_spaces ? 0 : part->table.count);
        while (cursor.at < cursor.end && !cursor.failed) {
            u64 site = cursor_varint(&cursor);
            take_row(&cursor, chosen[site] ? counts : &left_out);
        }
    }
}

u64 parts_each_living(const Parts *parts, u64 at_ns, LiveBlockFn *fn, void *arg)
{
    u32 i = parts ? parts->made : 0;

    while (parts && i < parts->count &&
           (parts->parts[i].start_ns < at_ns || !parts->parts[i].has_blocks))
        i++;
    if (!parts || i == parts->count)
        return 0;
    const Part *part = &parts->parts[i];
    Cursor cursor = cursor_of(part->blocks.data, part->blocks.count);
    LiveBlock block = {0};
    bool goes_on = true;
    while (goes_on && cursor.at < cursor.end && !cursor.failed) {
        block.address += cursor_varint(&cursor);
        block.size = cursor_varint(&cursor);
        block.usable = block.size + cursor_varint(&cursor);
        block.born_ns = part->start_ns - cursor_varint(&cursor);
        block.site = (u32)cursor_varint(&cursor);
        if (block.born_ns < at_ns)
            goes_on = fn(arg, &block);
    }
    return part->start_ns;
}

// ------------------------------------------------------------------------------ thread

typedef enum Work { WORK_NONE, WORK_LATER, WORK_NOW } Work;

// A slice of the file, under the lock of its slow view.
static Work work_at(OpenFile *file)
{
    if (file->kind != FILE_HEAP)
        return WORK_NONE;
    if (file->live)
        return WORK_LATER;
    View *view = file_lock_view(file, LANE_SLOW);
    if (!view)
        return WORK_NONE;
    if (view->parts && view->parts->version != view->version) {
        parts_free(view->parts);
        view->parts = NULL;
    }
    if (!view->parts)
        view->parts = parts_begin(view);
    bool more = view->parts && parts_step(view->parts, view->recording);
    pthread_mutex_unlock(&view->lock);
    return more ? WORK_NOW : WORK_NONE;
}

static void *work(void *arg)
{
    const Viewer *viewer = arg;
    Work most;

    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    do {
        most = WORK_NONE;
        for (u32 i = 0; i < viewer->file_count; i++) {
            Work work = work_at(viewer->files[i]);
            most = work > most ? work : most;
        }
        struct timespec rest = {.tv_nsec = REST_US * 1000};
        if (most == WORK_LATER)
            rest = (struct timespec){.tv_sec = LOOK_MS / 1000};
        if (most != WORK_NONE)
            nanosleep(&rest, NULL);
    } while (most != WORK_NONE);
    return NULL;
}

void parts_start(Viewer *viewer)
{
    pthread_t thread;

    // Without it everything is as right, and slower.
    if (pthread_create(&thread, NULL, work, viewer) != 0)
        return;
    pthread_setname_np(thread, "parts");
    pthread_detach(thread);
}
