// SPDX-License-Identifier: MIT
//
// Events, on their way into the ring of their thread: with a context that the ring knows.
#include "engine/calltags/calltags.h"
#include "engine/relay/relay.h"
#include "tools/massif/massif.h"

u32 massif_threads;

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

// Of a ContextCache.
void event_announce(void *arg, u32 context)
{
    ToolThread *thread = arg;
    if (context && !is_announced(massif_thread(thread), context))
        announce(thread, &thread->wire, context);
}

// Of a ring that is new: the thread's first, or the first of a fork's child.
static void ring_changed(ToolThread *thread, WireProducer *producer)
{
    MassifThread *mt = massif_thread(thread);
    mt->ring = producer->ring;
    if (!producer->is_common)
        thread->lean_repeat = &producer->ring->held.repeat;
}

// The ring; with its connection made, and the instructions told if they are the clock.
static inline WireProducer *ring_of(ToolThread *thread)
{
    WireProducer *producer = &thread->wire;
    MassifThread *mt = massif_thread(thread);
    if (UNLIKELY(mt->ring != producer->ring || !producer->ring || *producer->life < 0)) {
        producer = relay_wire(thread);
        if (!producer)
            return NULL;
        ring_changed(thread, producer);
    }
    if (UNLIKELY(mt->counts_instructions))
        wire_put_heap_clock(producer, &(Wire_heap_clock){thread->tool_slot[MASSIF_INSTRUCTIONS]});
    return producer;
}

static inline u32 context_on(ToolThread *thread, GuestAddr pc, GuestAddr *ret_slot)
{
    return calltags_context(pc, thread->gpr[RSP], &massif_thread(thread)->cache, ret_slot);
}

u32 event_context(ToolThread *thread, GuestAddr pc)
{
    GuestAddr slot;
    return ring_of(thread) ? context_on(thread, pc, &slot) : 0;
}

// Repetitions are counted by emitted code while there is one thread and time is no question of
// instructions.
static inline bool may_repeat(ToolThread *thread, GuestAddr pc, GuestAddr slot)
{
    return __atomic_load_n(&massif_threads, __ATOMIC_RELAXED) == 1 && slot && pc <= UINT32_MAX &&
           !massif_thread(thread)->counts_instructions;
}

void event_alloc(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = ring_of(thread);
    massif_thread(thread)->last_freed = 0;
    if (UNLIKELY(!producer))
        return;
    WireAlloc alloc = {.address = address, .size = size, .usable = usable};
    alloc.context = context_on(thread, pc, &alloc.slot);
    if (may_repeat(thread, pc, alloc.slot)) {
        alloc.site = (u32)pc;
        alloc.sp = thread->gpr[RSP];
        alloc.tag = *calltags_word(alloc.slot);
    }
    wire_heap_alloc(producer, &alloc);
}

void event_resize(ToolThread *thread, GuestAddr pc, u64 old, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = ring_of(thread);
    massif_thread(thread)->last_freed = 0;
    if (UNLIKELY(!producer))
        return;
    WireAlloc alloc = {.address = address, .size = size, .usable = usable};
    alloc.context = context_on(thread, pc, &alloc.slot);
    wire_heap_realloc(producer, &alloc, old);
}

void event_free(ToolThread *thread, u64 address)
{
    MassifThread *mt = massif_thread(thread);
    if (mt->last_freed == address)
        return; // delete, and the free in it
    mt->last_freed = address;
    WireProducer *producer = ring_of(thread);
    if (LIKELY(producer != NULL))
        wire_heap_free(producer, address);
}
