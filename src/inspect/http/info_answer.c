// SPDX-License-Identifier: MIT
//
// /api/files, /api/info, /api/stack, /api/threads: what is there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/foreign/foreign.h"
#include "inspect/http/findings.h"
#include "inspect/http/series.h"
#include "inspect/http/viewer.h"
#include "inspect/stack/stack.h"

// ------------------------------------------------------------------------- files

static const char *file_command(const OpenFile *file)
{
    if (file->kind == FILE_HEAP)
        return recording_info(file->views[LANE_QUICK].recording)->command;
    return file->kind == FILE_FINDINGS ? file->findings->command : NULL;
}

static void put_file(Json *out, OpenFile *file)
{
    static const char *const kinds[] = {"unreadable", "heap", "findings"};
    View *view = &file->views[LANE_QUICK];

    pthread_mutex_lock(&view->lock);
    json_open(out, '{');
    json_key_u64(out, "id", file->id);
    json_key_text(out, "name", file->name);
    json_key_text(out, "path", file->path);
    json_key_text(out, "kind", kinds[file->kind]);
    json_key_text(out, "format", file->format);
    json_key_bool(out, "live", file->live);
    json_key_i64(out, "pid", file->pid);
    json_key_text(out, "command", file_command(file));
    json_key_u64(out, "bytes", file->bytes);
    json_key_open(out, "warnings", '[');
    for (u32 i = 0; i < file->warning_count; i++)
        json_text(out, file->warnings[i]);
    json_close(out, ']');
    json_key_text(out, "error", file->kind == FILE_UNREADABLE ? file->error : NULL);
    json_close(out, '}');
    pthread_mutex_unlock(&view->lock);
}

void answer_files(Call *call)
{
    Json *out = &call->out;

    json_open(out, '{');
    json_key_u64(out, "version", 1);
    json_key_text(out, "muninn", MUNINN_VERSION);
    json_key_bool(out, "export", call->viewer->is_export);
    json_key_open(out, "files", '[');
    for (u32 i = 0; i < call->viewer->file_count; i++)
        put_file(out, call->viewer->files[i]);
    json_close(out, ']');
    json_close(out, '}');
}

// -------------------------------------------------------------------------- info

static const char *const reason_names[] = {
    [STATE_KEY_FRAME] = NULL,
    [STATE_PEAK] = "peak",
    [STATE_PEAK_MAPPED] = "peak-mapped",
    [STATE_PEAK_STACK] = "peak-stack",
    [STATE_PEAK_ALL] = "peak-all",
    [STATE_ASKED] = "asked",
    [STATE_THRESHOLD] = "threshold",
    [STATE_PERIODIC] = "periodic",
    [STATE_END] = "end",
    [STATE_PEAK_COUNTED] = "peak-counted",
};

static void put_bytes(Json *out, const u64 bytes[SPACE_COUNT])
{
    json_key_u64(out, "heap", bytes[SPACE_HEAP]);
    json_key_u64(out, "mapped", bytes[SPACE_MAPPED]);
    json_key_u64(out, "stack", bytes[SPACE_STACK]);
}

static void put_states(Json *out, const Recording *recording)
{
    enum { STATES_SHOWN = 500 };
    size_t count = recording_state_count(recording), shown = 0;

    json_key_open(out, "states", '[');
    for (size_t i = 0; i < count && shown < STATES_SHOWN; i++) {
        const RecordedState *state = recording_state_info(recording, i);
        const char *reason =
            (size_t)state->reason < ARRAY_LEN(reason_names) ? reason_names[state->reason] : NULL;
        if (!reason)
            continue;
        shown++;
        json_open(out, '{');
        json_key_u64(out, "index", i);
        json_key_text(out, "reason", reason);
        json_key_text(out, "label", state->label);
        json_key_u64(out, "ns", state->moment.ns);
        put_bytes(out, state->totals.bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
}

// Of a recording that goes on, or was cut off: the slice that went highest, and what was there at
// its end.
static void put_highest(Json *out, const Recording *recording)
{
    const SliceInfo *highest = NULL;

    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        if (!highest || slice->high[SPACE_HEAP] > highest->high[SPACE_HEAP])
            highest = slice;
    }
    if (!highest || !highest->high[SPACE_HEAP]) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_key_u64(out, "ns", highest->end.ns);
    put_bytes(out, (u64[SPACE_COUNT]){highest->high[SPACE_HEAP],
                                      highest->totals.bytes[SPACE_MAPPED],
                                      highest->totals.bytes[SPACE_STACK]});
    json_key_u64(out, "blocks", highest->totals.blocks[SPACE_HEAP]);
    json_close(out, '}');
}

static void put_peak(Json *out, const Recording *recording)
{
    size_t index = recording_find_state(recording, STATE_PEAK);
    u64 rss = 0;

    json_key(out, "peak");
    if (index == SIZE_MAX) {
        put_highest(out, recording);
    } else {
        const RecordedState *state = recording_state_info(recording, index);
        json_open(out, '{');
        json_key_u64(out, "ns", state->moment.ns);
        put_bytes(out, state->totals.bytes);
        json_key_u64(out, "blocks", state->totals.blocks[SPACE_HEAP]);
        json_close(out, '}');
    }
    for (size_t i = 0; i < recording_sample_count(recording); i++)
        rss = max_u64(rss, recording_sample(recording, i)->rss_bytes);
    json_key_u64(out, "rss_peak", rss);
}

static bool put_totals(Call *call)
{
    Json *out = &call->out;
    Chosen all = {.view = call->view, .file = call->file, .key = "all",
                  .selection = {.spaces = 1u << SPACE_HEAP}};
    const SiteSums *sums = chosen_sums(call, &all);
    SiteSums total = {0};

    for (u32 i = 0; sums && i < recording_site_count(call->view->recording); i++) {
        saturate_grow_u64(&total.allocated_bytes, sums[i].allocated_bytes);
        saturate_grow_u64(&total.allocations, sums[i].allocations);
        saturate_grow_u64(&total.frees, sums[i].frees);
        saturate_grow_u64(&total.temporary, sums[i].temporary);
        saturate_grow_u64(&total.reallocations, sums[i].reallocations);
        saturate_grow_u64(&total.live_bytes, sums[i].live_bytes);
        saturate_grow_u64(&total.live_blocks, sums[i].live_blocks);
    }
    json_key_open(out, "totals", '{');
    json_key_u64(out, "allocated", total.allocated_bytes);
    json_key_u64(out, "allocations", total.allocations);
    json_key_u64(out, "frees", total.frees);
    json_key_u64(out, "temporary", total.temporary);
    json_key_u64(out, "reallocations", total.reallocations);
    json_key_u64(out, "leaked", total.live_bytes);
    json_key_u64(out, "leaked_blocks", total.live_blocks);
    json_close(out, '}');
    return sums != NULL;
}

static void put_spaces(Json *out, const Recording *recording)
{
    static const char *const names[] = {"heap", "mapped", "stack"};
    bool there[SPACE_COUNT] = {true};

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        Space space = recording_site(recording, i)->space;
        if (space < SPACE_COUNT)
            there[space] = true;
    }
    json_key_open(out, "spaces", '[');
    for (int i = 0; i < SPACE_COUNT; i++) {
        if (there[i])
            json_text(out, names[i]);
    }
    json_close(out, ']');
}

static bool is_systems(const char *object)
{
    static const char *const folders[] = {"/usr/", "/lib/", "/lib64/", "/nix/store/", "["};

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        if (strncmp(object, folders[i], strlen(folders[i])) == 0)
            return true;
    }
    return object[0] != '/';
}

static void put_only_code(Call *call)
{
    enum { OBJECTS_SHOWN = 50 };
    const Names *names = view_names(call, call->view);
    Json *out = &call->out;
    u32 shown = 0;

    json_key_open(out, "only_code", '[');
    for (u32 i = 0; names && i < names->object_count && shown < OBJECTS_SHOWN; i++) {
        const char *object = names->objects[i].object;
        if (object && !is_systems(object)) {
            json_text(out, object);
            shown++;
        }
    }
    json_close(out, ']');
}

static const char *end_kind(const RecordingEnd *end)
{
    if (!end->known)
        return "unknown";
    if (end->kind == END_UNTOLD)
        return "killed";
    if (end->kind == END_EXECUTED)
        return "executed";
    return end->signal ? "signal" : "exit";
}

// A massif.out may count bytes or instructions: its importer makes times of them.
static const char *clock_of(const RecordingInfo *info)
{
    bool is_massif_out = info->tool && strcmp(info->tool, "massif.out") == 0;

    if (is_massif_out && info->time_unit == UNIT_BYTES)
        return "bytes";
    return is_massif_out && info->time_unit == UNIT_INSTRUCTIONS ? "instructions" : "ns";
}

static void put_run(Json *out, const Recording *recording)
{
    const RecordingInfo *info = recording_info(recording);
    const RecordingEnd *end = recording_end(recording);

    json_key_text(out, "tool", info->tool);
    json_key_text(out, "command", info->command);
    json_key_text(out, "options", info->options);
    json_key_text(out, "executable", info->executable);
    json_key_i64(out, "pid", info->pid);
    json_key_u64(out, "start_unix_ns", info->start_unix_ns);
    json_key_u64(out, "duration_ns", recording_last(recording).ns);
    json_key_text(out, "clock", clock_of(info));
    json_key_open(out, "end", '{');
    json_key_bool(out, "known", end->known && end->kind == END_TOLD);
    json_key_text(out, "kind", end_kind(end));
    json_key_i64(out, "status", end->status);
    json_key_i64(out, "signal", end->signal);
    json_close(out, '}');
    json_key_bool(out, "counts_instructions", info->counts_instructions);
    json_key_bool(out, "pages_as_heap", info->pages_as_heap);
    json_key_bool(out, "has_stacks", info->has_stacks);
}

static void put_counts(Json *out, const Recording *recording)
{
    u64 since = recording_events_kept_since_ns(recording);
    u64 events = recording_event_count(recording);
    size_t slices = recording_slice_count(recording), kept = 0;

    for (size_t i = 0; i < slices; i++)
        kept += recording_slice(recording, i)->has_events;
    json_key_u64(out, "events", events);
    json_key_u64(out, "events_kept_since_ns", since);
    json_key_text(out, "events_kept",
                    events && !kept ? "none" : since ? "some" : "all");
    json_key_u64(out, "contexts", recording_context_count(recording));
    json_key_u64(out, "sites", recording_site_count(recording));
    json_key_u64(out, "frames", recording_frame_count(recording));
    json_key_u64(out, "threads", recording_thread_count(recording));
    json_key_u64(out, "modules", recording_module_count(recording));
}

static void put_findings_info(Json *out, const OpenFile *file)
{
    const Findings *findings = file->findings;
    u64 errors = 0, leaked = 0, blocks = 0;

    for (u32 i = 0; i < findings->count; i++) {
        saturate_grow_u64(&errors, findings->found[i].count);
        saturate_grow_u64(&leaked, findings->found[i].own_bytes);
        saturate_grow_u64(&blocks, findings->found[i].leaked_blocks);
    }
    json_key_text(out, "tool", findings->tool);
    json_key_text(out, "command", findings->command);
    json_key_i64(out, "pid", findings->pid);
    json_key_text(out, "status", findings->status);
    json_key_u64(out, "errors", errors);
    json_key_u64(out, "contexts", findings->count);
    json_key_u64(out, "findings", findings->count);
    json_key_u64(out, "leaked", leaked);
    json_key_u64(out, "leaked_blocks", blocks);
}

void answer_info(Call *call)
{
    Json *out = &call->out;

    json_open(out, '{');
    json_key_u64(out, "id", call->file->id);
    json_key_u64(out, "version", call->view->version);
    json_key_bool(out, "live", call->file->live);
    if (call->file->kind == FILE_FINDINGS) {
        put_findings_info(out, call->file);
    } else {
        put_run(out, call->view->recording);
        put_counts(out, call->view->recording);
        put_totals(call);
        put_peak(out, call->view->recording);
        put_spaces(out, call->view->recording);
        put_states(out, call->view->recording);
        put_only_code(call);
    }
    json_close(out, '}');
}

// ------------------------------------------------------------------------- stack

void answer_stack(Call *call)
{
    const Recording *recording = call->view->recording;
    u64 context = request_u64(call->request, "context", 0, UINT32_MAX);
    Json *out = &call->out;
    u32 place;

    if (context >= recording_context_count(recording)) {
        call_fail(call, 404, "not-found", "context: there is no such stack");
        return;
    }
    json_open(out, '{');
    json_key_u64(out, "context", context);
    json_key_open(out, "frames", '[');
    StackWalk walk = stack_walk(recording, (u32)context);
    while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        RecordedFrame room;
        const RecordedFrame *frame = place_frame(recording, place, &room);
        json_open(out, '{');
        json_key_address(out, "pc", frame->pc);
        json_place(out, recording, place);
        json_key_text(out, "directory", frame->directory);
        json_key_address(out, "object_offset", frame->object_offset);
        json_key_bool(out, "inlined", frame->inlined);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}
