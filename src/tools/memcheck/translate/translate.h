// SPDX-License-Identifier: MIT
//
// What memcheck inserts into blocks, and the versions that blocks are made in.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_TRANSLATE_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_TRANSLATE_H

#include "tools/memcheck/memcheck.h"

// --- versions_hot.c
u32 version_of_thread(ToolThread *thread);
u64 version_set(u32 version); // a MemberSet
u32 version_number(MemberSet set);
void version_fork_prepare(void);
void version_fork_done(bool in_child);
// Of what follows a block that ends at `block_end`, where no more than these may be undefined.
u32 version_of_exit(GuestAddr block_end, MemberSet set);

// --- instrument.c
void instrument_insn(ToolBlock *block, const ToolInsn *insn);
bool instrument_exit_version(ToolBlock *block, u32 *ret_version);
void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count);

// --- stats.c: slots of thread->tool.slot, counted in dirty blocks with --stats
typedef enum MemcheckStat {
    MEMCHECK_STAT_GUARDS, // guards that failed
    MEMCHECK_STAT_STEPS,  // steps run
    MEMCHECK_STAT_INSNS,  // instructions executed
    MEMCHECK_STATS
} MemcheckStat;
void stats_count(ToolBlock *block, MemcheckStat stat);
u32 stats_of_step(const ToolBlock *block, bool by_guard); // slots, for ToolStep
void stats_thread_ended(ToolThread *thread);
void stats_fork_child(ToolThread *thread);
void stats_tell(void);

#endif
