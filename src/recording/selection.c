// SPDX-License-Identifier: MIT
//
// Selections: which sites, which span, which blocks. What asks for nothing but sites and a
// span is answered from sums; sizes and lifetimes of blocks are answered from events.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/query.h"
#include "recording/stacks.h"

static bool fail(char **ret_error, const char *line)
{
    *ret_error = strdup(line);
    return false;
}

static u32 spaces_of(const Selection *selection)
{
    return selection->spaces ? selection->spaces : 1u << SPACE_HEAP;
}

static bool asks_blocks(const Selection *selection)
{
    return selection->min_size || selection->max_size || selection->min_lifetime_ns ||
           selection->max_lifetime_ns;
}

// ---------------------------------------------------------------- which sites
// Of every site 1 if it is selected; to be freed. NULL: *ret_error.
static u8 *select_sites(Recording *recording, const Selection *selection, char **ret_error)
{
    const char *texts[] = { selection->function, selection->file, selection->object };
    u8 *contexts = malloc(recording->context_count + 1);
    u8 *sites = calloc(recording->site_count + 1, 1);
    bool ok = contexts && sites;

    if (!ok)
        fail(ret_error, "no memory");
    else
        memset(contexts, 1, recording->context_count);
    for (u32 part = PART_FUNCTION; ok && part <= PART_OBJECT; part++) {
        FramePattern matcher;
        ok = frame_pattern_init(&matcher, recording, (FramePart)part, texts[part], ret_error);
        if (ok)
            frame_pattern_select(&matcher, recording, contexts);
        frame_pattern_free(&matcher);
    }
    for (size_t i = 0; ok && i < recording->site_count; i++) {
        const RecordedSite *site = &recording->sites[i];
        sites[i] = (spaces_of(selection) >> site->space & 1) && contexts[site->context] &&
                   (!selection->thread || selection->thread == site->thread);
    }
    free(contexts);
    if (ok)
        return sites;
    free(sites);
    return NULL;
}

static void mask_sums(const Recording *recording, const u8 *sites, SiteSums *sums)
{
    for (size_t i = 0; i < recording->site_count; i++)
        if (!sites[i])
            sums[i] = (SiteSums){ 0 };
}

// ---------------------------------------------------------------- the peak
static size_t peak_state(const Recording *recording, u32 spaces)
{
    static const StateReason of_space[SPACE_COUNT] = {
        [SPACE_HEAP] = STATE_PEAK,
        [SPACE_MAPPED] = STATE_PEAK_MAPPED,
        [SPACE_STACK] = STATE_PEAK_STACK,
    };

    for (u32 i = 0; i < SPACE_COUNT; i++)
        if (spaces == 1u << i)
            return recording_find_state(recording, of_space[i]);
    return recording_find_state(recording, STATE_PEAK_ALL);
}

typedef struct PeakSearch {
    const Recording *recording;
    u32 spaces;
    u64 now, high, high_ns;
} PeakSearch;

static bool search_event(void *arg, const HeapEvent *event)
{
    PeakSearch *search = arg;

    if (!(search->spaces >> search->recording->sites[event->site].space & 1))
        return true;
    search->now += event->kind == EVENT_ALLOC ? event->size : 0 - event->size;
    if (search->now > search->high) {
        search->high = search->now;
        search->high_ns = event->time.ns;
    }
    return true;
}

static u64 sum_spaces(const u64 *values, u32 spaces)
{
    u64 sum = 0;

    for (u32 i = 0; i < SPACE_COUNT; i++)
        sum += spaces >> i & 1 ? values[i] : 0;
    return sum;
}

// The highest point, as the slices and their events tell it. Without the events of the slice it is
// somewhere in it, and this is its end.
static u64 search_peak(Recording *recording, u32 spaces, bool *ret_is_known)
{
    size_t best = SIZE_MAX;
    u64 high = 0;

    for (size_t i = 0; i < recording->leaf_count; i++) {
        u64 here = sum_spaces(reader_leaf(recording, i)->info.high, spaces);
        if (here > high) {
            high = here;
            best = i;
        }
    }
    *ret_is_known = true;
    if (best == SIZE_MAX)
        return 0;
    const Node *leaf = reader_leaf(recording, best);
    u64 end_ns = leaf->last_event_ns;
    *ret_is_known = leaf->events_offset != 0;
    if (!leaf->events_offset)
        return end_ns;
    PeakSearch search = { .recording = recording, .spaces = spaces };
    if (best)
        search.now = sum_spaces(reader_leaf(recording, best - 1)->info.totals.bytes, spaces);
    recording_each_event(recording, leaf->first_event_ns, end_ns + 1, search_event, &search);
    return search.high_ns;
}

u64 recording_peak_ns(Recording *recording, u32 spaces, bool *ret_is_known)
{
    u32 asked = spaces ? spaces : 1u << SPACE_HEAP;
    size_t state = peak_state(recording, asked);

    *ret_is_known = true;
    if (state != SIZE_MAX)
        return recording->states[state].state.moment.ns;
    return search_peak(recording, asked, ret_is_known);
}

// live_ at the peak and, with the rest, what led to it. Not masked.
static bool peak_sums(Recording *recording, const Selection *selection, SiteSums *ret_sums,
                      u64 *ret_ns)
{
    size_t state = peak_state(recording, spaces_of(selection));
    bool is_known;

    *ret_ns = recording_peak_ns(recording, spaces_of(selection), &is_known) + 1;
    if (!recording_range(recording, 0, *ret_ns, ret_sums))
        return false;
    SiteSums *live = state == SIZE_MAX ? NULL : calloc(recording->site_count + 1, sizeof(*live));
    if (live && recording_state(recording, state, live)) {
        for (size_t i = 0; i < recording->site_count; i++) {
            ret_sums[i].live_bytes = live[i].live_bytes;
            ret_sums[i].live_blocks = live[i].live_blocks;
            ret_sums[i].live_usable = live[i].live_usable;
        }
    }
    free(live);
    return true;
}

// ---------------------------------------------------------------- by blocks
typedef struct BlockSums {
    const Selection *selection;
    const u8 *sites;
    u64 from_ns, to_ns, last_ns;
    bool only_leaked;
    SiteSums *sums;
} BlockSums;

static bool block_is_selected(const BlockSums *by, const RecordedBlock *block)
{
    const Selection *s = by->selection;
    u64 lifetime = (block->died_ns ? block->died_ns : by->last_ns) - block->born_ns;

    return by->sites[block->site] && block->size >= s->min_size &&
           (!s->max_size || block->size <= s->max_size) && lifetime >= s->min_lifetime_ns &&
           (!s->max_lifetime_ns || lifetime <= s->max_lifetime_ns);
}

static bool sum_block(void *arg, const RecordedBlock *block)
{
    BlockSums *by = arg;
    SiteSums *sum = &by->sums[block->site];
    bool is_born = block->born_ns >= by->from_ns && block->born_ns < by->to_ns;
    bool lives = !block->died_ns || block->died_ns >= by->to_ns;

    if (!block_is_selected(by, block) || (by->only_leaked && (block->died_ns || !is_born)))
        return true;
    if (lives && block->born_ns < by->to_ns) {
        sum->live_bytes += block->size;
        sum->live_usable += block->usable;
        sum->live_blocks++;
    }
    if (is_born) {
        sum->first_ns = sum->allocations ? min_u64(sum->first_ns, block->born_ns) : block->born_ns;
        sum->last_ns = max_u64(sum->last_ns, block->born_ns);
        sum->allocated_bytes += block->size;
        sum->allocations++;
    }
    if (!lives && block->died_ns >= by->from_ns) {
        sum->freed_bytes += block->size;
        sum->frees++;
        sum->temporary += block->flags & EVENT_TEMPORARY ? 1 : 0;
    }
    sum->peak_bytes = max_u64(sum->peak_bytes, sum->live_bytes);
    return true;
}

static bool sums_by_blocks(Recording *recording, const Selection *selection, const u8 *sites,
                           u64 from_ns, u64 to_ns, bool only_leaked, SiteSums *ret_sums,
                           char **ret_error)
{
    u64 since = recording_events_kept_since_ns(recording);
    u32 spaces = spaces_of(selection);
    BlockSums by = {
        .selection = selection, .sites = sites, .from_ns = from_ns, .to_ns = to_ns,
        .last_ns = recording->last.ns, .only_leaked = only_leaked, .sums = ret_sums,
    };

    if (from_ns < since && !(only_leaked && recording_knows_living(recording, spaces))) {
        if (asprintf(ret_error, "this needs the single blocks, and those before %.3f s were not "
                     "kept; choose a span that begins later", (double)since / 1e9) < 0)
            *ret_error = NULL;
        return false;
    }
    memset(ret_sums, 0, recording->site_count * sizeof(SiteSums));
    bool ok = only_leaked ? recording_each_living(recording, spaces, to_ns, sum_block, &by)
                          : recording_each_block(recording, from_ns, to_ns, sum_block, &by);
    return ok || fail(ret_error, "no memory");
}

// ---------------------------------------------------------------- sums and metrics
static u64 end_of(const Recording *recording, const Selection *selection)
{
    return selection->to_ns ? selection->to_ns : recording->last.ns + 1;
}

static bool masked_sums(Recording *recording, const Selection *selection, const u8 *sites,
                        SiteSums *ret_sums, char **ret_error)
{
    u64 to_ns = end_of(recording, selection), from_ns = selection->from_ns;

    if (selection->at_peak) {
        if (!peak_sums(recording, selection, ret_sums, &to_ns))
            return fail(ret_error, "no memory");
        from_ns = 0;
    }
    if (asks_blocks(selection))
        return sums_by_blocks(recording, selection, sites, from_ns, to_ns, false, ret_sums,
                              ret_error);
    if (!selection->at_peak && !recording_range(recording, from_ns, to_ns, ret_sums))
        return fail(ret_error, "no memory");
    mask_sums(recording, sites, ret_sums);
    return true;
}

bool selection_sums(Recording *recording, const Selection *selection, SiteSums *ret_sums,
                    char **ret_error)
{
    u8 *sites = select_sites(recording, selection, ret_error);
    bool ok = sites && masked_sums(recording, selection, sites, ret_sums, ret_error);

    free(sites);
    return ok;
}

// Allocated in the range and live at the end of the run.
static bool leaked_sums(Recording *recording, const Selection *selection, const u8 *sites,
                        SiteSums *ret_sums, char **ret_error)
{
    u64 to_ns = end_of(recording, selection);
    Selection whole = *selection;

    if (selection->from_ns == 0 && to_ns >= recording->last.ns && !selection->at_peak) {
        whole.from_ns = whole.to_ns = 0;
        return masked_sums(recording, &whole, sites, ret_sums, ret_error);
    }
    return sums_by_blocks(recording, selection, sites, selection->from_ns, to_ns, true, ret_sums,
                          ret_error);
}

static bool growth(Recording *recording, const Selection *selection, const u8 *sites,
                   SiteSums *sums, i64 *ret_values, char **ret_error)
{
    Selection start = *selection;

    for (size_t i = 0; i < recording->site_count; i++)
        ret_values[i] = (i64)sums[i].live_bytes;
    if (selection->from_ns == 0)
        return true;
    start.at_peak = false;
    start.to_ns = selection->from_ns;
    start.from_ns = asks_blocks(selection) ? recording_events_kept_since_ns(recording) : 0;
    if (!masked_sums(recording, &start, sites, sums, ret_error))
        return false;
    for (size_t i = 0; i < recording->site_count; i++)
        ret_values[i] = (i64)((u64)ret_values[i] - sums[i].live_bytes);
    return true;
}

static i64 value_of(Metric metric, const SiteSums *sums)
{
    switch (metric) {
    case METRIC_ALLOCATED: return (i64)sums->allocated_bytes;
    case METRIC_ALLOCATIONS: return (i64)sums->allocations;
    case METRIC_TEMPORARY: return (i64)sums->temporary;
    default: return (i64)sums->live_bytes;
    }
}

static u64 count_of(Metric metric, const SiteSums *sums)
{
    switch (metric) {
    case METRIC_ALLOCATED:
    case METRIC_ALLOCATIONS: return sums->allocations;
    case METRIC_TEMPORARY: return sums->temporary;
    default: return sums->live_blocks;
    }
}

static bool fill_metric(Recording *recording, const Selection *selection, Metric metric,
                        const u8 *sites, SiteSums *sums, i64 *ret_values, u64 *ret_counts,
                        char **ret_error)
{
    Selection at = *selection;
    bool ok;

    at.at_peak |= metric == METRIC_PEAK;
    if (metric == METRIC_LEAKED)
        ok = leaked_sums(recording, selection, sites, sums, ret_error);
    else
        ok = masked_sums(recording, &at, sites, sums, ret_error);
    for (size_t i = 0; ok && i < recording->site_count; i++) {
        ret_values[i] = value_of(metric, &sums[i]);
        if (ret_counts)
            ret_counts[i] = count_of(metric, &sums[i]);
    }
    if (ok && metric == METRIC_GROWTH)
        ok = growth(recording, &at, sites, sums, ret_values, ret_error);
    return ok;
}

bool selection_metric_counts(Recording *recording, const Selection *selection, Metric metric,
                             i64 *ret_values, u64 *ret_counts, char **ret_error)
{
    u8 *sites = select_sites(recording, selection, ret_error);
    SiteSums *sums = calloc(recording->site_count + 1, sizeof(*sums));
    bool ok = sites && (sums || fail(ret_error, "no memory")) &&
              fill_metric(recording, selection, metric, sites, sums, ret_values, ret_counts,
                          ret_error);

    free(sites);
    free(sums);
    return ok;
}

bool selection_metric(Recording *recording, const Selection *selection, Metric metric,
                      i64 *ret_values, char **ret_error)
{
    return selection_metric_counts(recording, selection, metric, ret_values, NULL, ret_error);
}
