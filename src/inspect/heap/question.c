// SPDX-License-Identifier: MIT
//
// From words to a selection: the recording is opened, times become nanoseconds, sums are
// asked for. `--at T` includes what happened at T itself; a range ends before its end.
#include <stdlib.h>
#include <string.h>

#include "inspect/heap/command.h"

// A file that is broken in many places is told of once it is clear that it is.
enum { WARNINGS_SHOWN = 4 };
static u64 warning_count;

static void warn(void *arg, const char *line)
{
    (void)arg;
    if (++warning_count <= WARNINGS_SHOWN)
        heap_error("%s", line);
}

static const struct {
    const char *name, *title;
    bool is_bytes;
} metrics[METRIC_COUNT] = {
    [METRIC_LIVE] = {"live", "live", true},
    [METRIC_PEAK] = {"peak", "at peak", true},
    [METRIC_ALLOCATED] = {"allocated", "allocated", true},
    [METRIC_ALLOCATIONS] = {"allocations", "allocations", false},
    [METRIC_TEMPORARY] = {"temporary", "temporary", false},
    [METRIC_LEAKED] = {"leaked", "leaked", true},
    [METRIC_GROWTH] = {"growth", "growth", true},
};

bool metric_is_bytes(Metric metric)
{
    return metrics[metric].is_bytes;
}

const char *metric_name(Metric metric)
{
    return metrics[metric].name;
}

const char *metric_title(Metric metric)
{
    return metrics[metric].title;
}

// -------------------------------------------------------------------------- times

// The peak of the space that is asked for: the heap if none is, the sum if several are.
u64 peak_ns(Recording *recording, const Selection *selection)
{
    bool is_known;

    return recording_peak_ns(recording, selection->spaces, &is_known);
}

static bool time_resolve(Question *question, const char *text, u64 *ret_ns, bool *ret_is_peak)
{
    Recording *recording = question->recording;
    u64 last = recording_last(recording).ns;
    char *end;
    double number = strtod(text, &end);

    *ret_is_peak = strcmp(text, "peak") == 0;
    if (*ret_is_peak)
        *ret_ns = peak_ns(recording, &question->selection);
    else if (strcmp(text, "end") == 0)
        *ret_ns = last;
    else if (strcmp(text, "start") == 0)
        *ret_ns = 0;
    else if (end != text && strcmp(end, "%") == 0 && number >= 0 && number <= 100)
        *ret_ns = (u64)((double)last * number / 100);
    else if (!parse_duration(text, ret_ns))
        return heap_error("%s is not a time: 1.5s, 200ms, 50%%, start, peak or end", text), false;
    if (*ret_ns > last) {
        char asked[VALUE_BYTES_MAX], has[VALUE_BYTES_MAX];
        heap_error("%s is after the end of the recording (%s)", value_ns(*ret_ns, asked),
                   value_ns(last, has));
        return false;
    }
    return true;
}

static bool resolve_range(Question *question)
{
    const Arguments *arguments = question->arguments;
    Selection *selection = &question->selection;
    u64 last = recording_last(question->recording).ns;
    bool is_peak;
    u64 ns;

    if (arguments->at) {
        if (!time_resolve(question, arguments->at, &ns, &selection->at_peak))
            return false;
        selection->to_ns = selection->at_peak || ns >= last ? 0 : ns + 1;
    }
    if (arguments->from &&
        !time_resolve(question, arguments->from, &selection->from_ns, &is_peak))
        return false;
    if (arguments->to) {
        if (!time_resolve(question, arguments->to, &ns, &is_peak))
            return false;
        selection->to_ns = ns >= last ? 0 : ns;
        if (ns <= selection->from_ns)
            return heap_error("--to=%s is not after --from: nothing is selected", arguments->to),
                   false;
    }
    question->has_time = arguments->at || arguments->from || arguments->to;
    return true;
}

// Where the recording has sums of longer spans only, their ends are what can be told of. Times are
// those from then on, so that every answer says of which it is.
static bool go_to_known(const Question *question, u64 *ns, u64 shown_less)
{
    char asked[VALUE_BYTES_MAX], known[VALUE_BYTES_MAX];
    u64 nearest = *ns ? recording_nearest_ns(question->recording, *ns) : 0;

    if (nearest == *ns)
        return false;
    value_ns(*ns - shown_less, asked);
    value_ns(nearest - shown_less, known);
    if (strcmp(asked, known) != 0)
        heap_error("details of %s were not kept: the nearest moment is %s", asked, known);
    *ns = nearest;
    return true;
}

static bool round_range(Question *question)
{
    Selection *selection = &question->selection;
    bool from = go_to_known(question, &selection->from_ns, 0);
    bool to = go_to_known(question, &selection->to_ns, question->arguments->at ? 1 : 0);

    if ((from || to) && selection->to_ns && selection->to_ns <= selection->from_ns)
        return heap_error("so nothing is known of what was between them"), false;
    return true;
}

const char *moment_text(const Question *question, char *text)
{
    enum { TEXT_MAX = 128 };
    const Selection *selection = &question->selection;
    char from[VALUE_BYTES_MAX], to[VALUE_BYTES_MAX];
    u64 end = selection->to_ns ? selection->to_ns : recording_last(question->recording).ns;

    if (selection->at_peak) {
        bool is_known;
        u64 ns = recording_peak_ns(question->recording, selection->spaces, &is_known);
        snprintf(text, TEXT_MAX, is_known ? "at the peak (%s)" : "at the peak or later (%s)",
                 value_ns(ns, to));
    } else if (question->arguments->at) {
        snprintf(text, TEXT_MAX, "at %s", value_ns(selection->to_ns ? end - 1 : end, to));
    } else if (question->has_time) {
        snprintf(text, TEXT_MAX, "from %s to %s", value_ns(selection->from_ns, from),
                 value_ns(end, to));
    } else {
        snprintf(text, TEXT_MAX, "of the whole run (%s)", value_ns(end, to));
    }
    return text;
}

// --------------------------------------------------------------------- the recording

bool question_open(Question *question, const Arguments *arguments, const char *path)
{
    char *error = NULL;

    *question = (Question){.arguments = arguments, .selection = arguments->selection};
    progress_begin("opening the recording");
    question->recording = recording_open(path, warn, NULL, &error);
    progress_end();
    if (!question->recording) {
        heap_error_line(error);
        return false;
    }
    if (!resolve_range(question) || !round_range(question)) {
        recording_free(question->recording);
        return false;
    }
    return true;
}

void question_close(Question *question)
{
    if (warning_count > WARNINGS_SHOWN)
        heap_error("%llu more places cannot be read",
                   (unsigned long long)(warning_count - WARNINGS_SHOWN));
    warning_count = 0;
    recording_free(question->recording);
}

static void *site_array(Question *question, size_t element_bytes)
{
    void *array = calloc((size_t)recording_site_count(question->recording) + 1, element_bytes);

    if (!array)
        heap_error("no memory for the sums of %u sites",
                   recording_site_count(question->recording));
    return array;
}

SiteSums *question_sums(Question *question)
{
    SiteSums *sums = site_array(question, sizeof(*sums));
    char *error = NULL;

    if (!sums)
        return NULL;
    progress_begin("summing up");
    bool ok = site_sums_of(question->recording, &question->selection, sums, &error);
    progress_end();
    if (!ok) {
        heap_error_line(error);
        free(sums);
        return NULL;
    }
    return sums;
}

i64 *question_counted_values(Question *question, Metric metric, u64 **ret_counts)
{
    i64 *values = site_array(question, sizeof(*values));
    u64 *counts = site_array(question, sizeof(*counts));
    char *error = NULL;

    progress_begin("summing up");
    bool ok = values && counts &&
              selection_metric_counts(question->recording, &question->selection, metric, values,
                                      counts, &error);
    progress_end();
    if (ok) {
        *ret_counts = counts;
        return values;
    }
    if (values && counts)
        heap_error_line(error);
    free(values);
    free(counts);
    return NULL;
}

i64 *question_values(Question *question, Metric metric)
{
    u64 *counts = NULL;
    i64 *values = question_counted_values(question, metric, &counts);

    free(counts);
    return values;
}

Metric question_metric(Question *question)
{
    u32 metric = question->arguments->metric;

    if (metric == METRIC_UNSET && !question->has_time)
        question->selection.at_peak = true;
    if (metric == METRIC_UNSET)
        return METRIC_LIVE;
    if (metric == METRIC_PEAK) {
        question->selection.at_peak = true;
        return METRIC_LIVE;
    }
    return (Metric)metric;
}
