// SPDX-License-Identifier: MIT
//
// /api/functions and /api/function: what functions have, and whom they have it from.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/http/stacks.h"
#include "inspect/stack/stack.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
};

typedef struct FunctionRow {
    const Named *named;
    u32 id; // U32_MAX: only the base has it
    i64 total, self, base;
    u64 count;
} FunctionRow;

typedef struct FunctionTable {
    Call *call;
    FunctionRow *rows;
    u32 count;
    i64 total;
} FunctionTable;

static bool sum_functions(Call *call, const Chosen *chosen, Metric metric, InnerSums *ret_sums)
{
    const Names *names = view_names(call, chosen->view);
    const StackValues *stacks = names ? chosen_stacks(call, chosen, metric) : NULL;

    return stacks && sum_stacks(call, chosen->view, names, stacks, names->function_of,
                                names->function_count, ret_sums);
}

static i64 sum_of(const StackValues *stacks)
{
    i64 sum = 0;

    for (u32 i = 0; stacks && i < stacks->count; i++)
        saturate_grow_i64(&sum, stacks->stacks[i].value);
    return sum;
}

static void add_rows(FunctionTable *table, const Names *names, const InnerSums *sums)
{
    for (u32 i = 0; i < names->function_count; i++)
        table->rows[table->count++] =
            (FunctionRow){.named = &names->functions[i], .id = i, .total = sums->total[i],
                          .self = sums->self[i], .count = sums->counts[i]};
}

static void subtract_rows(FunctionTable *table, const Names *names, const InnerSums *sums,
                          bool is_same)
{
    Map by_identity = {0};
    u64 at;

    for (u32 i = 0; !is_same && i < table->count; i++)
        map_put(&by_identity, table->rows[i].named->identity, i);
    for (u32 i = 0; i < names->function_count; i++) {
        if (is_same) {
            at = i;
        } else if (!map_get(&by_identity, names->functions[i].identity, &at)) {
            at = table->count++;
            table->rows[at] = (FunctionRow){.named = &names->functions[i], .id = UINT32_MAX};
        }
        saturate_grow_i64(&table->rows[at].base, sums->total[i]);
        table->rows[at].total = saturate_sub_i64(table->rows[at].total, sums->total[i]);
        table->rows[at].self = saturate_sub_i64(table->rows[at].self, sums->self[i]);
    }
    map_free(&by_identity);
}

// ---------------------------------------------------------------------------- order

typedef enum Sort { SORT_TOTAL, SORT_SELF, SORT_NAME, SORT_COUNT } Sort;
typedef struct Order {
    Sort sort;
    bool is_up;
} Order;

static u64 magnitude(i64 value)
{
    return value < 0 ? -(u64)value : (u64)value;
}

static int compare_rows(const void *left, const void *right, void *arg)
{
    const FunctionRow *a = left, *b = right;
    const Order *order = arg;
    u64 x = order->sort == SORT_COUNT ? a->count
            : magnitude(order->sort == SORT_SELF ? a->self : a->total);
    u64 y = order->sort == SORT_COUNT ? b->count
            : magnitude(order->sort == SORT_SELF ? b->self : b->total);
    int result = x < y ? -1 : x > y;

    if (order->sort == SORT_NAME)
        result = strcmp(a->named->function ? a->named->function : "",
                        b->named->function ? b->named->function : "");
    if (result == 0)
        return a->id < b->id ? -1 : a->id > b->id;
    return order->is_up ? result : -result;
}

static void drop_rows(FunctionTable *table, const char *search)
{
    u32 kept = 0;

    for (u32 i = 0; i < table->count; i++) {
        const FunctionRow *row = &table->rows[i];
        const char *texts[] = {row->named->function, row->named->file, row->named->object};
        bool is_wanted = !search && (row->total || row->self || row->count || row->base);
        for (size_t k = 0; search && k < ARRAY_LEN(texts); k++)
            is_wanted |= texts[k] && strcasestr(texts[k], search);
        if (is_wanted && (row->total || row->count || row->base))
            table->rows[kept++] = *row;
    }
    table->count = kept;
}

// --------------------------------------------------------------------------- output

static void put_function(Json *out, const View *view, const Named *named, u32 id)
{
    json_key_i64(out, "id", id == UINT32_MAX ? -1 : (i64)id);
    json_function(out, view->recording, named);
}

static void put_table(FunctionTable *table, Metric metric)
{
    static const char *const sorts[] = {"total", "self", "name", "count"};
    static const char *const orders[] = {"desc", "asc"};
    Request *request = table->call->request;
    Json *out = &table->call->out;
    Order order = {(Sort)request_choice(request, "sort", sorts, 4, SORT_TOTAL),
                   request_choice(request, "order", orders, 2, 0) == 1};
    u64 offset = request_u64(request, "offset", 0, UINT32_MAX);
    u64 limit = request_u64(request, "limit", LIMIT_DEFAULT, LIMIT_MAX);

    drop_rows(table, request_text(request, "search"));
    qsort_r(table->rows, table->count, sizeof(FunctionRow), compare_rows, &order);
    u32 first = (u32)min_u64(offset, table->count);
    u32 end = first + (u32)min_u64(limit, table->count - first);
    json_open(out, '{');
    json_key_u64(out, "rows_total", table->count);
    json_key_u64(out, "offset", first);
    json_key_i64(out, "total", table->total);
    json_key_text(out, "unit", metric_in_bytes(metric) ? "bytes" : "count");
    json_key_open(out, "rows", '[');
    for (u32 i = first; i < end; i++) {
        const FunctionRow *row = &table->rows[i];
        json_open(out, '{');
        put_function(out, row->id == UINT32_MAX ? table->call->base_view : table->call->view,
                     row->named, row->id);
        json_key_i64(out, "total", row->total);
        json_key_i64(out, "self", row->self);
        json_key_u64(out, "count", row->count);
        json_key_i64(out, "base", row->base);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

static bool fill_table(FunctionTable *table, const Chosen *chosen, const Chosen *base,
                       Metric metric)
{
    Call *call = table->call;
    InnerSums sums = {0}, base_sums = {0};
    bool good = sum_functions(call, chosen, metric, &sums) &&
                (!base || sum_functions(call, base, metric, &base_sums));
    const Names *names = good ? view_names(call, chosen->view) : NULL;
    const Names *base_names = names && base ? view_names(call, base->view) : NULL;

    good = names && (!base || base_names);
    if (good) {
        u64 room = names->function_count + (base ? (u64)base_names->function_count : 0);
        table->rows = call_alloc(call, room, sizeof(FunctionRow));
        i64 of_base = base ? sum_of(chosen_stacks(call, base, metric)) : 0;
        table->total = saturate_sub_i64(sum_of(chosen_stacks(call, chosen, metric)), of_base);
        good = table->rows != NULL;
    }
    if (good)
        add_rows(table, names, &sums);
    if (good && base)
        subtract_rows(table, base_names, &base_sums, call->base_file == call->file);
    inner_sums_free(&sums);
    inner_sums_free(&base_sums);
    return good;
}

void answer_functions(Call *call)
{
    FunctionTable table = {.call = call};
    Metric metric = call_metric(call);
    bool has_base = call->base_file != NULL;
    Chosen chosen, base;

    if (!chosen_parse(call, false, &chosen) || (has_base && !chosen_parse(call, true, &base)))
        return;
    if (fill_table(&table, &chosen, has_base ? &base : NULL, metric))
        put_table(&table, metric);
    free(table.rows);
}

// ---------------------------------------------------------------------- one function

typedef struct Relatives {
    u32 function;
    i64 total, self;
    u64 count;
    i64 *callers, *callees; // by function
    u64 *caller_counts, *callee_counts;
    u32 *caller_seen, *callee_seen; // the last stack that had it, plus one
    Map lines; // file << 32 | line → value, of the function's own lines
} Relatives;

static void add_relative(u32 stack, u32 other, const StackValue *value, i64 *values, u64 *counts,
                         u32 *seen)
{
    if (seen[other] == stack + 1)
        return;
    seen[other] = stack + 1;
    saturate_grow_i64(&values[other], value->value);
    saturate_grow_u64(&counts[other], value->count);
}

static void add_line(Relatives *relatives, const View *view, const Names *names, u32 place,
                     i64 value)
{
    RecordedFrame room;
    const RecordedFrame *frame = place_frame(view->recording, place, &room);
    u64 key = (u64)names->file_of[place] << 32 | frame->line, known = 0;

    if (names->file_of[place] == (u32)PLACE_NONE)
        return;
    map_get(&relatives->lines, key, &known);
    map_put(&relatives->lines, key, known + (u64)value);
}

static void add_stack(Relatives *relatives, const View *view, const Names *names, u32 index,
                      const StackValue *stack)
{
    StackWalk walk = stack_walk(view->recording, stack->context);
    u32 place, inner = UINT32_MAX;
    bool was_seen = false, was_it = false;

    while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        u32 function = names->function_of[place];
        if (was_it && function != relatives->function)
            add_relative(index, function, stack, relatives->callers, relatives->caller_counts,
                         relatives->caller_seen);
        was_it = function == relatives->function;
        if (was_it) {
            if (inner != UINT32_MAX && inner != function)
                add_relative(index, inner, stack, relatives->callees, relatives->callee_counts,
                             relatives->callee_seen);
            if (place == names->inner_of[stack->context])
                saturate_grow_i64(&relatives->self, stack->value);
            if (!was_seen) {
                saturate_grow_i64(&relatives->total, stack->value);
                saturate_grow_u64(&relatives->count, stack->count);
                add_line(relatives, view, names, place, stack->value);
            }
            was_seen = true;
        }
        inner = function;
    }
}

typedef struct Relative {
    u32 function;
    i64 value;
    u64 count;
} Relative;

static int compare_relatives(const void *left, const void *right)
{
    const Relative *a = left, *b = right;
    u64 x = magnitude(a->value), y = magnitude(b->value);

    return x != y ? (x > y ? -1 : 1) : a->function < b->function ? -1 : 1;
}

static void put_relatives(Call *call, const char *name, const Names *names, const i64 *values,
                          const u64 *counts)
{
    enum { SHOWN = 500 };
    Relative *list = call_alloc(call, names->function_count, sizeof(*list));
    u32 count = 0;
    Json *out = &call->out;

    for (u32 i = 0; list && i < names->function_count; i++) {
        if (values[i] || counts[i])
            list[count++] = (Relative){i, values[i], counts[i]};
    }
    if (list)
        qsort(list, count, sizeof(*list), compare_relatives);
    json_key_open(out, name, '[');
    for (u32 i = 0; i < count && i < SHOWN; i++) {
        json_open(out, '{');
        put_function(out, call->view, &names->functions[list[i].function], list[i].function);
        json_key_i64(out, "value", list[i].value);
        json_key_u64(out, "count", list[i].count);
        json_close(out, '}');
    }
    json_close(out, ']');
    free(list);
}

static void put_lines(Call *call, const Names *names, const Map *lines)
{
    enum { SHOWN = 1000 };
    Json *out = &call->out;
    size_t cursor = 0, shown = 0;
    u64 key, value;

    json_key_open(out, "lines", '[');
    while (shown++ < SHOWN && map_next(lines, &cursor, &key, &value)) {
        json_open(out, '{');
        json_key_text(out, "file", names->files[key >> 32].file);
        json_key_u64(out, "line", (u32)key);
        json_key_i64(out, "value", (i64)value);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_one(Call *call, const Names *names, const Relatives *relatives, Metric metric)
{
    Json *out = &call->out;

    json_open(out, '{');
    put_function(out, call->view, &names->functions[relatives->function], relatives->function);
    json_key_i64(out, "total", relatives->total);
    json_key_i64(out, "self", relatives->self);
    json_key_u64(out, "count", relatives->count);
    json_key_text(out, "unit", metric_in_bytes(metric) ? "bytes" : "count");
    put_relatives(call, "callers", names, relatives->callers, relatives->caller_counts);
    put_relatives(call, "callees", names, relatives->callees, relatives->callee_counts);
    put_lines(call, names, &relatives->lines);
    json_close(out, '}');
}

static u32 find_function(Call *call, const Names *names)
{
    const char *name = request_text(call->request, "name");
    u64 id = request_u64(call->request, "id", UINT32_MAX, UINT32_MAX);

    for (u32 i = 0; name && id == UINT32_MAX && i < names->function_count; i++) {
        const char *own = names->functions[i].function;
        if (strcmp(own ? own : "???", name) == 0)
            id = i;
    }
    if (id >= names->function_count)
        call_fail(call, 404, "not-found", "there is no such function in this recording");
    return (u32)id;
}

void answer_function(Call *call)
{
    Metric metric = call_metric(call);
    Chosen chosen;

    if (!chosen_parse(call, false, &chosen))
        return;
    const Names *names = view_names(call, chosen.view);
    const StackValues *stacks = names ? chosen_stacks(call, &chosen, metric) : NULL;
    Relatives relatives = {.function = names ? find_function(call, names) : 0};
    if (!stacks || call->code)
        return;
    u32 count = names->function_count;
    // One piece of memory, of six arrays.
    u64 *memory = call_alloc(call, 5ull * count + 2, sizeof(u64));
    if (!memory)
        return;
    relatives.callers = (i64 *)memory;
    relatives.callees = relatives.callers + count;
    relatives.caller_counts = memory + 2ull * count;
    relatives.callee_counts = memory + 3ull * count;
    relatives.caller_seen = (u32 *)(memory + 4ull * count);
    relatives.callee_seen = relatives.caller_seen + count;
    for (u32 i = 0; i < stacks->count; i++)
        add_stack(&relatives, chosen.view, names, i, &stacks->stacks[i]);
    put_one(call, names, &relatives, metric);
    map_free(&relatives.lines);
    free(memory);
}
