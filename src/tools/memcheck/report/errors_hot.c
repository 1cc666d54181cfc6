// SPDX-License-Identifier: MIT
//
// From an event in a block to a finding.
#include "engine/cache/cache.h"
#include "engine/relay/relay.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

// The instruction in whose block the thread is: the call came from there.
static GuestAddr pc_here(ToolThread *thread)
{
    CodePlace place;
    if (!thread->dispatch.in_cache)
        return thread->pc;
    return cache_place(thread->gateway.call_return - 1, &place) ? place.pc : thread->pc;
}

static u32 context_here(ToolThread *thread)
{
    return tool_context(thread, pc_here(thread));
}

// A string function that runs because its access faults, which has been told of: once.
static bool is_told(ToolThread *thread)
{
    enum { FUNCTION_BYTES_MAX = 4096 };
    MemcheckThread *mt = memcheck_thread(thread);
    if (!mt->told_entry || thread->gpr[RSP] != mt->told_sp ||
        pc_here(thread) - mt->told_entry >= FUNCTION_BYTES_MAX)
        return false;
    mt->told_entry = 0;
    return true;
}

void error_access(ToolThread *thread, GuestAddr address, u64 size, bool is_write)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    memcheck_thread(thread)->told_address = address;
    if (is_told(thread) || ranges_is_ignored(thread, address))
        return;
    relay_finding(thread, &(RelayFinding){
        .kind = is_write ? KIND_INVALID_WRITE : KIND_INVALID_READ,
        .access = {.size = size, .address = address},
        .context = context_here(thread),
        .part_count = describe_address(thread, address, parts),
        .parts = parts,
        .key = size,
    });
}

void error_jump(ToolThread *thread, GuestAddr target)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_INVALID_JUMP,
        .address = {.address = target},
        .context = tool_context(thread, target),
        .part_count = describe_address(thread, target, parts),
        .parts = parts,
    });
}

u64 error_undefined_count;

void error_undefined(ToolThread *thread, u32 events)
{
    MemcheckThread *mt = memcheck_thread(thread);
    RelayPart part;
    if (!memcheck_options->undef_value_errors)
        return;
    __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    if (relay_is_closed(thread))
        return;
    u32 context = context_here(thread);
    if (events & EVENT_CONDITION)
        relay_finding(thread, &(RelayFinding){
            .kind = KIND_UNINIT_CONDITION,
            .context = context,
            .part_count = origins_part(mt->value_origin, &part),
            .parts = &part,
        });
    if (events & (EVENT_ADDRESS | EVENT_TARGET)) {
        enum { ADDRESS_BYTES = 8 }; // what is used is the address
        relay_finding(thread, &(RelayFinding){
            .kind = KIND_UNINIT_VALUE,
            .value = {.size = ADDRESS_BYTES},
            .context = context,
            .part_count = origins_part(mt->address_origin, &part),
            .parts = &part,
        });
    }
}
