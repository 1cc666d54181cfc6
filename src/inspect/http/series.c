// SPDX-License-Identifier: MIT
//
// See series.h. The recording has series of sites; where blocks are chosen by size or
// lifetime, it is the blocks that are added up.
#include <stdlib.h>
#include <string.h>

#include "inspect/http/series.h"

u64 span_time(const Span *span, size_t index)
{
    unsigned __int128 length = span->to_ns - span->from_ns;

    return span->from_ns + (u64)(length * (index + 1) / span->points);
}

u8 *chosen_mask(Call *call, const Chosen *chosen)
{
    Chosen whole = *chosen;
    u32 count = recording_site_count(chosen->view->recording);

    // What was allocated before the range may be live in it.
    whole.selection.from_ns = whole.selection.to_ns = 0;
    whole.selection.at_peak = false;
    chosen_make_key(&whole);
    const SiteSums *sums = chosen_sums(call, &whole);
    u8 *mask = sums ? call_alloc(call, count, 1) : NULL;
    for (u32 i = 0; mask && i < count; i++)
        mask[i] = sums[i].allocations || sums[i].live_bytes || sums[i].live_blocks;
    return mask;
}

// group_of for selected sites, U32_MAX for the others.
static u32 *mask_groups(Call *call, const Chosen *chosen, const u32 *group_of)
{
    u32 count = recording_site_count(chosen->view->recording);
    u8 *mask = chosen_mask(call, chosen);
    u32 *masked = mask ? call_alloc(call, count, sizeof(*masked)) : NULL;

    for (u32 i = 0; masked && i < count; i++)
        masked[i] = mask[i] ? group_of[i] : UINT32_MAX;
    free(mask);
    return masked;
}

typedef struct BlockSeries {
    Call *call;
    const Chosen *chosen;
    const Span *span;
    const u32 *group_of;
    u32 group_count;
    u64 *bytes; // differences from point to point, until they are added up
    u64 end_ns, seen;
} BlockSeries;

// The first point at or after the moment: there the block is live, or gone.
static size_t point_after(const Span *span, u64 ns)
{
    if (ns < span->from_ns)
        return 0;
    unsigned __int128 offset = ns - span->from_ns;
    size_t index = (size_t)(offset * span->points / (span->to_ns - span->from_ns));
    return index < span->points ? index : span->points;
}

bool block_is_chosen(const Selection *selection, const RecordedBlock *block, u64 end_ns)
{
    u64 lifetime = (block->died_ns ? block->died_ns : end_ns) - block->born_ns;

    return block->size >= selection->min_size &&
           (!selection->max_size || block->size <= selection->max_size) &&
           lifetime >= selection->min_lifetime_ns &&
           (!selection->max_lifetime_ns || lifetime <= selection->max_lifetime_ns);
}

static bool add_block(void *arg, const RecordedBlock *block)
{
    BlockSeries *series = arg;
    u32 group = series->group_of[block->site];

    if (++series->seen % 65536 == 0 && !call_goes_on(series->call, -1))
        return false;
    if (group == UINT32_MAX ||
        !block_is_chosen(&series->chosen->selection, block, series->end_ns))
        return true;
    size_t born = point_after(series->span, block->born_ns);
    size_t died = block->died_ns ? point_after(series->span, block->died_ns)
                                 : series->span->points;
    if (born < series->span->points)
        series->bytes[born * series->group_count + group] += block->size;
    if (died < series->span->points)
        series->bytes[died * series->group_count + group] -= block->size;
    return true;
}

static bool series_of_blocks(BlockSeries *series)
{
    Recording *recording = series->chosen->view->recording;
    const Span *span = series->span;
    u32 width = series->group_count;

    series->end_ns = recording_last(recording).ns;
    recording_each_block(recording, span->from_ns, span->to_ns, add_block, series);
    for (size_t i = width; i < span->points * width; i++)
        series->bytes[i] += series->bytes[i - width];
    return !series->call->code;
}

bool chosen_series(Call *call, const Chosen *chosen, const Span *span, const u32 *group_of,
                   u32 group_count, u64 *ret_bytes)
{
    Recording *recording = chosen->view->recording;
    u32 *masked = mask_groups(call, chosen, group_of);
    bool good = masked != NULL;

    if (good && chosen_needs_blocks(&chosen->selection)) {
        BlockSeries series = {call, chosen, span, masked, group_count, ret_bytes, 0, 0};
        good = series_of_blocks(&series);
    } else if (good) {
        good = recording_series(recording, span->from_ns, span->to_ns, span->points, masked,
                                group_count, ret_bytes);
        if (!good)
            call_fail(call, 500, "internal", "the recording has no series for this range");
    }
    free(masked);
    return good;
}

bool chosen_sparks(Call *call, const Chosen *chosen, const Groups *groups,
                   const u32 *chosen_groups, u32 count, const Span *span, u64 *ret_bytes)
{
    u32 sites = recording_site_count(chosen->view->recording);
    u32 *row_of = call_alloc(call, groups->count, sizeof(u32));
    u32 *group_of = call_alloc(call, sites, sizeof(u32));
    u64 *bytes = call_alloc(call, span->points * count, sizeof(u64));
    bool good = row_of && group_of && bytes;

    if (good) {
        memset(row_of, 0xff, groups->count * sizeof(u32));
        for (u32 i = 0; i < count; i++) {
            if (chosen_groups[i] != UINT32_MAX)
                row_of[chosen_groups[i]] = i;
        }
        for (u32 i = 0; i < sites; i++)
            group_of[i] = row_of[groups->of_site[i]];
        good = chosen_series(call, chosen, span, group_of, count, bytes);
    }
    for (size_t point = 0; good && point < span->points; point++) {
        for (u32 i = 0; i < count; i++)
            ret_bytes[i * span->points + point] = bytes[point * count + i];
    }
    free(row_of);
    free(group_of);
    free(bytes);
    return good;
}
