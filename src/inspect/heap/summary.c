// SPDX-License-Identifier: MIT
//
// `muninn heap summary`: the run on one page.
#include <stdlib.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

static void print_run(Question *question)
{
    Recording *recording = question->recording;
    const RecordingInfo *info = recording_info(recording);
    const RecordingEnd *end = recording_end(recording);
    char how[64] = "goes on, or was cut off";
    u64 kept_since = recording_events_kept_since_ns(recording);
    u64 last = recording_last(recording).ns;

    if (end->known && end->kind == END_UNTOLD)
        snprintf(how, sizeof(how), "without notice, as by SIGKILL");
    else if (end->known && end->kind == END_EXECUTED)
        snprintf(how, sizeof(how), "another program went on (execve)");
    else if (end->known && end->signal)
        snprintf(how, sizeof(how), "killed by signal %d", end->signal);
    else if (end->known)
        snprintf(how, sizeof(how), "exit status %d", end->status);
    printer_fact(question->out, "run_command", "command", cell_text(info->command));
    printer_fact(question->out, "tool", NULL, cell_text(info->tool));
    printer_fact(question->out, "executable", NULL, cell_text(info->executable));
    printer_fact(question->out, "pid", "pid", cell_i64(CELL_NUMBER, info->pid));
    printer_fact(question->out, "end", "ended", cell_text(how));
    printer_fact(question->out, "duration_ns", "duration", cell_u64(CELL_NS, last));
    printer_fact(question->out, "events", "events",
                 cell_u64(CELL_COUNT, recording_event_count(recording)));
    printer_fact(question->out, "events_kept_since_ns", kept_since ? "details since" : NULL,
                 cell_u64(CELL_NS, kept_since));
    printer_fact(question->out, "threads", "threads",
                 cell_u64(CELL_COUNT, recording_thread_count(recording)));
    printer_fact(question->out, "contexts", "stacks",
                 cell_u64(CELL_COUNT, recording_context_count(recording) - 1));
}

// As long as the run goes on, or if it was cut off, there is no state of the peak.
static void print_high(Question *question, Space space, const char *key)
{
    u64 high = 0;

    for (size_t i = 0; i < recording_slice_count(question->recording) && space < SPACE_COUNT; i++)
        high = max_u64(high, recording_slice(question->recording, i)->high[space]);
    const Cell cells[] = {cell_text(key), cell_u64(CELL_BYTES, high), cell_none(), cell_none(),
                          cell_none()};
    if (high)
        printer_row(question->out, cells);
}

static void print_peaks(Question *question)
{
    static const struct {
        StateReason reason;
        Space space;
        const char *key, *label;
    } peaks[] = {
        {STATE_PEAK, SPACE_HEAP, "heap", "heap peak"},
        {STATE_PEAK_MAPPED, SPACE_MAPPED, "mapped", "mapped peak"},
        {STATE_PEAK_STACK, SPACE_STACK, "stack", "thread stacks peak"},
        {STATE_PEAK_ALL, SPACE_COUNT, "all", "sum of all, peak"},
    };
    static const Column columns[] = {
        {"space", "memory", 0},
        {"bytes", "most", COLUMN_RIGHT | COLUMN_STRONG},
        {"blocks", "blocks", COLUMN_RIGHT},
        {"usable_bytes", "with overhead", COLUMN_RIGHT},
        {"time_ns", "at", COLUMN_RIGHT},
    };
    u64 rss = 0, rss_ns = 0;

    printer_table(question->out, "peaks", NULL, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(peaks); i++) {
        size_t index = recording_find_state(question->recording, peaks[i].reason);
        if (index == SIZE_MAX) {
            print_high(question, peaks[i].space, peaks[i].key);
            continue;
        }
        const RecordedState *state = recording_state_info(question->recording, index);
        u64 bytes = 0, blocks = 0, usable = 0;
        for (u32 space = 0; space < SPACE_COUNT; space++) {
            bool counts = peaks[i].space == SPACE_COUNT || peaks[i].space == space;
            saturate_grow_u64(&bytes, counts ? state->totals.bytes[space] : 0);
            saturate_grow_u64(&blocks, counts ? state->totals.blocks[space] : 0);
            saturate_grow_u64(&usable, counts ? state->totals.usable[space] : 0);
        }
        const Cell cells[] = {cell_text(peaks[i].key), cell_u64(CELL_BYTES, bytes),
                              cell_u64(CELL_COUNT, blocks), cell_u64(CELL_BYTES, usable),
                              cell_u64(CELL_NS, state->moment.ns)};
        printer_row(question->out, cells);
    }
    for (size_t i = 0; i < recording_sample_count(question->recording); i++) {
        const Sample *sample = recording_sample(question->recording, i);
        rss_ns = sample->rss_bytes > rss ? sample->ns : rss_ns;
        rss = max_u64(rss, sample->rss_bytes);
    }
    const Cell cells[] = {cell_text("resident"), cell_u64(CELL_BYTES, rss), cell_none(),
                          cell_none(), cell_u64(CELL_NS, rss_ns)};
    if (rss)
        printer_row(question->out, cells);
}

static void print_sums(Question *question, const SiteSums *sums)
{
    SiteSums all = {0};
    char moment[128], title[256];

    for (u32 i = 0; i < recording_site_count(question->recording); i++)
        site_sums_add(&all, &sums[i]);
    snprintf(title, sizeof(title), "Allocations %s%s",
             question->selection.at_peak ? "of the whole run; what is live, " : "",
             moment_text(question, moment));
    printer_line(question->out, "%s", title);
    printer_fact(question->out, "allocations", "allocations",
                 cell_u64(CELL_COUNT, all.allocations));
    printer_fact(question->out, "allocated_bytes", "allocated",
                 cell_u64(CELL_BYTES, all.allocated_bytes));
    printer_fact(question->out, "frees", "frees", cell_u64(CELL_COUNT, all.frees));
    printer_fact(question->out, "freed_bytes", "freed", cell_u64(CELL_BYTES, all.freed_bytes));
    printer_fact(question->out, "reallocations", "reallocations",
                 cell_u64(CELL_COUNT, all.reallocations));
    printer_fact(question->out, "temporary", "temporary", cell_u64(CELL_COUNT, all.temporary));
    printer_fact(question->out, "temporary_percent", "temporary, share",
                 cell_share((double)all.temporary, (double)all.allocations));
    printer_fact(question->out, "live_bytes", "live",
                 cell_u64(CELL_BYTES, all.live_bytes));
    printer_fact(question->out, "live_blocks", "live blocks",
                 cell_u64(CELL_COUNT, all.live_blocks));
}

// The largest at the moment that the question is about: the peak, unless a time was given.
static int print_largest(Question *question)
{
    enum { LARGEST = 5 };
    Question largest = *question;
    Arguments arguments = *question->arguments;
    Metric metric = question_metric(&largest);
    SiteSums *sums = question_sums(&largest);
    i64 *values = sums ? question_values(&largest, metric) : NULL;
    char moment[128], title[256];

    if (!values) {
        free(sums);
        return 1;
    }
    arguments.limit = LARGEST;
    arguments.depth = 0;
    largest.arguments = &arguments;
    Groups *groups = groups_build(question->recording, sums, values, BY_STACK);
    snprintf(title, sizeof(title), "Largest %s", moment_text(&largest, moment));
    groups_print(&largest, groups, metric, "largest", title);
    groups_free(groups);
    free(sums);
    free(values);
    return 0;
}

int heap_summary(Question *question)
{
    SiteSums *sums = question_sums(question);

    if (!sums)
        return 1;
    answer_begin(question);
    print_run(question);
    printer_line(question->out, "%s", "");
    print_sums(question, sums);
    printer_line(question->out, "%s", "");
    if (printer_form(question->out) != PRINT_CSV)
        print_peaks(question);
    int status = printer_form(question->out) == PRINT_CSV ? 0 : print_largest(question);
    free(sums);
    return answer_end(question) | status;
}
