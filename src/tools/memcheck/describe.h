// SPDX-License-Identifier: MIT
//
// Descriptions of addresses; private to memcheck/.
#ifndef MUNINN_TOOLS_MEMCHECK_DESCRIBE_H
#define MUNINN_TOOLS_MEMCHECK_DESCRIBE_H

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"

// On the stack of `owner`, who is the caller or stands still. Light.
u32 describe_stack(ToolThread *owner, GuestAddr address, RelayPart *ret_parts);

// What a mapping is, and of which file. Under engine_lock.
MappedPlace describe_place(const Mapping *mapping, const char **ret_path);

// Stacks of other threads, and mappings. For relay_outside().
typedef struct Elsewhere {
    GuestAddr address;
    RelayPart *parts;
    u32 count;
} Elsewhere;
void describe_elsewhere(ToolThread *thread, void *elsewhere);

#endif
