// SPDX-License-Identifier: MIT
//
// Memcheck as a tool: its hooks, and its state in each thread.
#include "tools/memcheck/memcheck.h"

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/log/log.h"
#include "tools/tools.h"

enum { DIRTY_INSNS_MAX = 16 };

static void start(void)
{
}

// A thread's registers are defined when it starts; its stack below rsp is not.
static void thread_start(ToolThread *thread)
{
    MemcheckThread *mt = pages_map(sizeof(*mt));
    if (!mt)
        log_refuse("no memory for a thread");
    thread->tool_thread = mt;
    thread->engine_gs = SHADOW_OFFSET;
    __asm__ volatile("wrgsbase %0" : : "r"(SHADOW_OFFSET));
    lock_acquire(&engine_lock);
    const Mapping *stack = aspace_find(thread->gpr[RSP] - 1);
    if (stack) {
        mt->stack_lo = stack->start;
        mt->stack_hi = stack->end;
    }
    lock_release(&engine_lock);
}

static void thread_end(ToolThread *thread)
{
    pages_unmap(thread->tool_thread, sizeof(MemcheckThread));
    thread->tool_thread = NULL;
}

const Tool tool_memcheck = {
    .name = "memcheck",
    .summary = "Finds uses of undefined values, invalid accesses and leaks.",
    .needs = TOOL_NEEDS_FLAGS | TOOL_LOOSE_FLAGS | TOOL_NEEDS_CALLSTACK | TOOL_NEEDS_MONITOR,
    .prepare = shadow_init,
    .start = start,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .dirty_insns_max = DIRTY_INSNS_MAX,
    .block = instrument_block,
    .insn = instrument_insn,
    .version = version_of_thread,
    .fault = shadow_fault,
    .mapped = shadow_mapped,
    .unmapped = shadow_unmapped,
};
