// SPDX-License-Identifier: MIT
//
// Sums of the heap by calling context, for --xtree-memory: kept as blocks come and go, told when
// they are asked for. Private to its folder.
#ifndef MUNINN_TOOLS_MEMCHECK_HEAP_COUNT_H
#define MUNINN_TOOLS_MEMCHECK_HEAP_COUNT_H

#include "tools/memcheck/memcheck.h"

// Before anything is allocated. With `full` all that was ever allocated and freed is told, too.
void heap_count_start(bool full);
bool heap_is_counted(void);

// --- count_hot.c: light
void heap_count_allocation(u32 context, u64 size);
// `freed_by`: the context of the release.
void heap_count_release(u32 allocated_by, u32 freed_by, u64 size);

// The monitor writes the sums of now; by_command: to a file of its own.
void heap_count_tell(ToolThread *thread, bool by_command);

#endif
