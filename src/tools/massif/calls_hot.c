// SPDX-License-Identifier: MIT
//
// A call of an allocation function, from its first instruction to its return.
#include "engine/callstack/callstack.h"
#include "tools/massif/massif.h"

// Whether the outermost call still runs: its frame is on the call stack, where it was.
// An exception or longjmp may have left it.
static bool outer_lives(ToolThread *thread, const MassifThread *mt)
{
    const CallStack *cs = &thread->callstack;
    const CallEntry *base = cs->chain[cs->chain_count - 1].base;
    for (const CallEntry *entry = cs->top; entry > base && entry->sp <= mt->outer_sp; entry--) {
        if (entry->sp == mt->outer_sp)
            return entry->ret == mt->outer_return;
    }
    return false;
}

static bool is_nested(ToolThread *thread, const MassifThread *mt, const ToolCall *call)
{
    u64 sp = thread->gpr[RSP];
    if (LIKELY(mt->outer_sp == 0))
        return false;
    // A function that another one jumps to has its stack slot.
    if (sp == mt->outer_sp)
        return call->return_address == mt->outer_return;
    return sp < mt->outer_sp && outer_lives(thread, mt);
}

void call_begins(ToolThread *thread, ToolCall *call)
{
    MassifThread *mt = massif_thread(thread);
    bool is_glibc = CALL_IS_GLIBC(call->function->data);
    if (is_nested(thread, mt, call)) {
        mt->inner_is_glibc |= is_glibc;
        return;
    }
    mt->inner_is_glibc = is_glibc;
    mt->outer_sp = thread->gpr[RSP];
    mt->outer_return = call->return_address;
    call->state = 1;
}

static u64 size_of_call(const ToolCall *call)
{
    u64 data = call->function->data;
    u64 size = call->args[CALL_SIZE(data)];
    return CALL_FACTOR(data) == CALL_NO_FACTOR ? size : size * call->args[CALL_FACTOR(data)];
}

// glibc keeps the size of a chunk before its block; three bits are flags, of which one is
// set for a block that has a mapping of its own.
static u64 usable_size(const MassifThread *mt, u64 address, u64 size)
{
    enum { CHUNK_FLAGS = 7, CHUNK_IS_MAPPED = 2 };
    if (!mt->inner_is_glibc)
        return size;
    u64 chunk = *(const u64 *)(address - 8);
    u64 usable = (chunk & ~(u64)CHUNK_FLAGS) - (chunk & CHUNK_IS_MAPPED ? 16 : 8);
    return usable >= size && usable - size <= 2 * PAGE_SIZE ? usable : size;
}

static void resized(ToolThread *thread, const ToolCall *call, u32 context, u64 address, u64 size)
{
    const MassifThread *mt = massif_thread(thread);
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
    u64 usable = usable_size(mt, address, size);
    if (old)
        event_resize(thread, context, old, address, size, usable);
    else
        event_alloc(thread, context, address, size, usable);
}

void call_ends(ToolThread *thread, ToolCall *call)
{
    MassifThread *mt = massif_thread(thread);
    if (!call->state)
        return;
    mt->outer_sp = 0;
    u64 data = call->function->data;
    u64 address = call->result;
    if (CALL_FORM(data) == FORM_STORED)
        address = address ? 0 : *(const u64 *)call->args[0];
    u64 size = size_of_call(call);
    u32 context = event_context(thread, call->return_address);
    if (CALL_KIND(data) == CALL_RESIZE)
        resized(thread, call, context, address, size);
    else if (address)
        event_alloc(thread, context, address, size, usable_size(mt, address, size));
}

void call_frees(ToolThread *thread, ToolCall *call)
{
    MassifThread *mt = massif_thread(thread);
    u64 address = call->args[CALL_OLD(call->function->data)];
    if (address == 0 || is_nested(thread, mt, call))
        return;
    event_free(thread, address);
}
