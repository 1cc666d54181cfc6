// SPDX-License-Identifier: MIT
//
// What an address is: in or near which block, on which stack, in which mapping.
#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/memcheck.h"

u32 describe_block(const HeapBlock *block, GuestAddr address, RelayPart *ret_parts)
{
    static const u8 relation[] = {[HEAP_INSIDE] = 1, [HEAP_BEFORE] = 0, [HEAP_AFTER] = 2};
    bool freed = block->state != HEAP_LIVE;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_BLOCK,
        .value_count = 6,
        .values = {address, block->distance_bytes, relation[block->relation], block->size_bytes,
                   freed ? 1 : 0, block->state == HEAP_RECYCLED},
        .context = freed ? block->free_context : block->alloc_context,
    };
    if (!freed)
        return 1;
    ret_parts[1] = (RelayPart){.kind = PART_BLOCK_ALLOCATED, .context = block->alloc_context};
    return 2;
}

static u32 describe_stack(ToolThread *thread, GuestAddr address, RelayPart *ret_parts)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    if (address < mt->stack_lo || address >= mt->stack_hi)
        return 0;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_STACK,
        .value_count = 2,
        .values = {address, thread->number},
    };
    if (address >= thread->gpr[RSP])
        return 1;
    ret_parts[1] = (RelayPart){
        .kind = PART_STACK_BELOW,
        .value_count = 1,
        .values = {thread->gpr[RSP] - address},
    };
    return 2;
}

u32 describe_address(ToolThread *thread, GuestAddr address, RelayPart *ret_parts)
{
    HeapBlock block;
    if (heap_find(address, &block))
        return describe_block(&block, address, ret_parts);
    u32 count = describe_stack(thread, address, ret_parts);
    if (count)
        return count;
    ret_parts[0] = (RelayPart){
        .kind = PART_ADDRESS_UNKNOWN,
        .value_count = 1,
        .values = {address},
    };
    return 1;
}
