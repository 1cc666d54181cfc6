// SPDX-License-Identifier: MIT
//
// Findings: what was wrong, and what is known of the address.
#ifndef MUNINN_TOOLS_MEMCHECK_REPORT_REPORT_H
#define MUNINN_TOOLS_MEMCHECK_REPORT_REPORT_H

#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/memcheck.h"

// --- errors_hot.c
void error_jump(ToolThread *thread, GuestAddr target);
void error_access(ToolThread *thread, GuestAddr address, u64 size, bool is_write);
void error_undefined(ToolThread *thread, u32 events);
extern u64 error_undefined_count; // atomic: uses of undefined values that were seen

// --- describe_hot.c: the parts of a finding that say what an address is
#define MEMCHECK_PARTS_MAX 4
u32 describe_block(const HeapBlock *block, GuestAddr address, RelayPart *ret_parts);
u32 describe_address(ToolThread *thread, GuestAddr address, RelayPart *ret_parts);

// --- describe.c
// What a mapping is, and of which file. Under engine_lock.
MappedPlace describe_place(const Mapping *mapping, const char **ret_path);

#endif
