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
    heap.ended = &heap.own_ended;
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

// What has been counted so far goes with it.
static void choose_counts(HeapThread *thread)
{
    u32 place = thread->number + 1;
    HeapCounts *old = thread->tally;
    thread->tally = place < heap.shared_count ? &heap.shared_counts[place] : &thread->own;
    if (old && old != thread->tally)
        *thread->tally = *old;
    thread->tally->is_used = 1;
}

void heap_count_in(HeapCounts *shared, u32 count)
{
    if (!shared)
        return;
    lock_acquire(&heap.thread_lock);
    heap.shared_counts = shared;
    heap.shared_count = count;
    shared[0] = *heap.ended;
    shared[0].is_used = 1;
    heap.ended = &shared[0];
    for (HeapThread *thread = heap.threads; thread; thread = thread->next)
        choose_counts(thread);
    lock_release(&heap.thread_lock);
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
            thread->number = heap.thread_count++;
            choose_counts(thread);
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

static void add_counts(HeapCounts *sum, const HeapCounts *counts)
{
    sum->allocs += __atomic_load_n(&counts->allocs, __ATOMIC_RELAXED);
    sum->frees += __atomic_load_n(&counts->frees, __ATOMIC_RELAXED);
    sum->allocated_bytes += __atomic_load_n(&counts->allocated_bytes, __ATOMIC_RELAXED);
    sum->freed_bytes += __atomic_load_n(&counts->freed_bytes, __ATOMIC_RELAXED);
}

// Under the threads lock.
static void retire_counters(HeapThread *thread)
{
    add_counts(heap.ended, thread->tally);
    *thread->tally = (HeapCounts){.is_used = 1};
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

static HeapCounts sum_counts(void)
{
    lock_acquire(&heap.thread_lock);
    HeapCounts sum = *heap.ended;
    for (const HeapThread *thread = heap.threads; thread; thread = thread->next)
        add_counts(&sum, thread->tally);
    lock_release(&heap.thread_lock);
    return sum;
}

static void count_live(void *sum, const HeapBlock *block)
{
    HeapCounts *live = sum;
    if (block->kind == HEAP_POOL)
        return; // not counted as a block
    live->allocs++;
    live->allocated_bytes += block->size_bytes;
}

// What lives in a fork's child is counted anew, and what its parent's other threads have freed is
// what is missing.
static void correct_counts(void)
{
    HeapCounts live = {0};
    heap_fork_prepare(); // nobody is inside the heap now
    bool ok = heap_for_each_live(false, count_live, &live);
    heap_fork_parent();
    HeapCounts sum = sum_counts();
    if (!ok)
        return;
    heap.ended->frees += sum.allocs - sum.frees - live.allocs;
    heap.ended->freed_bytes += sum.allocated_bytes - sum.freed_bytes - live.allocated_bytes;
    heap.is_counted_late = false;
}

void heap_stats(HeapStats *ret_stats)
{
    if (heap.is_counted_late)
        correct_counts();
    HeapCounts sum = sum_counts();
    *ret_stats = (HeapStats){
        .allocs = sum.allocs,
        .frees = sum.frees,
        .allocated_bytes = sum.allocated_bytes,
        .freed_bytes = sum.freed_bytes,
        .live_blocks = sum.allocs - sum.frees,
        .live_bytes = sum.allocated_bytes - sum.freed_bytes,
        .usage_allocs = sum.allocs + sum.more_allocs,
        .usage_frees = sum.frees + sum.more_frees,
        .usage_bytes = sum.allocated_bytes + sum.more_bytes,
        .quarantine_bytes = __atomic_load_n(&heap.volume, __ATOMIC_RELAXED),
    };
}

// In the order of H4; and the other way round, as locks are given back.
enum { LOCKS = CLASS_COUNT + 5 };

static Lock *lock_at(u32 i)
{
    Lock *const behind[] = {&heap.segment_lock, &heap.quarantine_lock, &heap.huge_lock,
                            &external_lock, &heap.thread_lock};
    return i < CLASS_COUNT ? &heap.classes[i].lock : behind[i - CLASS_COUNT];
}

void heap_fork_prepare(void)
{
    for (u32 i = 0; i < LOCKS; i++)
        lock_acquire(lock_at(i));
    if (!heap.shared_counts)
        return;
    // The child will not have what is shared.
    heap.own_ended = *heap.ended;
    for (HeapThread *thread = heap.threads; thread; thread = thread->next)
        thread->own = *thread->tally;
}

void heap_fork_parent(void)
{
    for (u32 i = LOCKS; i-- > 0;)
        lock_release(lock_at(i));
}

static void leave_shared_counts(void)
{
    if (!heap.shared_counts)
        return;
    heap.is_counted_late = heap.active_threads > 1;
    heap.shared_counts = NULL;
    heap.shared_count = 0;
    heap.ended = &heap.own_ended;
    for (HeapThread *thread = heap.threads; thread; thread = thread->next)
        thread->tally = &thread->own;
}

void heap_fork_child(HeapThread *self)
{
    leave_shared_counts();
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
    for (u32 i = LOCKS; i-- > 0;)
        lock_reset_after_fork(lock_at(i));
}
