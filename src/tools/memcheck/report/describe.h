// SPDX-License-Identifier: MIT
//
// Descriptions of addresses; private to its folder.
#ifndef MUNINN_TOOLS_MEMCHECK_REPORT_DESCRIBE_H
#define MUNINN_TOOLS_MEMCHECK_REPORT_DESCRIBE_H

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"

// On the stack of `owner`, who is the caller or stands still. Light.
u32 describe_stack(ToolThread *owner, GuestAddr address, RelayPart *ret_parts);

// Stacks of other threads, and mappings. For relay_outside().
typedef struct Elsewhere {
    GuestAddr address;
    RelayPart *parts;
    u32 count;
} Elsewhere;
void describe_elsewhere(ToolThread *thread, void *elsewhere);

#endif
