// SPDX-License-Identifier: MIT
//
// The tables whose rows are in the events: allocations, maps, events. A cursor reads a slice
// of the recording at a time, so that its memory is that of a slice however long the run; a
// free tells all of its block, and only when a query may want the living are those kept until
// the end. Bounds on times choose the slices; bounds on site, context, thread and size choose
// rows before SQLite sees them.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/sql/table.h"

typedef enum BlockColumn {
    BLOCK_ADDRESS,
    BLOCK_SIZE,
    BLOCK_USABLE,
    BLOCK_BORN,
    BLOCK_DIED,
    BLOCK_LIFETIME,
    BLOCK_THREAD,
    BLOCK_FREED_BY,
    BLOCK_SITE,
    BLOCK_CONTEXT,
    BLOCK_SPACE,
    BLOCK_TEMPORARY,
    BLOCK_REALLOCATED,
    BLOCK_KIND,
    BLOCK_COLUMNS,
} BlockColumn;

static const SqlColumn block_columns[BLOCK_COLUMNS] = {
    [BLOCK_ADDRESS] = {"address", "INTEGER", "where it is"},
    [BLOCK_SIZE] = {"size", "INTEGER", "bytes asked for"},
    [BLOCK_USABLE] = {"usable", "INTEGER", "bytes got"},
    [BLOCK_BORN] = {"born_ns", "INTEGER", "when it was allocated, since the start"},
    [BLOCK_DIED] = {"died_ns", "INTEGER", "when it was freed; NULL: live at the end"},
    [BLOCK_LIFETIME] = {"lifetime_ns", "INTEGER", "between both; NULL: live at the end"},
    [BLOCK_THREAD] = {"thread", "INTEGER", "that allocated it: threads.number"},
    [BLOCK_FREED_BY] = {"freed_by", "INTEGER", "thread that freed it"},
    [BLOCK_SITE] = {"site", "INTEGER", "sites.id"},
    [BLOCK_CONTEXT] = {"context", "INTEGER", "contexts.id: the stack that allocated it"},
    [BLOCK_SPACE] = {"space", "TEXT", "heap, mapped or stack"},
    [BLOCK_TEMPORARY] = {"temporary", "INTEGER", "1: freed before its thread allocated another"},
    [BLOCK_REALLOCATED] = {"reallocated", "INTEGER", "1: its end was a realloc"},
    [BLOCK_KIND] = {"kind", "TEXT",
                    "of mapped pages: anonymous, file, brk, shm, stack, program; NULL: not known"},
};

typedef enum EventColumn {
    EVENT_TIME_NS,
    EVENT_KIND,
    EVENT_ADDRESS,
    EVENT_SIZE,
    EVENT_USABLE,
    EVENT_THREAD,
    EVENT_SITE,
    EVENT_CONTEXT,
    EVENT_SPACE,
    EVENT_INSTRUCTIONS,
    EVENT_BORN_NS,
    EVENT_WAS_TEMPORARY,
    EVENT_REALLOC,
    EVENT_COLUMNS,
} EventColumn;

static const SqlColumn event_columns[EVENT_COLUMNS] = {
    [EVENT_TIME_NS] = {"time_ns", "INTEGER", "since the start"},
    [EVENT_KIND] = {"kind", "TEXT", "alloc or free"},
    [EVENT_ADDRESS] = {"address", "INTEGER", ""},
    [EVENT_SIZE] = {"size", "INTEGER", "bytes asked for"},
    [EVENT_USABLE] = {"usable", "INTEGER", "bytes got"},
    [EVENT_THREAD] = {"thread", "INTEGER", "that did it"},
    [EVENT_SITE] = {"site", "INTEGER", "that allocated the block"},
    [EVENT_CONTEXT] = {"context", "INTEGER", "that allocated the block"},
    [EVENT_SPACE] = {"space", "TEXT", "heap, mapped or stack"},
    [EVENT_INSTRUCTIONS] = {"instructions", "INTEGER", "executed so far, if counted"},
    [EVENT_BORN_NS] = {"born_ns", "INTEGER", "of a free: when the block was allocated"},
    [EVENT_WAS_TEMPORARY] = {"temporary", "INTEGER", "of a free: it was temporary"},
    [EVENT_REALLOC] = {"realloc", "INTEGER", "part of a realloc"},
};

// What a cursor has read. `items` are RecordedBlock or HeapEvent.
typedef struct Batch {
    bool *site_matches;
    void *items;
    size_t count, capacity, next;
    size_t item_bytes;
    size_t slice;          // the next to read
    u64 from_ns, to_ns;    // of events
    u32 spaces;            // bits
    bool wants_living;
    RecordedBlock *living; // in order of birth, with holes (size of the array below)
    size_t living_count, living_capacity, holes;
    Map by_address;        // of the living
    bool gave_living;
    u64 seen;
    bool out_of_memory, is_late;
    TableCursor *cursor;
} Batch;

static void *push(Batch *batch)
{
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity * 2 + 1024;
        void *items = realloc(batch->items, capacity * batch->item_bytes);
        if (!items) {
            batch->out_of_memory = true;
            return NULL;
        }
        batch->items = items;
        batch->capacity = capacity;
    }
    return (u8 *)batch->items + batch->count++ * batch->item_bytes;
}

static bool goes_on(Batch *batch)
{
    enum { EVENTS_PER_LOOK = 1 << 16 };

    if (++batch->seen % EVENTS_PER_LOOK == 0 && sql_is_late(batch->cursor->database))
        batch->is_late = true;
    return !batch->is_late && !batch->out_of_memory;
}

static bool within(const Bounds *bounds, u64 value)
{
    return (i64)value >= bounds->min && (i64)value <= bounds->max;
}

// ----------------------------------------------------------------------- the living

static u64 living_key(const HeapEvent *event, Space space)
{
    return event->address ^ (u64)space << 62; // a mapping may begin where a block does
}

static void take_birth(Batch *batch, const HeapEvent *event, Space space)
{
    if (!batch->wants_living)
        return;
    if (batch->living_count == batch->living_capacity) {
        size_t capacity = batch->living_capacity * 2 + 1024;
        void *living = realloc(batch->living, capacity * sizeof(*batch->living));
        if (!living) {
            batch->out_of_memory = true;
            return;
        }
        batch->living = living;
        batch->living_capacity = capacity;
    }
    batch->living[batch->living_count] = (RecordedBlock){
        .site = event->site, .address = event->address, .size = event->size,
        .usable = event->usable, .born_ns = event->time.ns,
    };
    if (!map_put(&batch->by_address, living_key(event, space), batch->living_count++))
        batch->out_of_memory = true;
}

// Closes the holes of the dead, so that the array follows what is live.
static void squeeze_living(Batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->living_count; i++) {
        const RecordedBlock *block = &batch->living[i];
        if (block->died_ns)
            continue;
        Space space = recording_site(batch->cursor->recording, block->site)->space;
        map_put(&batch->by_address, block->address ^ (u64)space << 62, kept);
        batch->living[kept++] = *block;
    }
    batch->living_count = kept;
    batch->holes = 0;
}

static void take_death(Batch *batch, const HeapEvent *event, Space space)
{
    u64 index;

    if (!batch->wants_living || !map_get(&batch->by_address, living_key(event, space), &index))
        return;
    map_remove(&batch->by_address, living_key(event, space));
    batch->living[index].died_ns = UINT64_MAX;
    if (++batch->holes > 4096 && batch->holes > batch->living_count / 2)
        squeeze_living(batch);
}

// --------------------------------------------------------------------------- blocks

static bool take_block_event(void *arg, const HeapEvent *event)
{
    Batch *batch = arg;
    const Bounds *bounds = batch->cursor->bounds;
    const RecordedSite *site = recording_site(batch->cursor->recording, event->site);
    bool is_free = event->kind == EVENT_FREE;

    if (!batch->site_matches[event->site] || !within(&bounds[BLOCK_SIZE], event->size) ||
        !within(&bounds[BLOCK_BORN], is_free ? event->born_ns : event->time.ns))
        return goes_on(batch);
    if (!is_free) {
        take_birth(batch, event, site->space);
        return goes_on(batch);
    }
    take_death(batch, event, site->space);
    if (!within(&bounds[BLOCK_DIED], event->time.ns))
        return goes_on(batch);
    RecordedBlock *block = push(batch);
    if (block)
        *block = (RecordedBlock){
            .site = event->site, .freed_by = event->thread, .flags = event->flags,
            .address = event->address, .size = event->size, .usable = event->usable,
            .born_ns = event->born_ns, .died_ns = event->time.ns,
        };
    return goes_on(batch);
}

static bool take_event(void *arg, const HeapEvent *event)
{
    Batch *batch = arg;

    if (batch->site_matches[event->site]) {
        HeapEvent *item = push(batch);
        if (item)
            *item = *event;
    }
    return goes_on(batch);
}

// ------------------------------------------------------------------------- batches

static void stop_batch(TableCursor *cursor)
{
    Batch *batch = cursor->data;

    if (!batch)
        return;
    free(batch->site_matches);
    free(batch->items);
    free(batch->living);
    map_free(&batch->by_address);
    free(batch);
}

static Batch *start_batch(TableCursor *cursor, u32 spaces, u32 site_column, u32 context_column,
                          u32 thread_column)
{
    u32 site_count = recording_site_count(cursor->recording);
    Batch *batch = calloc(1, sizeof(*batch));

    cursor->data = batch;
    if (!batch)
        return NULL;
    batch->cursor = cursor;
    batch->to_ns = UINT64_MAX;
    batch->site_matches = calloc((size_t)site_count + 1, sizeof(bool));
    for (u32 i = 0; batch->site_matches && i < site_count; i++) {
        const RecordedSite *site = recording_site(cursor->recording, i);
        batch->site_matches[i] = (spaces >> site->space & 1) &&
                                 within(&cursor->bounds[site_column], i) &&
                                 within(&cursor->bounds[context_column], site->context) &&
                                 within(&cursor->bounds[thread_column], site->thread);
    }
    return batch->site_matches ? batch : NULL;
}

static void raise_to(u64 *value, i64 bound)
{
    if (bound > 0)
        *value = max_u64(*value, (u64)bound);
}

static void note_what_is_missing(const Batch *batch)
{
    const TableCursor *cursor = batch->cursor;

    if (batch->from_ns < recording_events_kept_since_ns(cursor->recording))
        cursor->database->lacks_events = true;
}

static int start_blocks(TableCursor *cursor, u32 spaces)
{
    Batch *batch = start_batch(cursor, spaces, BLOCK_SITE, BLOCK_CONTEXT, BLOCK_THREAD);
    const Bounds *died = &cursor->bounds[BLOCK_DIED], *born = &cursor->bounds[BLOCK_BORN];

    if (!batch)
        return SQLITE_NOMEM;
    batch->item_bytes = sizeof(RecordedBlock);
    // A comparison with died_ns is never true of the living: it is NULL.
    batch->wants_living = died->min == INT64_MIN && died->max == INT64_MAX;
    raise_to(&batch->from_ns, died->min);
    raise_to(&batch->from_ns, born->min);
    note_what_is_missing(batch);
    if (died->max != INT64_MAX)
        batch->to_ns = died->max < 0 ? 0 : (u64)died->max + 1;
    return SQLITE_OK;
}

static int start_allocations(TableCursor *cursor)
{
    return start_blocks(cursor, 1u << SPACE_HEAP | 1u << SPACE_STACK);
}

static int start_maps(TableCursor *cursor)
{
    return start_blocks(cursor, 1u << SPACE_MAPPED);
}

static int start_events(TableCursor *cursor)
{
    // A free is made by any thread: that bound is SQLite's, the unbounded column stands in.
    Batch *batch = start_batch(cursor, ~0u, EVENT_SITE, EVENT_CONTEXT, EVENT_KIND);
    const Bounds *time = &cursor->bounds[EVENT_TIME_NS];

    if (!batch)
        return SQLITE_NOMEM;
    batch->item_bytes = sizeof(HeapEvent);
    batch->gave_living = true;
    raise_to(&batch->from_ns, time->min);
    note_what_is_missing(batch);
    if (time->max != INT64_MAX)
        batch->to_ns = time->max < 0 ? 0 : (u64)time->max + 1;
    return SQLITE_OK;
}

static void give_living(Batch *batch)
{
    batch->gave_living = true;
    for (size_t i = 0; i < batch->living_count; i++) {
        RecordedBlock *block = batch->living[i].died_ns ? NULL : push(batch);
        if (block)
            *block = batch->living[i];
    }
}

// Reads slices until there are rows. What is at a slice's end belongs to it, also where the
// next one begins in the same nanosecond.
static bool read_more(Batch *batch, EventFn *fn)
{
    Recording *recording = batch->cursor->recording;
    size_t slices = recording_slice_count(recording);

    batch->count = batch->next = 0;
    while (batch->count == 0 && batch->slice <= slices) {
        size_t i = batch->slice++;
        u64 start = i == 0 ? 0 : recording_slice(recording, i - 1)->end.ns + 1;
        u64 end = i < slices ? recording_slice(recording, i)->end.ns + 1 : UINT64_MAX;
        start = max_u64(start, batch->from_ns);
        end = min_u64(end, batch->to_ns);
        if (start < end)
            recording_each_event(recording, start, end, fn, batch);
        if (batch->is_late || batch->out_of_memory)
            return false;
    }
    if (batch->count == 0 && !batch->gave_living)
        give_living(batch);
    return batch->count != 0;
}

static bool step_batch(TableCursor *cursor, EventFn *fn)
{
    Batch *batch = cursor->data;

    if (batch->count && ++batch->next < batch->count)
        return true;
    if (read_more(batch, fn))
        return true;
    if (batch->is_late)
        cursor->status = SQLITE_INTERRUPT;
    if (batch->out_of_memory)
        cursor->status = SQLITE_NOMEM;
    return false;
}

static bool step_block(TableCursor *cursor)
{
    return step_batch(cursor, take_block_event);
}

static bool step_event(TableCursor *cursor)
{
    return step_batch(cursor, take_event);
}

// -------------------------------------------------------------------------- columns

static void result_if(sqlite3_context *context, bool is_known, u64 value)
{
    if (is_known)
        sqlite3_result_int64(context, (sqlite3_int64)value);
    else
        sqlite3_result_null(context);
}

static void block_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const Batch *batch = cursor->data;
    const RecordedBlock *block = &((const RecordedBlock *)batch->items)[batch->next];
    const RecordedSite *site = recording_site(cursor->recording, block->site);
    bool is_dead = block->died_ns != 0 || block->freed_by != 0;

    switch ((BlockColumn)column) {
    case BLOCK_ADDRESS: result_if(context, true, block->address); break;
    case BLOCK_SIZE: result_if(context, true, block->size); break;
    case BLOCK_USABLE: result_if(context, true, block->usable); break;
    case BLOCK_BORN: result_if(context, true, block->born_ns); break;
    case BLOCK_DIED: result_if(context, is_dead, block->died_ns); break;
    case BLOCK_LIFETIME: result_if(context, is_dead, block->died_ns - block->born_ns); break;
    case BLOCK_THREAD: result_if(context, true, site->thread); break;
    case BLOCK_FREED_BY: result_if(context, is_dead, block->freed_by); break;
    case BLOCK_SITE: result_if(context, true, block->site); break;
    case BLOCK_CONTEXT: result_if(context, true, site->context); break;
    case BLOCK_SPACE: result_text(context, space_name(site->space)); break;
    case BLOCK_TEMPORARY: result_if(context, true, (block->flags & EVENT_TEMPORARY) != 0); break;
    case BLOCK_REALLOCATED: result_if(context, true, (block->flags & EVENT_BY_REALLOC) != 0); break;
    case BLOCK_KIND: result_text(context, pages_kind_name(site->pages)); break;
    case BLOCK_COLUMNS: break;
    }
}

static void event_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const Batch *batch = cursor->data;
    const HeapEvent *event = &((const HeapEvent *)batch->items)[batch->next];
    const RecordedSite *site = recording_site(cursor->recording, event->site);
    bool is_free = event->kind == EVENT_FREE;

    switch ((EventColumn)column) {
    case EVENT_TIME_NS: result_if(context, true, event->time.ns); break;
    case EVENT_KIND: result_text(context, is_free ? "free" : "alloc"); break;
    case EVENT_ADDRESS: result_if(context, true, event->address); break;
    case EVENT_SIZE: result_if(context, true, event->size); break;
    case EVENT_USABLE: result_if(context, true, event->usable); break;
    case EVENT_THREAD: result_if(context, true, event->thread); break;
    case EVENT_SITE: result_if(context, true, event->site); break;
    case EVENT_CONTEXT: result_if(context, true, site->context); break;
    case EVENT_SPACE: result_text(context, space_name(site->space)); break;
    case EVENT_INSTRUCTIONS:
        result_if(context, recording_info(cursor->recording)->counts_instructions,
                  event->time.instructions);
        break;
    case EVENT_BORN_NS: result_if(context, is_free, event->born_ns); break;
    case EVENT_WAS_TEMPORARY:
        result_if(context, is_free, (event->flags & EVENT_TEMPORARY) != 0);
        break;
    case EVENT_REALLOC: result_if(context, true, (event->flags & EVENT_BY_REALLOC) != 0); break;
    case EVENT_COLUMNS: break;
    }
}

static u64 about_event_count(Recording *recording)
{
    return recording_event_count(recording);
}

#define BIT(column) (1ull << (column))
#define BLOCK_BOUNDED                                                                             \
    (BIT(BLOCK_SIZE) | BIT(BLOCK_BORN) | BIT(BLOCK_DIED) | BIT(BLOCK_THREAD) | BIT(BLOCK_SITE) |  \
     BIT(BLOCK_CONTEXT))

const TableSpec sql_event_tables[] = {
    {
        .shape = {"allocations", "blocks of the heap, and stacks of threads", block_columns,
                  BLOCK_COLUMNS},
        .bounded = BLOCK_BOUNDED,
        .seeks = BIT(BLOCK_BORN) | BIT(BLOCK_DIED),
        .row_count = about_event_count,
        .start = start_allocations,
        .step = step_block,
        .column = block_column,
        .stop = stop_batch,
    },
    {
        .shape = {"maps", "regions of mapped pages", block_columns, BLOCK_COLUMNS},
        .bounded = BLOCK_BOUNDED,
        .seeks = BIT(BLOCK_BORN) | BIT(BLOCK_DIED),
        .row_count = about_event_count,
        .start = start_maps,
        .step = step_block,
        .column = block_column,
        .stop = stop_batch,
    },
    {
        .shape = {"events", "every allocation and free, as it happened", event_columns,
                  EVENT_COLUMNS},
        .bounded = BIT(EVENT_TIME_NS) | BIT(EVENT_SITE) | BIT(EVENT_CONTEXT),
        .seeks = BIT(EVENT_TIME_NS),
        .row_count = about_event_count,
        .start = start_events,
        .step = step_event,
        .column = event_column,
        .stop = stop_batch,
    },
};
const size_t sql_event_table_count = ARRAY_LEN(sql_event_tables);
