// SPDX-License-Identifier: MIT
//
// Pages, as system calls give and take them. Those of the engine are not the client's
// calls and never come here. What is taken is told before, what is given after (A2).
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "tools/massif/massif.h"

static GuestAddr brk_end; // atomic; 0: not known

// What stands before a context's pc is the instruction that did it: as for a return address.
static u32 context_here(ToolThread *thread)
{
    return event_context(thread, thread->pc);
}

static void put_map(ToolThread *thread, u32 context, GuestAddr start, u64 size, HeapMapKind kind)
{
    WireProducer *producer = relay_wire(thread);
    if (producer)
        wire_put_heap_map(producer, &(Wire_heap_map){context, start, PAGE_UP(size), kind});
}

static void put_unmap(ToolThread *thread, GuestAddr start, u64 size)
{
    WireProducer *producer = relay_wire(thread);
    if (producer)
        wire_put_heap_unmap(producer, &(Wire_heap_unmap){start, PAGE_UP(size)});
}

static HeapMapKind kind_of_initial(const Mapping *mapping)
{
    if (mapping->name && strcmp(mapping->name, "[stack]") == 0)
        return HEAP_MAP_STACK;
    return HEAP_MAP_IMAGE;
}

void maps_start(void)
{
    lock_acquire(&engine_lock);
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m))
        put_map(&thread_ctx, 0, m->start, m->end - m->start, kind_of_initial(m));
    lock_release(&engine_lock);
}

static HeapMapKind kind_of_flags(u64 flags)
{
    if (flags & (MAP_STACK | MAP_GROWSDOWN))
        return HEAP_MAP_STACK;
    return flags & MAP_ANONYMOUS ? HEAP_MAP_ANONYMOUS : HEAP_MAP_FILE;
}

// The break was at `old`; it may have gone either way.
static void brk_changed(ToolThread *thread, GuestAddr now)
{
    GuestAddr old = __atomic_exchange_n(&brk_end, now, __ATOMIC_RELAXED);
    u64 old_end = PAGE_UP(old), new_end = PAGE_UP(now);
    if (old == 0 || old_end == new_end)
        return;
    if (new_end > old_end)
        put_map(thread, context_here(thread), old_end, new_end - old_end, HEAP_MAP_BRK);
    else
        put_unmap(thread, new_end, old_end - new_end);
}

static u64 size_of_mapping(GuestAddr start)
{
    lock_acquire(&engine_lock);
    const Mapping *m = aspace_find(start);
    u64 size = m && m->start == start ? m->end - start : 0;
    lock_release(&engine_lock);
    return size;
}

void maps_before(ToolThread *thread, const ToolSyscall *call)
{
    const u64 *args = call->args;
    bool is_page = args[0] % PAGE_SIZE == 0;
    wire_heap_new_stamp(&thread->relay.wire); // it may take long
    event_more(thread);
    if (call->nr == SYS_clone || call->nr == SYS_clone3)
        event_flush(thread); // from here on there may be others
    if (call->nr == SYS_munmap && is_page && args[1] && args[1] < CLIENT_END)
        put_unmap(thread, args[0], args[1]);
    else if (call->nr == SYS_shmdt && is_page)
        put_unmap(thread, args[0], size_of_mapping(args[0]));
}

static void remapped(ToolThread *thread, const ToolSyscall *call)
{
    WireProducer *producer = relay_wire(thread);
    const u64 *args = call->args;
    u32 context = context_here(thread);
    if (producer)
        wire_put_heap_remap(producer, &(Wire_heap_remap){
            .context = context,
            .address = (u64)call->result,
            .size = PAGE_UP(args[2]),
            .old_address = args[0],
            .old_size = PAGE_UP(args[1]),
        });
}

void maps_after(ToolThread *thread, const ToolSyscall *call)
{
    const u64 *args = call->args;
    if (raw_failed(call->result))
        return;
    switch (call->nr) {
    case SYS_mmap:
        put_map(thread, context_here(thread), (u64)call->result, args[1], kind_of_flags(args[3]));
        break;
    case SYS_mremap: remapped(thread, call); break;
    case SYS_brk: brk_changed(thread, (u64)call->result); break;
    case SYS_shmat:
        put_map(thread, context_here(thread), (u64)call->result,
                size_of_mapping((u64)call->result), HEAP_MAP_SHM);
        break;
    default: break;
    }
}
