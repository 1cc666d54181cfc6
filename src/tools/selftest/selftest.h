// SPDX-License-Identifier: MIT
//
// What the two files of the tool share.
#ifndef MUNINN_TOOLS_SELFTEST_SELFTEST_H
#define MUNINN_TOOLS_SELFTEST_SELFTEST_H

#include "engine/toolapi/toolapi.h"

// Sums over all threads for one row of the table of functions.
typedef struct RowSums {
    u64 calls, returns;
} RowSums;

// What the outermost calls of the malloc family did. A realloc is both an
// allocation and a free.
typedef struct HeapSums {
    u64 allocs, frees, bytes;
} HeapSums;

#define ROWS_MAX 64
extern RowSums row_sums[ROWS_MAX]; // by ToolFunction.data
extern HeapSums heap_sums;

// In ToolThread.tool.slot: how many calls of the malloc family are under way.
enum { SLOT_DEPTH };

ToolWrapFn count_before, count_after;
ToolWrapFn alloc_before, malloc_after, calloc_after, aligned_after, memalign_out_after;
ToolWrapFn realloc_after, free_before, free_after;
ToolReplaceFn replace_fast;

#endif
