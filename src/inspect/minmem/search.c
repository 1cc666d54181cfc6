// SPDX-License-Identifier: MIT
//
// The smallest limit. Bisection finds a border with one run for each limit; then the two limits
// beside it are repeated, and moved apart until one always succeeds and the other always
// fails. Where the program behaves the same each time, that costs two times --runs.
#include <stdio.h>
#include <string.h>

#include "inspect/minmem/trial.h"

enum {
    DOUBLINGS_MAX = 12,
    PRECISION_PARTS = 200, // of the limit: half a percent
};

static u64 precision_at(const Session *session, u64 bytes)
{
    u64 wanted = session->options->precision_bytes;

    return max_u64(PAGE_UP(wanted ? wanted : bytes / PRECISION_PARTS), PAGE_SIZE);
}

static Attempt *find_attempt(SearchResult *result, u64 limit_bytes)
{
    for (u32 i = 0; i < result->attempt_count; i++) {
        if (result->attempts[i].limit_bytes == limit_bytes)
            return &result->attempts[i];
    }
    if (result->attempt_count == ATTEMPTS_MAX)
        return NULL;
    Attempt *attempt = &result->attempts[result->attempt_count++];
    *attempt = (Attempt){.limit_bytes = limit_bytes};
    return attempt;
}

// Makes it `runs` runs at this limit; more are not needed once they differ. NULL: stopped, or
// in trouble.
static Attempt *try_limit(Session *session, SearchResult *result, u64 limit_bytes, u32 runs)
{
    Attempt *attempt = find_attempt(result, limit_bytes);
    char text[SIZE_TEXT];

    if (!attempt)
        snprintf(session->trouble, sizeof(session->trouble),
                 "there is no end to it after %d limits", ATTEMPTS_MAX);
    while (attempt && attempt->runs < runs &&
           (attempt->successes == 0 || attempt->successes == attempt->runs)) {
        RunResult run;
        report_progress(session, "limit %s, run %u of %u", report_size(text, limit_bytes),
                        attempt->runs + 1, runs);
        run_once(session, limit_bytes, &run);
        if (run.verdict == VERDICT_STOPPED || run.verdict == VERDICT_TROUBLE)
            return NULL;
        attempt->runs++;
        if (run.verdict == VERDICT_SUCCESS) {
            attempt->successes++;
        } else {
            attempt->failure = run.verdict;
            attempt->wait_status = run.wait_status;
        }
    }
    return attempt;
}

// Where to begin: a little above what was measured, so that it is likely to succeed.
static u64 first_guess(const Session *session, const Baseline *baseline)
{
    const RunResult *most = &baseline->highest;
    u64 resident = max_u64(most->rss_bytes, most->tree_rss_bytes);
    u64 bytes = 0;

    switch (session->limit) {
    case LIMIT_CGROUP: bytes = most->group_bytes ? most->group_bytes : resident * 2; break;
    case LIMIT_AS:     bytes = most->as_bytes; break;
    case LIMIT_DATA:   bytes = most->data_bytes; break;
    default:           bytes = resident; break;
    }
    return PAGE_UP(bytes ? bytes + bytes / 16 : 64 * MiB);
}

// A limit that is enough, in *high, and one that is not, in *low (0: nobody tried).
static bool bracket(Session *session, SearchResult *result, u64 guess, u64 *low, u64 *high)
{
    *low = 0;
    *high = guess;
    for (u32 i = 0; i < DOUBLINGS_MAX; i++) {
        const Attempt *attempt = try_limit(session, result, *high, 1);
        if (!attempt)
            return false;
        if (attempt->successes > 0)
            return true;
        *low = *high;
        *high *= 2;
    }
    snprintf(session->trouble, sizeof(session->trouble),
             "it succeeds without a limit, but with none of those tried, however large");
    return false;
}

static bool bisect(Session *session, SearchResult *result, u64 *low, u64 *high)
{
    while (*high - *low > precision_at(session, *high)) {
        u64 middle = PAGE_UP(*low + (*high - *low) / 2);
        if (middle >= *high)
            break;
        const Attempt *attempt = try_limit(session, result, middle, 1);
        if (!attempt)
            return false;
        *(attempt->successes > 0 ? high : low) = middle;
    }
    return true;
}

// Moves *limit by growing steps, up or down, until all runs agree. Down, 0 is the end.
static bool settle(Session *session, SearchResult *result, bool is_up, u64 *limit)
{
    u64 step = precision_at(session, *limit);

    for (; *limit > 0; step *= 2) {
        const Attempt *attempt = try_limit(session, result, *limit, session->options->runs);
        if (!attempt)
            return false;
        if (attempt->successes == (is_up ? attempt->runs : 0))
            return true;
        result->is_uncertain_between = true;
        *limit = is_up ? *limit + step : *limit > step ? *limit - step : 0;
    }
    return true;
}

bool search_limit(Session *session, const Baseline *baseline, SearchResult *ret_result)
{
    u64 low, high;

    *ret_result = (SearchResult){0};
    if (!bracket(session, ret_result, first_guess(session, baseline), &low, &high) ||
        !bisect(session, ret_result, &low, &high) || !settle(session, ret_result, true, &high) ||
        !settle(session, ret_result, false, &low))
        return false;
    ret_result->needs_bytes = high;
    ret_result->fails_bytes = low;
    return true;
}
