// SPDX-License-Identifier: MIT
//
// `muninn heap leaks`: what keeps growing. The live bytes of each stack are looked at in
// equal steps of time. The slope is Theil and Sen's (the median of the slopes of all pairs:
// a spike does not move it), the confidence that of Mann and Kendall's test for a trend. A
// stack that grew once and then stayed, as caches and tables do, is no leak: it must also
// grow in the later half. A run too short to tell gives what is live at its end.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

enum {
    POINTS = 48,
    CHANGES_MIN = 6,                // of a stack, or nothing can be told from its series
    GROUPS_MAX = 4096,              // that are looked at: those that hold the most
    SPAN_MIN_MS = 500,              // of a run that is not short
};
static const double confidence_min = 0.99, tau_min = 0.5;
static const double high_min = 0.5; // of the most, or of what is live, to have grown steadily

typedef struct Trend {
    double slope;      // bytes a second
    double late_slope; // in the later half
    double tau;        // -1 … 1: Kendall's rank correlation with time
    double confidence; // 0 … 1 that there is a trend
    u32 changes;       // steps at which it was not the same
    bool grows;
} Trend;

typedef struct Grower {
    const Group *group;
    const u64 *series;
    Trend trend;
} Grower;

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double theil_sen(const u64 *series, u32 count, double step_seconds)
{
    static double slopes[POINTS * POINTS / 2];
    size_t n = 0;

    for (u32 i = 0; i < count; i++) {
        for (u32 j = i + 1; j < count; j++)
            slopes[n++] = ((double)series[j] - (double)series[i]) / ((j - i) * step_seconds);
    }
    if (n == 0)
        return 0;
    qsort(slopes, n, sizeof(*slopes), by_double);
    return n % 2 ? slopes[n / 2] : (slopes[n / 2 - 1] + slopes[n / 2]) / 2;
}

// Kendall's S, and its variance where equal values make groups.
static void mann_kendall(const u64 *series, u32 count, Trend *trend)
{
    double s = 0, pairs = (double)count * (count - 1) / 2;
    double variance = (double)count * (count - 1) * (2 * count + 5);
    bool counted[POINTS] = {false};

    for (u32 i = 0; i < count; i++) {
        u32 ties = 1;
        for (u32 j = i + 1; j < count; j++) {
            s += series[j] > series[i] ? 1 : series[j] < series[i] ? -1 : 0;
            if (series[j] == series[i] && !counted[j]) {
                counted[j] = true;
                ties++;
            }
        }
        if (!counted[i] && ties > 1)
            variance -= (double)ties * (ties - 1) * (2 * ties + 5);
    }
    variance /= 18;
    trend->tau = pairs > 0 ? s / pairs : 0;
    double z = variance > 0 ? (fabs(s) - 1) / sqrt(variance) : 0;
    trend->confidence = z > 0 ? erf(z / sqrt(2)) : 0;
}

// What has been given back is no leak, however it rose before.
static bool ends_high(const u64 *series)
{
    u64 high = 0;

    for (u32 i = 0; i < POINTS; i++)
        high = max_u64(high, series[i]);
    return (double)series[POINTS - 1] >= high_min * (double)high;
}

static Trend judge(const u64 *series, double step_seconds)
{
    Trend trend = {0};
    double last = (double)series[POINTS - 1];
    u32 half = POINTS / 2;

    for (u32 i = 1; i < POINTS; i++)
        trend.changes += series[i] != series[i - 1];
    mann_kendall(series, POINTS, &trend);
    trend.slope = theil_sen(series, POINTS, step_seconds);
    trend.late_slope = theil_sen(series + half, POINTS - half, step_seconds);
    trend.grows = trend.changes >= CHANGES_MIN && trend.slope > 0 && trend.late_slope > 0 &&
                  trend.tau >= tau_min && trend.confidence >= confidence_min &&
                  ends_high(series) && trend.slope * step_seconds * POINTS >= high_min * last;
    return trend;
}

static int steepest_first(const void *a, const void *b)
{
    const Grower *x = a, *y = b;

    if (x->trend.slope != y->trend.slope)
        return x->trend.slope < y->trend.slope ? 1 : -1;
    return x->group->context < y->group->context ? -1 : x->group->context > y->group->context;
}

// ------------------------------------------------------------------------- printing

static const Column columns[] = {
    {"bytes_per_second", "growth", COLUMN_RIGHT | COLUMN_STRONG},
    {"confidence_percent", "confidence", COLUMN_RIGHT},
    {"live_bytes", "live", COLUMN_RIGHT | COLUMN_STRONG},
    {"live_blocks", "blocks", COLUMN_RIGHT},
    {"series", "over time", 0},
    {"where", "where", COLUMN_STRONG | COLUMN_PLACE},
    {"tau", "", COLUMN_DATA_ONLY},
    {"late_bytes_per_second", "", COLUMN_DATA_ONLY},
    {"allocations", "", COLUMN_DATA_ONLY},
    {"context", "", COLUMN_DATA_ONLY},
    {"stack", "", COLUMN_DATA_ONLY},
};

static void print_grower(Question *question, const Grower *grower)
{
    const Group *group = grower->group;
    u32 depth = question->arguments->depth;
    Where where;

    where_read(&where, question->recording, group->context);
    const Cell cells[] = {
        cell_real(CELL_RATE, grower->trend.slope),
        cell_real(CELL_PERCENT, grower->trend.confidence),
        cell_u64(CELL_BYTES, group->sums.live_bytes),
        cell_u64(CELL_COUNT, group->sums.live_blocks),
        (Cell){.kind = CELL_SERIES, .values = grower->series, .value_count = POINTS},
        cell_text(group->name ? group->name : where.own),
        cell_real(CELL_REAL, grower->trend.tau),
        cell_real(CELL_REAL, grower->trend.late_slope),
        cell_u64(CELL_COUNT, group->sums.allocations),
        cell_u64(CELL_COUNT, group->context),
        cell_list((const char *const *)where.labels, where.count),
    };
    printer_row(question->out, cells);
    where_print(&where, question->out, depth == UINT32_MAX ? 3 : depth);
    where_free(&where);
}

static void print_growers(Question *question, Grower *growers, u32 count)
{
    u64 left_rows = 0, left = 0;

    if (count)
        qsort(growers, count, sizeof(*growers), steepest_first);
    printer_table(question->out, "growing", count ? "These keep growing" : NULL, columns,
                  ARRAY_LEN(columns));
    for (u32 i = 0; i < count; i++) {
        if (i < question->arguments->limit) {
            print_grower(question, &growers[i]);
        } else {
            left_rows++;
            saturate_grow_u64(&left, growers[i].group->sums.live_bytes);
        }
    }
    printer_more(question->out, left_rows, left, NULL);
}

// -------------------------------------------------------------------------- the search

typedef struct Search {
    Question *question;
    Groups *groups;
    u32 group_count;  // whose series are looked at
    u64 *series;      // by group
    Grower *growers;
    u32 grower_count;
    bool is_short;    // nothing can be told of growth
} Search;

static void find_growers(Search *search, const u64 *by_point, double step_seconds)
{
    for (u32 g = 0; g < search->group_count; g++) {
        u64 *series = search->series + (size_t)g * POINTS;
        for (u32 i = 0; i < POINTS; i++)
            series[i] = by_point[(size_t)i * search->group_count + g];
        Trend trend = judge(series, step_seconds);
        if (trend.grows)
            search->growers[search->grower_count++] =
                (Grower){&search->groups->items[g], series, trend};
    }
}

static bool look(Search *search)
{
    Question *question = search->question;
    const Selection *selection = &question->selection;
    u32 site_count = recording_site_count(question->recording);
    u64 to = selection->to_ns ? selection->to_ns : recording_last(question->recording).ns + 1;
    u64 span = to - selection->from_ns;
    u64 *by_point = NULL;

    search->is_short = span < SPAN_MIN_MS * 1000000ull;
    while (search->group_count < min_u64(search->groups->count, GROUPS_MAX) &&
           search->groups->items[search->group_count].value > 0)
        search->group_count++;
    if (search->is_short || search->group_count == 0)
        return true;
    for (u32 site = 0; site < site_count; site++) {
        if (search->groups->group_of[site] >= search->group_count)
            search->groups->group_of[site] = UINT32_MAX;
    }
    size_t cells = (size_t)search->group_count * POINTS;
    by_point = calloc(cells, sizeof(*by_point));
    search->series = calloc(cells, sizeof(*search->series));
    search->growers = calloc(search->group_count, sizeof(*search->growers));
    if (!by_point || !search->series || !search->growers)
        abort();
    progress_begin("looking for growth");
    bool ok = recording_series(question->recording, selection->from_ns, to, POINTS,
                               search->groups->group_of, search->group_count, by_point);
    progress_end();
    if (ok)
        find_growers(search, by_point, (double)span / 1e9 / POINTS);
    free(by_point);
    return ok || heap_error("the series of live bytes could not be read") == 0;
}

// What does not grow and is live all the same.
static void print_live(Search *search)
{
    Question *question = search->question;
    bool has_growers = search->grower_count != 0;
    const Selection *selection = &question->selection;
    char span[VALUE_BYTES_MAX], moment[VALUE_BYTES_MAX], title[160];
    u64 last = recording_last(question->recording).ns;
    u64 to = selection->to_ns && selection->to_ns <= last ? selection->to_ns : 0;
    const char *when = selection->at_peak ? "the peak" : to ? value_ns(to, moment) : "the end";

    if (search->is_short)
        snprintf(title, sizeof(title), "Too short a %s to see growth (%s): still live at %s",
                 to || selection->from_ns ? "time" : "run",
                 value_ns((to ? to : last) - selection->from_ns, span), when);
    else
        snprintf(title, sizeof(title), "%s at %s",
                 has_growers ? "All that is live" : "Nothing keeps growing. Still live", when);
    groups_print(question, search->groups, METRIC_LIVE, "live", title);
}

static void print_others(const Search *search)
{
    u64 bytes = 0, grown = 0;
    u32 count = 0;
    char text[VALUE_BYTES_MAX];

    for (u32 i = 0; i < search->groups->count && search->groups->items[i].value > 0; i++, count++)
        saturate_grow_u64(&bytes, search->groups->items[i].sums.live_bytes);
    for (u32 i = 0; i < search->grower_count; i++)
        saturate_grow_u64(&grown, search->growers[i].group->sums.live_bytes);
    count -= search->grower_count;
    if (count)
        printer_line(search->question->out, "%u more %s live at the end%s without growing (%s); "
                     "--all lists them", count, count == 1 ? "is" : "are",
                     search->question->selection.to_ns ? " of this time" : "",
                     value_bytes(bytes - grown, text));
}

int heap_leaks(Question *question)
{
    SiteSums *sums = question_sums(question);
    i64 *values = sums ? question_values(question, METRIC_LIVE) : NULL;
    Search search = {.question = question};

    if (!values) {
        free(sums);
        return 1;
    }
    search.groups = groups_build(question->recording, sums, values,
                                 (GroupBy)question->arguments->by);
    int status = look(&search) ? 0 : 1;
    answer_begin(question);
    printer_fact(question->out, "too_short", NULL, cell_u64(CELL_BOOL, search.is_short));
    printer_fact(question->out, "points", NULL, cell_u64(CELL_COUNT, POINTS));
    bool is_data = question->arguments->form != PRINT_TEXT;
    if (search.grower_count || (is_data && !search.is_short))
        print_growers(question, search.growers, search.grower_count);
    else if (question->arguments->form == PRINT_JSON)
        print_growers(question, NULL, 0);
    if (is_data || question->arguments->show_all || search.grower_count == 0)
        print_live(&search);
    else
        print_others(&search);
    groups_free(search.groups);
    free(search.series);
    free(search.growers);
    free(sums);
    free(values);
    return answer_end(question) | status;
}
