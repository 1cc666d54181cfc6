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

static u64 read_u64(const JsonTree *json, u32 object, const char *key)
{
    i64 value = json_tree_integer(json, object, key);

    return value > 0 ? (u64)value : 0;
}

static double read_real(const JsonTree *json, u32 object, const char *key)
{
    u32 member = json_tree_member(json, object, key);

    return member && json->nodes[member].kind == JSON_NUMBER ? json->nodes[member].real : 0;
}

static void read_context(const JsonTree *json, u32 node, TopContext *context)
{
    const char *space = json_tree_text(json, node, "space");

    *context = (TopContext){
        .id = json_tree_integer(json, node, "context"),
        .bytes = read_u64(json, node, "bytes"),
        .blocks = read_u64(json, node, "blocks"),
        .peak_bytes = read_u64(json, node, "peak_bytes"),
        .allocations = read_u64(json, node, "allocations"),
        .temporary = read_u64(json, node, "temporary"),
        .growth_per_s = read_real(json, node, "growth_bytes_per_s"),
        .allocations_per_s = read_real(json, node, "allocations_per_s"),
        .temporary_per_s = read_real(json, node, "temporary_per_s"),
        .frames = json_tree_member(json, node, "frames"),
    };
    for (int i = 0; space && i < TOP_SPACES; i++) {
        if (strcmp(space, top_space_names[i]) == 0)
            context->space = (TopSpace)i;
    }
}

static bool read_contexts(TopSample *sample)
{
    const JsonTree *json = &sample->json;
    u32 list = json_tree_member(json, 0, "contexts"), count = 0;

    if (!list || json->nodes[list].kind != JSON_ARRAY)
        return false;
    for (u32 i = json->nodes[list].first; i; i = json->nodes[i].next)
        count++;
    sample->contexts = calloc((size_t)count + 1, sizeof(*sample->contexts));
    if (!sample->contexts)
        return false;
    for (u32 i = json->nodes[list].first; i; i = json->nodes[i].next)
        read_context(json, i, &sample->contexts[sample->context_count++]);
    return true;
}

static void read_totals(TopSample *sample)
{
    const JsonTree *json = &sample->json;

    for (int i = 0; i < TOP_SPACES; i++) {
        u32 space = json_tree_member(json, 0, top_space_names[i]);
        if (!space)
            continue;
        sample->bytes[i] = read_u64(json, space, "bytes");
        sample->peak_bytes[i] = read_u64(json, space, "peak_bytes");
    }
    sample->time_ms = read_u64(json, 0, "time_ms");
    sample->rss_bytes = read_u64(json, 0, "rss_bytes");
    sample->rss_peak_bytes = read_u64(json, 0, "rss_peak_bytes");
    sample->allocations = read_u64(json, 0, "allocations");
    sample->temporary = read_u64(json, 0, "temporary");
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
    TopSample sample = {.text = text};

    if (!json_tree_parse(text, &sample.json)) {
        free(text);
        return SAMPLE_BROKEN;
    }
    read_totals(&sample);
    if (!read_contexts(&sample)) {
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
    json_tree_free(&sample->json);
    free(sample->contexts);
    free(sample->text);
    *sample = (TopSample){0};
}

void sample_frame_label(const TopSample *sample, u32 frame, char *text, size_t size)
{
    const JsonTree *json = &sample->json;
    const char *function = json_tree_text(json, frame, "function");
    const char *file = json_tree_text(json, frame, "file"), *pc = json_tree_text(json, frame, "pc");
    const char *object = json_tree_text(json, frame, "object");
    i64 line = json_tree_integer(json, frame, "line");

    if (!function)
        function = pc ? pc : "???";
    const char *slash = object ? strrchr(object, '/') : NULL;
    if (file && line > 0)
        snprintf(text, size, "%s (%s:%lld)", function, file, (long long)line);
    else if (file)
        snprintf(text, size, "%s (%s)", function, file);
    else if (object)
        snprintf(text, size, "%s (in %s)", function, slash ? slash + 1 : object);
    else
        snprintf(text, size, "%s", function);
}
