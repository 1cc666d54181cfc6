// SPDX-License-Identifier: MIT
//
// The table of formats, and the sums that most of them begin with.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/export/formats.h"

// clang-format off
static const ExportFormat formats[] = {
    {"pprof",      "pb.gz",           "application/octet-stream", true,  false, pprof_write},
    {"folded",     "folded",          "text/plain",               false, false, folded_write},
    {"speedscope", "speedscope.json", "application/json",         false, false, speedscope_write},
    {"svg",        "svg",             "image/svg+xml",            false, false, svg_write},
    {"heaptrack",  "heaptrack",       "text/plain",               false, true,  heaptrack_write},
    {"dhat",       "dhat.json",       "application/json",         false, true,  dhat_write},
    {"massif",     "massif.out",      "text/plain",               false, true,  massif_write},
};
// clang-format on

const ExportFormat *export_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

const ExportFormat *export_formats(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(formats);
    return formats;
}

const char *export_names(void)
{
    static char names[128];
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
                               formats[i].name);
    return names;
}

bool export_fail(char **ret_error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(ret_error, format, arguments) < 0)
        *ret_error = NULL;
    va_end(arguments);
    return false;
}

u64 selection_end_ns(const ExportJob *job)
{
    return job->selection.to_ns ? job->selection.to_ns : recording_last(job->recording).ns + 1;
}

bool size_is_wanted(const ExportJob *job, u64 size)
{
    const Selection *selection = &job->selection;

    return size >= selection->min_size && (!selection->max_size || size <= selection->max_size);
}

// ----------------------------------------------------------------------------- sums

static int by_context(const void *a, const void *b)
{
    const StackSums *x = a, *y = b;

    return x->context < y->context ? -1 : x->context > y->context;
}

static u32 join_sites(const ExportJob *job, const SiteSums *sums, const i64 *values,
                      StackSums *ret_stacks)
{
    Map index_of = {0};
    u32 count = 0;

    for (u32 i = 0; i < recording_site_count(job->recording); i++) {
        u32 context = recording_site(job->recording, i)->context;
        u64 index = count;
        if (site_sums_are_empty(&sums[i]) && values[i] == 0)
            continue;
        if (!map_get(&index_of, context, &index)) {
            if (!map_put(&index_of, context, count))
                abort();
            ret_stacks[count++] = (StackSums){.context = context};
        }
        saturate_grow_i64(&ret_stacks[index].value, values[i]);
        site_sums_add(&ret_stacks[index].sums, &sums[i]);
    }
    map_free(&index_of);
    return count;
}

StackSums *stack_sums(const ExportJob *job, u32 *ret_count, char **ret_error)
{
    size_t site_count = recording_site_count(job->recording);
    SiteSums *sums = calloc(site_count + 1, sizeof(*sums));
    i64 *values = calloc(site_count + 1, sizeof(*values));
    StackSums *stacks = calloc(site_count + 1, sizeof(*stacks));

    if (!sums || !values || !stacks)
        abort();
    bool ok = site_sums_of(job->recording, &job->selection, sums, ret_error) &&
              selection_metric(job->recording, &job->selection, job->metric, values, ret_error);
    if (ok) {
        *ret_count = join_sites(job, sums, values, stacks);
        qsort(stacks, *ret_count, sizeof(*stacks), by_context);
    }
    free(sums);
    free(values);
    if (ok)
        return stacks;
    free(stacks);
    return NULL;
}

bool sums_until(const ExportJob *job, u64 ns, SiteSums *ret_sums, char **ret_error)
{
    Selection selection = job->selection;

    selection.from_ns = 0;
    selection.to_ns = ns;
    selection.at_peak = false;
    return selection_sums(job->recording, &selection, ret_sums, ret_error);
}

bool *selected_sites(const ExportJob *job, char **ret_error)
{
    size_t site_count = recording_site_count(job->recording);
    SiteSums *sums = calloc(site_count + 1, sizeof(*sums));
    bool *is_selected = calloc(site_count + 1, sizeof(*is_selected));
    Selection selection = job->selection;

    if (!sums || !is_selected)
        abort();
    if (selection.min_lifetime_ns || selection.max_lifetime_ns) {
        free(sums);
        free(is_selected);
        export_fail(ret_error,
                    "this format is made of events, which cannot be chosen by lifetimes");
        return NULL;
    }
    selection.from_ns = selection.to_ns = 0;
    selection.at_peak = false;
    bool ok = selection_sums(job->recording, &selection, sums, ret_error);
    for (size_t i = 0; ok && i < site_count; i++)
        is_selected[i] = !site_sums_are_empty(&sums[i]);
    free(sums);
    if (ok)
        return is_selected;
    free(is_selected);
    return NULL;
}

const char *frame_name(const StackFrame *at, Recording *recording, char *text)
{
    const RecordedFrame *frame = stack_frame(at, recording);
    const RecordedContext *context = recording_context(recording, at->context);

    if (frame && frame->function)
        return frame->function;
    if (frame && frame->object)
        snprintf(text, STACK_LABEL_MAX, "%.900s+0x%llx", path_last(frame->object),
                 (unsigned long long)frame->object_offset);
    else
        snprintf(text, STACK_LABEL_MAX, "0x%llx", (unsigned long long)context->pc);
    return text;
}
