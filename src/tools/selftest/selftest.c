// SPDX-License-Identifier: MIT
//
// A tool for the tests of the engine, shown in no help: it intercepts functions
// of every kind and says what it saw. The client's behaviour stays the same,
// except for functions whose names begin with "selftest_".
#include "tools/selftest/selftest.h"

#include "tools/tools.h"

static u64 replace_slow(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    return call->args[0] * 2 + call->args[5];
}

// Answers for negative arguments only.
static u64 replace_some(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    call->run_original = (i64)call->args[0] >= 0;
    return 0;
}

static void log_before(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    call->state = call->args[0];
    tool_log("selftest: %s enter %ld", call->function->name, (i64)call->args[0]);
}

static void log_after(ToolThread *thread, ToolCall *call)
{
    count_after(thread, call);
    tool_log("selftest: %s %ld returns %ld", call->function->name, (i64)call->state,
             (i64)call->result);
}

static void change_before(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    call->args[1] += 100;
}

static void change_after(ToolThread *thread, ToolCall *call)
{
    count_after(thread, call);
    call->result = ~call->result;
}

// Calls the client's function args[0] with args[1], and once more with its result.
static u64 replace_calls_back(ToolThread *thread, ToolCall *call)
{
    u64 result = call->args[1];
    count_before(thread, call);
    for (unsigned i = 0; i < 2; i++) {
        if (!tool_call_client(thread, call->args[0], &result, 1, &result))
            return 0;
    }
    return result;
}

enum Row {
    ROW_MALLOC, ROW_FREE, ROW_REALLOC, ROW_CALLOC, ROW_MEMALIGN, ROW_ALIGNED_ALLOC,
    ROW_POSIX_MEMALIGN, ROW_NEW, ROW_NEW_ARRAY, ROW_DELETE, ROW_DELETE_SIZED, ROW_MEMCPY,
    ROW_STRLEN, ROW_GETPPID, ROW_REPLACED, ROW_REPLACED_FAST, ROW_REPLACED_SOME, ROW_CHANGED,
    ROW_COUNTED, ROW_LOGGED, ROW_LOGGED_TOO, ROW_STATIC, ROW_CALLS_BACK,
    ROW_COUNT
};
_Static_assert(ROW_COUNT <= ROWS_MAX, "row_sums has room");

#define FAST TOOL_FUNCTION_FAST
#define FAST_WRAP(row, symbol, enter, leave)                                                       \
    [row] = {.name = symbol, .flags = FAST, .before = enter, .after = leave, .data = row}
#define COUNT(row, symbol) FAST_WRAP(row, symbol, count_before, count_after)

static const ToolFunction functions[ROW_COUNT] = {
    FAST_WRAP(ROW_MALLOC, "malloc", alloc_before, malloc_after),
    FAST_WRAP(ROW_FREE, "free", free_before, free_after),
    FAST_WRAP(ROW_REALLOC, "realloc", alloc_before, realloc_after),
    FAST_WRAP(ROW_CALLOC, "calloc", alloc_before, calloc_after),
    FAST_WRAP(ROW_MEMALIGN, "memalign", alloc_before, aligned_after),
    FAST_WRAP(ROW_ALIGNED_ALLOC, "aligned_alloc", alloc_before, aligned_after),
    FAST_WRAP(ROW_POSIX_MEMALIGN, "posix_memalign", alloc_before, memalign_out_after),
    COUNT(ROW_NEW, "_Znwm"),
    COUNT(ROW_NEW_ARRAY, "_Znam"),
    COUNT(ROW_DELETE, "_ZdlPv"),
    COUNT(ROW_DELETE_SIZED, "_ZdlPvm"),
    COUNT(ROW_MEMCPY, "memcpy"),
    COUNT(ROW_STRLEN, "strlen"),
    [ROW_GETPPID] = {.object = "libc.so*", .name = "getppid", .before = count_before,
                     .after = count_after, .data = ROW_GETPPID},
    [ROW_REPLACED] = {.name = "selftest_replaced", .replace = replace_slow, .data = ROW_REPLACED},
    [ROW_REPLACED_FAST] = {.name = "selftest_replaced_fast", .flags = FAST,
                           .replace = replace_fast, .data = ROW_REPLACED_FAST},
    [ROW_REPLACED_SOME] = {.name = "selftest_replaced_some", .replace = replace_some,
                           .data = ROW_REPLACED_SOME},
    [ROW_CHANGED] = {.name = "selftest_changed", .before = change_before, .after = change_after,
                     .data = ROW_CHANGED},
    COUNT(ROW_COUNTED, "selftest_counted*"),
    [ROW_LOGGED] = {.name = "selftest_logged", .before = log_before, .after = log_after,
                    .data = ROW_LOGGED},
    [ROW_LOGGED_TOO] = {.name = "selftest_logged_too", .before = log_before, .after = log_after,
                        .data = ROW_LOGGED_TOO},
    [ROW_STATIC] = {.name = "selftest_static", .flags = TOOL_FUNCTION_LOCAL,
                    .before = count_before, .after = count_after, .data = ROW_STATIC},
    [ROW_CALLS_BACK] = {.name = "selftest_calls_back", .replace = replace_calls_back,
                        .data = ROW_CALLS_BACK},
};

static void fork_child(ToolThread *thread)
{
    (void)thread;
    for (unsigned i = 0; i < ROW_COUNT; i++)
        row_sums[i] = (RowSums){0};
    heap_sums = (HeapSums){0};
}

static void finish(void)
{
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        if (row_sums[i].calls)
            tool_log("selftest: %s calls %lu returns %lu", functions[i].name, row_sums[i].calls,
                     row_sums[i].returns);
    }
    tool_log("selftest: heap allocs %lu frees %lu bytes %lu", heap_sums.allocs, heap_sums.frees,
             heap_sums.bytes);
}

const Tool tool_selftest = {
    .name = "selftest",
    .summary = "intercept functions for the tests of the engine",
    .gives = TOOL_GIVES_DESCRIPTORS,
    .finish = finish,
    .fork_child = fork_child,
    .functions = functions,
    .function_count = ROW_COUNT,
};
