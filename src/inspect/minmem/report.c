// SPDX-License-Identifier: MIT
//
// What minmem says: a line that changes while it works, the answer as text or as JSON.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/minmem/trial.h"
#include "inspect/print/print.h"

char *report_size(char text[SIZE_TEXT], u64 bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    if (bytes < KiB)
        snprintf(text, SIZE_TEXT, "%llu B", (unsigned long long)bytes);
    else
        snprintf(text, SIZE_TEXT, "%.*f %s", unit == 0 ? 0 : value < 10 ? 3 : value < 100 ? 2 : 1,
                 value, units[unit]);
    return text;
}

// -------------------------------------------------------------------- progress

static bool has_progress;

void report_progress(const Session *session, const char *format, ...)
{
    va_list arguments;

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kminmem: %u runs; ", session->run_count);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    has_progress = true;
}

void report_clear_progress(void)
{
    if (has_progress)
        fputs("\r\033[K", stderr);
    has_progress = false;
}

// ------------------------------------------------------------------------- text

static void print_range(const char *what, u64 low, u64 high)
{
    char a[SIZE_TEXT], b[SIZE_TEXT];

    if (high == 0)
        return;
    if (low == high)
        printf("%s %s", what, report_size(a, high));
    else
        printf("%s %s to %s", what, report_size(a, low), report_size(b, high));
}

// A number that was seen a few hundred times a second: what lasted shorter was missed.
static void print_seen(const char *what, u64 low, u64 high)
{
    char text[SIZE_TEXT];

    if (high > 0)
        printf("%s %s%s", what, report_size(text, high), low == high ? "" : " or more");
}

static void print_status(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        printf("killed by signal %d (%s)", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    else
        printf("status %d", WEXITSTATUS(wait_status));
}

static void print_baseline(const Session *session, const Baseline *baseline)
{
    const RunResult *low = &baseline->lowest, *high = &baseline->highest;

    printf("without a limit: %u run%s, ", baseline->runs, baseline->runs == 1 ? "" : "s");
    print_status(session->wait_status);
    printf(", %.2f s\n ", (double)high->elapsed_ms / 1000);
    print_range(" resident", low->rss_bytes, high->rss_bytes);
    if (high->tree_rss_bytes > high->rss_bytes)
        print_range(", with children", low->tree_rss_bytes, high->tree_rss_bytes);
    // A program that ends at once may never have been looked at when it was large.
    if (high->as_bytes < high->rss_bytes) {
        print_seen(", address space", 0, high->rss_bytes);
    } else {
        print_seen(", address space", low->as_bytes, high->as_bytes);
        print_seen(", private writable", low->data_bytes, high->data_bytes);
        print_seen(", stack", low->stack_bytes, high->stack_bytes);
    }
    putchar('\n');
    if (high->left_running > 0)
        printf("  it leaves up to %u processes running, which were ended\n", high->left_running);
}

static void print_part(const char *name, const ProfilePart *part)
{
    char text[SIZE_TEXT];

    if (!part->is_known)
        return;
    printf("  %-8s %s\n", name, report_size(text, part->peak_bytes));
    for (u32 i = 0; i < part->stack_count; i++) {
        const ProfileStack *stack = &part->stacks[i];
        double whole = part->peak_bytes ? (double)part->peak_bytes : 1;
        double percent = (double)stack->bytes * 100 / whole;
        printf("    %5.1f %%  %-10s", percent, report_size(text, stack->bytes));
        for (u32 f = 0; f < stack->frame_count; f++)
            printf("%s%s", f ? " < " : " ", stack->frames[f]);
        putchar('\n');
    }
}

static void print_profile(const Profile *profile)
{
    if (!profile->is_known) {
        if (profile->why_not[0])
            printf("peaks by what makes them: not known, %s\n", profile->why_not);
        return;
    }
    puts("peaks, and the stacks that make them");
    print_part("heap", &profile->heap);
    print_part("mapped", &profile->mapped);
    print_part("stacks", &profile->stack);
    print_part("resident", &profile->resident);
}

static void print_failure(const SearchResult *result)
{
    for (u32 i = 0; i < result->attempt_count; i++) {
        const Attempt *attempt = &result->attempts[i];
        if (attempt->limit_bytes != result->fails_bytes || attempt->successes == attempt->runs)
            continue;
        fputs("  there it fails: ", stdout);
        if (attempt->failure == VERDICT_STATUS)
            print_status(attempt->wait_status);
        else
            fputs(verdict_names[attempt->failure], stdout);
        putchar('\n');
    }
}

static void print_text(const Session *session, const Baseline *baseline, const Profile *profile,
                       const SearchResult *result)
{
    const LimitInfo *limit = &limit_kinds[session->limit];
    char needs[SIZE_TEXT], fails[SIZE_TEXT];

    print_baseline(session, baseline);
    print_profile(profile);
    printf("limit: %s\n  covers %s\n", limit->what, limit->children);
    printf("tried %u limits with %u runs\n", result->attempt_count, session->run_count);
    print_failure(result);
    if (result->is_uncertain_between)
        puts("  between the two it sometimes succeeds: it does not need the same each time");
    report_size(needs, result->needs_bytes);
    report_size(fails, result->fails_bytes);
    if (result->fails_bytes == 0)
        printf("\nneeds %s at most; no limit was found at which it always fails\n", needs);
    else if (strcmp(needs, fails) != 0)
        printf("\nneeds %s, fails at %s\n", needs, fails);
    else // they differ by less than what is shown
        printf("\nneeds %s (%llu bytes), fails at %llu bytes\n", needs,
               (unsigned long long)result->needs_bytes, (unsigned long long)result->fails_bytes);
}

// ------------------------------------------------------------------------- JSON

static void json_range(const char *name, u64 low, u64 high)
{
    printf(",\n    \"%s\": {\"min\": %llu, \"max\": %llu}", name, (unsigned long long)low,
           (unsigned long long)high);
}

static void json_status(int wait_status)
{
    printf("\"status\": %d, \"signal\": %d", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1,
           WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0);
}

static void json_baseline(const Session *session, const Baseline *baseline)
{
    const RunResult *low = &baseline->lowest, *high = &baseline->highest;

    printf(",\n  \"without_limit\": {\"runs\": %u, ", baseline->runs);
    json_status(session->wait_status);
    json_range("elapsed_ms", low->elapsed_ms, high->elapsed_ms);
    json_range("rss_bytes", low->rss_bytes, high->rss_bytes);
    json_range("tree_rss_bytes", low->tree_rss_bytes, high->tree_rss_bytes);
    json_range("as_bytes", low->as_bytes, high->as_bytes);
    json_range("data_bytes", low->data_bytes, high->data_bytes);
    json_range("stack_bytes", low->stack_bytes, high->stack_bytes);
    json_range("cgroup_bytes", low->group_bytes, high->group_bytes);
    printf(",\n    \"left_running\": %u}", high->left_running);
}

static void json_part(const char *name, const ProfilePart *part, bool is_first)
{
    printf("%s\n    \"%s\": {\"bytes\": %llu, \"stacks\": [", is_first ? "" : ",", name,
           (unsigned long long)part->peak_bytes);
    for (u32 i = 0; i < part->stack_count; i++) {
        const ProfileStack *stack = &part->stacks[i];
        printf("%s\n      {\"bytes\": %llu, \"frames\": [", i ? "," : "",
               (unsigned long long)stack->bytes);
        for (u32 f = 0; f < stack->frame_count; f++) {
            fputs(f ? ", " : "", stdout);
            json_string(stdout, stack->frames[f]);
        }
        fputs("]}", stdout);
    }
    fputs("]}", stdout);
}

static void json_profile(const Profile *profile)
{
    if (!profile->is_known) {
        fputs(",\n  \"peaks\": null", stdout);
        return;
    }
    fputs(",\n  \"peaks\": {", stdout);
    json_part("heap", &profile->heap, true);
    json_part("mapped", &profile->mapped, false);
    json_part("stacks", &profile->stack, false);
    json_part("resident", &profile->resident, false);
    printf(",\n    \"rss_bytes\": %llu}", (unsigned long long)profile->resident.peak_bytes);
}

static void print_json(const Session *session, const Baseline *baseline, const Profile *profile,
                       const SearchResult *result)
{
    const Options *options = session->options;
    const LimitInfo *limit = &limit_kinds[session->limit];

    fputs("{\n  \"command\": [", stdout);
    for (int i = 0; i < options->command_count; i++) {
        fputs(i ? ", " : "", stdout);
        json_string(stdout, options->command[i]);
    }
    printf("],\n  \"limit\": \"%s\",\n  \"covers_children\": \"%s\"", limit->name,
           limit->json_children);
    printf(",\n  \"needs_bytes\": %llu,\n  \"fails_bytes\": %llu,\n  \"uncertain_between\": %s",
           (unsigned long long)result->needs_bytes, (unsigned long long)result->fails_bytes,
           result->is_uncertain_between ? "true" : "false");
    json_baseline(session, baseline);
    json_profile(profile);
    fputs(",\n  \"attempts\": [", stdout);
    for (u32 i = 0; i < result->attempt_count; i++) {
        const Attempt *attempt = &result->attempts[i];
        printf("%s\n    {\"limit_bytes\": %llu, \"runs\": %u, \"successes\": %u", i ? "," : "",
               (unsigned long long)attempt->limit_bytes, attempt->runs, attempt->successes);
        if (attempt->successes < attempt->runs) {
            printf(", \"failure\": \"%s\", ", verdict_names[attempt->failure]);
            json_status(attempt->wait_status);
        }
        putchar('}');
    }
    fputs("\n  ]\n}\n", stdout);
}

void report_print(const Session *session, const Baseline *baseline, const Profile *profile,
                  const SearchResult *result)
{
    if (session->options->json)
        print_json(session, baseline, profile, result);
    else
        print_text(session, baseline, profile, result);
}
