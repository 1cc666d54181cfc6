// SPDX-License-Identifier: MIT
//
// `muninn heap sizes` and `lifetimes`: blocks counted by powers of two. They are counted one
// by one, which also gives their bytes; a long run is known at once from the histograms that
// the recording keeps, unless a range, a moment or a filter asks for less than all.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

typedef struct Count {
    u64 blocks, bytes, live;
} Count;

typedef struct Histogram {
    Question *question;
    bool of_lifetimes;
    bool has_bytes;          // counted from blocks
    const SiteSums *sums;    // sites that have none are not selected
    Count counts[HISTOGRAM_BUCKETS];
    Count still_live;        // of lifetimes: not known yet
    u64 seen, total;         // for the progress
} Histogram;

static u32 bucket_of(u64 value)
{
    return value ? 64 - (u32)__builtin_clzll(value) : 0;
}

static bool is_selected_site(const Histogram *histogram, u32 site)
{
    const SiteSums *sums = &histogram->sums[site];

    return sums->allocations || sums->live_blocks || sums->frees;
}

static bool is_selected_block(const Selection *selection, const RecordedBlock *block, u64 lifetime)
{
    return block->size >= selection->min_size &&
           (selection->max_size == 0 || block->size <= selection->max_size) &&
           lifetime >= selection->min_lifetime_ns &&
           (selection->max_lifetime_ns == 0 || lifetime <= selection->max_lifetime_ns);
}

static bool count_block(void *arg, const RecordedBlock *block)
{
    Histogram *histogram = arg;
    const Selection *selection = &histogram->question->selection;
    u64 last = recording_last(histogram->question->recording).ns;
    u64 end = selection->to_ns ? selection->to_ns : UINT64_MAX;
    bool is_live = block->died_ns == 0 || block->died_ns >= end;
    u64 until = block->died_ns ? block->died_ns : last;
    u64 lifetime = until > block->born_ns ? until - block->born_ns : 0;

    progress_set(histogram->seen++, histogram->total);
    if (!is_selected_site(histogram, block->site) ||
        !is_selected_block(selection, block, lifetime))
        return true;
    // A moment is about what is live at it; a range of sizes about what was born in it.
    if (histogram->question->arguments->at && !is_live)
        return true;
    if (!histogram->of_lifetimes && !histogram->question->arguments->at &&
        block->born_ns < selection->from_ns)
        return true;
    Count *count = &histogram->counts[bucket_of(histogram->of_lifetimes ? lifetime : block->size)];
    if (histogram->of_lifetimes && is_live)
        count = &histogram->still_live;
    count->blocks++;
    saturate_grow_u64(&count->bytes, block->size);
    count->live += is_live;
    return true;
}

static bool needs_blocks(const Question *question)
{
    enum { EVENTS_QUICKLY_READ = 2000000 };
    const Selection *selection = &question->selection;
    bool all_kept = recording_events_kept_since_ns(question->recording) == 0;

    if (all_kept && recording_event_count(question->recording) <= EVENTS_QUICKLY_READ)
        return true;
    return question->has_time || selection->min_size || selection->max_size ||
           selection->min_lifetime_ns || selection->max_lifetime_ns;
}

static void add_histogram(Histogram *histogram, u32 site, const SiteHistogram *of_site)
{
    const SiteSums *sums = &histogram->sums[site];

    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++)
        histogram->counts[i].blocks +=
            histogram->of_lifetimes ? of_site->lifetimes[i] : of_site->sizes[i];
    saturate_grow_u64(&histogram->still_live.blocks, sums->live_blocks);
    saturate_grow_u64(&histogram->still_live.bytes, sums->live_bytes);
}

// False: the recording has none.
static bool count_from_histograms(Histogram *histogram)
{
    Recording *recording = histogram->question->recording;
    SiteHistogram of_site;

    for (u32 site = 0; site < recording_site_count(recording); site++) {
        if (!is_selected_site(histogram, site))
            continue;
        if (!recording_histogram(recording, site, &of_site)) {
            memset(histogram->counts, 0, sizeof(histogram->counts));
            histogram->still_live = (Count){0};
            return false;
        }
        add_histogram(histogram, site, &of_site);
    }
    return true;
}

static bool count_from_blocks(Histogram *histogram)
{
    Question *question = histogram->question;
    Selection *selection = &question->selection;
    u64 to = selection->to_ns ? selection->to_ns : UINT64_MAX;
    u64 from = question->arguments->at ? to == UINT64_MAX ? recording_last(question->recording).ns
                                                          : to - 1
                                       : selection->from_ns;

    histogram->has_bytes = true;
    histogram->total = recording_event_count(question->recording);
    progress_begin("reading blocks");
    bool ok = recording_each_block(question->recording, from, to, count_block, histogram);
    progress_end();
    if (!ok)
        heap_error("not every block could be read: the counts are of those that could");
    return true;
}

// -------------------------------------------------------------------------- printing

static const char *bound_text(const Histogram *histogram, u64 value, char *text)
{
    return histogram->of_lifetimes ? value_ns(value, text) : value_bytes(value, text);
}

static void bar(char *text, double share)
{
    enum { BAR_COLUMNS = 30 };
    u32 length = (u32)(share * BAR_COLUMNS + 0.5);

    memset(text, '#', length);
    text[length] = 0;
}

static void print_bucket(const Histogram *histogram, u32 bucket, const Count *count, u64 whole,
                         u64 highest)
{
    bool is_live = bucket == HISTOGRAM_BUCKETS; // of lifetimes: none is known yet
    u64 from = bucket && !is_live ? 1ull << (bucket - 1) : 0;
    u64 to = bucket >= 64 ? UINT64_MAX : (1ull << bucket) - 1;
    char low[VALUE_BYTES_MAX], high[VALUE_BYTES_MAX], range[2 * VALUE_BYTES_MAX + 8], line[40];

    snprintf(range, sizeof(range), "%s to %s", bound_text(histogram, from, low),
             bound_text(histogram, to, high));
    if (from == to || is_live)
        snprintf(range, sizeof(range), "%s", is_live ? "still live" : low);
    bar(line, highest && !is_live ? (double)count->blocks / (double)highest : 0);
    const Cell cells[] = {
        cell_text(range),
        is_live ? cell_none() : cell_u64(CELL_NUMBER, from),
        is_live ? cell_none() : cell_u64(CELL_NUMBER, to),
        cell_u64(CELL_COUNT, count->blocks),
        cell_share((double)count->blocks, (double)whole),
        histogram->has_bytes || is_live ? cell_u64(CELL_BYTES, count->bytes) : cell_none(),
        histogram->has_bytes && !is_live ? cell_u64(CELL_COUNT, count->live) : cell_none(),
        cell_text(line),
    };
    printer_row(histogram->question->out, cells);
}

static void print_histogram(const Histogram *histogram)
{
    static const Column size_columns[] = {
        {"range", "size", 0},
        {"from_bytes", "", COLUMN_DATA_ONLY},
        {"to_bytes", "", COLUMN_DATA_ONLY},
        {"blocks", "blocks", COLUMN_RIGHT | COLUMN_STRONG},
        {"percent", "%", COLUMN_RIGHT},
        {"bytes", "bytes", COLUMN_RIGHT},
        {"live_blocks", "live", COLUMN_RIGHT},
        {"bar", "", COLUMN_TEXT_ONLY},
    };
    Column columns[ARRAY_LEN(size_columns)];
    u64 whole = 0, highest = 0;

    memcpy(columns, size_columns, sizeof(columns));
    if (histogram->of_lifetimes) {
        columns[0].heading = "lifetime";
        columns[1].key = "from_ns";
        columns[2].key = "to_ns";
        columns[6].flags |= COLUMN_DATA_ONLY;
        whole = histogram->still_live.blocks;
    }
    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++) {
        saturate_grow_u64(&whole, histogram->counts[i].blocks);
        highest = max_u64(highest, histogram->counts[i].blocks);
    }
    printer_fact(histogram->question->out, "blocks", NULL, cell_u64(CELL_COUNT, whole));
    printer_table(histogram->question->out, "buckets", NULL, columns, ARRAY_LEN(columns));
    for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i].blocks)
            print_bucket(histogram, i, &histogram->counts[i], whole, highest);
    }
    if (histogram->of_lifetimes && histogram->still_live.blocks)
        print_bucket(histogram, HISTOGRAM_BUCKETS, &histogram->still_live, whole, 0);
}

static int run(Question *question, bool of_lifetimes)
{
    Histogram histogram = {.question = question, .of_lifetimes = of_lifetimes};
    Question sites = *question; // which sites are selected does not depend on blocks

    sites.selection.min_size = sites.selection.max_size = 0;
    sites.selection.min_lifetime_ns = sites.selection.max_lifetime_ns = 0;
    sites.selection.from_ns = sites.selection.to_ns = 0;
    sites.selection.at_peak = false;
    if (question->selection.at_peak) {
        question->selection.to_ns = peak_ns(question->recording, &question->selection) + 1;
        question->selection.at_peak = false;
    }
    SiteSums *sums = question_sums(&sites);
    if (!sums)
        return 1;
    histogram.sums = sums;
    u64 kept = recording_events_kept_since_ns(question->recording);
    if (needs_blocks(question) || !count_from_histograms(&histogram)) {
        if (kept > question->selection.from_ns)
            heap_error("blocks that ended before %.3f s are known as sums only, and not counted",
                       (double)kept / 1e9);
        count_from_blocks(&histogram);
    }
    answer_begin(question);
    print_histogram(&histogram);
    free(sums);
    return answer_end(question);
}

int heap_sizes(Question *question)
{
    return run(question, false);
}

int heap_lifetimes(Question *question)
{
    return run(question, true);
}
