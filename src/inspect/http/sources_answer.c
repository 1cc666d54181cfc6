// SPDX-License-Identifier: MIT
//
// /api/sources and /api/source: source files with what their lines have. A file is named by
// its number among those that the recording names; there is no way to ask for another.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/http/findings.h"
#include "inspect/http/source_text.h"
#include "inspect/http/stacks.h"

enum {
    FILES_SHOWN = 2000,
    READABLE_ASKED = 300, // files that are looked for on disk
    LINES_SHOWN = 60000,
};

// A number for each line of each file.
typedef struct Lines {
    u32 *line_of; // place → index; PLACE_NONE: no file
    u64 *names;   // file << 32 | line
    u32 count;
} Lines;

static void free_lines(void *object)
{
    Lines *lines = object;

    free(lines->line_of);
    free(lines->names);
    free(lines);
}

static void number_lines(Lines *lines, const View *view, const Names *names)
{
    Map index_of = {0};
    RecordedFrame room;

    for (u32 place = 0; place < names->place_count; place++) {
        u32 frames = recording_frame_count(view->recording);
        lines->line_of[place] = (u32)PLACE_NONE;
        if (place >= frames || names->file_of[place] == (u32)PLACE_NONE)
            continue;
        u32 line = place_frame(view->recording, place, &room)->line;
        u64 key = (u64)names->file_of[place] << 32 | line, known;
        if (!map_get(&index_of, key, &known)) {
            known = lines->count++;
            lines->names[known] = key;
            map_put(&index_of, key, known);
        }
        lines->line_of[place] = (u32)known;
    }
    map_free(&index_of);
}

static const Lines *view_lines(Call *call, View *view)
{
    const Lines *known = memo_get(&view->memo, "lines");
    const Names *names = known ? NULL : view_names(call, view);
    Lines *lines = names ? call_alloc(call, 1, sizeof(*lines)) : NULL;

    if (!lines)
        return known;
    lines->line_of = call_alloc(call, names->place_count, sizeof(u32));
    lines->names = call_alloc(call, names->place_count, sizeof(u64));
    if (!lines->line_of || !lines->names) {
        free_lines(lines);
        return NULL;
    }
    number_lines(lines, view, names);
    return memo_put(&view->memo, "lines", lines, names->place_count * 12ull, free_lines);
}

typedef struct Sources {
    Chosen chosen;
    const Names *names;
    const Lines *lines;
    const StackValues *stacks;
    InnerSums by_line;
} Sources;

static bool sum_lines(Call *call, Sources *sources)
{
    if (!chosen_parse(call, false, &sources->chosen))
        return false;
    sources->names = view_names(call, call->view);
    sources->lines = sources->names ? view_lines(call, call->view) : NULL;
    sources->stacks =
        sources->lines ? chosen_stacks(call, &sources->chosen, call_metric(call)) : NULL;
    return sources->stacks &&
           sum_stacks(call, call->view, sources->names, sources->stacks,
                      sources->lines->line_of, sources->lines->count, &sources->by_line);
}

// -------------------------------------------------------------------------- the list

typedef struct SourceRow {
    u32 file, lines;
    i64 total, self;
} SourceRow;

static u64 magnitude(i64 value)
{
    return value < 0 ? -(u64)value : (u64)value;
}

static int compare_rows(const void *left, const void *right)
{
    const SourceRow *a = left, *b = right;
    u64 x = magnitude(a->total), y = magnitude(b->total);

    return x != y ? (x > y ? -1 : 1) : a->file < b->file ? -1 : a->file > b->file;
}

static SourceRow *make_rows(Call *call, const Sources *sources, u32 *ret_count)
{
    const Names *names = sources->names;
    SourceRow *rows = call_alloc(call, names->file_count, sizeof(*rows));
    InnerSums by_file;
    u32 kept = 0;

    if (!rows || !sum_stacks(call, call->view, names, sources->stacks, names->file_of,
                             names->file_count, &by_file)) {
        free(rows);
        return NULL;
    }
    for (u32 i = 0; i < sources->lines->count; i++) {
        if (sources->by_line.total[i] || sources->by_line.counts[i])
            rows[sources->lines->names[i] >> 32].lines++;
    }
    for (u32 i = 0; i < names->file_count; i++) {
        SourceRow row = {i, rows[i].lines, by_file.total[i], by_file.self[i]};
        if (row.lines)
            rows[kept++] = row;
    }
    inner_sums_free(&by_file);
    qsort(rows, kept, sizeof(*rows), compare_rows);
    *ret_count = kept;
    return rows;
}

void answer_sources(Call *call)
{
    Sources sources = {0};
    u32 count = 0;
    SourceRow *rows = sum_lines(call, &sources) ? make_rows(call, &sources, &count) : NULL;
    Json *out = &call->out;

    json_open(out, '{');
    json_key_u64(out, "rows_total", count);
    json_key_open(out, "rows", '[');
    for (u32 i = 0; i < count && i < FILES_SHOWN; i++) {
        const Named *named = &sources.names->files[rows[i].file];
        json_open(out, '{');
        json_key_u64(out, "id", rows[i].file);
        json_key_text(out, "file", named->file);
        json_key_text(out, "directory", named->directory);
        json_key_i64(out, "total", rows[i].total);
        json_key_i64(out, "self", rows[i].self);
        json_key_u64(out, "lines", rows[i].lines);
        json_key_bool(out, "readable", i < READABLE_ASKED &&
                                           source_is_readable(named->directory, named->file));
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
    free(rows);
    inner_sums_free(&sources.by_line);
}

// --------------------------------------------------------------------------- one file

static void put_text(Call *call, u64 id, const char *directory, const char *file, u64 run_end_ns)
{
    SourceText text = {0};
    const char *why = NULL;
    Json *out = &call->out;
    bool is_read = source_read(directory, file, &text, &why);

    json_key_u64(out, "id", id);
    json_key_text(out, "file", file);
    json_key_text(out, "directory", directory);
    json_key_bool(out, "readable", is_read);
    json_key_text(out, "error", why);
    json_key_bool(out, "newer", is_read && run_end_ns && text.changed_ns > run_end_ns);
    json_key(out, "text");
    if (is_read)
        json_source_lines(out, &text, 1, LINES_SHOWN);
    else
        json_null(out);
    source_free(&text);
}

typedef struct LineRow {
    u32 index, line;
} LineRow;

static int compare_lines(const void *left, const void *right)
{
    const LineRow *a = left, *b = right;

    return a->line < b->line ? -1 : a->line > b->line;
}

// The names of the functions that have the line.
static void put_functions(Call *call, const Sources *sources, u32 line)
{
    enum { FUNCTIONS_SHOWN = 4 };
    const Names *names = sources->names;
    u32 seen[FUNCTIONS_SHOWN], count = 0;

    json_key_open(&call->out, "functions", '[');
    for (u32 place = 0; place < names->place_count && count < FUNCTIONS_SHOWN; place++) {
        bool is_new = sources->lines->line_of[place] == line;
        for (u32 i = 0; is_new && i < count; i++)
            is_new = seen[i] != names->function_of[place];
        if (!is_new)
            continue;
        seen[count++] = names->function_of[place];
        json_text(&call->out, names->functions[names->function_of[place]].function);
    }
    json_close(&call->out, ']');
}

static void put_lines(Call *call, const Sources *sources, u32 file)
{
    enum { NAMED_LINES = 200 }; // each is a walk over all places
    LineRow *rows = call_alloc(call, sources->lines->count, sizeof(*rows));
    u32 count = 0;
    Json *out = &call->out;

    for (u32 i = 0; rows && i < sources->lines->count; i++) {
        if (sources->lines->names[i] >> 32 == file &&
            (sources->by_line.total[i] || sources->by_line.counts[i]))
            rows[count++] = (LineRow){i, (u32)sources->lines->names[i]};
    }
    if (rows)
        qsort(rows, count, sizeof(*rows), compare_lines);
    json_key_open(out, "lines", '[');
    for (u32 i = 0; i < count; i++) {
        json_open(out, '{');
        json_key_u64(out, "line", rows[i].line);
        json_key_i64(out, "total", sources->by_line.total[rows[i].index]);
        json_key_i64(out, "self", sources->by_line.self[rows[i].index]);
        json_key_u64(out, "count", sources->by_line.counts[rows[i].index]);
        if (i < NAMED_LINES)
            put_functions(call, sources, rows[i].index);
        json_close(out, '}');
    }
    json_close(out, ']');
    free(rows);
}

static void answer_heap_source(Call *call, u64 id)
{
    const Recording *recording = call->view->recording;
    u64 end_ns = recording_info(recording)->start_unix_ns + recording_last(recording).ns;
    Sources sources = {0};

    if (!sum_lines(call, &sources))
        return;
    if (id >= sources.names->file_count) {
        call_fail(call, 404, "not-found", "id: there is no such source file");
    } else {
        const Named *named = &sources.names->files[id];
        json_open(&call->out, '{');
        put_text(call, id, named->directory, named->file,
                 recording_info(recording)->start_unix_ns ? end_ns : 0);
        put_lines(call, &sources, (u32)id);
        json_close(&call->out, '}');
    }
    inner_sums_free(&sources.by_line);
}

void answer_source(Call *call)
{
    u64 id = request_u64(call->request, "id", UINT32_MAX, UINT32_MAX);

    if (call->file->kind == FILE_HEAP) {
        answer_heap_source(call, id);
        return;
    }
    const Findings *findings = call->file->findings;
    if (id >= findings->source_count) {
        call_fail(call, 404, "not-found", "id: there is no such source file");
        return;
    }
    json_open(&call->out, '{');
    put_text(call, id, findings->sources[id].directory, findings->sources[id].file, 0);
    json_key_open(&call->out, "lines", '[');
    json_close(&call->out, ']');
    json_close(&call->out, '}');
}
