// SPDX-License-Identifier: MIT
//
// A recording as massif.out: moments spread over the run, the peak among them, each with its
// tree, written by the code that writes massif.out at the end of a run and read again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/ms_print/moments.h"
#include "inspect/ms_print/ms_print.h"
#include "inspect/ms_print/page.h"
#include "recording/massif_out.h"

enum { SNAPSHOTS = 100 };

// A file that is broken in many places is told of once it is clear that it is.
enum { WARNINGS_SHOWN = 4 };
static u64 warning_count;
static bool is_ours;

static void tell_warning(void *unused, const char *line)
{
    (void)unused;
    if (++warning_count <= WARNINGS_SHOWN)
        fprintf(stderr, "muninn ms_print: %s\n", line);
}

bool recorded_is_damaged(void)
{
    if (warning_count > WARNINGS_SHOWN)
        fprintf(stderr, "muninn ms_print: %llu more places cannot be read\n",
                (unsigned long long)(warning_count - WARNINGS_SHOWN));
    return is_ours && warning_count > 0; // of another program's profile parts may be missing
}

Recording *recorded_open(const char *path, char **ret_error)
{
    Recording *recording = foreign_open(path, tell_warning, NULL, ret_error);

    is_ours = recording && !foreign_is_kind(recording_info(recording)->tool);
    return recording;
}

// ------------------------------------------------------------------ its stacks

// The tree of massif.out tells frames apart by where they lie in memory, but a recording has
// them once for each context: of equal ones, those of one context stand for all.
typedef struct Stacks {
    Recording *recording;
    u32 *same; // by context: the one whose frames stand for its own; 0: not looked for yet
    Map known; // hash of frames to context
} Stacks;

static u64 hash_text(u64 hash, const char *text)
{
    for (const u8 *c = (const u8 *)(text ? text : "?"); *c; c++)
        hash = (hash ^ *c) * 0x100000001b3ull;
    return hash * 0x9e3779b97f4a7c15ull;
}

static u64 hash_frames(const Recording *recording, const RecordedContext *context)
{
    u64 hash = context->pc;

    for (u32 i = 0; i < context->frame_count; i++) {
        const RecordedFrame *frame = recording_frame(recording, context->first_frame + i);
        hash = hash_text(hash_text(hash ^ frame->line, frame->function), frame->file);
    }
    return hash;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool has_same_frames(const Recording *recording, u32 a, u32 b)
{
    const RecordedContext *x = recording_context(recording, a);
    const RecordedContext *y = recording_context(recording, b);
    bool is_same = x->pc == y->pc && x->frame_count == y->frame_count;

    for (u32 i = 0; is_same && i < x->frame_count; i++) {
        const RecordedFrame *f = recording_frame(recording, x->first_frame + i);
        const RecordedFrame *g = recording_frame(recording, y->first_frame + i);
        is_same = f->line == g->line && is_same_text(f->function, g->function) &&
                  is_same_text(f->file, g->file) && is_same_text(f->object, g->object);
    }
    return is_same;
}

static u32 find_same(Stacks *stacks, u32 context)
{
    u64 key = hash_frames(stacks->recording, recording_context(stacks->recording, context)), known;

    for (; map_get(&stacks->known, key, &known); key++) {
        if (has_same_frames(stacks->recording, context, (u32)known))
            return (u32)known;
    }
    map_put(&stacks->known, key, context);
    return context;
}

static u32 stack_context(void *arg, u32 site)
{
    return recording_site(((Stacks *)arg)->recording, site)->context;
}

static u32 stack_parent(void *arg, u32 context)
{
    return recording_context(((Stacks *)arg)->recording, context)->parent;
}

static const RecordedFrame *stack_frames(void *arg, u32 context, u32 *ret_count)
{
    Stacks *stacks = arg;

    if (stacks->same[context] == 0)
        stacks->same[context] = find_same(stacks, context);
    const RecordedContext *info = recording_context(stacks->recording, stacks->same[context]);
    *ret_count = info->frame_count;
    return info->frame_count ? recording_frame(stacks->recording, info->first_frame) : NULL;
}

static u64 stack_pc(void *arg, u32 context)
{
    const RecordedContext *info = recording_context(((Stacks *)arg)->recording, context);

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
    saturate_grow_u64(&snapshot->heap_bytes, live->live_bytes);
    saturate_grow_u64(&snapshot->extra_bytes, extra_bytes);
    if (live->live_bytes == 0)
        return; // nothing but what the allocator adds
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
        if (own == space && live->live_usable + live->live_bytes > 0)
            add_site(&snapshot, i, live, own == SPACE_HEAP ? extra_of(info, live) : 0);
        else if (own == SPACE_STACK && info->has_stacks)
            saturate_grow_u64(&snapshot.stack_bytes, live->live_bytes);
    }
    moment_free(at);
    snapshots->list[snapshots->count++] = snapshot;
}

static void write_massif(const Snapshots *snapshots, FILE *out)
{
    Recording *recording = snapshots->recording;
    const RecordingInfo *info = recording_info(recording);
    Stacks stacks = {recording, calloc(recording_context_count(recording), sizeof(u32)), {0}};
    MassifConfig config = {
        .options = info->options,
        .command = info->command ? info->command : "",
        .time_unit = moment_unit(recording),
        .pages_as_heap = info->pages_as_heap,
        .depth = info->depth ? info->depth : 30,
        .threshold_ppm = info->threshold_ppm,
        .stacks = {&stacks, stack_context, stack_parent, stack_frames, stack_pc},
        .site_count = recording_site_count(recording),
    };

    if (stacks.same)
        massif_out_write(out, &config, snapshots->list, snapshots->count);
    map_free(&stacks.known);
    free(stacks.same);
}

// Writes the snapshots, and frees them. False: no memory, or the file cannot be written.
static bool end_snapshots(Snapshots *snapshots, FILE *out)
{
    bool is_written = !snapshots->failed && out;

    if (is_written)
        write_massif(snapshots, out);
    for (u32 i = 0; i < snapshots->count; i++) {
        free((u32 *)snapshots->list[i].sites);
        free((u64 *)snapshots->list[i].bytes);
    }
    return is_written && fflush(out) == 0;
}

// The snapshots become text, and the text a file as if it had been read. Frees the snapshots.
static MassifFile *make_file(Snapshots *snapshots, char **ret_error)
{
    ForeignText text = {0};
    FILE *out = open_memstream(&text.data, &text.size);
    bool is_written = end_snapshots(snapshots, out);

    if (out && fclose(out) == 0 && is_written)
        return massif_file_parse(&text, ret_error);
    foreign_free(&text);
    *ret_error = strdup("there is not enough memory");
    return NULL;
}

static void add_whole(Snapshots *snapshots)
{
    Recording *recording = snapshots->recording;
    RecordedMoment peak = {.live = NULL}, next;
    u64 last_ns = UINT64_MAX;

    next = (RecordedMoment){
        .live = calloc((size_t)recording_site_count(recording) + 1, sizeof(SiteSums))};
    if (next.live)
        add_snapshot(snapshots, &next); // nothing, at the start
    moment_of_peak(recording, &peak);
    for (size_t i = 0; i < SNAPSHOTS; i++) {
        if (!moment_of_part(recording, i, SNAPSHOTS, &next))
            continue;
        bool is_peak_before = peak.live && peak.moment.ns <= next.moment.ns;
        if (is_peak_before) {
            last_ns = peak.moment.ns;
            add_snapshot(snapshots, &peak);
        }
        if (next.moment.ns == last_ns) {
            moment_free(&next); // nothing has happened since
        } else {
            last_ns = next.moment.ns;
            add_snapshot(snapshots, &next);
        }
    }
    if (peak.live)
        add_snapshot(snapshots, &peak);
}

MassifFile *recorded_whole(Recording *recording, char **ret_error)
{
    Snapshots snapshots = {.recording = recording};

    add_whole(&snapshots);
    return make_file(&snapshots, ret_error);
}

bool ms_print_write_massif(Recording *recording, FILE *out)
{
    Snapshots snapshots = {.recording = recording};

    add_whole(&snapshots);
    return end_snapshots(&snapshots, out);
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
