// SPDX-License-Identifier: MIT
//
// What an address is: in or near which block, in which frame of whose stack, in which
// mapping. Names are the monitor's; what is sent are numbers.
#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/describe.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

u32 describe_block(const HeapBlock *block, GuestAddr address, RelayPart *ret_parts)
{
    static const u8 relation[] = {
        [HEAP_BEFORE] = RELATION_BEFORE,
        [HEAP_INSIDE] = RELATION_INSIDE,
        [HEAP_AFTER] = RELATION_AFTER,
    };
    bool freed = block->state != HEAP_LIVE;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_BLOCK,
        .block = {
            .address = address,
            .distance = block->distance_bytes,
            .relation = relation[block->relation],
            .size = block->size_bytes,
            .state = freed                      ? STATE_FREED
                     : block->kind == HEAP_POOL ? STATE_CLIENT_DEFINED
                                                : STATE_ALLOCATED,
            .is_recycled = block->state == HEAP_RECYCLED,
        },
        .context = freed ? block->free_context : block->alloc_context,
    };
    bool replaced = memcheck_options->keep_stacktraces == KEEP_STACKS_ALLOC_THEN_FREE;
    if (!freed || replaced || !block->alloc_context)
        return 1;
    ret_parts[1] = (RelayPart){.kind = PART_BLOCK_ALLOCATED, .context = block->alloc_context};
    return 2;
}

static u32 describe_named(ToolThread *thread, GuestAddr address, RelayPart *ret_parts)
{
    NamedBlock *block = &memcheck_thread(thread)->named;
    if (!ranges_find_named(address, block))
        return 0;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_BLOCK,
        .block = {
            .address = address,
            .distance = address - block->start,
            .relation = RELATION_INSIDE,
            .size = block->size,
            .state = STATE_CLIENT_DEFINED,
            .name = block->name,
        },
        .context = block->context,
    };
    return 1;
}

u32 describe_stack(ToolThread *owner, GuestAddr address, RelayPart *ret_parts)
{
    const MemcheckThread *mt = memcheck_thread(owner);
    u32 number;
    GuestAddr pc, cfa;
    bool is_return;
    if (address < mt->stack_lo || address >= mt->stack_hi)
        return 0;
    // What the C library keeps above a thread's stack is none of it.
    if (owner->client_fs - mt->stack_lo < mt->stack_hi - mt->stack_lo && address >= mt->first_sp)
        return 0;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_STACK,
        .thread_place = {.address = address, .thread = owner->relay.number},
    };
    if (address < owner->gpr[RSP] && is_at_home(mt, owner->gpr[RSP])) {
        ret_parts[1] = (RelayPart){
            .kind = PART_STACK_BELOW,
            .below_stack = {.distance = owner->gpr[RSP] - address},
        };
        return 2;
    }
    if (!origins_frame_place(owner, address, &number, &pc, &is_return, &cfa))
        return 1;
    ret_parts[1] = (RelayPart){
        .kind = PART_STACK_FRAME,
        .frame = {
            .number = number,
            .pc = pc,
            .is_return = is_return,
            .cfa_distance = (i64)(address - cfa),
            .thread = owner->relay.number,
            .address = address,
        },
    };
    return 2;
}

u32 describe_address(ToolThread *thread, GuestAddr address, RelayPart *ret_parts)
{
    HeapBlock block;
    u32 count = describe_named(thread, address, ret_parts);
    if (count)
        return count;
    if (heap_find(address, &block))
        return describe_block(&block, address, ret_parts);
    count = describe_stack(thread, address, ret_parts);
    if (count)
        return count;
    Elsewhere elsewhere = {.address = address, .parts = ret_parts};
    relay_outside(thread, describe_elsewhere, &elsewhere);
    if (elsewhere.count)
        return elsewhere.count;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_UNKNOWN,
        .address = {.address = address},
    };
    return 1;
}
