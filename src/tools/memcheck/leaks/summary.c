// SPDX-License-Identifier: MIT
//
// The last page of a report: what the heap holds, what of it is lost, and which options
// would say more. The words are the incumbent's, to the letter: scripts look for them.
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/thread/thread.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

enum { LINE_MAX = 256 };

void leaks_say(ToolThread *thread, const char *text)
{
    if (thread->relay.answering)
        relay_answer_format(thread, "==%d== %s\n", (int)getpid(), text);
    else
        relay_line(thread, text);
}

// A line in which %s are the numbers, with commas.
static void line(ToolThread *thread, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void line(ToolThread *thread, const char *format, ...)
{
    char text[LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    leaks_say(thread, text);
}

typedef struct Number {
    char text[64];
} Number;

// With commas, and what has changed if there is something to compare with.
static Number number(u64 now, const u64 *before)
{
    Number n;
    char *end = n.text + sizeof(n.text) - 1;
    char *at = leaks_put_number(n.text, end, now);
    if (before) {
        bool more = now >= *before;
        at += snprintf(at, (size_t)(end - at), more ? " (+" : " (-");
        at = leaks_put_number(at, end, more ? now - *before : *before - now);
        if (at < end)
            *at++ = ')';
    }
    *at = 0;
    return n;
}

static void amount_line(ToolThread *thread, const char *label, const LeakAmount *now,
                        const LeakAmount *before)
{
    line(thread, "%s: %s bytes in %s blocks", label,
         number(now->bytes, before ? &before->bytes : NULL).text,
         number(now->blocks, before ? &before->blocks : NULL).text);
}

static void heuristic_lines(ToolThread *thread, bool with_delta)
{
    static const char *const names[LEAK_HEURISTIC_COUNT] = {
        [LEAK_STDSTRING] = "                        stdstring          ",
        [LEAK_LENGTH64] = "                        length64           ",
        [LEAK_NEWARRAY] = "                        newarray           ",
        [LEAK_MULTIPLE_INHERITANCE] = "                        multipleinheritance",
    };
    bool is_first = true;
    for (u32 h = LEAK_BY_START + 1; h < LEAK_HEURISTIC_COUNT; h++) {
        const LeakAmount *now = &leaks_totals.by_heuristic[h];
        const LeakAmount *before = &leaks_totals_before.by_heuristic[h];
        if (!now->blocks && !(with_delta && before->blocks))
            continue;
        if (is_first)
            leaks_say(thread, "                      of which reachable via heuristic:");
        is_first = false;
        amount_line(thread, names[h], now, with_delta ? before : NULL);
    }
}

static void hint_lines(ToolThread *thread, const LeakWish *wish)
{
    const LeakAmount *kinds = leaks_totals.kinds;
    if (!wish->full) {
        u64 all = 0;
        for (u32 k = 0; k < LEAK_KIND_COUNT; k++)
            all += kinds[k].blocks;
        if (all)
            leaks_say(thread, wish->by_command
                                  ? "To see details of leaked memory, give 'full' arg to leak_check"
                                  : "Rerun with --leak-check=full to see details of leaked memory");
    } else if (kinds[LOSS_REACHABLE].blocks && !(wish->show & LEAK_REACHABLE)) {
        leaks_say(thread,
                   "Reachable blocks (those to which a pointer was found) are not shown.");
        leaks_say(thread, wish->by_command
                               ? "To see them, add 'reachable any' args to leak_check"
                               : "To see them, rerun with: --leak-check=full "
                                 "--show-leak-kinds=all");
    }
}

static const char *nothing_left_text(void)
{
    return tool_leaves_allocator()
               ? "All heap blocks were freed -- but the program's own allocator is not watched"
               : "All heap blocks were freed -- no leaks are possible";
}

void summary_leaks(ToolThread *thread, const LeakWish *wish)
{
    static const struct {
        const char *label;
        LeakKind kind;
    } rows[] = {
        {"   definitely lost", LOSS_DEFINITE},
        {"   indirectly lost", LOSS_INDIRECT},
        {"     possibly lost", LOSS_POSSIBLE},
        {"   still reachable", LOSS_REACHABLE},
    };
    bool with_delta = wish->delta != LEAK_ANY;
    u64 blocks = leaks_totals.suppressed.blocks;
    for (u32 k = 0; k < LEAK_KIND_COUNT; k++)
        blocks += leaks_totals.kinds[k].blocks;
    if (blocks == 0 && !with_delta) {
        leaks_say(thread, nothing_left_text());
        leaks_say(thread, "");
        return;
    }
    leaks_say(thread, "LEAK SUMMARY:");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        amount_line(thread, rows[i].label, &leaks_totals.kinds[rows[i].kind],
                    with_delta ? &leaks_totals_before.kinds[rows[i].kind] : NULL);
    heuristic_lines(thread, with_delta);
    amount_line(thread, "        suppressed", &leaks_totals.suppressed,
                with_delta ? &leaks_totals_before.suppressed : NULL);
    hint_lines(thread, wish);
    leaks_say(thread, "");
}

// ------------------------------------------------------------------ the end

static u64 blocks_left(void)
{
    HeapStats stats;
    heap_stats(&stats);
    return stats.live_blocks;
}

// Without blocks there is nothing to free, and the libraries need not be ready for it: ldd's loader
// ends before it has relocated them.
static void run_freeres(ToolThread *thread, u32 row)
{
    GuestAddr function = tool_function_address(&memcheck_functions[row]);
    if (function && blocks_left() > 0)
        tool_call_client_last(thread, function, blocks_left);
}

// Libraries keep blocks for ever that are no leaks; they have functions to free them. One that
// is given up leaves blocks that are still reachable.
void summary_exiting(ToolThread *thread)
{
    if (memcheck_options->run_cxx_freeres)
        run_freeres(thread, MEMCHECK_CXX_FREERES);
    if (memcheck_options->run_libc_freeres)
        run_freeres(thread, MEMCHECK_LIBC_FREERES);
}

// Somebody may have forgotten to want their errors again.
static void warn_of_ignored(ToolThread *thread)
{
    static const char *const warning[] = {
        "WARNING: exiting program has the following client-requested",
        "WARNING: address error disablement range(s) still in force,",
        "WARNING: possibly as a result of some mistake in the use of the",
        "WARNING: VALGRIND_{DISABLE,ENABLE}_ERROR_REPORTING_IN_RANGE macros.",
    };
    GuestAddr start, end = 0;
    u32 count = 0;
    while (ranges_next_of_program(end, &start, &end)) {
        char text[80];
        for (size_t i = 0; count == 0 && i < ARRAY_LEN(warning); i++)
            relay_line(thread, warning[i]);
        snprintf(text, sizeof(text), "   [%u]  0x%016lx-0x%016lx  ClientReq", ++count, start,
                 end - 1);
        relay_line(thread, text);
    }
}

void summary_finish(void)
{
    ToolThread *thread = &thread_ctx;
    HeapStats stats;
    heap_stats(&stats);
    relay_line(thread, "");
    relay_line(thread, "HEAP SUMMARY:");
    line(thread, "    in use at exit: %s bytes in %s blocks", number(stats.live_bytes, NULL).text,
         number(stats.live_blocks, NULL).text);
    line(thread, "  total heap usage: %s allocs, %s frees, %s bytes allocated",
         number(stats.usage_allocs, NULL).text, number(stats.usage_frees, NULL).text,
         number(stats.usage_bytes, NULL).text);
    relay_line(thread, "");
    if (heap_is_counted())
        heap_count_tell(thread, false);
    if (stats.live_blocks == 0) {
        relay_line(thread, nothing_left_text());
        relay_line(thread, "");
    } else if (memcheck_options->leak_check == LEAK_CHECK_NO && !memcheck_options->xml) {
        relay_line(thread, "For a detailed leak analysis, rerun with: --leak-check=full");
        relay_line(thread, "");
    } else {
        LeakWish wish;
        leaks_default_wish(&wish);
        if (memcheck_options->xtree_leak)
            wish.as_tree = true;
        leaks_check(thread, &wish);
    }
    if (!memcheck_options->track_origins && error_undefined_count)
        relay_line(thread, "Use --track-origins=yes to see where uninitialised values come from");
    warn_of_ignored(thread);
}
