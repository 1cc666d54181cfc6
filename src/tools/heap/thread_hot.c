// SPDX-License-Identifier: MIT
//
// The life of the heap and of its threads, counters, and fork. A fork happens with every
// lock held, so no shared structure is caught half changed; the caches of other
// threads may be, and the child gives them up: at most some slots stay unused.
#include <linux/mman.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "tools/heap/external.h"
#include "tools/heap/heap_internal.h"

#define TABLE_BYTES (TABLE_ENTRIES * sizeof(u64))

void heap_defaults(HeapOptions *ret_options)
{
    *ret_options = (HeapOptions){
        .redzone_bytes = 16,
        .freelist_volume = 20000000,
        .freelist_big = 1000000,
        .malloc_fill = -1,
        .free_fill = -1,
    };
}

// What follows from the options of the quarantine.
static void set_volumes(void)
{
    heap.chunk_volume = max_u64(1, min_u64(64 * KiB, heap.options.freelist_volume / 8));
    heap.quick_free_max = min_u64(heap.options.freelist_big - 1, SMALL_MAX); // 0: any
}

bool heap_init(const HeapOptions *options)
{
    ASSERT(options->redzone_bytes <= HEAP_REDZONE_MAX && options->hooks.map &&
           options->hooks.unmap);
    heap = (Heap){0};
    heap.options = *options;
    heap.gap = round_up(options->redzone_bytes, SLOT_ALIGN);
    set_volumes();
    heap.table = pages_reserve(TABLE_BYTES);
    if (!heap.table)
        return false;
    if (!pages_open(heap.table, TABLE_BYTES)) {
        pages_unmap(heap.table, TABLE_BYTES);
        return false;
    }
    raw_syscall3(SYS_madvise, (u64)heap.table, TABLE_BYTES, MADV_NOHUGEPAGE);
    vec_init(&heap.segments, sizeof(Segment *));
    vec_init(&heap.huge_live, sizeof(HugeBlock *));
    classes_init();
    return true;
}

void heap_change_freelist(u64 volume, u64 big, u64 brief_volume)
{
    heap.options.freelist_volume = volume;
    heap.options.freelist_big = big;
    heap.options.brief_volume = brief_volume;
    set_volumes();
}

void heap_destroy(void)
{
    segments_destroy();
    huge_destroy();
    external_destroy();
    for (HeapThread *thread = heap.threads, *next; thread; thread = next) {
        ASSERT(!thread->is_active);
        next = thread->next;
        pages_unmap(thread, sizeof(HeapThread));
    }
    pages_unmap(heap.table, TABLE_BYTES);
    heap = (Heap){0};
}

HeapThread *heap_thread_start(u16 thread_index)
{
    lock_acquire(&heap.thread_lock);
    HeapThread *thread = heap.threads;
    while (thread && thread->is_active)
        thread = thread->next;
    if (!thread) {
        thread = pages_map(sizeof(HeapThread));
        if (thread) {
            thread->next = heap.threads;
            heap.threads = thread;
        }
    }
    if (thread) {
        thread->index = thread_index;
        thread->is_active = true;
        heap.active_threads++;
    }
    lock_release(&heap.thread_lock);
    return thread;
}

static void add_counters(HeapStats *stats, const HeapThread *thread)
{
    stats->allocs += __atomic_load_n(&thread->allocs, __ATOMIC_RELAXED);
    stats->frees += __atomic_load_n(&thread->frees, __ATOMIC_RELAXED);
    stats->allocated_bytes += __atomic_load_n(&thread->allocated_bytes, __ATOMIC_RELAXED);
    stats->freed_bytes += __atomic_load_n(&thread->freed_bytes, __ATOMIC_RELAXED);
}

// Under the threads lock.
static void retire_counters(HeapThread *thread)
{
    add_counters(&heap.ended, thread);
    thread->allocs = 0;
    thread->frees = 0;
    thread->allocated_bytes = 0;
    thread->freed_bytes = 0;
    thread->is_active = false;
    heap.active_threads--;
}

void heap_thread_end(HeapThread *thread)
{
    quarantine_close(thread);
    magazines_empty(thread);
    lock_acquire(&heap.thread_lock);
    retire_counters(thread);
    lock_release(&heap.thread_lock);
}

void heap_stats(HeapStats *ret_stats)
{
    lock_acquire(&heap.thread_lock);
    HeapStats stats = heap.ended;
    for (const HeapThread *thread = heap.threads; thread; thread = thread->next)
        add_counters(&stats, thread);
    lock_release(&heap.thread_lock);
    stats.live_blocks = stats.allocs - stats.frees;
    stats.live_bytes = stats.allocated_bytes - stats.freed_bytes;
    stats.usage_allocs = stats.allocs + external_usage.allocs;
    stats.usage_frees = stats.frees + external_usage.frees;
    stats.usage_bytes = stats.allocated_bytes + external_usage.bytes - external_usage.grown_bytes;
    stats.quarantine_bytes = __atomic_load_n(&heap.volume, __ATOMIC_RELAXED);
    *ret_stats = stats;
}

// In the order of H4.
static void for_each_lock(void (*fn)(Lock *lock))
{
    for (u32 i = 0; i < CLASS_COUNT; i++)
        fn(&heap.classes[i].lock);
    fn(&heap.segment_lock);
    fn(&heap.quarantine_lock);
    fn(&heap.huge_lock);
    fn(&external_lock);
    fn(&heap.thread_lock);
}

void heap_fork_prepare(void)
{
    for_each_lock(lock_acquire);
}

void heap_fork_parent(void)
{
    for_each_lock(lock_release);
}

void heap_fork_child(HeapThread *self)
{
    for (HeapThread *thread = heap.threads; thread; thread = thread->next) {
        if (thread == self || !thread->is_active)
            continue;
        retire_counters(thread);
        thread->chunk = NULL;
        thread->brief.count = 0;
        thread->brief.volume = 0;
        for (u32 i = 0; i < CLASS_COUNT; i++)
            thread->counts[i] = 0;
    }
    for_each_lock(lock_reset_after_fork);
}
