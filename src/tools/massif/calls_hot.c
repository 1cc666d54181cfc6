// SPDX-License-Identifier: MIT
//
// A call of an allocation function, when it has returned; one that frees, before it does.
#include "tools/massif/massif.h"

static u64 size_of_call(const ToolCall *call)
{
    u64 data = call->function->data;
    u64 size = call->args[CALL_SIZE(data)];
    return CALL_FACTOR(data) == CALL_NO_FACTOR ? size : size * call->args[CALL_FACTOR(data)];
}

// glibc keeps the size of a chunk before its block; three bits are flags, of which one is
// set for a block that has a mapping of its own. Whoever calls glibc's malloc may return something
// else, which may be the first of its pages.
static u64 usable_size(const ToolCall *call, u64 address, u64 size)
{
    enum { CHUNK_FLAGS = 7, CHUNK_IS_MAPPED = 2 };
    if (!call->inner || !CALL_IS_GLIBC(call->inner->data) ||
        (call->inner != call->function && address % PAGE_SIZE == 0))
        return size;
    u64 chunk = *(const u64 *)(address - 8);
    u64 usable = (chunk & ~(u64)CHUNK_FLAGS) - (chunk & CHUNK_IS_MAPPED ? 16 : 8);
    return usable >= size && usable - size <= HEAP_EXTRA_MAX ? usable : size;
}

static void resized(ToolThread *thread, const ToolCall *call, u64 address, u64 size)
{
    u64 data = call->function->data;
    u64 old = call->args[CALL_OLD(data)];
    if (CALL_FORM(data) == FORM_IN_PLACE) {
        size = address;
        address = old;
    }
    if (address == 0) {
        if (old && size == 0)
            event_free(thread, old);
        return;
    }
    u64 usable = usable_size(call, address, size);
    if (old)
        event_resize(thread, call->return_address, old, address, size, usable);
    else
        event_alloc(thread, call->return_address, address, size, usable);
}

void call_ends(ToolThread *thread, ToolCall *call)
{
    u64 data = call->function->data;
    u64 address = call->result;
    if (CALL_FORM(data) == FORM_STORED)
        address = address ? 0 : *(const u64 *)call->args[0];
    u64 size = size_of_call(call);
    if (CALL_KIND(data) == CALL_RESIZE)
        resized(thread, call, address, size);
    else if (address)
        event_alloc(thread, call->return_address, address, size,
                    usable_size(call, address, size));
}

void call_frees(ToolThread *thread, ToolCall *call)
{
    if (call->args[0])
        event_free(thread, call->args[0]);
}
