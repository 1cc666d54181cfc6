// SPDX-License-Identifier: MIT
//
// Events, as they go into the ring of their thread.
#include "engine/callstack/callstack.h"
#include "engine/relay/relay.h"
#include "tools/massif/massif.h"

static bool is_announced(const MassifThread *mt, u32 context)
{
    return mt->announced[context / 64] >> context % 64 & 1;
}

// Parents first (H1): the frames that are not known yet, from the outermost on.
static void announce(ToolThread *thread, WireProducer *producer, u32 context)
{
    MassifThread *mt = massif_thread(thread);
    for (;;) {
        u32 at = context;
        while (context_parent(at) && !is_announced(mt, context_parent(at)))
            at = context_parent(at);
        wire_put_context(producer, &(Wire_context){at, context_parent(at), context_pc(at)});
        mt->announced[at / 64] |= 1ull << at % 64;
        if (at == context)
            return;
    }
}

u32 event_context(ToolThread *thread, GuestAddr pc)
{
    u32 context = tool_context(thread, pc);
    if (LIKELY(is_announced(massif_thread(thread), context)) || context == 0)
        return context;
    WireProducer *producer = relay_wire(thread);
    if (producer)
        announce(thread, producer, context);
    return context;
}

void event_alloc(ToolThread *thread, u32 context, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = relay_wire(thread);
    u64 *words = producer ? wire_begin(producer, RECORD_HEAP_ALLOC, 2) : NULL;
    massif_thread(thread)->last_freed = 0;
    if (!words)
        return;
    wire_set_payload(words, context);
    words[0] = heap_place(address, size, usable);
    words[1] = size;
    wire_publish(producer);
}

void event_resize(ToolThread *thread, u32 context, u64 old, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = relay_wire(thread);
    u64 *words = producer ? wire_begin(producer, RECORD_HEAP_REALLOC, 3) : NULL;
    massif_thread(thread)->last_freed = 0;
    if (!words)
        return;
    wire_set_payload(words, context);
    words[0] = heap_place(address, size, usable);
    words[1] = size;
    words[2] = old;
    wire_publish(producer);
}

void event_free(ToolThread *thread, u64 address)
{
    MassifThread *mt = massif_thread(thread);
    if (mt->last_freed == address)
        return; // delete, and the free in it
    mt->last_freed = address;
    WireProducer *producer = relay_wire(thread);
    u64 *words = producer ? wire_begin(producer, RECORD_HEAP_FREE, 1) : NULL;
    if (!words)
        return;
    words[0] = address;
    wire_publish(producer);
}

void event_flush(ToolThread *thread)
{
    (void)thread;
}
