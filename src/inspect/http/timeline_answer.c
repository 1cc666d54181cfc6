// SPDX-License-Identifier: MIT
//
// /api/timeline: the stacked chart. The groups that are shown are the largest at the highest
// moment of the range; all others are one series, so that everything adds up.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/series.h"

enum {
    TOP_DEFAULT = 8,
    TOP_MAX = 40,
    POINTS_DEFAULT = 600,
    POINTS_MAX = 4000,
};

typedef struct Timeline {
    Call *call;
    Chosen chosen;
    Span span;
    const Names *names;
    const Groups *groups;
    u64 *totals; // rows of SPACE_COUNT
    u64 *highs;  // the same
    u64 *values; // group → bytes at the highest moment
    u32 *shown;  // groups, largest first
    u32 shown_count;
    u64 *series; // rows of shown_count + 1: the last is the others
    u64 peak_ns, peak_value;
} Timeline;

// ------------------------------------------------------------------------- totals

static bool compute_totals(Timeline *line)
{
    Recording *recording = line->chosen.view->recording;
    u32 sites = recording_site_count(recording);
    u32 *space_of = call_alloc(line->call, sites, sizeof(u32));

    for (u32 i = 0; space_of && i < sites; i++)
        space_of[i] = recording_site(recording, i)->space;
    bool good = space_of &&
                recording_series(recording, line->span.from_ns, line->span.to_ns,
                                 line->span.points, space_of, SPACE_COUNT, line->totals);
    free(space_of);
    return good;
}

// A slice that is much longer than the points would smear its highest moment over many.
static void compute_highs(Timeline *line)
{
    const Recording *recording = line->chosen.view->recording;
    const Span *span = &line->span;
    u64 step = (span->to_ns - span->from_ns) / span->points + 1;
    size_t point = 0;

    memcpy(line->highs, line->totals, span->points * SPACE_COUNT * sizeof(u64));
    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        if (slice->end.ns <= span->from_ns || slice->end.ns - slice->start.ns > 2 * step)
            continue;
        while (point < span->points && span_time(span, point) < slice->end.ns)
            point++;
        if (point == span->points)
            break;
        for (int space = 0; space < SPACE_COUNT; space++) {
            u64 *high = &line->highs[point * SPACE_COUNT + (size_t)space];
            *high = max_u64(*high, slice->high[space]);
        }
    }
}

static u64 selected_bytes(const Timeline *line, const u64 bytes[SPACE_COUNT])
{
    u64 sum = 0;

    for (u32 space = 0; space < SPACE_COUNT; space++) {
        if (line->chosen.selection.spaces & 1u << space)
            saturate_grow_u64(&sum, bytes[space]);
    }
    return sum;
}

// The highest moment of the range: the peak of the run, if it is in it; else the end of the
// slice that goes highest.
static void find_peak(Timeline *line)
{
    const Recording *recording = line->chosen.view->recording;
    size_t index = recording_find_state(recording, STATE_PEAK);

    if (index != SIZE_MAX && line->chosen.selection.spaces == 1u << SPACE_HEAP) {
        const RecordedState *state = recording_state_info(recording, index);
        if (state->moment.ns >= line->span.from_ns && state->moment.ns <= line->span.to_ns) {
            line->peak_ns = state->moment.ns;
            line->peak_value = state->totals.bytes[SPACE_HEAP];
            return;
        }
    }
    line->peak_ns = line->span.to_ns;
    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        u64 bytes = selected_bytes(line, slice->totals.bytes);
        if (slice->end.ns >= line->span.from_ns && slice->end.ns <= line->span.to_ns &&
            bytes > line->peak_value) {
            line->peak_value = bytes;
            line->peak_ns = slice->end.ns;
        }
    }
}

// ------------------------------------------------------------------------- groups

static bool compute_values(Timeline *line)
{
    Chosen moment = line->chosen;
    size_t state = recording_find_state(moment.view->recording, STATE_PEAK);

    moment.selection.from_ns = 0;
    moment.selection.to_ns = max_u64(1, line->peak_ns);
    moment.selection.at_peak =
        state != SIZE_MAX &&
        recording_state_info(moment.view->recording, state)->moment.ns == line->peak_ns;
    if (moment.selection.at_peak)
        moment.selection.to_ns = 0;
    chosen_make_key(&moment);
    const SiteSums *sums = chosen_sums(line->call, &moment);
    for (u32 i = 0; sums && i < recording_site_count(moment.view->recording); i++)
        saturate_grow_u64(&line->values[line->groups->of_site[i]], sums[i].live_bytes);
    return sums != NULL;
}

// The largest, in order. Few are wanted of many.
static void choose_groups(Timeline *line, u32 top)
{
    for (u32 group = 0; group < line->groups->count; group++) {
        u32 at = line->shown_count;
        u64 value = line->values[group];
        if (value == 0 || top == 0 ||
            (at == top && value <= line->values[line->shown[at - 1]]))
            continue;
        if (at == top)
            at--;
        else
            line->shown_count++;
        for (; at > 0 && line->values[line->shown[at - 1]] < value; at--)
            line->shown[at] = line->shown[at - 1];
        line->shown[at] = group;
    }
}

// group → its row: the shown ones in order, then one for all others. To be freed.
static u32 *make_rows(const Timeline *line)
{
    u32 *row_of = call_alloc(line->call, line->groups->count, sizeof(u32));

    for (u32 i = 0; row_of && i < line->groups->count; i++)
        row_of[i] = line->shown_count;
    for (u32 i = 0; row_of && i < line->shown_count; i++)
        row_of[line->shown[i]] = i;
    return row_of;
}

static bool is_chosen_space(const Timeline *line, u32 site)
{
    Space space = recording_site(line->chosen.view->recording, site)->space;

    return line->chosen.selection.spaces & 1u << space;
}

// Single blocks are chosen: the series are those of blocks, the totals those of sites.
static bool series_of_blocks(Timeline *line, const u32 *row_of, u32 *group_of)
{
    u32 sites = recording_site_count(line->chosen.view->recording);

    for (u32 i = 0; i < sites; i++)
        group_of[i] = is_chosen_space(line, i) ? row_of[line->groups->of_site[i]] : UINT32_MAX;
    return compute_totals(line) && chosen_series(line->call, &line->chosen, &line->span, group_of,
                                                 line->shown_count + 1, line->series);
}

// One walk for all: a group for each row and space, and one row for what is not selected.
static bool series_of_sites(Timeline *line, const u32 *row_of, u32 *group_of)
{
    Recording *recording = line->chosen.view->recording;
    u32 rows = line->shown_count + 1, width = (rows + 1) * SPACE_COUNT;
    u64 *bytes = call_alloc(line->call, line->span.points * width, sizeof(u64));
    u8 *chosen = bytes ? chosen_mask(line->call, &line->chosen) : NULL;

    for (u32 i = 0; chosen && i < recording_site_count(recording); i++) {
        u32 row = chosen[i] && is_chosen_space(line, i) ? row_of[line->groups->of_site[i]] : rows;
        group_of[i] = row * SPACE_COUNT + recording_site(recording, i)->space;
    }
    bool good = chosen && recording_series(recording, line->span.from_ns, line->span.to_ns,
                                           line->span.points, group_of, width, bytes);
    for (size_t point = 0; good && point < line->span.points; point++) {
        for (u32 i = 0; i < width; i++) {
            u64 value = bytes[point * width + i];
            saturate_grow_u64(&line->totals[point * SPACE_COUNT + i % SPACE_COUNT], value);
            if (i / SPACE_COUNT < rows)
                saturate_grow_u64(&line->series[point * rows + i / SPACE_COUNT], value);
        }
    }
    free(bytes);
    free(chosen);
    return good;
}

static bool compute_series(Timeline *line)
{
    u32 *row_of = make_rows(line);
    u32 *group_of = call_alloc(line->call, recording_site_count(line->chosen.view->recording),
                               sizeof(u32));

    line->series =
        call_alloc(line->call, line->span.points * (line->shown_count + 1), sizeof(u64));
    bool good = row_of && group_of && line->series &&
                (chosen_needs_blocks(&line->chosen.selection)
                     ? series_of_blocks(line, row_of, group_of)
                     : series_of_sites(line, row_of, group_of));
    free(row_of);
    free(group_of);
    return good;
}

// -------------------------------------------------------------------------- output

// One column of rows.
static void put_column(Json *out, const char *name, const u64 *rows, size_t width, size_t column,
                       size_t points)
{
    if (name)
        json_key(out, name);
    json_open(out, '[');
    for (size_t i = 0; i < points; i++)
        json_u64(out, rows[i * width + column]);
    json_close(out, ']');
}

static void put_spaces(Json *out, const char *name, const u64 *rows, size_t points)
{
    json_key_open(out, name, '{');
    put_column(out, "heap", rows, SPACE_COUNT, SPACE_HEAP, points);
    put_column(out, "mapped", rows, SPACE_COUNT, SPACE_MAPPED, points);
    put_column(out, "stack", rows, SPACE_COUNT, SPACE_STACK, points);
    json_close(out, '}');
}

static bool is_shown_sample(const Timeline *line, const Sample *sample)
{
    return sample->ns >= line->span.from_ns && sample->ns <= line->span.to_ns;
}

// Of more samples than points every n-th is enough, with its neighbours' highest.
static void put_samples(const Timeline *line)
{
    const Recording *recording = line->chosen.view->recording;
    static const char *const names[] = {"times", "client", "process"};
    size_t count = recording_sample_count(recording);
    size_t stride = count / line->span.points + 1;
    Json *out = &line->call->out;

    json_key_open(out, "rss", '{');
    for (int column = 0; column < 3; column++) {
        json_key_open(out, names[column], '[');
        for (size_t i = 0; i < count; i += stride) {
            u64 client = 0, process = 0, ns = recording_sample(recording, i)->ns;
            if (!is_shown_sample(line, recording_sample(recording, i)))
                continue;
            for (size_t k = i; k < i + stride && k < count; k++) {
                client = max_u64(client, recording_sample(recording, k)->rss_bytes);
                process = max_u64(process, recording_sample(recording, k)->process_rss_bytes);
            }
            json_u64(out, column == 0 ? ns : column == 1 ? client : process);
        }
        json_close(out, ']');
    }
    json_close(out, '}');
}

static void put_groups(const Timeline *line)
{
    Json *out = &line->call->out;

    json_key_open(out, "groups", '[');
    for (u32 i = 0; i < line->shown_count; i++) {
        json_open(out, '{');
        json_group(out, line->chosen.view, line->names, line->groups, line->shown[i]);
        json_key_u64(out, "value", line->values[line->shown[i]]);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_json(const Timeline *line)
{
    Json *out = &line->call->out;
    size_t points = line->span.points, width = line->shown_count + 1;

    json_open(out, '{');
    json_key_u64(out, "from", line->span.from_ns);
    json_key_u64(out, "to", line->span.to_ns);
    json_key_open(out, "times", '[');
    for (size_t i = 0; i < points; i++)
        json_u64(out, span_time(&line->span, i));
    json_close(out, ']');
    put_spaces(out, "totals", line->totals, points);
    put_spaces(out, "high", line->highs, points);
    put_groups(line);
    json_key_open(out, "series", '[');
    for (u32 i = 0; i < line->shown_count; i++)
        put_column(out, NULL, line->series, width, i, points);
    json_close(out, ']');
    put_column(out, "other", line->series, width, width - 1, points);
    json_key_u64(out, "other_groups", line->groups->count - line->shown_count);
    put_samples(line);
    json_key_open(out, "peak", '{');
    json_key_u64(out, "ns", line->peak_ns);
    json_key_u64(out, "value", line->peak_value);
    json_close(out, '}');
    json_close(out, '}');
}

static void put_double(Json *out, u64 value)
{
    double number = (double)value;

    json_raw(out, &number, sizeof(number));
}

static void put_doubles(Json *out, const u64 *rows, size_t width, size_t column, size_t points)
{
    for (size_t i = 0; i < points; i++)
        put_double(out, rows[i * width + column]);
}

static void put_binary(const Timeline *line)
{
    Json *out = &line->call->out;
    size_t points = line->span.points, width = line->shown_count + 1;

    line->call->type = "application/octet-stream";
    put_double(out, points);
    put_double(out, line->shown_count);
    for (size_t i = 0; i < points; i++)
        put_double(out, span_time(&line->span, i));
    for (size_t space = 0; space < SPACE_COUNT; space++)
        put_doubles(out, line->totals, SPACE_COUNT, space, points);
    for (size_t space = 0; space < SPACE_COUNT; space++)
        put_doubles(out, line->highs, SPACE_COUNT, space, points);
    put_doubles(out, line->series, width, width - 1, points);
    for (u32 i = 0; i < line->shown_count; i++)
        put_doubles(out, line->series, width, i, points);
}

static bool compute(Timeline *line, Group group, u32 top)
{
    Call *call = line->call;
    size_t points = line->span.points;

    line->names = view_names(call, line->chosen.view);
    line->groups = line->names ? view_groups(call, line->chosen.view, group) : NULL;
    if (!line->groups)
        return false;
    line->totals = call_alloc(call, points * SPACE_COUNT, sizeof(u64));
    line->highs = call_alloc(call, points * SPACE_COUNT, sizeof(u64));
    line->values = call_alloc(call, line->groups->count, sizeof(u64));
    line->shown = call_alloc(call, top + 1, sizeof(u32));
    if (!line->totals || !line->highs || !line->values || !line->shown)
        return false;
    find_peak(line);
    if (!compute_values(line))
        return false;
    choose_groups(line, top);
    if (!compute_series(line))
        return false;
    compute_highs(line);
    return true;
}

void answer_timeline(Call *call)
{
    static const char *const formats[] = {"json", "f64"};
    Timeline line = {.call = call};
    Group group = (Group)request_choice(call->request, "group", group_names, GROUP_COUNT,
                                        GROUP_CONTEXT);
    u32 top = (u32)request_u64(call->request, "top", TOP_DEFAULT, TOP_MAX);
    u32 format = request_choice(call->request, "format", formats, 2, 0);

    line.span.points = request_u64(call->request, "points", POINTS_DEFAULT, POINTS_MAX);
    if (line.span.points == 0)
        line.span.points = 1;
    if (!chosen_parse(call, false, &line.chosen))
        return;
    u64 end = recording_last(line.chosen.view->recording).ns + 1;
    line.span.from_ns = line.chosen.selection.from_ns;
    line.span.to_ns = line.chosen.selection.to_ns ? line.chosen.selection.to_ns : end;
    if (request_text(call->request, "at"))
        line.span.to_ns = end;
    if (line.span.to_ns <= line.span.from_ns)
        line.span.to_ns = line.span.from_ns + 1;
    bool good = compute(&line, group, top);
    if (good && format == 1)
        put_binary(&line);
    else if (good)
        put_json(&line);
    else if (!call_failed(call))
        call_fail(call, 500, "internal", "the timeline cannot be computed");
    free(line.totals);
    free(line.highs);
    free(line.values);
    free(line.shown);
    free(line.series);
}
