// SPDX-License-Identifier: MIT
//
// Quarantine: freed blocks in order of their freeing. A thread collects them in a
// chunk of its own and queues the chunk when it is full, so the lock is taken once in
// 124 frees; order is exact for one thread and to within a chunk among several.
// Big blocks have a queue of their own that is emptied first, so one of them does not
// drive thousands of small ones out.
//
// What a thread frees in one place thousands of times goes round in a short queue of its own, but
// for a sample: otherwise a loop that allocates and frees would walk through all the memory
// of the quarantine, and find none of it in the cache.
//
// The volume counts what a block occupies, gap included, not what was requested:
// the bound is there to bound memory, and a million empty blocks are not nothing.
#include "base/pages.h"
#include "tools/heap/brief.h"
#include "tools/heap/heap_internal.h"

#define CHUNK_POOL_BYTES (64 * KiB)

// Under the quarantine lock.
static QuarantineChunk *chunk_new(void)
{
    if (!heap.unused_chunks) {
        QuarantineChunk *chunks = pages_map(CHUNK_POOL_BYTES);
        for (u32 i = 0; chunks && i < CHUNK_POOL_BYTES / sizeof(QuarantineChunk); i++) {
            chunks[i].next = heap.unused_chunks;
            heap.unused_chunks = &chunks[i];
        }
    }
    QuarantineChunk *chunk = heap.unused_chunks;
    if (chunk) {
        heap.unused_chunks = chunk->next;
        chunk->next = NULL;
        chunk->first = 0;
        chunk->count = 0;
        chunk->volume = 0;
        chunk->has_medium = false;
    }
    return chunk;
}

static void chunk_unuse(QuarantineChunk *chunk)
{
    chunk->next = heap.unused_chunks;
    heap.unused_chunks = chunk;
}

static void enqueue(QuarantineQueue *queue, QuarantineChunk *chunk)
{
    if (queue->tail)
        queue->tail->next = chunk;
    else
        queue->head = chunk;
    queue->tail = chunk;
}

static QuarantineChunk *dequeue(QuarantineQueue *queue)
{
    QuarantineChunk *chunk = queue->head;

    queue->head = chunk->next;
    if (!queue->head)
        queue->tail = NULL;
    return chunk;
}

static u64 footprint_of(GuestAddr start)
{
    u64 entry = table_entry(start);

    if (entry_is_huge(entry))
        return entry_huge(entry)->mapped_bytes;
    return segment_slab((Segment *)entry, start)->stride;
}

// The block may be used again.
// A slot that leaves the long queue goes back to its slab, not to the thread's magazine: its memory
// is in no cache any more, and of the slabs of a class the fullest is used first.
static void release(HeapThread *thread, GuestAddr start, bool is_brief)
{
    u64 entry = table_entry(start);
    SlotRef ref;

    if (entry_is_huge(entry)) {
        huge_retire(entry_huge(entry));
        return;
    }
    bool found = slot_by_start(start, entry, &ref);
    DEBUG_ASSERT(found && word_state(ref.meta->word) == HEAP_QUARANTINED);
    if (UNLIKELY(!found))
        return;
    __atomic_store_n(&ref.meta->word, word_with_state(ref.meta->word, HEAP_RECYCLED),
                     __ATOMIC_RELAXED);
    if (UNLIKELY(ref.slab->class_index == CLASS_MEDIUM)) {
        units_give(ref.slab);
        return;
    }
    GuestAddr slot_start = ref.slab->first + (u64)ref.slot * ref.slab->stride;
    FreeSlot slot = {slot_start, ref.meta};
    if (is_brief)
        magazine_put(thread, ref.slab->class_index, slot);
    else
        slot_give(ref.slab->class_index, slot);
}

// Metadata has left the cache long ago: a few are fetched ahead of use.
enum { AHEAD = 8 };

static inline void fetch_meta(GuestAddr start)
{
    u64 entry = table_entry(start);
    Slab *slab = entry_is_huge(entry) ? NULL : segment_slab((Segment *)entry, start);
    if (slab)
        __builtin_prefetch(&slab->meta[slab_slot(slab, start)], 1);
}

static void release_chunk(HeapThread *thread, QuarantineChunk *chunk)
{
    for (u32 i = chunk->first; i < chunk->count; i++) {
        if (i + AHEAD < chunk->count)
            fetch_meta(chunk->entries[i + AHEAD]);
        release(thread, chunk->entries[i], false);
    }
}

// Takes the oldest out until the volume is within the bound.
static void evict(HeapThread *thread, u64 bound)
{
    while (__atomic_load_n(&heap.volume, __ATOMIC_RELAXED) > bound) {
        QuarantineChunk *chunk = NULL;
        GuestAddr big = 0;

        lock_acquire(&heap.quarantine_lock);
        QuarantineChunk *head = heap.big.head;
        if (heap.volume <= bound) {
            // Another thread was faster.
        } else if (head) {
            big = head->entries[head->first++];
            heap.volume -= footprint_of(big);
            if (head->first == head->count)
                chunk_unuse(dequeue(&heap.big));
        } else if (heap.small.head) {
            chunk = dequeue(&heap.small);
            heap.volume -= chunk->volume;
        }
        lock_release(&heap.quarantine_lock);

        if (big) {
            release(thread, big, false);
        } else if (chunk) {
            release_chunk(thread, chunk);
            lock_acquire(&heap.quarantine_lock);
            chunk_unuse(chunk);
            lock_release(&heap.quarantine_lock);
        } else {
            return;
        }
    }
}

static void put_big(GuestAddr start, u64 footprint)
{
    lock_acquire(&heap.quarantine_lock);
    QuarantineChunk *chunk = heap.big.tail;
    if (!chunk || chunk->count == CHUNK_ENTRIES) {
        chunk = chunk_new();
        if (chunk)
            enqueue(&heap.big, chunk);
    }
    if (chunk) {
        chunk->entries[chunk->count++] = start;
        heap.volume += footprint;
    }
    lock_release(&heap.quarantine_lock);
}

// Queues the open chunk; gives the thread an empty one if `reopen`.
static void close_chunk(HeapThread *thread, bool reopen)
{
    QuarantineChunk *chunk = thread->chunk;

    lock_acquire(&heap.quarantine_lock);
    if (chunk && chunk->count) {
        enqueue(&heap.small, chunk);
        heap.volume += chunk->volume;
        chunk = NULL;
    }
    if (chunk && !reopen) {
        chunk_unuse(chunk);
        chunk = NULL;
    }
    if (!chunk && reopen)
        chunk = chunk_new();
    thread->chunk = chunk;
    lock_release(&heap.quarantine_lock);
}

HEAP_QUICK __attribute__((noinline)) void brief_release_apart(HeapThread *thread,
                                                              const BriefBlock *block)
{
    release(thread, block->slot.start + word_shift(block->slot.meta->word), true);
}

// Not more than once in a third of a second or so: a program that frees buffers all the time
// would wait for their pages instead. If it did wait for most of what was parked the last
// time, and that was a lot, it is left in peace for longer, up to some seconds.
enum { TRIM_BYTES = 4 * MiB, UNPARKED_MANY = 10 * MiB };
#define TRIM_TICKS (1ull << 30)
#define TRIM_TICKS_MAX (1ull << 34)

static bool is_time_to_trim(void)
{
    if (__atomic_load_n(&heap.parkable, __ATOMIC_RELAXED) < TRIM_BYTES &&
        __atomic_load_n(&heap.dirty_bytes, __ATOMIC_RELAXED) <= DIRTY_MAX)
        return false;
    u64 last = __atomic_load_n(&heap.trimmed_at, __ATOMIC_RELAXED);
    return __builtin_ia32_rdtsc() - last >= __atomic_load_n(&heap.trim_ticks, __ATOMIC_RELAXED);
}

// Without memory for a chunk the block stays quarantined for ever, which is safe.
void quarantine_put(HeapThread *thread, GuestAddr start, u64 size, u64 footprint,
                    const SlotRef *ref, u32 context)
{
    if (UNLIKELY(heap.options.freelist_big && size >= heap.options.freelist_big)) {
        put_big(start, footprint);
        evict(thread, heap.options.freelist_volume);
        return;
    }
    bool is_brief = ref && brief_takes(&thread->brief, start, footprint, context);
    brief_count(&thread->brief, context);
    if (is_brief) {
        brief_put(thread, ref);
        return;
    }
    if (UNLIKELY(!thread->chunk)) {
        close_chunk(thread, true);
        if (!thread->chunk)
            return;
    }
    QuarantineChunk *chunk = thread->chunk;
    chunk->entries[chunk->count++] = start;
    chunk->volume += footprint;
    if (UNLIKELY(size > SMALL_MAX)) {
        chunk->has_medium = true;
        __atomic_add_fetch(&heap.parkable, footprint, __ATOMIC_RELAXED);
    }
    if (UNLIKELY(chunk->count == CHUNK_ENTRIES || chunk->volume >= heap.chunk_volume)) {
        close_chunk(thread, true);
        evict(thread, heap.options.freelist_volume);
        if (UNLIKELY(is_time_to_trim()))
            quarantine_trim();
    }
}

void quarantine_close(HeapThread *thread)
{
    while (thread->brief.count)
        brief_take(thread);
    close_chunk(thread, false);
    evict(thread, heap.options.freelist_volume);
}

void quarantine_drain(HeapThread *thread)
{
    while (thread->brief.count)
        brief_take(thread);
    close_chunk(thread, false);
    evict(thread, 0);
}

// What is in a freed block is not needed, unless it was put there on purpose.
static void park_medium(GuestAddr start)
{
    u64 entry = table_entry(start);
    Slab *slab = entry_is_huge(entry) ? NULL : segment_slab((Segment *)entry, start);
    if (!slab || slab->class_index != CLASS_MEDIUM || slab->is_parked)
        return;
    slab->is_parked = true;
    heap.options.hooks.park(start, slab->meta->size);
    __atomic_fetch_add(&heap.parked_bytes, slab->unit_count * UNIT_BYTES, __ATOMIC_RELAXED);
}

// Those freed last keep it: a stale pointer is mostly used soon.
#define KEPT_BYTES (2 * MiB)

static void park_blocks(void)
{
    u64 newer = 0;

    lock_acquire(&heap.quarantine_lock);
    for (QuarantineChunk *chunk = heap.small.head; chunk; chunk = chunk->next)
        newer += chunk->volume;
    for (QuarantineChunk *chunk = heap.small.head; chunk; chunk = chunk->next) {
        newer -= chunk->volume;
        if (newer < KEPT_BYTES)
            break;
        for (u32 i = chunk->first; chunk->has_medium && i < chunk->count; i++)
            park_medium(chunk->entries[i]);
        chunk->has_medium = false;
    }
    lock_release(&heap.quarantine_lock);
}

static void set_trim_ticks(void)
{
    u64 parked = __atomic_exchange_n(&heap.parked_bytes, 0, __ATOMIC_RELAXED);
    u64 unparked = __atomic_exchange_n(&heap.unparked_bytes, 0, __ATOMIC_RELAXED);
    u64 ticks = TRIM_TICKS;
    if (unparked > parked / 2 && unparked >= UNPARKED_MANY)
        ticks = min_u64(heap.trim_ticks * 4, TRIM_TICKS_MAX);
    __atomic_store_n(&heap.trim_ticks, ticks, __ATOMIC_RELAXED);
}

void quarantine_trim(void)
{
    if (!heap.options.hooks.park)
        return;
    set_trim_ticks();
    u64 parkable = __atomic_exchange_n(&heap.parkable, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&heap.trimmed_at, __builtin_ia32_rdtsc(), __ATOMIC_RELAXED);
    units_park();
    if (parkable && heap.options.free_fill < 0)
        park_blocks();
}
