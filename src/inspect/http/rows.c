// SPDX-License-Identifier: MIT
//
// See rows.h. Groups of two recordings are the same if they are called the same: stacks by
// their functions and files, without lines, which every edit moves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/http/rows.h"

const char *const cell_names[CELL_COUNT] = {
    [CELL_LIVE] = "live",
    [CELL_BLOCKS] = "blocks",
    [CELL_PEAK] = "peak",
    [CELL_PEAK_OWN] = "peak_own",
    [CELL_ALLOCATED] = "allocated",
    [CELL_ALLOCATIONS] = "allocations",
    [CELL_FREED] = "freed",
    [CELL_FREES] = "frees",
    [CELL_TEMPORARY] = "temporary",
    [CELL_REALLOCATIONS] = "reallocations",
    [CELL_LEAKED] = "leaked",
    [CELL_GROWTH] = "growth",
};

static void add_sums(Row *row, const SiteSums *sums)
{
    i64 *cells = row->cells;

    saturate_grow_i64(&cells[CELL_LIVE], (i64)sums->live_bytes);
    saturate_grow_i64(&cells[CELL_BLOCKS], (i64)sums->live_blocks);
    saturate_grow_i64(&cells[CELL_PEAK_OWN], (i64)sums->peak_bytes);
    saturate_grow_i64(&cells[CELL_ALLOCATED], (i64)sums->allocated_bytes);
    saturate_grow_i64(&cells[CELL_ALLOCATIONS], (i64)sums->allocations);
    saturate_grow_i64(&cells[CELL_FREED], (i64)sums->freed_bytes);
    saturate_grow_i64(&cells[CELL_FREES], (i64)sums->frees);
    saturate_grow_i64(&cells[CELL_TEMPORARY], (i64)sums->temporary);
    saturate_grow_i64(&cells[CELL_REALLOCATIONS], (i64)sums->reallocations);
    if (sums->allocations) {
        bool is_first = row->last_ns == 0 && row->first_ns == 0;
        row->first_ns = is_first ? sums->first_ns : min_u64(row->first_ns, sums->first_ns);
        row->last_ns = max_u64(row->last_ns, sums->last_ns);
    }
}

// A row for each group. NULL: the call has failed.
static Row *sum_groups(Call *call, const Chosen *chosen, const Groups *groups, bool with_leaked)
{
    u32 sites = recording_site_count(chosen->view->recording);
    const SiteSums *sums = chosen_sums(call, chosen);
    const i64 *peak = sums ? chosen_values(call, chosen, METRIC_PEAK) : NULL;
    const i64 *growth = peak ? chosen_values(call, chosen, METRIC_GROWTH) : NULL;
    const i64 *leaked =
        growth && with_leaked ? chosen_values(call, chosen, METRIC_LEAKED) : NULL;
    bool good = growth && (leaked || !with_leaked);
    Row *rows = good ? call_alloc(call, groups->count, sizeof(*rows)) : NULL;

    for (u32 i = 0; rows && i < sites; i++) {
        Row *row = &rows[groups->of_site[i]];
        add_sums(row, &sums[i]);
        saturate_grow_i64(&row->cells[CELL_PEAK], peak[i]);
        saturate_grow_i64(&row->cells[CELL_LEAKED], leaked ? leaked[i] : 0);
        saturate_grow_i64(&row->cells[CELL_GROWTH], growth[i]);
    }
    for (u32 i = 0; rows && i < groups->count; i++)
        rows[i].group = i;
    return rows;
}

static bool is_empty(const i64 cells[CELL_COUNT])
{
    for (int i = 0; i < CELL_COUNT; i++) {
        if (cells[i])
            return false;
    }
    return true;
}

// ------------------------------------------------------------------------- the base

static u64 identity(const View *view, const Names *names, const Groups *groups, u32 index)
{
    u64 hash = HASH_SEED;
    RecordedFrame room;
    char text[2048];
    u32 place;

    if (groups->group == GROUP_FUNCTION && groups->id[index] < names->function_count)
        return names->functions[groups->id[index]].identity;
    if (groups->group != GROUP_CONTEXT) {
        group_put_name(view, names, groups, index, text, sizeof(text));
        return hash_text(hash, text);
    }
    StackWalk walk = stack_walk(view->recording, groups->id[index]);
    while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        const RecordedFrame *frame = place_frame(view->recording, place, &room);
        hash = hash_text(hash_text(hash, frame->function), frame->file);
    }
    return hash;
}

// group of the base → row of ours that is called the same; U32_MAX: none.
static u32 *match_groups(Call *call, const Rows *rows)
{
    u32 *match = call_alloc(call, rows->base_groups->count, sizeof(*match));
    Map by_identity = {0};
    u64 known;

    for (u32 i = 0; match && i < rows->base_groups->count; i++)
        match[i] = rows->base_groups == rows->groups ? i : UINT32_MAX;
    if (!match || rows->base_groups == rows->groups)
        return match;
    for (u32 i = 0; i < rows->groups->count; i++) {
        u64 key = identity(call->view, rows->names, rows->groups, i);
        if (!map_get(&by_identity, key, &known))
            map_put(&by_identity, key, i);
    }
    for (u32 i = 0; i < rows->base_groups->count; i++) {
        if (map_get(&by_identity,
                    identity(call->base_view, rows->base_names, rows->base_groups, i), &known))
            match[i] = (u32)known;
    }
    map_free(&by_identity);
    return match;
}

// Takes the base's rows off ours; those of the base alone are appended.
static bool subtract_base(Call *call, Rows *rows, const Chosen *base)
{
    u32 own = rows->count, base_count = rows->base_groups->count;
    Row *base_rows = sum_groups(call, base, rows->base_groups, rows->knows_leaked);
    u32 *match = base_rows ? match_groups(call, rows) : NULL;
    Row *all = match ? realloc(rows->rows, (own + base_count + 1) * sizeof(*all)) : NULL;

    if (all)
        rows->rows = all;
    rows->base = all ? call_alloc(call, own + base_count + 1, sizeof(*rows->base)) : NULL;
    for (u32 i = 0; rows->base && i < base_count; i++) {
        u32 at = match[i];
        if (at == UINT32_MAX) {
            at = rows->count++;
            rows->rows[at] = (Row){.group = i, .is_base_only = true};
        }
        for (int cell = 0; cell < CELL_COUNT; cell++) {
            saturate_grow_i64(&rows->base[at][cell], base_rows[i].cells[cell]);
            i64 *own_cell = &rows->rows[at].cells[cell];
            *own_cell = saturate_sub_i64(*own_cell, base_rows[i].cells[cell]);
        }
    }
    free(base_rows);
    free(match);
    return rows->base != NULL;
}

static void drop_empty(Rows *rows)
{
    u32 kept = 0;

    for (u32 i = 0; i < rows->count; i++) {
        if (is_empty(rows->rows[i].cells) && (!rows->base || is_empty(rows->base[i])))
            continue;
        rows->rows[kept] = rows->rows[i];
        if (rows->base)
            memcpy(rows->base[kept], rows->base[i], sizeof(rows->base[i]));
        kept++;
    }
    rows->count = kept;
}

// -------------------------------------------------------------------------- the memo

static void free_rows(void *object)
{
    Rows *rows = object;

    free(rows->rows);
    free(rows->base);
    free(rows);
}

bool request_wants_leaked(const Request *request)
{
    const char *sort = request_text(request, "sort"), *metric = request_text(request, "metric");

    return (sort && strcmp(sort, "leaked") == 0) || (metric && strcmp(metric, "leaked") == 0);
}

static bool fill_rows(Call *call, Rows *rows, const Chosen *chosen, const Chosen *base,
                      Group group)
{
    rows->knows_leaked = request_wants_leaked(call->request) ||
                         (chosen_knows_leaked(chosen) && (!base || chosen_knows_leaked(base)));
    rows->names = view_names(call, chosen->view);
    rows->groups = rows->names ? view_groups(call, chosen->view, group) : NULL;
    rows->rows = rows->groups ? sum_groups(call, chosen, rows->groups, rows->knows_leaked) : NULL;
    if (!rows->rows)
        return false;
    rows->count = rows->groups->count;
    if (base) {
        rows->base_names = view_names(call, base->view);
        rows->base_groups = rows->base_names ? view_groups(call, base->view, group) : NULL;
        if (!rows->base_groups || !subtract_base(call, rows, base))
            return false;
    }
    drop_empty(rows);
    return true;
}

const Rows *call_rows(Call *call, const Chosen *chosen, const Chosen *base, Group group)
{
    char key[1600];

    // Rows point to names and groups: what they need is asked for first, so that it stays.
    if (!view_groups(call, chosen->view, group) || !view_names(call, chosen->view))
        return NULL;
    snprintf(key, sizeof(key), "rows %d %d %s", group, request_wants_leaked(call->request),
             chosen->key);
    const Rows *known = base ? NULL : memo_get(&chosen->view->memo, key);
    if (known && known->groups == view_groups(call, chosen->view, group) &&
        known->names == view_names(call, chosen->view))
        return known;
    // Rows with a base may point into another file's memo, which has a life of its own: they
    // are kept under a name that is not asked for again.
    if (base)
        snprintf(key, sizeof(key), "rows of call %llu",
                 (unsigned long long)chosen->view->memo.call);
    Rows *rows = call_alloc(call, 1, sizeof(*rows));
    if (!rows)
        return NULL;
    if (!fill_rows(call, rows, chosen, base, group)) {
        free_rows(rows);
        return NULL;
    }
    return memo_put(&chosen->view->memo, key, rows, rows->count * sizeof(Row) * (base ? 2 : 1),
                    free_rows);
}
