// SPDX-License-Identifier: MIT
//
// A recording as massif.out: moments spread over the run, the peak among them, each with its
// tree, written by the code that writes massif.out at the end of a run and read again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/ms_print/moments.h"
#include "inspect/ms_print/page.h"
#include "recording/format.h"
#include "recording/massif_out.h"

enum { SNAPSHOTS = 100 };

static void tell_warning(void *unused, const char *line)
{
    (void)unused;
    fprintf(stderr, "muninn ms_print: %s\n", line);
}

bool recorded_is(const char *path)
{
    char magic[sizeof(FILE_MAGIC) - 1];
    FILE *file = fopen(path, "re");
    bool is_ours = file && fread(magic, sizeof(magic), 1, file) == 1 &&
                   memcmp(magic, FILE_MAGIC, sizeof(magic)) == 0;

    if (file)
        fclose(file);
    return is_ours;
}

Recording *recorded_open(const char *path, char **ret_error)
{
    return recording_open(path, tell_warning, NULL, ret_error);
}

// ------------------------------------------------------------------ its stacks

static u32 stack_context(void *arg, u32 site)
{
    return recording_site(arg, site)->context;
}

static u32 stack_parent(void *arg, u32 context)
{
    return recording_context(arg, context)->parent;
}

static const RecordedFrame *stack_frames(void *arg, u32 context, u32 *ret_count)
{
    const RecordedContext *info = recording_context(arg, context);

    *ret_count = info->frame_count;
    return info->frame_count ? recording_frame(arg, info->first_frame) : NULL;
}

static u64 stack_pc(void *arg, u32 context)
{
    const RecordedContext *info = recording_context(arg, context);

    return info->pc - info->is_return;
}

// --------------------------------------------------------------- its snapshots

// Snapshots as massif_out_write() wants them; only what is live is kept of each.
typedef struct Snapshots {
    Recording *recording;
    MassifSnapshot list[SNAPSHOTS + 2];
    u32 count;
    bool failed; // no memory
} Snapshots;

static u32 count_live(const Recording *recording, const SiteSums *live, Space space)
{
    u32 count = 0;

    for (u32 i = 0; i < recording_site_count(recording); i++)
        count += recording_site(recording, i)->space == space && live[i].live_bytes > 0;
    return count;
}

static void add_site(MassifSnapshot *snapshot, u32 site, const SiteSums *live, u64 extra_bytes)
{
    snapshot->heap_bytes += live->live_bytes;
    snapshot->extra_bytes += extra_bytes;
    ((u32 *)snapshot->sites)[snapshot->live_count] = site;
    ((u64 *)snapshot->bytes)[snapshot->live_count++] = live->live_bytes;
}

static u64 extra_of(const RecordingInfo *info, const SiteSums *live)
{
    u64 unused = live->live_usable > live->live_bytes ? live->live_usable - live->live_bytes : 0;

    return unused + live->live_blocks * info->heap_admin_bytes;
}

// Frees the moment.
static void add_snapshot(Snapshots *snapshots, RecordedMoment *at)
{
    Recording *recording = snapshots->recording;
    const RecordingInfo *info = recording_info(recording);
    Space space = info->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP;
    u32 live_count = count_live(recording, at->live, space);
    MassifSnapshot snapshot = {
        .time = massif_out_time(moment_unit(recording), &at->moment),
        .is_detailed = live_count > 0,
        .is_peak = at->is_peak,
        .site_count = at->site_count,
        .sites = malloc(((size_t)live_count + 1) * sizeof(u32)),
        .bytes = malloc(((size_t)live_count + 1) * sizeof(u64)),
    };

    snapshots->failed |= !snapshot.sites || !snapshot.bytes;
    for (u32 i = 0; i < recording_site_count(recording) && !snapshots->failed; i++) {
        const SiteSums *live = &at->live[i];
        Space own = recording_site(recording, i)->space;
        if (own == space && live->live_bytes > 0)
            add_site(&snapshot, i, live, own == SPACE_HEAP ? extra_of(info, live) : 0);
        else if (own == SPACE_STACK && info->has_stacks)
            snapshot.stack_bytes += live->live_bytes;
    }
    moment_free(at);
    snapshots->list[snapshots->count++] = snapshot;
}

static void write_massif(const Snapshots *snapshots, FILE *out)
{
    Recording *recording = snapshots->recording;
    const RecordingInfo *info = recording_info(recording);
    MassifConfig config = {
        .options = info->options,
        .command = info->command ? info->command : "",
        .time_unit = moment_unit(recording),
        .pages_as_heap = info->pages_as_heap,
        .depth = info->depth ? info->depth : 30,
        .threshold_ppm = info->threshold_ppm,
        .stacks = {recording, stack_context, stack_parent, stack_frames, stack_pc},
        .site_count = recording_site_count(recording),
    };

    massif_out_write(out, &config, snapshots->list, snapshots->count);
}

// The snapshots become text, and the text a file as if it had been read. Frees the snapshots.
static MassifFile *make_file(Snapshots *snapshots, char **ret_error)
{
    ForeignText text = {0};
    FILE *out = snapshots->failed ? NULL : open_memstream(&text.data, &text.size);

    if (out)
        write_massif(snapshots, out);
    bool is_written = out && fclose(out) == 0;
    for (u32 i = 0; i < snapshots->count; i++) {
        free((u32 *)snapshots->list[i].sites);
        free((u64 *)snapshots->list[i].bytes);
    }
    if (is_written)
        return massif_file_parse(&text, ret_error);
    foreign_free(&text);
    *ret_error = strdup("there is not enough memory");
    return NULL;
}

MassifFile *recorded_whole(Recording *recording, char **ret_error)
{
    Snapshots snapshots = {.recording = recording};
    RecordedMoment peak = {.live = NULL}, next;
    u64 last_ns = UINT64_MAX;

    next = (RecordedMoment){
        .live = calloc((size_t)recording_site_count(recording) + 1, sizeof(SiteSums))};
    if (next.live)
        add_snapshot(&snapshots, &next); // nothing, at the start
    moment_of_peak(recording, &peak);
    for (size_t i = 0; i < SNAPSHOTS; i++) {
        if (!moment_of_part(recording, i, SNAPSHOTS, &next))
            continue;
        bool is_peak_before = peak.live && peak.moment.ns <= next.moment.ns;
        if (is_peak_before) {
            last_ns = peak.moment.ns;
            add_snapshot(&snapshots, &peak);
        }
        if (next.moment.ns == last_ns) {
            moment_free(&next); // nothing has happened since
        } else {
            last_ns = next.moment.ns;
            add_snapshot(&snapshots, &next);
        }
    }
    if (peak.live)
        add_snapshot(&snapshots, &peak);
    return make_file(&snapshots, ret_error);
}

MassifFile *recorded_at(Recording *recording, const char *time, char **ret_error)
{
    Snapshots snapshots = {.recording = recording};
    RecordedMoment moment;

    if (!moment_find(recording, time, &moment, ret_error))
        return NULL;
    add_snapshot(&snapshots, &moment);
    return make_file(&snapshots, ret_error);
}
