// SPDX-License-Identifier: MIT
//
// heaptrack's text format, version 3, as heaptrack_print and heaptrack_gui read it. Numbers
// are hexadecimal; a line is
//
//   v VERSION FORMAT    X COMMAND    I PAGE_SIZE PAGES    s LENGTH STRING
//   i PC MODULE [FUNCTION [FILE LINE]]...   an instruction and its frames, innermost first
//   t INSTRUCTION PARENT                    a stack
//   a SIZE STACK                            a kind of allocation
//   + KIND    - KIND    c MILLISECONDS    R RESIDENT_PAGES
//
// where strings, instructions, stacks count from 1 and kinds from 0, in order of their lines.
// Blocks that are older than the events come at the beginning: those that are freed later with
// the size that their free tells, the others of a site with the same size but one.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/export/formats.h"

typedef struct Heaptrack {
    const ExportJob *job;
    Interner *strings;
    u32 *trace_of;   // by context; 0: none yet
    u32 trace_count, instruction_count;
    Map kinds;       // size and trace to kind + 1
    Interner *big_kinds; // sizes that do not fit the map's key
    u32 kind_count;
    const bool *is_selected; // by site
    SiteSums *early; // by site: what was live when the events begin, and is not yet written
    u64 from_ns;
    u64 ms;          // of the last c line
    size_t sample;   // the next
    u64 end_ns;
} Heaptrack;

static u32 string_id(Heaptrack *track, const char *text)
{
    u32 before = interned_count(track->strings);
    u32 id = intern(track->strings, text);

    if (interned_count(track->strings) > before)
        fprintf(track->job->out, "s %zx %s\n", strlen(text), text);
    return id + 1;
}

// A line end would break the line format.
static u32 name_id(Heaptrack *track, const char *text)
{
    char *clean = strdup(text);

    if (!clean)
        abort();
    for (char *c = clean; *c; c++)
        *c = *c == '\n' || *c == '\r' ? '?' : *c;
    u32 id = string_id(track, clean);
    free(clean);
    return id;
}

static u32 file_id(Heaptrack *track, const RecordedFrame *frame)
{
    char *path = NULL;

    if (!frame->file)
        return 0;
    if (asprintf(&path, "%s%s%s", frame->directory ? frame->directory : "",
                 frame->directory ? "/" : "", frame->file) < 0)
        abort();
    u32 id = name_id(track, path);
    free(path);
    return id;
}

static void put_instruction(Heaptrack *track, u32 context)
{
    Recording *recording = track->job->recording;
    const RecordedContext *row = recording_context(recording, context);
    const RecordedFrame *first = row->frame_count ? recording_frame(recording, row->first_frame)
                                                  : NULL;
    const char *object = first ? first->object : NULL;
    u32 module = object ? name_id(track, object) : 0;
    char *line = NULL;
    size_t size;

    if (!module && row->module && row->module < recording_module_count(recording)) {
        const char *path = recording_module(recording, row->module)->path;
        module = path ? name_id(track, path) : 0;
    }
    FILE *out = open_memstream(&line, &size);
    if (!out)
        abort();
    for (u32 i = 0; i < row->frame_count; i++) {
        const RecordedFrame *frame = recording_frame(recording, row->first_frame + i);
        if (!frame->function)
            break;
        u32 file = file_id(track, frame);
        fprintf(out, " %x", name_id(track, frame->function));
        if (file || row->frame_count > 1)
            fprintf(out, " %x %x", file, frame->line);
    }
    fclose(out);
    fprintf(track->job->out, "i %llx %x%s\n", (unsigned long long)row->pc, module, line);
    track->instruction_count++;
    free(line);
}

// Parents have smaller ids and come first; a stack may be deep, so it is not a recursion.
static u32 trace_of(Heaptrack *track, u32 context)
{
    Recording *recording = track->job->recording;

    while (context && !track->trace_of[context]) {
        u32 at = context;
        for (;;) {
            u32 parent = recording_context(recording, at)->parent;
            if (parent == 0 || parent >= at || track->trace_of[parent])
                break;
            at = parent;
        }
        put_instruction(track, at);
        u32 parent = recording_context(recording, at)->parent;
        fprintf(track->job->out, "t %x %x\n", track->instruction_count,
                parent < at ? track->trace_of[parent] : 0);
        track->trace_of[at] = ++track->trace_count;
    }
    return track->trace_of[context];
}

static u32 kind_of(Heaptrack *track, u64 size, u32 context)
{
    u32 trace = trace_of(track, context);
    bool is_big = size >> 36 || trace >> 28;
    char text[64];
    u64 kind;

    // What does not fit one key is rare, and found by its text.
    snprintf(text, sizeof(text), "%llx %x", (unsigned long long)size, trace);
    u64 key = is_big ? UINT64_MAX - intern(track->big_kinds, text) : size << 28 | trace;
    if (map_get(&track->kinds, key, &kind))
        return (u32)kind;
    if (!map_put(&track->kinds, key, track->kind_count))
        abort();
    fprintf(track->job->out, "a %s\n", text);
    return track->kind_count++;
}

// ---------------------------------------------------------------------------- events

static void pass_time(Heaptrack *track, u64 ns)
{
    Recording *recording = track->job->recording;
    u64 ms = (ns > track->from_ns ? ns - track->from_ns : 0) / 1000000;

    while (track->sample < recording_sample_count(recording)) {
        const Sample *sample = recording_sample(recording, track->sample);
        if (sample->ns > ns)
            break;
        track->sample++;
        fprintf(track->job->out, "R %llx\n", (unsigned long long)(sample->rss_bytes / PAGE_SIZE));
    }
    if (ms > track->ms) {
        fprintf(track->job->out, "c %llx\n", (unsigned long long)ms);
        track->ms = ms;
        if (track->job->progress)
            track->job->progress(ns, track->end_ns);
    }
}

static bool take_event(void *arg, const HeapEvent *event)
{
    Heaptrack *track = arg;
    const RecordedSite *site = recording_site(track->job->recording, event->site);

    if (!track->is_selected[event->site] || !size_is_wanted(track->job, event->size))
        return true;
    pass_time(track, event->time.ns);
    fprintf(track->job->out, "%c %x\n", event->kind == EVENT_ALLOC ? '+' : '-',
            kind_of(track, event->size, site->context));
    return true;
}

// The birth of a block that is older than the events, by its death.
static bool take_early(void *arg, const HeapEvent *event)
{
    Heaptrack *track = arg;
    SiteSums *early = &track->early[event->site];
    u32 context = recording_site(track->job->recording, event->site)->context;

    if (event->kind != EVENT_FREE || event->born_ns >= track->from_ns ||
        !track->is_selected[event->site] || !size_is_wanted(track->job, event->size))
        return true;
    fprintf(track->job->out, "+ %x\n", kind_of(track, event->size, context));
    early->live_blocks -= early->live_blocks != 0;
    early->live_bytes -= min_u64(early->live_bytes, event->size);
    return true;
}

static void put_rest(Heaptrack *track, u32 site)
{
    const SiteSums *early = &track->early[site];
    u32 context = recording_site(track->job->recording, site)->context;
    u64 blocks = track->is_selected[site] ? early->live_blocks : 0;

    if (blocks == 0)
        return;
    u64 size = early->live_bytes / blocks;
    u32 kind = kind_of(track, size, context);
    u32 last = kind_of(track, size + early->live_bytes % blocks, context);
    for (u64 i = 1; i < blocks; i++)
        fprintf(track->job->out, "+ %x\n", kind);
    fprintf(track->job->out, "+ %x\n", last);
}

static bool put_early(Heaptrack *track, char **ret_error)
{
    Recording *recording = track->job->recording;
    u32 site_count = recording_site_count(recording);

    if (track->from_ns == 0)
        return true;
    track->early = calloc((size_t)site_count + 1, sizeof(*track->early));
    if (!track->early)
        abort();
    if (!sums_until(track->job, track->from_ns, track->early, ret_error))
        return false;
    recording_each_event(recording, track->from_ns, track->end_ns, take_early, track);
    for (u32 i = 0; i < site_count; i++)
        put_rest(track, i);
    return true;
}

static void put_header(Heaptrack *track)
{
    enum { HEAPTRACK_VERSION = 0x10400, FORMAT = 3 };
    const RecordingInfo *info = recording_info(track->job->recording);
    FILE *out = track->job->out;

    fprintf(out, "v %x %x\nX ", HEAPTRACK_VERSION, FORMAT);
    for (const char *c = info->command ? info->command : "?"; *c; c++)
        fputc(*c == '\n' || *c == '\r' ? ' ' : *c, out);
    // The machine's memory is not recorded; it only scales a line of the summary.
    fprintf(out, "\nI %llx %x\n", PAGE_SIZE, 0x100000);
}

bool heaptrack_write(const ExportJob *job, char **ret_error)
{
    Heaptrack track = {.job = job, .end_ns = selection_end_ns(job)};
    bool *is_selected = selected_sites(job, ret_error);

    if (!is_selected)
        return false;
    track.is_selected = is_selected;
    track.strings = interner_new();
    track.big_kinds = interner_new();
    track.trace_of = calloc((size_t)recording_context_count(job->recording) + 1, sizeof(u32));
    if (!track.trace_of)
        abort();
    track.from_ns = max_u64(job->selection.from_ns,
                            recording_events_kept_since_ns(job->recording));
    put_header(&track);
    bool ok = put_early(&track, ret_error);
    if (ok)
        recording_each_event(job->recording, track.from_ns, track.end_ns, take_event, &track);
    pass_time(&track, track.end_ns);
    interner_free(track.strings);
    interner_free(track.big_kinds);
    map_free(&track.kinds);
    free(track.trace_of);
    free(track.early);
    free(is_selected);
    return ok;
}
