// SPDX-License-Identifier: MIT
//
// Runs without a limit: what the program does when it may, and how much that differs from
// run to run.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "inspect/minmem/trial.h"

// A limited run may be slower than this without being stuck: memory is reclaimed meanwhile.
enum { TIMEOUT_FACTOR = 10, TIMEOUT_MORE_MS = 5000 };

static void take_in(u64 *lowest, u64 *highest, u64 value, bool is_first)
{
    *lowest = is_first ? value : min_u64(*lowest, value);
    *highest = is_first ? value : max_u64(*highest, value);
}

static void add_run(Baseline *baseline, const RunResult *run)
{
    RunResult *low = &baseline->lowest, *high = &baseline->highest;
    bool is_first = baseline->runs++ == 0;

    take_in(&low->elapsed_ms, &high->elapsed_ms, run->elapsed_ms, is_first);
    take_in(&low->rss_bytes, &high->rss_bytes, run->rss_bytes, is_first);
    take_in(&low->tree_rss_bytes, &high->tree_rss_bytes, run->tree_rss_bytes, is_first);
    take_in(&low->as_bytes, &high->as_bytes, run->as_bytes, is_first);
    take_in(&low->data_bytes, &high->data_bytes, run->data_bytes, is_first);
    take_in(&low->stack_bytes, &high->stack_bytes, run->stack_bytes, is_first);
    take_in(&low->group_bytes, &high->group_bytes, run->group_bytes, is_first);
    high->left_running = run->left_running > high->left_running ? run->left_running
                                                                : high->left_running;
}

// Why a run without a limit is no success, in words.
static void explain(Session *session, const RunResult *run)
{
    static const char *const words[VERDICTS] = {
        [VERDICT_STATUS] = "it does not end in the same way each time, even without a limit",
        [VERDICT_OOM] = "the kernel killed it for want of memory, even without a limit",
        [VERDICT_TIMEOUT] = "it does not end within --timeout, even without a limit",
        [VERDICT_OUTPUT] = "its output differs from run to run: --same-output cannot be used",
        [VERDICT_CHECK] = "the command of --check fails, even without a limit",
    };
    const char *text = words[run->verdict];

    if (text && !session->trouble[0])
        snprintf(session->trouble, sizeof(session->trouble), "%s", text);
}

bool measure_baseline(Session *session, Baseline *ret_baseline)
{
    Baseline baseline = {0};

    for (u32 i = 0; i < session->options->runs; i++) {
        RunResult run;
        report_progress(session, "without a limit, run %u of %u", i + 1, session->options->runs);
        run_once(session, UINT64_MAX, &run);
        if (run.verdict != VERDICT_SUCCESS) {
            explain(session, &run);
            return false;
        }
        session->has_baseline = true;
        session->wait_status = run.wait_status;
        session->output_hash = run.output_hash;
        add_run(&baseline, &run);
    }
    if (session->timeout_ms == 0)
        session->timeout_ms = baseline.highest.elapsed_ms * TIMEOUT_FACTOR + TIMEOUT_MORE_MS;
    *ret_baseline = baseline;
    return true;
}
