// SPDX-License-Identifier: MIT
//
// The monitor's answer to heap_top. Rates are reckoned here, from two answers, because the
// monitor's are since anybody asked: two viewers would halve each other's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/top/sample.h"
#include "monitor/control/control.h"

enum {
    ASK_MS = 5000,
    CONTEXTS_ASKED = 500,
    ANSWER_BYTES_MAX = 64 << 20,
};

const char *const top_order_names[TOP_ORDERS] = {
    [TOP_BYTES] = "bytes",
    [TOP_GROWTH] = "growth",
    [TOP_TEMPORARY] = "temporary",
    [TOP_ALLOCATIONS] = "allocations",
};
const char *const top_space_names[TOP_SPACES] = {
    [TOP_HEAP] = "heap", [TOP_MAPPED] = "mapped", [TOP_STACKS] = "stacks"};

// ------------------------------------------------------------------- the answer

typedef struct Answer {
    char *text;
    size_t size, capacity;
    bool is_too_large;
} Answer;

static void keep(void *arg, const char *text, size_t size)
{
    Answer *answer = arg;

    if (answer->size + size + 1 > answer->capacity) {
        size_t capacity = (answer->size + size + 1) * 2;
        char *moved = capacity <= ANSWER_BYTES_MAX ? realloc(answer->text, capacity) : NULL;
        if (!moved) {
            answer->is_too_large = true;
            return;
        }
        answer->text = moved;
        answer->capacity = capacity;
    }
    memcpy(answer->text + answer->size, text, size);
    answer->size += size;
    answer->text[answer->size] = '\0';
}

static void read_context(const Dom *item, TopContext *context)
{
    const char *space = dom_text(item, "space");
    const Dom *frames = dom_child(item, "frames");

    *context = (TopContext){
        .id = dom_number(item, "context"),
        .bytes = dom_number(item, "bytes"),
        .blocks = dom_number(item, "blocks"),
        .peak_bytes = dom_number(item, "peak_bytes"),
        .allocations = dom_number(item, "allocations"),
        .temporary = dom_number(item, "temporary"),
        .growth_per_s = dom_real(item, "growth_bytes_per_s"),
        .allocations_per_s = dom_real(item, "allocations_per_s"),
        .temporary_per_s = dom_real(item, "temporary_per_s"),
        .frames = frames && frames->kind == DOM_LIST ? frames : NULL,
    };
    for (int i = 0; space && i < TOP_SPACES; i++) {
        if (strcmp(space, top_space_names[i]) == 0)
            context->space = (TopSpace)i;
    }
}

static bool read_contexts(TopSample *sample, const Dom *answer)
{
    const Dom *list = dom_child(answer, "contexts");
    size_t count = 0;

    if (!list || list->kind != DOM_LIST)
        return false;
    for (const Dom *item = list->first; item; item = item->next)
        count++;
    sample->contexts = calloc(count + 1, sizeof(*sample->contexts));
    if (!sample->contexts)
        return false;
    for (const Dom *item = list->first; item; item = item->next)
        read_context(item, &sample->contexts[sample->context_count++]);
    return true;
}

static void read_totals(TopSample *sample, const Dom *answer)
{
    for (int i = 0; i < TOP_SPACES; i++) {
        const Dom *space = dom_child(answer, top_space_names[i]);
        sample->bytes[i] = dom_number(space, "bytes");
        sample->peak_bytes[i] = dom_number(space, "peak_bytes");
    }
    sample->time_ms = dom_number(answer, "time_ms");
    sample->rss_bytes = dom_number(answer, "rss_bytes");
    sample->rss_peak_bytes = dom_number(answer, "rss_peak_bytes");
    sample->allocations = dom_number(answer, "allocations");
    sample->temporary = dom_number(answer, "temporary");
}

// -------------------------------------------------------------------- the rates

static double rate(u64 now, u64 before, double seconds)
{
    return ((double)now - (double)before) / seconds;
}

static int compare_ids(const void *a, const void *b)
{
    const TopContext *x = *(const TopContext *const *)a, *y = *(const TopContext *const *)b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (int)x->space - (int)y->space;
}

static void set_rates(TopSample *sample, const TopSample *before)
{
    double seconds = (double)(sample->time_ms - before->time_ms) / 1000;
    const TopContext **old = calloc((size_t)before->context_count + 1, sizeof(TopContext *));

    sample->growth_per_s = rate(sample->bytes[TOP_HEAP], before->bytes[TOP_HEAP], seconds);
    sample->allocations_per_s = rate(sample->allocations, before->allocations, seconds);
    sample->temporary_per_s = rate(sample->temporary, before->temporary, seconds);
    for (u32 i = 0; old && i < before->context_count; i++)
        old[i] = &before->contexts[i];
    if (old)
        qsort(old, before->context_count, sizeof(*old), compare_ids);
    for (u32 i = 0; old && i < sample->context_count; i++) {
        TopContext *context = &sample->contexts[i];
        const TopContext *key = context;
        const TopContext **found = bsearch(&key, old, before->context_count, sizeof(*old),
                                           compare_ids);
        if (!found)
            continue; // the monitor's own rates are the best there are
        context->growth_per_s = rate(context->bytes, (*found)->bytes, seconds);
        context->allocations_per_s = rate(context->allocations, (*found)->allocations, seconds);
        context->temporary_per_s = rate(context->temporary, (*found)->temporary, seconds);
    }
    free(old);
}

// -------------------------------------------------------------------- the order

static double order_value(const TopContext *context, TopOrder order)
{
    switch (order) {
    case TOP_GROWTH:      return context->growth_per_s;
    case TOP_TEMPORARY:   return context->temporary_per_s;
    case TOP_ALLOCATIONS: return context->allocations_per_s;
    default:              return (double)context->bytes;
    }
}

static int compare_contexts(const void *a, const void *b, void *arg)
{
    TopOrder order = *(TopOrder *)arg;
    const TopContext *x = a, *y = b;
    double left = order_value(x, order), right = order_value(y, order);

    if (left != right)
        return left > right ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void sample_sort(TopSample *sample, TopOrder order)
{
    qsort_r(sample->contexts, sample->context_count, sizeof(*sample->contexts), compare_contexts,
            &order);
}

// ------------------------------------------------------------------- the sample

SampleState sample_parse(char *text, const TopSample *before, TopSample *ret_sample)
{
    TopSample sample = {0};
    size_t size = strlen(text), used = 0;
    const Dom *answer = dom_read_json(&sample.arena, text, size, &used);
    bool is_whole = answer && answer->kind == DOM_OBJECT && answer->is_whole && used == size;

    free(text);
    if (is_whole)
        read_totals(&sample, answer);
    if (!is_whole || !read_contexts(&sample, answer)) {
        sample_free(&sample);
        return SAMPLE_BROKEN;
    }
    if (before && sample.time_ms > before->time_ms)
        set_rates(&sample, before);
    *ret_sample = sample;
    return SAMPLE_TAKEN;
}

SampleState sample_take(i32 pid, TopOrder order, const TopSample *before, TopSample *ret_sample,
                        char **ret_error)
{
    Answer answer = {0};
    char command[64];

    snprintf(command, sizeof(command), "heap_top %d %s", CONTEXTS_ASKED, top_order_names[order]);
    int status = ctl_ask(pid, command, ASK_MS, keep, &answer);
    if (status == 0 && answer.text && !answer.is_too_large)
        return sample_parse(answer.text, before, ret_sample);
    if (status > 0 && answer.text) {
        answer.text[strcspn(answer.text, "\n")] = '\0';
        *ret_error = answer.text;
        return SAMPLE_REFUSED;
    }
    free(answer.text);
    return status < 0 ? SAMPLE_SILENCE : SAMPLE_BROKEN;
}

void sample_free(TopSample *sample)
{
    arena_free(&sample->arena);
    free(sample->contexts);
    *sample = (TopSample){0};
}

void sample_frame_label(const Dom *frame, char *text, size_t size)
{
    const char *function = dom_text(frame, "function");
    const char *file = dom_text(frame, "file"), *pc = dom_text(frame, "pc");
    const char *object = dom_text(frame, "object");
    u64 line = dom_number(frame, "line");

    if (!function)
        function = pc ? pc : "???";
    const char *slash = object ? strrchr(object, '/') : NULL;
    if (file && line > 0)
        snprintf(text, size, "%s (%s:%llu)", function, file, (unsigned long long)line);
    else if (file)
        snprintf(text, size, "%s (%s)", function, file);
    else if (object)
        snprintf(text, size, "%s (in %s)", function, slash ? slash + 1 : object);
    else
        snprintf(text, size, "%s", function);
}
