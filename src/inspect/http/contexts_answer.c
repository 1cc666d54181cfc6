// SPDX-License-Identifier: MIT
//
// /api/contexts and /api/threads: tables of groups, sorted, searched and paged here, since a
// browser should not get a hundred thousand rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/rows.h"
#include "inspect/http/series.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
    SPARK_MAX = 200,
};

// What can be sorted by, beyond the cells.
enum { SORT_NAME = CELL_COUNT, SORT_AVERAGE, SORT_FIRST, SORT_LAST, SORT_COUNT };
static const char *const sort_names[SORT_COUNT] = {
    "live",   "blocks", "peak",  "peak_own",  "allocated", "allocations",   "freed",
    "frees",  "temporary", "reallocations", "leaked", "growth", "name", "average",
    "first",  "last",
};

typedef struct Sorted {
    u32 row;
    double key;
    char *name; // only if sorted by name
} Sorted;

typedef struct Table {
    Call *call;
    Chosen chosen, base;
    bool has_base;
    const Rows *rows;
    Sorted *sorted;
    u32 count;
} Table;

static void row_name(const Table *table, const Row *row, char *text, size_t size)
{
    const Rows *rows = table->rows;

    if (row->is_base_only)
        group_put_name(table->base.view, rows->base_names, rows->base_groups, row->group, text,
                       size);
    else
        group_put_name(table->chosen.view, rows->names, rows->groups, row->group, text, size);
}

// ------------------------------------------------------------------------- search

// Whether some frame of the row's stack has the text.
static bool stack_has(const View *view, u32 context, const char *search)
{
    StackWalk walk = stack_walk(view->recording, context);
    RecordedFrame room;
    u32 place;

    while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        const RecordedFrame *frame = place_frame(view->recording, place, &room);
        if ((frame->function && strcasestr(frame->function, search)) ||
            (frame->file && strcasestr(frame->file, search)) ||
            (frame->object && strcasestr(frame->object, search)))
            return true;
    }
    return false;
}

static bool row_has(const Table *table, const Row *row, const char *search)
{
    const View *view = row->is_base_only ? table->base.view : table->chosen.view;
    const Groups *groups = row->is_base_only ? table->rows->base_groups : table->rows->groups;
    char name[2048];

    row_name(table, row, name, sizeof(name));
    if (strcasestr(name, search))
        return true;
    return groups->group == GROUP_CONTEXT && stack_has(view, groups->id[row->group], search);
}

// --------------------------------------------------------------------------- sort

static double sort_key(const Row *row, u32 sort)
{
    if (sort < CELL_COUNT)
        return (double)row->cells[sort];
    if (sort == SORT_AVERAGE)
        return row->cells[CELL_ALLOCATIONS]
                   ? (double)row->cells[CELL_ALLOCATED] / (double)row->cells[CELL_ALLOCATIONS]
                   : 0;
    return (double)(sort == SORT_FIRST ? row->first_ns : row->last_ns);
}

// Rows that are equal keep their order whatever qsort does.
static int compare_up(const void *left, const void *right)
{
    const Sorted *a = left, *b = right;
    int order = a->name && b->name ? strcmp(a->name, b->name) : 0;

    if (order == 0 && a->key != b->key)
        order = a->key < b->key ? -1 : 1;
    if (order == 0)
        order = a->row < b->row ? -1 : a->row > b->row;
    return order;
}

static int compare_down(const void *left, const void *right)
{
    const Sorted *a = left, *b = right;

    if (!a->name && a->key == b->key)
        return a->row < b->row ? -1 : a->row > b->row;
    return -compare_up(left, right);
}

// In a difference the largest change comes first, whichever way it goes.
static double magnitude(double key)
{
    return key < 0 ? -key : key;
}

static bool sort_rows(Table *table)
{
    static const char *const orders[] = {"desc", "asc"};
    Request *request = table->call->request;
    u32 sort = request_choice(request, "sort", sort_names, SORT_COUNT, CELL_LIVE);
    bool is_up = request_choice(request, "order", orders, 2, 0) == 1;
    const char *search = request_text(request, "search");
    char name[2048];

    table->sorted = call_alloc(table->call, table->rows->count, sizeof(Sorted));
    if (!table->sorted || call_failed(table->call))
        return false;
    for (u32 i = 0; i < table->rows->count; i++) {
        const Row *row = &table->rows->rows[i];
        if (search && !row_has(table, row, search))
            continue;
        Sorted *sorted = &table->sorted[table->count++];
        *sorted = (Sorted){.row = i, .key = sort == SORT_NAME ? 0 : sort_key(row, sort)};
        if (table->has_base || sort == CELL_GROWTH)
            sorted->key = magnitude(sorted->key);
        if (sort == SORT_NAME) {
            row_name(table, row, name, sizeof(name));
            sorted->name = strdup(name);
        }
    }
    qsort(table->sorted, table->count, sizeof(Sorted), is_up ? compare_up : compare_down);
    return true;
}

// ------------------------------------------------------------------------- output

static void put_cells(Json *out, const Rows *rows, const i64 cells[CELL_COUNT])
{
    for (int i = 0; i < CELL_COUNT; i++) {
        if (i == CELL_LEAKED && !rows->knows_leaked)
            json_key_null(out, cell_names[i]);
        else
            json_key_i64(out, cell_names[i], cells[i]);
    }
}

static void put_row(const Table *table, u32 index, const u64 *spark, size_t points)
{
    const Rows *rows = table->rows;
    const Row *row = &rows->rows[index];
    Json *out = &table->call->out;

    json_open(out, '{');
    if (row->is_base_only)
        json_group(out, table->base.view, rows->base_names, rows->base_groups, row->group);
    else
        json_group(out, table->chosen.view, rows->names, rows->groups, row->group);
    put_cells(out, rows, row->cells);
    json_key(out, "average");
    json_double(out, sort_key(row, SORT_AVERAGE));
    json_key_u64(out, "first_ns", row->first_ns);
    json_key_u64(out, "last_ns", row->last_ns);
    if (rows->base) {
        json_key_bool(out, "base_only", row->is_base_only);
        json_key_open(out, "base", '{');
        put_cells(out, rows, rows->base[index]);
        json_close(out, '}');
    }
    if (points)
        json_key_u64s(out, "spark", spark, spark ? points : 0);
    json_close(out, '}');
}

// Sparklines of the rows from `first` on, row by row; NULL: there are none.
static u64 *make_sparks(const Table *table, u32 first, u32 count, size_t points)
{
    Span span = {.points = points};
    u32 *groups = points && count ? call_alloc(table->call, count, sizeof(u32)) : NULL;
    u64 *bytes = groups ? call_alloc(table->call, points * count, sizeof(u64)) : NULL;

    if (!bytes) {
        free(groups);
        return NULL;
    }
    chosen_range(&table->chosen, &span.from_ns, &span.to_ns);
    for (u32 i = 0; i < count; i++) {
        const Row *row = &table->rows->rows[table->sorted[first + i].row];
        groups[i] = row->is_base_only ? UINT32_MAX : row->group;
    }
    if (span.to_ns <= span.from_ns ||
        !chosen_sparks(table->call, &table->chosen, table->rows->groups, groups, count, &span,
                       bytes)) {
        free(bytes);
        bytes = NULL;
    }
    free(groups);
    return bytes;
}

static void put_totals(const Table *table)
{
    i64 totals[CELL_COUNT] = {0};

    for (u32 i = 0; i < table->rows->count; i++) {
        for (int cell = 0; cell < CELL_COUNT; cell++)
            saturate_grow_i64(&totals[cell], table->rows->rows[i].cells[cell]);
    }
    json_key_open(&table->call->out, "totals", '{');
    put_cells(&table->call->out, table->rows, totals);
    json_close(&table->call->out, '}');
}

static void put_table(const Table *table)
{
    Request *request = table->call->request;
    Json *out = &table->call->out;
    u64 offset = request_u64(request, "offset", 0, UINT32_MAX);
    u64 limit = request_u64(request, "limit", LIMIT_DEFAULT, LIMIT_MAX);
    size_t points = request_u64(request, "spark", 0, SPARK_MAX);
    u32 first = (u32)min_u64(offset, table->count);
    u32 count = (u32)min_u64(limit, table->count - first);
    u64 *sparks = make_sparks(table, first, count, points);

    json_open(out, '{');
    json_key_u64(out, "rows_total", table->count);
    json_key_u64(out, "offset", first);
    put_totals(table);
    json_key_open(out, "rows", '[');
    for (u32 i = 0; i < count; i++) {
        u32 row = table->sorted[first + i].row;
        bool has_spark = sparks && !table->rows->rows[row].is_base_only;
        put_row(table, row, has_spark ? sparks + i * points : NULL, points);
    }
    json_close(out, ']');
    json_close(out, '}');
    free(sparks);
}

void answer_contexts(Call *call)
{
    Table table = {.call = call, .has_base = call->base_file != NULL};
    Group group = (Group)request_choice(call->request, "group", group_names, GROUP_COUNT,
                                        GROUP_CONTEXT);

    if (!chosen_parse(call, false, &table.chosen) ||
        (table.has_base && !chosen_parse(call, true, &table.base)))
        return;
    table.rows = call_rows(call, &table.chosen, table.has_base ? &table.base : NULL, group);
    if (table.rows && sort_rows(&table))
        put_table(&table);
    for (u32 i = 0; i < table.count; i++)
        free(table.sorted[i].name);
    free(table.sorted);
}

// ------------------------------------------------------------------------- threads

static const Row *find_row(const Rows *rows, u32 thread, u32 *ret_index)
{
    for (u32 i = 0; i < rows->count; i++) {
        if (rows->groups->id[rows->rows[i].group] == thread) {
            *ret_index = i;
            return &rows->rows[i];
        }
    }
    return NULL;
}

static void put_thread(Call *call, const Rows *rows, const RecordedThread *thread,
                       const Row *row, const u64 *spark, size_t points)
{
    Json *out = &call->out;
    Row nothing = {0};

    json_open(out, '{');
    json_key_u64(out, "number", thread->number);
    json_key_i64(out, "tid", thread->tid);
    json_key_text(out, "name", thread->name);
    json_key_u64(out, "start_ns", thread->start_ns);
    json_key(out, "end_ns");
    if (thread->end_ns)
        json_u64(out, thread->end_ns);
    else
        json_null(out);
    put_cells(out, rows, (row ? row : &nothing)->cells);
    if (points)
        json_key_u64s(out, "spark", spark, spark ? points : 0);
    json_close(out, '}');
}

void answer_threads(Call *call)
{
    enum { THREADS_SHOWN = 5000 };
    Table table = {.call = call};
    size_t points = request_u64(call->request, "spark", 0, SPARK_MAX);
    const Recording *recording = call->view->recording;

    if (!chosen_parse(call, false, &table.chosen))
        return;
    table.rows = call_rows(call, &table.chosen, NULL, GROUP_THREAD);
    table.sorted = table.rows ? call_alloc(call, table.rows->count, sizeof(Sorted)) : NULL;
    if (!table.sorted)
        return;
    for (u32 i = 0; i < table.rows->count; i++)
        table.sorted[i] = (Sorted){.row = i};
    u32 sparked = (u32)min_u64(table.rows->count, LIMIT_MAX);
    u64 *sparks = make_sparks(&table, 0, sparked, points);
    json_open(&call->out, '{');
    json_key_u64(&call->out, "rows_total", recording_thread_count(recording));
    json_key_open(&call->out, "rows", '[');
    for (u32 i = 0; i < recording_thread_count(recording) && i < THREADS_SHOWN; i++) {
        const RecordedThread *thread = recording_thread(recording, i);
        u32 index = UINT32_MAX;
        const Row *row = find_row(table.rows, thread->number, &index);
        put_thread(call, table.rows, thread, row,
                   sparks && index < sparked ? sparks + index * points : NULL, points);
    }
    json_close(&call->out, ']');
    json_close(&call->out, '}');
    free(sparks);
    free(table.sorted);
}
