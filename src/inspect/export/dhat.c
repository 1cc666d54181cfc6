// SPDX-License-Identifier: MIT
//
// DHAT's JSON, file version 2, for dh_view: for every stack the bytes and blocks in total
// (t), at its own highest point (m), at the peak of all (g), at the end (e), and the sum of
// the lifetimes. Accesses are not recorded, and it says so (bkacc).
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/export/formats.h"

typedef struct Point {
    u64 bytes, blocks;         // total
    u64 live, live_blocks;     // now
    u64 most, most_blocks;
    u64 peak, peak_blocks;     // at the peak of all
    u64 lifetimes_us;
} Point;

typedef struct Dhat {
    const ExportJob *job;
    const bool *is_selected; // by site
    Point *points;           // by context
    u64 end_ns;
    Interner *frames;
} Dhat;

static void note_most(Point *point)
{
    if (point->live > point->most) {
        point->most = point->live;
        point->most_blocks = point->live_blocks;
    }
}

static bool take_event(void *arg, const HeapEvent *event)
{
    Dhat *dhat = arg;
    u32 context = recording_site(dhat->job->recording, event->site)->context;
    Point *point = &dhat->points[context];

    if (!dhat->is_selected[event->site] || !size_is_wanted(dhat->job, event->size))
        return true;
    if (event->kind == EVENT_ALLOC) {
        saturate_grow_u64(&point->bytes, event->size);
        point->blocks++;
        saturate_grow_u64(&point->live, event->size);
        point->live_blocks++;
        note_most(point);
    } else {
        point->live -= min_u64(point->live, event->size);
        point->live_blocks -= point->live_blocks != 0;
        saturate_grow_u64(&point->lifetimes_us, (event->time.ns - event->born_ns) / 1000);
    }
    if (dhat->job->progress)
        dhat->job->progress(event->time.ns, dhat->end_ns);
    return true;
}

static bool take_living(void *arg, const RecordedBlock *block)
{
    Dhat *dhat = arg;
    u32 context = recording_site(dhat->job->recording, block->site)->context;

    if (dhat->is_selected[block->site] && size_is_wanted(dhat->job, block->size) &&
        block->died_ns == 0 && block->born_ns < dhat->end_ns)
        saturate_grow_u64(&dhat->points[context].lifetimes_us,
                          (dhat->end_ns - block->born_ns) / 1000);
    return true;
}

// What came before the events is known as sums. Of what came before the range, only what is
// live counts.
static void add_early(Dhat *dhat, const SiteSums *sums)
{
    bool is_range = dhat->job->selection.from_ns != 0;
    Recording *recording = dhat->job->recording;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        Point *point = &dhat->points[recording_site(recording, i)->context];
        if (!dhat->is_selected[i])
            continue;
        saturate_grow_u64(&point->bytes, is_range ? 0 : sums[i].allocated_bytes);
        saturate_grow_u64(&point->blocks, is_range ? 0 : sums[i].allocations);
        saturate_grow_u64(&point->live, sums[i].live_bytes);
        saturate_grow_u64(&point->live_blocks, sums[i].live_blocks);
        saturate_grow_u64(&point->most, is_range ? sums[i].live_bytes : sums[i].peak_bytes);
        saturate_grow_u64(&point->most_blocks, sums[i].live_blocks);
    }
}

static void add_peak(Dhat *dhat, const SiteSums *sums)
{
    Recording *recording = dhat->job->recording;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        Point *point = &dhat->points[recording_site(recording, i)->context];
        saturate_grow_u64(&point->peak, dhat->is_selected[i] ? sums[i].live_bytes : 0);
        saturate_grow_u64(&point->peak_blocks, dhat->is_selected[i] ? sums[i].live_blocks : 0);
    }
}

static bool fill_points(Dhat *dhat, char **ret_error)
{
    Recording *recording = dhat->job->recording;
    u64 since = max_u64(recording_events_kept_since_ns(recording), dhat->job->selection.from_ns);
    SiteSums *sums = calloc((size_t)recording_site_count(recording) + 1, sizeof(*sums));
    Selection peak = dhat->job->selection;

    if (!sums)
        return export_fail(ret_error, "no memory");
    bool ok = since == 0 || sums_until(dhat->job, since, sums, ret_error);
    if (ok && since)
        add_early(dhat, sums);
    if (ok)
        recording_each_event(recording, since, dhat->end_ns, take_event, dhat);
    if (ok)
        recording_each_block(recording, dhat->end_ns, dhat->end_ns + 1, take_living, dhat);
    peak.at_peak = true;
    if (ok)
        ok = selection_sums(recording, &peak, sums, ret_error);
    if (ok)
        add_peak(dhat, sums);
    free(sums);
    return ok;
}

// -------------------------------------------------------------------------- writing

static void put_point(Dhat *dhat, u32 context, Stack *stack, const char *between)
{
    const Point *point = &dhat->points[context];
    FILE *out = dhat->job->out;
    typedef unsigned long long Number;

    fprintf(out, "%s\n {\"tb\":%llu,\"tbk\":%llu,\"tl\":%llu,\"mb\":%llu,\"mbk\":%llu,"
            "\"gb\":%llu,\"gbk\":%llu,\"eb\":%llu,\"ebk\":%llu,\"fs\":[",
            between, (Number)point->bytes, (Number)point->blocks, (Number)point->lifetimes_us,
            (Number)point->most, (Number)point->most_blocks, (Number)point->peak,
            (Number)point->peak_blocks, (Number)point->live, (Number)point->live_blocks);
    stack_read(stack, dhat->job->recording, context);
    for (u32 i = 0; i < stack->count; i++) {
        char label[STACK_LABEL_MAX], text[STACK_LABEL_MAX + 32];
        u64 pc = recording_context(dhat->job->recording, stack->frames[i].context)->pc;
        stack_label(&stack->frames[i], dhat->job->recording, label);
        if (strncmp(label, "0x", 2) == 0)
            snprintf(text, sizeof(text), "%s", label);
        else
            snprintf(text, sizeof(text), "0x%llX: %s", (Number)pc, label);
        fprintf(out, "%s%u", i ? "," : "", intern(dhat->frames, text) + 1);
    }
    fputs("]}", out);
}

static void put_dhat(Dhat *dhat)
{
    const RecordingInfo *info = recording_info(dhat->job->recording);
    size_t peak = recording_find_state(dhat->job->recording, STATE_PEAK);
    u64 peak_ns = peak == SIZE_MAX
                      ? 0
                      : recording_state_info(dhat->job->recording, peak)->moment.ns;
    FILE *out = dhat->job->out;
    const char *between = "";
    Stack stack = {0};

    fputs("{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\"\n"
          ",\"bklt\":true,\"bkacc\":false\n,\"tu\":\"µs\",\"Mtu\":\"s\",\"tuth\":10\n,\"cmd\":",
          out);
    json_string(out, info->command ? info->command : "?");
    fprintf(out, ",\"pid\":%d,\"te\":%llu,\"tg\":%llu\n,\"pps\":[", info->pid,
            (unsigned long long)(dhat->end_ns / 1000), (unsigned long long)(peak_ns / 1000));
    for (u32 i = 0; i < recording_context_count(dhat->job->recording); i++) {
        if (dhat->points[i].blocks == 0 && dhat->points[i].most_blocks == 0)
            continue;
        put_point(dhat, i, &stack, between);
        between = ",";
    }
    fputs("]\n,\"ftbl\":[\"[root]\"", out);
    for (u32 i = 0; i < interned_count(dhat->frames); i++) {
        fputs("\n,", out);
        json_string(out, interned(dhat->frames, i));
    }
    fputs("]}\n", out);
    stack_free(&stack);
}

bool dhat_write(const ExportJob *job, char **ret_error)
{
    Dhat dhat = {.job = job, .end_ns = selection_end_ns(job)};
    bool *is_selected = selected_sites(job, ret_error);

    if (!is_selected)
        return false;
    dhat.is_selected = is_selected;
    dhat.frames = interner_new();
    dhat.points = calloc((size_t)recording_context_count(job->recording) + 1, sizeof(Point));
    bool ok = dhat.points ? fill_points(&dhat, ret_error) : export_fail(ret_error, "no memory");
    if (ok)
        put_dhat(&dhat);
    interner_free(dhat.frames);
    free(dhat.points);
    free(is_selected);
    return ok;
}
