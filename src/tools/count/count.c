// SPDX-License-Identifier: MIT
//
// Counts what each thread executes: instructions, blocks, reads and writes.
// Also the proof that a tool fits on a page.
#include "tools/tools.h"

enum Slot { SLOT_INSNS, SLOT_BLOCKS, SLOT_READS, SLOT_WRITES, SLOT_COUNT };

static const char *const slot_name[SLOT_COUNT] = {
    [SLOT_INSNS] = "instructions",
    [SLOT_BLOCKS] = "blocks",
    [SLOT_READS] = "reads",
    [SLOT_WRITES] = "writes",
};

static u64 ended[SLOT_COUNT]; // sums of the threads that have ended
static u64 threads_seen;

static void count_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    (void)insns;
    (void)count;
    tool_count(block, SLOT_BLOCKS, 1);
}

// One instruction at a time, because a block may be left at any of its
// branches and the totals must be exact.
static void count_insn(ToolBlock *block, const ToolInsn *insn)
{
    ToolAccess access[8];
    unsigned reads = 0, writes = 0;
    unsigned n = tool_accesses(insn, access, ARRAY_LEN(access));
    for (unsigned i = 0; i < n; i++) {
        reads += access[i].reads;
        writes += access[i].writes;
    }
    tool_count(block, SLOT_INSNS, 1);
    if (reads)
        tool_count(block, SLOT_READS, reads);
    if (writes)
        tool_count(block, SLOT_WRITES, writes);
}

static void thread_start(ToolThread *thread)
{
    (void)thread;
    __atomic_fetch_add(&threads_seen, 1, __ATOMIC_RELAXED);
}

static void add_thread(ToolThread *thread, void *arg)
{
    u64 *sums = arg;
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        __atomic_fetch_add(&sums[i], thread->tool.slot[i], __ATOMIC_RELAXED);
}

static void report(const char *what, const u64 *sums)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        tool_log("count: %s %s %lu", what, slot_name[i], sums[i]);
}

static void thread_end(ToolThread *thread)
{
    tool_log("count: thread %d instructions %lu", thread->thread.tid,
             thread->tool.slot[SLOT_INSNS]);
    add_thread(thread, ended);
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        thread->tool.slot[i] = 0; // finish() may still meet the thread
}

static void fork_child(ToolThread *thread)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        ended[i] = thread->tool.slot[i] = 0;
    threads_seen = 1;
}

static void finish(void)
{
    u64 sums[SLOT_COUNT];
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        sums[i] = ended[i];
    tool_for_each_thread(add_thread, sums);
    report("total", sums);
    tool_log("count: total threads %lu", threads_seen);
}

const Tool tool_count_tool = {
    .name = "count",
    .summary = "count instructions, blocks and memory accesses of each thread",
    .needs = TOOL_NEEDS_FLAGS,
    .gives = TOOL_GIVES_DESCRIPTORS,
    .finish = finish,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .fork_child = fork_child,
    .block = count_block,
    .insn = count_insn,
};
