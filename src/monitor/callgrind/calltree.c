// SPDX-License-Identifier: MIT
//
// Stacks with costs become rows: what a function costs at a line itself, and what it costs there
// through a call of another function. Equal rows are summed up when the tree is written.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/callgrind/callgrind.h"
#include "monitor/callgrind/names.h"
#include "recording/massif_out.h"

typedef struct Row {
    u32 function, line;        // Function, by number
    u32 callee, callee_line;   // 0: the cost is its own
    u32 values;                // where they begin in CallTree.values
} Row;

typedef struct Function {
    u32 object, file, name; // numbers in CallTree.texts; 0: not known
} Function;

struct CallTree {
    u32 event_count;
    NameTable texts, keys; // keys: a name for each Function, of its three numbers
    Function *functions;   // by number - 1
    u32 function_capacity;
    Row *rows;
    u64 *values;
    u32 row_count, row_capacity;
    u64 totals[CALLGRIND_EVENTS_MAX];
};

CallTree *calltree_new(u32 event_count)
{
    CallTree *tree = event_count <= CALLGRIND_EVENTS_MAX ? calloc(1, sizeof(*tree)) : NULL;
    if (tree)
        tree->event_count = event_count;
    return tree;
}

void calltree_free(CallTree *tree)
{
    if (!tree)
        return;
    names_free(&tree->texts);
    names_free(&tree->keys);
    free(tree->functions);
    free(tree->rows);
    free(tree->values);
    free(tree);
}

// ---------------------------------------------------------------- functions

static bool number_of(CallTree *tree, const char *text, u32 *ret_number)
{
    *ret_number = text && text[0] ? names_number(&tree->texts, text) : 0;
    return *ret_number || !(text && text[0]);
}

static bool number_of_file(CallTree *tree, const Frame *frame, u32 *ret_number)
{
    char path[4096];
    bool has_directory = frame->file && frame->file[0] != '/' && frame->directory &&
                         frame->directory[0];
    if (!has_directory)
        return number_of(tree, frame->file, ret_number);
    if (snprintf(path, sizeof(path), "%s/%s", frame->directory, frame->file) >= (int)sizeof(path))
        return number_of(tree, frame->file, ret_number);
    return number_of(tree, path, ret_number);
}

// The number of a frame's function; 0: no memory.
static u32 function_of(CallTree *tree, const Frame *frame)
{
    Function f;
    char key[64];
    if (!number_of(tree, frame->object, &f.object) || !number_of_file(tree, frame, &f.file) ||
        !number_of(tree, frame->function, &f.name))
        return 0;
    snprintf(key, sizeof(key), "%u %u %u", f.object, f.file, f.name);
    u32 number = names_number(&tree->keys, key);
    if (number > tree->function_capacity) {
        u32 capacity = tree->function_capacity ? 2 * tree->function_capacity : 256;
        Function *functions = realloc(tree->functions, capacity * sizeof(*functions));
        if (!functions)
            return 0;
        tree->functions = functions;
        tree->function_capacity = capacity;
    }
    if (number)
        tree->functions[number - 1] = f;
    return number;
}

static CallgrindPlace place_of(const CallTree *tree, u32 function)
{
    const Function *f = &tree->functions[function - 1];
    return (CallgrindPlace){
        .object = f->object ? names_name(&tree->texts, f->object) : NULL,
        .file = f->file ? names_name(&tree->texts, f->file) : NULL,
        .function = f->name ? names_name(&tree->texts, f->name) : NULL,
    };
}

// ---------------------------------------------------------------- rows

static bool add_row(CallTree *tree, const Row *row, const u64 *values)
{
    size_t width = tree->event_count * sizeof(u64);
    if (tree->row_count == tree->row_capacity) {
        u32 capacity = tree->row_capacity ? 2 * tree->row_capacity : 1024;
        Row *rows = realloc(tree->rows, capacity * sizeof(*rows));
        u64 *room = rows ? realloc(tree->values, capacity * width) : NULL;
        if (rows)
            tree->rows = rows;
        if (!room)
            return false;
        tree->values = room;
        tree->row_capacity = capacity;
    }
    Row *added = &tree->rows[tree->row_count];
    *added = *row;
    added->values = tree->row_count * tree->event_count;
    memcpy(tree->values + added->values, values, width);
    tree->row_count++;
    return true;
}

// Whether a function only takes memory or gives it back, for its caller.
static bool is_heap_function(const char *function)
{
    static const char *const names[] = {"free", "cfree", "operator delete"};
    for (size_t i = 0; function && i < ARRAY_LEN(names); i++) {
        size_t length = strlen(names[i]);
        // Behind it a version or parameters may stand.
        if (strncmp(function, names[i], length) == 0 && strchr("@([", function[length]))
            return true;
    }
    return massif_out_is_allocator(function, NULL, 0);
}

bool calltree_add(CallTree *tree, const Frame *frames, size_t count, const u64 *values)
{
    static const Frame nowhere;
    while (count > 1 && is_heap_function(frames->function)) {
        frames++;
        count--;
    }
    if (count == 0) {
        frames = &nowhere;
        count = 1;
    }
    Row row = {function_of(tree, frames), frames->line, 0, 0, 0};
    bool ok = row.function && add_row(tree, &row, values);
    for (size_t i = 1; i < count && ok; i++) {
        Row call = {function_of(tree, &frames[i]), frames[i].line, row.function, row.line, 0};
        ok = call.function && add_row(tree, &call, values);
        row = call;
    }
    for (u32 i = 0; i < tree->event_count && ok; i++)
        tree->totals[i] += values[i];
    return ok;
}

// ---------------------------------------------------------------- the file

static int compare_numbers(u32 a, u32 b)
{
    return a < b ? -1 : a > b;
}

static int compare_rows(const void *left, const void *right)
{
    const Row *a = left, *b = right;
    int order = compare_numbers(a->function, b->function);
    if (!order)
        order = compare_numbers(a->callee, b->callee);
    if (!order)
        order = compare_numbers(a->line, b->line);
    return order ? order : compare_numbers(a->callee_line, b->callee_line);
}

static void put_row(const CallTree *tree, CallgrindWriter *writer, const Row *row,
                    const u64 *values)
{
    CallgrindPosition at = {.line = row->line}, target = {.line = row->callee_line};
    if (!row->callee) {
        callgrind_cost(writer, at, values);
        return;
    }
    CallgrindPlace callee = place_of(tree, row->callee);
    callgrind_call(writer, &callee, target, 0, at, values); // how often nobody knows
}

bool calltree_put(CallTree *tree, FILE *out, const CallgrindConfig *config)
{
    u64 sums[CALLGRIND_EVENTS_MAX];
    CallgrindWriter *writer = callgrind_open(out, config);
    if (!writer)
        return false;
    if (tree->row_count)
        qsort(tree->rows, tree->row_count, sizeof(*tree->rows), compare_rows);
    for (u32 i = 0; i < tree->row_count;) {
        const Row *row = &tree->rows[i];
        if (i == 0 || row[-1].function != row->function) {
            CallgrindPlace place = place_of(tree, row->function);
            callgrind_function(writer, &place);
        }
        memset(sums, 0, sizeof(sums));
        for (; i < tree->row_count && compare_rows(row, &tree->rows[i]) == 0; i++) {
            for (u32 e = 0; e < tree->event_count; e++)
                sums[e] += tree->values[tree->rows[i].values + e];
        }
        put_row(tree, writer, row, sums);
    }
    return callgrind_close(writer, tree->totals);
}

int calltree_write(CallTree *tree, const char *path, const CallgrindConfig *config)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    errno = 0;
    int error = calltree_put(tree, file, config) ? 0 : errno ? -errno : -EIO;
    if (fclose(file) != 0 && !error)
        error = -errno;
    return error;
}
