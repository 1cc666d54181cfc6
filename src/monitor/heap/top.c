// SPDX-License-Identifier: MIT
//
// `heap_top`: totals, and the contexts that hold, grow or churn most, as JSON. The numbers are
// those of the moment of asking. Names that are not known yet are looked up by a copy of
// this process, once: the next time they are here.
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/heap/model.h"

enum { TOP_DEFAULT = 20, TOP_MAX = 1000, TOP_FRAMES = 40 };

// A context, summed up over threads.
typedef struct TopRow {
    u32 context;
    u8 space;
    u64 bytes, blocks, peak_bytes;
    u64 allocations, temporary;
    i64 growth;
    u64 new_allocations, new_temporary; // since the last time
} TopRow;

typedef enum TopOrder { TOP_BYTES, TOP_GROWTH, TOP_TEMPORARY, TOP_ALLOCATIONS } TopOrder;
static const char *const top_orders[] = {
    [TOP_BYTES] = "bytes",
    [TOP_GROWTH] = "growth",
    [TOP_TEMPORARY] = "temporary",
    [TOP_ALLOCATIONS] = "allocations",
};

static i64 order_value(const TopRow *row, TopOrder order)
{
    switch (order) {
    case TOP_GROWTH: return row->growth;
    case TOP_TEMPORARY: return (i64)row->new_temporary;
    case TOP_ALLOCATIONS: return (i64)row->new_allocations;
    default: return (i64)row->bytes;
    }
}

static int compare_rows(const void *a, const void *b, void *arg)
{
    TopOrder order = *(TopOrder *)arg;
    const TopRow *x = a, *y = b;
    i64 left = order_value(x, order), right = order_value(y, order);

    if (left == right)
        return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
    return left > right ? -1 : 1;
}

static const PeakKind space_peaks[SPACE_COUNT] = {PEAK_HEAP, PEAK_MAPPED, PEAK_STACK};

// What is there now is what the next call compares with.
static void mark_sites(HeapModel *model)
{
    Mark *marks = realloc(model->marks, (model->site_count + 1) * sizeof(*marks));

    if (!marks)
        return;
    for (u32 i = 0; i < model->site_count; i++) {
        const Site *site = &model->sites[i];
        marks[i] = (Mark){site->live.bytes, site->allocations, site->temporary};
    }
    model->marks = marks;
    model->mark_count = model->site_count;
}

// One row for each context of a space.
static TopRow *gather_rows(HeapModel *model, Space space, size_t *ret_count)
{
    Map row_of = {0};
    TopRow *rows = calloc(model->site_count + 1, sizeof(*rows));
    size_t count = 0;

    for (u32 i = 0; i < model->site_count && rows; i++) {
        Site *site = &model->sites[i];
        u64 at;
        if (site->space != space)
            continue;
        if (!map_get(&row_of, site->context, &at)) {
            at = count++;
            rows[at] = (TopRow){.context = site->context, .space = site->space};
            map_put(&row_of, site->context, at);
        }
        rows[at].bytes += site->live.bytes;
        rows[at].blocks += site->live.blocks;
        rows[at].peak_bytes += site_at_peak(model, site, space_peaks[space]).bytes;
        rows[at].allocations += site->allocations;
        rows[at].temporary += site->temporary;
        const Mark *mark = i < model->mark_count ? &model->marks[i] : &(Mark){0};
        rows[at].growth += (i64)(site->live.bytes - mark->bytes);
        rows[at].new_allocations += site->allocations - mark->allocations;
        rows[at].new_temporary += site->temporary - mark->temporary;
    }
    map_free(&row_of);
    *ret_count = rows ? count : 0;
    return rows;
}

static void put_json_text(FILE *out, const char *text)
{
    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    for (const u8 *c = (const u8 *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void put_frames(HeapModel *model, FILE *out, u32 context)
{
    MassifStacks stacks = names_stacks(model);
    const OptionList *more = &model->options->alloc_fn;
    bool is_inside = true;
    u32 shown = 0;

    fputs("\"frames\":[", out);
    for (; context && shown < TOP_FRAMES; context = stacks.parent(model, context)) {
        u32 count;
        const RecordedFrame *frames = stacks.frames(model, context, &count);
        for (u32 i = 0; i < count && shown < TOP_FRAMES; i++) {
            if (is_inside && massif_out_is_allocator(frames[i].function, more->items, more->count))
                continue;
            is_inside = false;
            fprintf(out, "%s{\"pc\":\"0x%" PRIX64 "\",\"function\":", shown++ ? "," : "",
                    frames[i].pc);
            put_json_text(out, frames[i].function);
            fputs(",\"file\":", out);
            put_json_text(out, frames[i].file);
            fprintf(out, ",\"line\":%u,\"object\":", frames[i].line);
            put_json_text(out, frames[i].object);
            fputc('}', out);
        }
    }
    fputs("]", out);
}

static const char *const space_names[SPACE_COUNT] = {
    [SPACE_HEAP] = "heap",
    [SPACE_MAPPED] = "mapped",
    [SPACE_STACK] = "stacks",
};

static void put_row(HeapModel *model, FILE *out, const TopRow *row, double seconds)
{
    fprintf(out,
            "{\"context\":%u,\"space\":\"%s\",\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64
            ",\"peak_bytes\":%" PRIu64 ",\"growth_bytes\":%" PRId64
            ",\"growth_bytes_per_s\":%.0f,\"allocations\":%" PRIu64
            ",\"allocations_per_s\":%.0f,\"temporary\":%" PRIu64 ",\"temporary_per_s\":%.0f,",
            row->context, space_names[row->space], row->bytes, row->blocks, row->peak_bytes,
            row->growth, (double)row->growth / seconds, row->allocations,
            (double)row->new_allocations / seconds, row->temporary,
            (double)row->new_temporary / seconds);
    put_frames(model, out, row->context);
    fputc('}', out);
}

static void put_totals(HeapModel *model, FILE *out, u64 now_ns, u64 interval_ns)
{
    u64 heap_peak = 0;

    for (u32 i = 0; i < model->site_count; i++) {
        if (model->sites[i].space == SPACE_HEAP)
            heap_peak += site_at_peak(model, &model->sites[i], PEAK_HEAP).bytes;
    }
    fprintf(out, "{\"pid\":%d,\"time_ms\":%" PRIu64 ",\"interval_ms\":%" PRIu64 ",",
            model->config.pid, now_ns / 1000000, interval_ns / 1000000);
    for (int space = 0; space < SPACE_COUNT; space++)
        fprintf(out,
                "\"%s\":{\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"usable_bytes\":%" PRIu64
                ",\"peak_bytes\":%" PRIu64 ",\"peak_time_ms\":%" PRIu64 "},",
                space_names[space], model->totals.bytes[space], model->totals.blocks[space],
                model->totals.usable[space],
                space == SPACE_HEAP ? heap_peak : model->peaks[space_peaks[space]].bytes,
                model->peaks[space_peaks[space]].moment.ns / 1000000);
    fprintf(out,
            "\"rss_bytes\":%" PRIu64 ",\"rss_peak_bytes\":%" PRIu64
            ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64 ",\"temporary\":%" PRIu64
            ",\"reallocations\":%" PRIu64 ",\"unknown_frees\":%" PRIu64 ",",
            model->sampler.last_rss, model->sampler.rss_peak, model->allocations, model->frees,
            model->temporary, model->reallocations, model->oddities.unknown_frees);
}

// What heap_top is asked for: how many, in which order, of which space.
typedef struct TopQuestion {
    u32 count;
    TopOrder order;
    Space space;
} TopQuestion;

static bool find_word(const char *word, size_t length, const char *const *words, u32 count,
                      u32 *ret_index)
{
    for (u32 i = 0; i < count; i++) {
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

// Words in any order.
static bool parse_top(const HeapModel *model, const char *arguments, TopQuestion *ret_question)
{
    TopQuestion question = {
        .count = TOP_DEFAULT,
        .space = model->counts[SPACE_MAPPED] ? SPACE_MAPPED : SPACE_HEAP,
    };
    for (const char *at = arguments + strspn(arguments, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        u32 index;
        if (strspn(at, "0123456789") == length)
            question.count = (u32)min_u64(strtoull(at, NULL, 10), TOP_MAX);
        else if (find_word(at, length, top_orders, ARRAY_LEN(top_orders), &index))
            question.order = index;
        else if (find_word(at, length, space_names, SPACE_COUNT, &index))
            question.space = index;
        else
            return false;
        at += length;
    }
    *ret_question = question;
    return true;
}

// What is to be said when the names are there.
typedef struct TopTask {
    Asker asker;
    char *totals;
    double seconds;
    size_t count;
    TopRow *rows;
} TopTask;

static void task_free(TopTask *task)
{
    free(task->totals);
    free(task->rows);
    free(task);
}

static void say_top(HeapModel *model, const TopTask *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return;
    fprintf(out, "%s\"contexts\":[", task->totals);
    for (size_t i = 0; i < task->count; i++) {
        fputs(i ? "," : "", out);
        put_row(model, out, &task->rows[i], task->seconds);
    }
    fputs("]}\n", out);
    fclose(out);
    if (task->asker.arg)
        task->asker.say(task->asker.arg, text);
    free(text);
}

static void look_up_names(HeapModel *model, void *arg, FILE *out)
{
    TopTask *task = arg;
    for (size_t i = 0; i < task->count; i++)
        names_send(model, task->rows[i].context, out);
}

static void names_are_here(HeapModel *model, void *arg, const u8 *answer, size_t size)
{
    TopTask *task = arg;
    names_receive(model, answer, size);
    if (task->asker.arg) {
        say_top(model, task);
        task->asker.done(task->asker.arg, 0);
    }
    task_free(task);
}

static TopTask *make_task(HeapModel *model, const TopQuestion *question, const Asker *asker)
{
    TopTask *task = calloc(1, sizeof(*task));
    size_t size;
    u64 now_ns = model_moment(model).ns;
    u64 interval_ns = now_ns > model->marked_ns ? now_ns - model->marked_ns : 1;
    TopOrder order = question->order;

    if (!task)
        return NULL;
    task->asker = *asker;
    task->seconds = (double)interval_ns / 1e9;
    model->marked_ns = now_ns;
    FILE *out = open_memstream(&task->totals, &size);
    if (out) {
        put_totals(model, out, now_ns, interval_ns);
        fclose(out);
    }
    task->rows = gather_rows(model, question->space, &task->count);
    mark_sites(model);
    if (!task->totals || !task->rows) {
        task_free(task);
        return NULL;
    }
    if (task->count > 1)
        qsort_r(task->rows, task->count, sizeof(TopRow), compare_rows, &order);
    task->count = min_u64(task->count, question->count);
    return task;
}

int top_answer(HeapModel *model, const char *arguments, const Asker *asker, bool wait)
{
    TopQuestion question;
    bool known = true;

    if (!parse_top(model, arguments, &question)) {
        asker_say(asker, "heap_top: a number; bytes, growth, temporary or allocations; heap, "
                         "mapped or stacks\n");
        return 1;
    }
    if (!model->sampler.has_engine_rss)
        sample_turn(model, true); // asked so early that RSS is not known yet
    TopTask *task = make_task(model, &question, asker);
    if (!task) {
        asker_say(asker, "heap_top: no memory\n");
        return 1;
    }
    for (size_t i = 0; i < task->count && known; i++)
        known = names_are_known(model, task->rows[i].context);
    if (!known && !wait) {
        CopyTask copy = {.work = look_up_names, .end = names_are_here, .arg = task};
        if (copy_start(model, &copy))
            return HEAP_LATER;
    }
    say_top(model, task);
    task_free(task);
    return 0;
}
