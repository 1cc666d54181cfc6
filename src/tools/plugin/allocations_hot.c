// SPDX-License-Identifier: MIT
//
// Allocations of the client: from calls of functions that allocate to events. The handlers run in
// the cache, so threads that allocate at once do not wait for each other.
#include "engine/aspace/aspace.h"
#include "tools/plugin/allocations.h"

MuninnAllocationFn *allocation_fn;
void *allocation_data;

static void call_tool(MuninnThread *thread, void *data, uint64_t value)
{
    (void)value;
    allocation_fn(thread, data, allocation_data);
}

static void tell(ToolThread *thread, const MuninnAllocation *event)
{
    gate_run(thread, call_tool, (void *)(u64)event, "muninn_on_allocation");
}

// Of functions that call each other the outermost counts: it has returned when an after handler
// finds its thread's depth to be 0 again. A call that is left by an exception has allocated
// nothing.
void allocation_before(ToolThread *thread, ToolCall *call)
{
    call->state = ++plugin_thread(thread)->alloc_depth;
}

void allocation_left(ToolThread *thread, ToolCall *call)
{
    plugin_thread(thread)->alloc_depth = (u32)call->state - 1;
}

void allocation_frees(ToolThread *thread, ToolCall *call)
{
    allocation_before(thread, call);
    u64 address = call->args[DATA_OLD(call->function->data)];
    if (call->state == 1 && address)
        tell(thread, &(MuninnAllocation){
            .kind = MUNINN_FREED, .address = address, .pc = call->return_address,
        });
}

static u64 size_of(const ToolCall *call)
{
    u64 data = call->function->data;
    u64 size = call->args[DATA_SIZE(data)];
    return DATA_FACTOR(data) == NO_FACTOR ? size : size * call->args[DATA_FACTOR(data)];
}

static void resized(ToolThread *thread, const ToolCall *call, u64 address, u64 size)
{
    u64 old = call->args[DATA_OLD(call->function->data)];
    MuninnAllocation event = {.pc = call->return_address, .address = address, .size = size};
    if (DATA_FORM(call->function->data) == FORM_IN_PLACE) {
        event.size = address;
        event.address = old;
    }
    if (event.address == 0 && old && size == 0)
        event = (MuninnAllocation){.kind = MUNINN_FREED, .address = old, .pc = event.pc};
    else if (event.address == 0)
        return;
    else if (old)
        event.kind = MUNINN_RESIZED, event.old = old;
    tell(thread, &event);
}

void allocation_after(ToolThread *thread, ToolCall *call)
{
    u64 data = call->function->data, address = call->result, size = size_of(call);
    bool is_outermost = call->state == 1;
    allocation_left(thread, call);
    if (!is_outermost)
        return;
    if (DATA_FORM(data) == FORM_STORED && (address || !guest_read(call->args[0], &address, 8)))
        return;
    if (DATA_KIND(data) == KIND_RESIZE)
        resized(thread, call, address, size);
    else if (address)
        tell(thread, &(MuninnAllocation){
            .kind = MUNINN_ALLOCATED, .address = address, .size = size,
            .pc = call->return_address,
        });
}

void allocation_freed(ToolThread *thread, ToolCall *call)
{
    allocation_left(thread, call);
}
