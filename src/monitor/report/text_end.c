// SPDX-License-Identifier: MIT
//
// The end of the text: counts, the list of findings and suppressions for -s and
// -v, and what became of a baseline.
#include <stdlib.h>
#include <string.h>

#include "monitor/report/text_writer.h"

// Without commas, unlike every other number: scripts take the digits as they are.
static void put_error_summary(TextWriter *text, const RunSummary *summary)
{
    text_printf_line(
        text, '=', "ERROR SUMMARY: %llu errors from %llu contexts (suppressed: %llu from %llu)",
        (unsigned long long)summary->error_count, (unsigned long long)summary->context_count,
        (unsigned long long)summary->suppressed_count,
        (unsigned long long)summary->suppressed_contexts);
}

typedef struct Listed {
    const Finding *finding;
    size_t order;
} Listed;

// Rare ones first, so that the end of the list is what matters most; of equals
// the latest first.
static int compare_listed(const void *left, const void *right)
{
    const Listed *a = left, *b = right;

    if (a->finding->count != b->finding->count)
        return a->finding->count < b->finding->count ? -1 : 1;
    return a->order > b->order ? -1 : 1;
}

// Leaks are not repeated: they were printed only just now.
static bool put_finding_list(TextWriter *text, const RunSummary *summary)
{
    Listed *list = calloc(summary->finding_count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return false;
    for (size_t i = 0; i < summary->finding_count; i++) {
        const Finding *finding = summary->findings[i];
        if (!finding->kind->leak_kind)
            list[count++] = (Listed){finding, i};
    }
    qsort(list, count, sizeof(*list), compare_listed);
    for (size_t i = 0; i < count; i++) {
        text_put_line(text, '=', "");
        text_printf_line(text, '=', "%llu errors in context %zu of %llu:",
                         (unsigned long long)list[i].finding->count, i + 1,
                         (unsigned long long)summary->context_count);
        text_put_finding(text, list[i].finding, false);
    }
    free(list);
    return count > 0;
}

static int compare_uses(const void *left, const void *right)
{
    const SuppressionUse *const *a = left, *const *b = right;

    if ((*a)->count != (*b)->count)
        return (*a)->count < (*b)->count ? -1 : 1;
    return strcmp((*a)->name, (*b)->name);
}

static void put_use(TextWriter *text, const SuppressionUse *use)
{
    Buffer line = {0};

    buffer_printf(&line, "%sused_suppression: %6llu %s %s:%u", use->count ? "" : "un",
                  (unsigned long long)use->count, use->name, use->file, use->line);
    if (use->leaked_blocks) {
        buffer_puts(&line, " suppressed: ");
        buffer_put_commas(&line, use->leaked_bytes);
        buffer_puts(&line, " bytes in ");
        buffer_put_commas(&line, use->leaked_blocks);
        buffer_puts(&line, " blocks");
    }
    buffer_putc(&line, 0);
    if (!line.failed)
        text_put_line(text, '-', line.data);
    buffer_free(&line);
}

static bool put_suppression_list(TextWriter *text, const RunSummary *summary, bool with_unused)
{
    const SuppressionUse **list = calloc(summary->suppression_count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return false;
    for (size_t i = 0; i < summary->suppression_count; i++)
        if (summary->suppressions[i].count || with_unused)
            list[count++] = &summary->suppressions[i];
    qsort(list, count, sizeof(*list), compare_uses);
    if (count)
        text_put_line(text, '-', "");
    for (size_t i = 0; i < count; i++)
        put_use(text, list[i]);
    free(list);
    return count > 0;
}

static void put_lists(TextWriter *text, const RunSummary *summary)
{
    const Options *options = text->base.report->options;
    bool with_unused = options->show_error_list == ERROR_LIST_ALL;
    bool findings = put_finding_list(text, summary);
    bool uses = put_suppression_list(text, summary, with_unused);

    // The counts again, where the eye is after a long list.
    if (uses)
        text_put_line(text, '=', "");
    if (findings || uses)
        put_error_summary(text, summary);
}

static void put_baseline(TextWriter *text)
{
    const Report *report = text->base.report;

    if (!report->baseline)
        return;
    text_printf_line(text, '=', "Baseline: %llu new, %llu known, %llu fixed",
                     (unsigned long long)report->new_count, (unsigned long long)report->known_count,
                     (unsigned long long)baseline_fixed(report->baseline));
}

// The client could not say so itself.
static void put_killed(TextWriter *text, const RunSummary *summary)
{
    char name[16];

    text_put_line(text, '=', "");
    if (summary->signal)
        text_printf_line(text, '=', "Process killed by signal %d (%s)", summary->signal,
                         signal_name(summary->signal, name));
    else
        text_put_line(text, '=', "Process ended without notice");
    text_put_line(text, '=', "");
}

void text_put_summary(TextWriter *text, const RunSummary *summary)
{
    const Options *options = text->base.report->options;
    bool lists = options->show_error_list != ERROR_LIST_NO || options->verbosity > 0;
    bool quiet = options->verbosity < 0;

    if (summary->killed && !quiet)
        put_killed(text, summary);
    if (summary->has_errors && (!quiet || lists)) {
        if (!lists)
            text_put_line(text, '=', "For lists of detected and suppressed errors, rerun with: -s");
        put_error_summary(text, summary);
        if (lists)
            put_lists(text, summary);
    }
    if (!quiet)
        put_baseline(text);
    bool by_line =
        options->summary == SUMMARY_LINES ||
        (options->summary == SUMMARY_AUTO && !quiet && (text->terminal || options->verbosity > 0));
    if (by_line)
        terminal_put_groups(text, summary);
}
