// SPDX-License-Identifier: MIT
//
// The hot handlers: they run inside the cache.
#include "tools/selftest/selftest.h"

RowSums row_sums[ROWS_MAX];
HeapSums heap_sums;

static void add(u64 *sum, u64 amount)
{
    __atomic_fetch_add(sum, amount, __ATOMIC_RELAXED);
}

void count_before(ToolThread *thread, ToolCall *call)
{
    (void)thread;
    add(&row_sums[call->function->data].calls, 1);
}

void count_after(ToolThread *thread, ToolCall *call)
{
    (void)thread;
    add(&row_sums[call->function->data].returns, 1);
}

// `state` is 1 for a call that another of the family made.
void alloc_before(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    call->state = thread->tool.slot[SLOT_DEPTH]++ != 0;
}

static bool outermost_returns(ToolThread *thread, ToolCall *call)
{
    count_after(thread, call);
    thread->tool.slot[SLOT_DEPTH]--;
    return call->state == 0;
}

static void count_alloc(u64 bytes)
{
    add(&heap_sums.allocs, 1);
    add(&heap_sums.bytes, bytes);
}

void malloc_after(ToolThread *thread, ToolCall *call)
{
    if (outermost_returns(thread, call) && call->result)
        count_alloc(call->args[0]);
}

void calloc_after(ToolThread *thread, ToolCall *call)
{
    if (outermost_returns(thread, call) && call->result)
        count_alloc(call->args[0] * call->args[1]);
}

void aligned_after(ToolThread *thread, ToolCall *call)
{
    if (outermost_returns(thread, call) && call->result)
        count_alloc(call->args[1]);
}

void memalign_out_after(ToolThread *thread, ToolCall *call)
{
    if (outermost_returns(thread, call) && call->result == 0)
        count_alloc(call->args[2]);
}

void realloc_after(ToolThread *thread, ToolCall *call)
{
    if (!outermost_returns(thread, call))
        return;
    if (call->result)
        count_alloc(call->args[1]);
    if (call->args[0] && (call->result || call->args[1] == 0))
        add(&heap_sums.frees, 1);
}

void free_before(ToolThread *thread, ToolCall *call)
{
    alloc_before(thread, call);
    if (call->state == 0 && call->args[0])
        add(&heap_sums.frees, 1);
}

void free_after(ToolThread *thread, ToolCall *call)
{
    outermost_returns(thread, call);
}

u64 replace_fast(ToolThread *thread, ToolCall *call)
{
    count_before(thread, call);
    return call->args[0] * 2 + call->args[5];
}
