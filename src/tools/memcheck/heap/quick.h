// SPDX-License-Identifier: MIT
//
// ToolFunction.quick_at of the allocation functions: small blocks, with nothing to tell, from
// stacks that have been there before. Private to its folder.
//
// What must stay true
//   Q2  A fast form leaves a block and its shadow as its handler would (functions_hot.c),
//       or says no and has done nothing.
#ifndef MUNINN_TOOLS_MEMCHECK_HEAP_QUICK_H
#define MUNINN_TOOLS_MEMCHECK_HEAP_QUICK_H

#include "engine/toolapi/toolapi.h"

ToolQuickAtFn quick_malloc, quick_calloc, quick_realloc, quick_new, quick_new_array;
ToolQuickAtFn quick_free, quick_delete, quick_delete_array;
ToolQuickAtFn quick_delete_sized, quick_delete_array_sized;
// Of functions with the names of several (heap_alias()).
ToolQuickAtFn quick_any_new, quick_any, quick_any_delete, quick_any_free;

// Unless options want something unusual of every block.
void heap_quick_init(void);

#endif
