// SPDX-License-Identifier: MIT
//
// Functions that allocate: how each takes and gives blocks, and the handlers around them.
#ifndef MUNINN_TOOLS_PLUGIN_ALLOCATIONS_H
#define MUNINN_TOOLS_PLUGIN_ALLOCATIONS_H

#include "tools/plugin/plugin_internal.h"

// How a function takes and gives blocks, in ToolFunction.data.
typedef enum AllocKind { KIND_ALLOC, KIND_RESIZE, KIND_FREE } AllocKind;
typedef enum AllocForm { FORM_RETURNED, FORM_STORED, FORM_IN_PLACE } AllocForm;
enum { NO_FACTOR = 15 };
#define DATA(kind, form, old, size, factor)                                                        \
    ((u64)(kind) | (u64)(form) << 4 | (u64)(old) << 8 | (u64)(size) << 12 | (u64)(factor) << 16)
#define DATA_KIND(data) ((AllocKind)((data) & 15))
#define DATA_FORM(data) ((AllocForm)((data) >> 4 & 15))
#define DATA_OLD(data) ((data) >> 8 & 15)
#define DATA_SIZE(data) ((data) >> 12 & 15)
#define DATA_FACTOR(data) ((data) >> 16 & 15)

extern MuninnAllocationFn *allocation_fn;
extern void *allocation_data;

ToolWrapFn allocation_before, allocation_after, allocation_left, allocation_frees, allocation_freed;

#endif
