// SPDX-License-Identifier: MIT
//
// Events, on their way into the ring of their thread: with a context that the ring knows.
#include "engine/calltags/calltags.h"
#include "engine/relay/relay.h"
#include "tools/massif/massif.h"

#define STACK_BYTES_MAX (1ull << 30)

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
        announce(thread, &thread->relay.wire, context);
}

// Of a ring that is new: the thread's first, or the first of a fork's child.
static void ring_changed(ToolThread *thread, WireProducer *producer)
{
    MassifThread *mt = massif_thread(thread);
    mt->ring = producer->ring;
    if (!producer->is_common)
        thread->lean.repeat = &producer->ring->held.repeat;
}

// Nobody knows afterwards who has made the stack as deep as it was between two events: so that is
// looked at as it becomes deeper than ever, and then for each page, or sixteenth, more.
void event_deeper(ToolThread *thread, u64 pc, GuestAddr unused)
{
    MassifThread *mt = massif_thread(thread);
    u64 sp = thread->gpr[RSP], bytes = mt->stack_base - sp;
    GuestAddr slot;
    (void)unused;
    if (mt->ring && mt->ring == thread->relay.wire.ring && *thread->relay.wire.life >= 0 &&
        bytes < STACK_BYTES_MAX)
        mt->deep_context = calltags_context(pc, sp, &mt->cache, &slot);
    thread->tool.slot[MASSIF_LOOK_SP] = sp - max_u64(PAGE_SIZE, bytes % STACK_BYTES_MAX / 16);
}

// The depth of the stack if it has changed. On a stack of the client's making it is not known.
static void tell_stack(ToolThread *thread, WireProducer *producer)
{
    MassifThread *mt = massif_thread(thread);
    u64 *low = &thread->tool.slot[MASSIF_LOW_SP];
    u64 bytes = mt->stack_base - thread->gpr[RSP], deepest = mt->stack_base - *low;
    u32 deep_context = mt->deep_context;
    GuestAddr slot;
    if (bytes >= STACK_BYTES_MAX)
        return;
    *low = thread->gpr[RSP];
    if (deepest < bytes || deepest >= STACK_BYTES_MAX)
        deepest = bytes;
    mt->deepest_bytes = max_u64(mt->deepest_bytes, deepest);
    thread->tool.slot[MASSIF_LOOK_SP] = mt->stack_base - mt->deepest_bytes;
    mt->deep_context = 0;
    if (bytes == mt->told_bytes && deepest == bytes)
        return;
    mt->told_bytes = bytes;
    if (deepest > bytes && deep_context) {
        wire_put_heap_stack(producer, &(Wire_heap_stack){deep_context, deepest, deepest});
        deepest = bytes;
    }
    u32 context = calltags_context(thread->pc, thread->gpr[RSP], &mt->cache, &slot);
    wire_put_heap_stack(producer, &(Wire_heap_stack){context, bytes, deepest});
}

static __attribute__((noinline)) void tell_more(ToolThread *thread, WireProducer *producer)
{
    MassifThread *mt = massif_thread(thread);
    if (mt->counts_instructions)
        wire_put_heap_clock(producer, &(Wire_heap_clock){thread->tool.slot[MASSIF_INSTRUCTIONS]});
    if (mt->tells_stack)
        tell_stack(thread, producer);
}

// The ring; with its connection made, and what some options want to be told first.
static inline WireProducer *ring_of(ToolThread *thread)
{
    WireProducer *producer = &thread->relay.wire;
    MassifThread *mt = massif_thread(thread);
    if (UNLIKELY(mt->ring != producer->ring || !producer->ring || *producer->life < 0)) {
        producer = relay_wire(thread);
        if (!producer)
            return NULL;
        ring_changed(thread, producer);
    }
    if (UNLIKELY(mt->tells_more))
        tell_more(thread, producer);
    return producer;
}

static inline u32 context_on(ToolThread *thread, GuestAddr pc, GuestAddr *ret_slot)
{
    const StackChain *chain;
    return stack_context(thread, pc, ret_slot, &chain);
}

u32 event_context(ToolThread *thread, GuestAddr pc)
{
    GuestAddr slot;
    return ring_of(thread) ? context_on(thread, pc, &slot) : 0;
}

// One thread, and nothing is to be told beside its events.
static inline bool is_alone(const ToolThread *thread)
{
    const MassifThread *mt = thread->tool.thread;
    return __atomic_load_n(&massif_threads, __ATOMIC_RELAXED) == 1 && !mt->tells_more;
}

// Then repetitions are counted by emitted code.
static inline bool may_repeat(const ToolThread *thread, GuestAddr pc, GuestAddr slot)
{
    return is_alone(thread) && slot && pc <= UINT32_MAX && !calltags_is_elastic(pc);
}

static void put_alloc(ToolThread *thread, WireProducer *producer, GuestAddr pc, WireAlloc *alloc)
{
    if (may_repeat(thread, pc, alloc->slot)) {
        alloc->site = (u32)pc;
        alloc->sp = thread->gpr[RSP];
        alloc->tag = *calltags_word(alloc->slot);
    }
    wire_heap_alloc(producer, alloc);
}

void event_alloc(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = ring_of(thread);
    thread->lean.told = 0;
    if (UNLIKELY(!producer))
        return;
    WireAlloc alloc = {.address = address, .size = size, .usable = usable};
    alloc.context = context_on(thread, pc, &alloc.slot);
    put_alloc(thread, producer, pc, &alloc);
}

// Emitted code may put the next event of this place (translate/lean_alloc_x64.c).
static inline void remember_site(ToolThread *thread, GuestAddr pc, GuestAddr slot,
                                 const StackChain *chain)
{
    ToolSite *site = &thread->lean.sites[tool_site_index((u32)pc)];
    if (site->site != (u32)pc)
        site->word = 0;
    site->site = (u32)pc;
    site->hook = thread->lean.hook;
    site->inner = thread->lean.inner;
    site->up = slot - thread->gpr[RSP];
    if (chain) {
        u32 above = chain->count > 1;
        site->sp = chain->sp;
        site->word = chain->frames[0].tag;
        site->slot_above = chain->frames[above].slot;
        site->word_above = chain->frames[above].tag;
    }
}

// The site is remembered; but the caller's context is not known, or its frame has another size.
u32 event_site_context(ToolThread *thread, GuestAddr pc)
{
    const StackChain *chain;
    GuestAddr slot = 0;
    if (UNLIKELY(!is_alone(thread) || massif_thread(thread)->ring != thread->relay.wire.ring))
        return 0;
    u32 context = stack_context(thread, pc, &slot, &chain);
    if (UNLIKELY(!slot || calltags_is_elastic(pc)))
        return 0;
    remember_site(thread, pc, slot, chain);
    return context;
}

void event_alloc_again(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = ring_of(thread);
    const StackChain *chain;
    thread->lean.told = 0;
    if (UNLIKELY(!producer))
        return;
    WireAlloc alloc = {.address = address, .size = size, .usable = usable};
    alloc.context = stack_context(thread, pc, &alloc.slot, &chain);
    if (may_repeat(thread, pc, alloc.slot))
        remember_site(thread, pc, alloc.slot, chain);
    put_alloc(thread, producer, pc, &alloc);
}

void event_resize(ToolThread *thread, GuestAddr pc, u64 old, u64 address, u64 size, u64 usable)
{
    WireProducer *producer = ring_of(thread);
    thread->lean.told = 0;
    if (UNLIKELY(!producer))
        return;
    WireAlloc alloc = {.address = address, .size = size, .usable = usable};
    alloc.context = context_on(thread, pc, &alloc.slot);
    wire_heap_realloc(producer, &alloc, old, is_alone(thread));
}

// delete, and the free in it: another function, in the same frame or below it.
static inline bool is_told(const ToolThread *thread, const void *function, u64 address)
{
    return thread->lean.told == address && thread->lean.told_function != (u64)function &&
           thread->gpr[RSP] <= thread->lean.told_sp;
}

void event_free(ToolThread *thread, const void *function, u64 address)
{
    if (UNLIKELY(is_told(thread, function, address)))
        return;
    thread->lean.told = address;
    thread->lean.told_function = (u64)function;
    thread->lean.told_sp = thread->gpr[RSP];
    WireProducer *producer = ring_of(thread);
    if (LIKELY(producer != NULL))
        wire_heap_free(producer, address, is_alone(thread));
}

void event_flush(ToolThread *thread)
{
    if (thread->relay.wire.ring && !thread->relay.wire.is_common)
        wire_heap_flush(&thread->relay.wire);
}

void event_more(ToolThread *thread)
{
    if (massif_thread(thread)->tells_more)
        ring_of(thread);
}
