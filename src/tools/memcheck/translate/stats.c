// SPDX-License-Identifier: MIT
//
// How often dirty versions run, for --stats. The code that counts is inserted only with that
// option, and only into dirty blocks: other runs and clean blocks pay nothing. Instructions are
// counted one by one, because a block may be left at any branch or failed guard.
#include "engine/cache/cache.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/translate/translate.h"

static const char *const stat_name[MEMCHECK_STATS] = {
    [MEMCHECK_STAT_GUARDS] = "memcheck.guards_failed",
    [MEMCHECK_STAT_STEPS] = "memcheck.steps",
    [MEMCHECK_STAT_INSNS] = "memcheck.dirty_instructions",
};

static u64 ended[MEMCHECK_STATS]; // atomic; of threads that are no more

void stats_count(ToolBlock *block, MemcheckStat stat)
{
    if (memcheck_options->stats && tool_version(block))
        tool_count(block, stat, 1);
}

// The instructions of a mixed block are not counted else: steps are few.
u32 stats_of_step(const ToolBlock *block, bool by_guard)
{
    if (!memcheck_options->stats)
        return 0;
    return 1u << MEMCHECK_STAT_STEPS | (tool_version(block) ? 0 : 1u << MEMCHECK_STAT_INSNS) |
           (by_guard ? 1u << MEMCHECK_STAT_GUARDS : 0);
}

static void add_thread(ToolThread *thread, void *arg)
{
    u64 *sums = arg;
    for (unsigned i = 0; i < MEMCHECK_STATS; i++)
        __atomic_fetch_add(&sums[i], thread->tool.slot[i], __ATOMIC_RELAXED);
}

void stats_thread_ended(ToolThread *thread)
{
    add_thread(thread, ended);
    for (unsigned i = 0; i < MEMCHECK_STATS; i++)
        thread->tool.slot[i] = 0; // the thread stays in the registry for a while
}

void stats_fork_child(ToolThread *thread)
{
    for (unsigned i = 0; i < MEMCHECK_STATS; i++)
        ended[i] = thread->tool.slot[i] = 0;
}

void stats_tell(void)
{
    u64 sums[MEMCHECK_STATS];
    for (unsigned i = 0; i < MEMCHECK_STATS; i++)
        sums[i] = __atomic_load_n(&ended[i], __ATOMIC_RELAXED);
    tool_for_each_thread(add_thread, sums);
    for (unsigned i = 0; i < MEMCHECK_STATS; i++)
        tool_log("stats: %s %lu", stat_name[i], sums[i]);
}
