// SPDX-License-Identifier: MIT
//
// A massif.out of a recording. Its snapshots are ends of slices, where sums are exact
// whether events are kept or not, and the peak.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/massif_out.h"

// As the options number them.
static const char *const units[] = {"i", "ms", "B"};

typedef struct Convert {
    Recording *recording;
    const RecordingInfo *info;
    const char *unit;
    Space space;        // that the trees are of
    SiteSums *sums;
    MassifSnapshot *list;
    size_t count;
} Convert;

// ---------------------------------------------------------------------- stacks

static u32 site_context(void *recording, u32 site)
{
    return recording_site(recording, site)->context;
}

static u32 context_parent(void *recording, u32 context)
{
    return recording_context(recording, context)->parent;
}

static const RecordedFrame *context_frames(void *recording, u32 context, u32 *ret_count)
{
    const RecordedContext *found = recording_context(recording, context);
    *ret_count = found->frame_count;
    return found->frame_count ? recording_frame(recording, found->first_frame) : NULL;
}

static u64 context_pc(void *recording, u32 context)
{
    const RecordedContext *found = recording_context(recording, context);
    return found->pc - found->is_return;
}

// ------------------------------------------------------------------- snapshots

static void add_site(const Convert *convert, MassifSnapshot *snapshot, u32 *sites, u64 *bytes,
                     u32 site)
{
    const SiteSums *sums = &convert->sums[site];
    Space space = recording_site(convert->recording, site)->space;

    if (space == SPACE_STACK && convert->info->has_stacks && convert->space == SPACE_HEAP)
        snapshot->stack_bytes += sums->live_bytes;
    if (space != convert->space)
        return;
    snapshot->heap_bytes += sums->live_bytes;
    if (space == SPACE_HEAP)
        snapshot->extra_bytes += sums->live_usable - sums->live_bytes +
                                 sums->live_blocks * convert->info->heap_admin_bytes;
    if (sums->live_bytes == 0)
        return;
    sites[snapshot->live_count] = site;
    bytes[snapshot->live_count++] = sums->live_bytes;
}

// Of what convert->sums has. False: no memory.
static bool add_snapshot(Convert *convert, const Moment *moment, bool is_peak)
{
    u32 site_count = recording_site_count(convert->recording);
    MassifSnapshot snapshot = {
        .time = massif_out_time(convert->unit, moment),
        .is_detailed = true,
        .is_peak = is_peak,
        .site_count = site_count,
    };
    u64 *bytes = malloc(((size_t)site_count + 1) * (sizeof(u64) + sizeof(u32)));
    if (!bytes)
        return false;
    u32 *sites = (u32 *)(bytes + site_count + 1);
    for (u32 i = 0; i < site_count; i++)
        add_site(convert, &snapshot, sites, bytes, i);
    snapshot.sites = sites;
    snapshot.bytes = bytes;
    convert->list[convert->count++] = snapshot;
    return true;
}

static bool add_peak(Convert *convert, size_t state)
{
    return state == SIZE_MAX || !recording_state(convert->recording, state, convert->sums) ||
           add_snapshot(convert, &recording_state_info(convert->recording, state)->moment, true);
}

static bool add_all(Convert *convert, u32 wanted)
{
    Recording *recording = convert->recording;
    size_t slices = recording_slice_count(recording);
    size_t peak = recording_find_state(recording, STATE_PEAK);
    u64 peak_ns = peak == SIZE_MAX ? UINT64_MAX : recording_state_info(recording, peak)->moment.ns;
    size_t count = min_u64(slices, wanted);

    memset(convert->sums, 0, recording_site_count(recording) * sizeof(SiteSums));
    if (!add_snapshot(convert, &(Moment){0}, false))
        return false;
    for (size_t i = 1; i <= count; i++) {
        const SliceInfo *slice = recording_slice(recording, i * slices / count - 1);
        if (slice->end.ns > peak_ns) {
            if (!add_peak(convert, peak))
                return false;
            peak_ns = UINT64_MAX;
        }
        if (!recording_range(recording, 0, slice->end.ns, convert->sums) ||
            !add_snapshot(convert, &slice->end, false))
            return false;
    }
    return peak_ns == UINT64_MAX || add_peak(convert, peak);
}

int massif_out_convert(Recording *recording, FILE *file, u32 snapshot_count)
{
    const RecordingInfo *info = recording_info(recording);
    Convert convert = {
        .recording = recording,
        .info = info,
        .unit = info->time_unit < ARRAY_LEN(units) ? units[info->time_unit] : "ms",
        .space = info->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP,
        .sums = calloc((size_t)recording_site_count(recording) + 1, sizeof(SiteSums)),
        .list = calloc((size_t)snapshot_count + 2, sizeof(MassifSnapshot)),
    };
    if (strcmp(convert.unit, "i") == 0 && !info->counts_instructions)
        convert.unit = "ms";
    bool made = convert.sums && convert.list && add_all(&convert, snapshot_count);
    if (made)
        massif_out_write(file, &(MassifConfig){
            .options = info->options,
            .command = info->command ? info->command : "",
            .time_unit = convert.unit,
            .pages_as_heap = info->pages_as_heap,
            .depth = info->depth ? info->depth : 30,
            .threshold_ppm = info->threshold_ppm,
            .stacks = {recording, site_context, context_parent, context_frames, context_pc},
            .site_count = recording_site_count(recording),
        }, convert.list, convert.count);
    for (size_t i = 0; i < convert.count; i++)
        free((void *)convert.list[i].bytes);
    free(convert.list);
    free(convert.sums);
    return made ? 0 : -ENOMEM;
}
