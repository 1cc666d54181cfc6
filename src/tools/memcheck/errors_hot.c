// SPDX-License-Identifier: MIT
//
// From an event in a block to a finding.
#include "engine/cache/cache.h"
#include "engine/relay/relay.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/ranges.h"

// The instruction in whose block the thread is: the call came from there.
static u32 context_here(ToolThread *thread)
{
    CodePlace place;
    GuestAddr pc = thread->pc;
    if (cache_place(thread->call_return - 1, &place))
        pc = place.pc;
    return tool_context(thread, pc);
}

void error_access(ToolThread *thread, GuestAddr address, u64 size, bool is_write)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    if (ranges_is_ignored(address))
        return;
    relay_finding(thread, &(RelayFinding){
        .kind = is_write ? KIND_INVALID_WRITE : KIND_INVALID_READ,
        .value_count = 2,
        .values = {size, address},
        .context = context_here(thread),
        .part_count = describe_address(thread, address, parts),
        .parts = parts,
        .key = size,
    });
}

void error_undefined(ToolThread *thread, u32 events)
{
    MemcheckThread *mt = memcheck_thread(thread);
    u32 context = context_here(thread);
    RelayPart part;
    mt->undefined_errors++;
    if (events & EVENT_CONDITION)
        relay_finding(thread, &(RelayFinding){
            .kind = KIND_UNINIT_CONDITION,
            .context = context,
            .part_count = origins_part(mt->value_origin, &part),
            .parts = &part,
        });
    if (events & (EVENT_ADDRESS | EVENT_TARGET)) {
        // What is undefined is the address, not what is at it.
        enum { value_size = sizeof(GuestAddr) };
        relay_finding(thread, &(RelayFinding){
            .kind = KIND_UNINIT_VALUE,
            .value_count = 1,
            .values = {value_size},
            .context = context,
            .part_count = origins_part(mt->address_origin, &part),
            .parts = &part,
            .key = value_size,
        });
    }
}
