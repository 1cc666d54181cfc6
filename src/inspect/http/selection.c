// SPDX-License-Identifier: MIT
//
// The parameters that say what is looked at, and the sums of it. Sums are kept in the
// view's memo: the views of one selection share them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/http/blocks.h"
#include "inspect/http/series.h"

const char *const metric_names[METRIC_COUNT] = {
    [METRIC_LIVE] = "live",
    [METRIC_PEAK] = "peak",
    [METRIC_ALLOCATED] = "allocated",
    [METRIC_ALLOCATIONS] = "allocations",
    [METRIC_TEMPORARY] = "temporary",
    [METRIC_LEAKED] = "leaked",
    [METRIC_GROWTH] = "growth",
};

bool metric_in_bytes(Metric metric)
{
    return metric != METRIC_ALLOCATIONS && metric != METRIC_TEMPORARY;
}

Metric call_metric(Call *call)
{
    return (Metric)request_choice(call->request, "metric", metric_names, METRIC_COUNT,
                                  METRIC_LIVE);
}

// ---------------------------------------------------------------------- parameters

typedef struct Source {
    Request *request;
    bool is_base;
    bool has_own_time; // of a base: one of base_from, base_to, base_at is there
} Source;

static bool is_time(const char *name)
{
    return strcmp(name, "from") == 0 || strcmp(name, "to") == 0 || strcmp(name, "at") == 0;
}

// The name under which the parameter is found.
static const char *find_name(const Source *source, const char *name, char buffer[40])
{
    if (!source->is_base)
        return name;
    snprintf(buffer, 40, "base_%s", name);
    if (request_text(source->request, buffer) || (is_time(name) && source->has_own_time))
        return buffer;
    return name;
}

static const char *source_text(const Source *source, const char *name)
{
    char buffer[40];

    return request_text(source->request, find_name(source, name, buffer));
}

static u64 source_u64(const Source *source, const char *name)
{
    char buffer[40];

    return request_u64(source->request, find_name(source, name, buffer), 0, UINT64_MAX);
}

static void parse_time(const Source *source, Selection *selection)
{
    const char *at = source_text(source, "at");

    if (!at) {
        selection->from_ns = source_u64(source, "from");
        selection->to_ns = source_u64(source, "to");
        if (selection->to_ns && selection->to_ns < selection->from_ns)
            request_blame(source->request, "to: it is before from");
    } else if (strcmp(at, "peak") == 0) {
        selection->at_peak = true;
    } else if (strcmp(at, "end") != 0) {
        // A range that ends at 0 would be all of it.
        selection->to_ns = max_u64(1, source_u64(source, "at"));
    }
}

static u32 parse_spaces(const Source *source)
{
    static const char *const words[] = {"heap", "mapped", "stack"};
    const char *text = source_text(source, "space");
    u32 spaces = 0;

    if (text && strcmp(text, "all") == 0)
        return (1u << SPACE_COUNT) - 1;
    while (text && *text) {
        size_t size = strcspn(text, ",");
        u32 i = 0;
        while (i < ARRAY_LEN(words) &&
               (strlen(words[i]) != size || strncmp(words[i], text, size) != 0))
            i++;
        if (i == ARRAY_LEN(words)) {
            request_blame(source->request, "space: there is no '%.*s'", (int)size, text);
            break;
        }
        spaces |= 1u << i;
        text += size + (text[size] == ',');
    }
    return spaces ? spaces : 1u << SPACE_HEAP;
}

void chosen_make_key(Chosen *chosen)
{
    const Selection *s = &chosen->selection;
    const char *texts[] = {s->function, s->file, s->object};
    u64 hash = 14695981039346656037ull;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        for (const char *c = texts[i] ? texts[i] : ""; *c; c++)
            hash = (hash ^ (u8)*c) * 1099511628211ull;
        hash = (hash ^ (texts[i] ? 1 : 0)) * 1099511628211ull;
    }
    snprintf(chosen->key, sizeof(chosen->key),
             "%llu %llu %d %u %u %llu %llu %llu %llu %llx %.100s|%.100s|%.100s",
             (unsigned long long)s->from_ns, (unsigned long long)s->to_ns, s->at_peak, s->spaces,
             s->thread, (unsigned long long)s->min_size, (unsigned long long)s->max_size,
             (unsigned long long)s->min_lifetime_ns, (unsigned long long)s->max_lifetime_ns,
             (unsigned long long)hash, s->function ? s->function : "", s->file ? s->file : "",
             s->object ? s->object : "");
}

bool chosen_parse(Call *call, bool is_base, Chosen *ret_chosen)
{
    Source source = {.request = call->request, .is_base = is_base};
    Chosen *chosen = ret_chosen;

    *chosen = (Chosen){.view = is_base ? call->base_view : call->view,
                       .file = is_base ? call->base_file : call->file};
    source.has_own_time = request_text(call->request, "base_from") ||
                          request_text(call->request, "base_to") ||
                          request_text(call->request, "base_at");
    Selection *selection = &chosen->selection;
    parse_time(&source, selection);
    selection->spaces = parse_spaces(&source);
    selection->function = source_text(&source, "function");
    selection->file = source_text(&source, "file");
    selection->object = source_text(&source, "object");
    u64 thread = source_u64(&source, "thread");
    selection->thread = thread > UINT32_MAX ? UINT32_MAX : (u32)thread;
    selection->min_size = source_u64(&source, "min_size");
    selection->max_size = source_u64(&source, "max_size");
    selection->min_lifetime_ns = source_u64(&source, "min_lifetime");
    selection->max_lifetime_ns = source_u64(&source, "max_lifetime");
    chosen_make_key(chosen);
    return !call_failed(call);
}

bool chosen_needs_blocks(const Selection *selection)
{
    return selection->min_size || selection->max_size || selection->min_lifetime_ns ||
           selection->max_lifetime_ns;
}

void chosen_range(const Chosen *chosen, u64 *ret_from, u64 *ret_to)
{
    const Selection *selection = &chosen->selection;
    Recording *recording = chosen->view->recording;
    u64 end = recording_last(recording).ns;

    *ret_from = selection->from_ns;
    *ret_to = selection->to_ns ? selection->to_ns : end + 1;
    if (selection->at_peak) {
        size_t state = recording_find_state(recording, STATE_PEAK);
        if (state != SIZE_MAX)
            *ret_to = recording_state_info(recording, state)->moment.ns + 1;
    }
}

// ---------------------------------------------------------------------------- sums

const SiteSums *chosen_sums(Call *call, const Chosen *chosen)
{
    Recording *recording = chosen->view->recording;
    size_t count = recording_site_count(recording);
    char key[700], *error = NULL;

    snprintf(key, sizeof(key), "sums %s", chosen->key);
    const SiteSums *known = memo_get(&chosen->view->memo, key);
    if (known)
        return known;
    SiteSums *sums = call_alloc(call, count, sizeof(*sums));
    if (!sums)
        return NULL;
    if (!selection_sums(recording, &chosen->selection, sums, &error)) {
        free(sums);
        call_fail_selection(call, error);
        return NULL;
    }
    return memo_put(&chosen->view->memo, key, sums, count * sizeof(*sums), free);
}

// What the sums have already. False: it must be asked for.
static bool take_from_sums(const SiteSums *sums, Metric metric, i64 *ret_value, u64 *ret_count)
{
    switch (metric) {
    case METRIC_LIVE:
        *ret_value = (i64)sums->live_bytes;
        *ret_count = sums->live_blocks;
        return true;
    case METRIC_ALLOCATED:
        *ret_value = (i64)sums->allocated_bytes;
        *ret_count = sums->allocations;
        return true;
    case METRIC_ALLOCATIONS:
        *ret_value = (i64)(*ret_count = sums->allocations);
        return true;
    case METRIC_TEMPORARY:
        *ret_value = (i64)(*ret_count = sums->temporary);
        return true;
    default:
        return false;
    }
}

// What of the range is never freed: the blocks that are live at the end and were born in it. They
// are found once; then every range is a walk over them.
static bool compute_leaked(Call *call, const Chosen *chosen, i64 *values, u64 *counts)
{
    const LiveBlocks *blocks = view_leftovers(call, chosen->view);
    u8 *sites = blocks ? chosen_mask(call, chosen) : NULL;
    u64 from, to;

    chosen_range(chosen, &from, &to);
    for (u32 i = 0; sites && i < blocks->count; i++) {
        const LiveBlock *block = &blocks->blocks[i];
        if (sites[block->site] && block->born_ns >= from && block->born_ns < to) {
            values[block->site] += (i64)block->size;
            counts[block->site]++;
        }
    }
    free(sites);
    return sites != NULL;
}

bool chosen_is_whole(const Chosen *chosen)
{
    const Selection *selection = &chosen->selection;
    u64 last = recording_last(chosen->view->recording).ns;

    return !selection->at_peak && selection->from_ns == 0 &&
           (selection->to_ns == 0 || selection->to_ns > last);
}

static bool compute_values(Call *call, const Chosen *chosen, Metric metric, i64 *values,
                           u64 *counts)
{
    size_t count = recording_site_count(chosen->view->recording);
    char *error = NULL;
    i64 no_value;
    u64 no_count;

    if (take_from_sums(&(SiteSums){0}, metric, &no_value, &no_count)) {
        const SiteSums *sums = chosen_sums(call, chosen);
        for (size_t i = 0; sums && i < count; i++)
            take_from_sums(&sums[i], metric, &values[i], &counts[i]);
        return sums != NULL;
    }
    if (metric == METRIC_LEAKED && !chosen_is_whole(chosen) &&
        !chosen_needs_blocks(&chosen->selection))
        return compute_leaked(call, chosen, values, counts);
    if (selection_metric_counts(chosen->view->recording, &chosen->selection, metric, values,
                                counts, &error))
        return true;
    call_fail_selection(call, error);
    return false;
}

// Values and behind them counts, in one piece of memory.
const i64 *chosen_values(Call *call, const Chosen *chosen, Metric metric)
{
    size_t count = recording_site_count(chosen->view->recording);
    char key[700];

    snprintf(key, sizeof(key), "values %d %s", metric, chosen->key);
    const i64 *known = memo_get(&chosen->view->memo, key);
    if (known)
        return known;
    i64 *values = call_alloc(call, 2 * count, sizeof(*values));
    if (!values || !call_goes_on(call, -1) ||
        !compute_values(call, chosen, metric, values, (u64 *)values + count)) {
        free(values);
        return NULL;
    }
    return memo_put(&chosen->view->memo, key, values, 2 * count * sizeof(*values), free);
}

const u64 *chosen_counts(Call *call, const Chosen *chosen, Metric metric)
{
    const i64 *values = chosen_values(call, chosen, metric);

    return values ? (const u64 *)values + recording_site_count(chosen->view->recording) : NULL;
}
