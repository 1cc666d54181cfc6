// SPDX-License-Identifier: MIT
//
// Allocation and freeing. The path that matters, a small block, pops a slot from the
// thread's magazine, writes 16 bytes of metadata and tells the tool; freeing is a lookup,
// a compare and exchange, and an append to the thread's quarantine chunk.
// heap_pair_cost in tests/unit/heap_speed_test.c measures the pair.
#include "base/fill.h"
#include "tools/heap/heap_internal.h"

static void fill_memory(GuestAddr start, u64 size, u8 byte)
{
    if (heap.options.hooks.fill) {
        heap.options.hooks.fill(start, size, byte);
        return;
    }
    __asm__ volatile("rep stosb" : "+D"(start), "+c"(size) : "a"(byte) : "memory");
}

static inline void zero_memory(GuestAddr start, u64 size)
{
    if (heap.options.hooks.fill)
        heap.options.hooks.fill(start, size, 0);
    else
        fill_bytes((u8 *)start, 0, size);
}

static void copy_memory(GuestAddr from, GuestAddr to, u64 size)
{
    if (heap.options.hooks.copy) {
        heap.options.hooks.copy(from, to, size);
        return;
    }
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// The content of a new block and its announcement. is_zero: it is known to be.
static inline void begin_block(HeapThread *thread, GuestAddr start, u64 size, u32 kind,
                               bool is_zero, u32 context)
{
    const HeapOptions *options = &heap.options;

    thread->tally->allocs++;
    thread->tally->allocated_bytes += size;
    if (kind & HEAP_ZEROED) {
        if (!is_zero)
            zero_memory(start, size);
    } else if (UNLIKELY(options->malloc_fill >= 0)) {
        fill_memory(start, size, (u8)options->malloc_fill);
    }
    if (options->hooks.allocated)
        options->hooks.allocated(start, size, kind & HEAP_ZEROED, context);
}

// What comes out of quarantine has left the cache long ago.
static inline void fetch_ahead(const HeapThread *thread, u32 class_index)
{
    enum { AHEAD = 3 };
    u32 count = thread->counts[class_index];
    if (count < AHEAD)
        return;
    const FreeSlot *slot = &thread->slots[class_index][count - AHEAD];
    __builtin_prefetch(slot->meta, 1);
    __builtin_prefetch((void *)slot->start, 1);
    if (heap.options.hooks.soon)
        heap.options.hooks.soon(slot->start);
}

// `asked` is the alignment that the caller named.
static inline GuestAddr small_alloc(HeapThread *thread, u64 room, u64 size, u64 asked, u32 kind,
                                    u32 context)
{
    u32 class_index = class_of_size(room);

    if (UNLIKELY(thread->counts[class_index] == 0) && !magazine_refill(thread, class_index))
        return 0;
    FreeSlot slot = thread->slots[class_index][--thread->counts[class_index]];
    fetch_ahead(thread, class_index);
    GuestAddr start = round_up(slot.start, max_u64(asked, SLOT_ALIGN));
    u32 word = meta_word(thread->index, kind & 7, HEAP_LIVE, start - slot.start);
    write_meta(slot.meta, size, context, alignment_code(asked, kind), word);
    begin_block(thread, start, size, kind, false, context);
    return start;
}

static GuestAddr try_medium(HeapThread *thread, u64 size, u64 asked, u32 kind, u32 context)
{
    SlotMeta *meta;
    GuestAddr start = medium_alloc(size, max_u64(asked, SLOT_ALIGN), &meta);

    if (start) {
        write_meta(meta, size, context, alignment_code(asked, kind),
                   meta_word(thread->index, kind & 7, HEAP_LIVE, 0));
        begin_block(thread, start, size, kind, false, context);
    }
    return start;
}

static bool is_huge(u64 size, u64 alignment)
{
    return size > MEDIUM_MAX || alignment > UNIT_BYTES;
}

GuestAddr heap_alloc(HeapThread *thread, u64 size, u64 alignment, u32 kind, u32 context)
{
    if (LIKELY(alignment <= SLOT_ALIGN && size <= SMALL_MAX))
        return small_alloc(thread, size, size, alignment, kind, context);
    if (is_huge(size, alignment))
        return 0;
    // A slot is aligned to 16 alone, and the block moves up in it as far as needed. An empty one
    // must not arrive at the next slot.
    u64 room = max_u64(size, 1) + max_u64(alignment, SLOT_ALIGN) - SLOT_ALIGN;
    if (room <= SMALL_MAX)
        return small_alloc(thread, room, size, alignment, kind, context);
    return try_medium(thread, size, alignment, kind, context);
}

static GuestAddr alloc_huge(HeapThread *thread, u64 size, u64 alignment, u32 kind, u32 context)
{
    if (size > HEAP_SIZE_MAX || alignment > HEAP_SIZE_MAX)
        return 0;
    HugeBlock *block = huge_alloc(size, max_u64(alignment, SLOT_ALIGN));
    if (!block)
        return 0;
    block->alloc_context = context;
    block->free_context = alignment_code(alignment, kind);
    __atomic_store_n(&block->word, meta_word(thread->index, kind & 7, HEAP_LIVE, 0),
                     __ATOMIC_RELEASE);
    begin_block(thread, block->start, size, kind, true, context);
    return block->start;
}

static GuestAddr alloc_or_map(HeapThread *thread, u64 size, u64 alignment, u32 kind, u32 context)
{
    if (is_huge(size, alignment))
        return alloc_huge(thread, size, alignment, kind, context);
    GuestAddr start = heap_alloc(thread, size, alignment, kind, context);
    if (start)
        return start;
    // Slabs of which only magazines have slots can be used for this.
    magazines_empty(thread);
    // Other threads may take the new segment's units first.
    while (!(start = heap_alloc(thread, size, alignment, kind, context))) {
        quarantine_trim();
        if (!segment_add())
            return 0;
    }
    return start;
}

// A program that runs near its memory limit should not fail for the sake of quarantine.
GuestAddr heap_alloc_full(HeapThread *thread, u64 size, u64 alignment, u32 kind, u32 context)
{
    heap_settle();
    GuestAddr start = alloc_or_map(thread, size, alignment, kind, context);
    if (start || size > HEAP_SIZE_MAX)
        return start;
    quarantine_drain(thread);
    magazines_empty(thread);
    heap_settle();
    return alloc_or_map(thread, size, alignment, kind, context);
}

// Blocks of one family may be freed by the same function.
bool heap_kinds_match(u32 allocated, u32 freed)
{
    enum { C = 1, NEW = 2, NEW_ARRAY = 4, CUSTOM = 8, POOL = 16 };
    static const u8 families[HEAP_KIND_COUNT] = {
        [HEAP_MALLOC] = C,            [HEAP_MEMALIGN] = C,
        [HEAP_NEW] = NEW,             [HEAP_NEW_ARRAY] = NEW_ARRAY,
        [HEAP_ANY_NEW] = NEW | NEW_ARRAY, [HEAP_ANY] = C | NEW | NEW_ARRAY,
        [HEAP_CUSTOM] = CUSTOM,       [HEAP_POOL] = POOL,
    };

    return families[allocated] & families[freed];
}

// What is larger would take the tool many mappings to park.
#define PARKED_HUGE_MAX (64 * MiB)

// The claimed block's end, up to its place in quarantine.
static inline void end_block(HeapThread *thread, GuestAddr start, u64 size, u64 footprint,
                             const SlotRef *ref, u32 context)
{
    thread->tally->frees++;
    thread->tally->freed_bytes += size;
    if (UNLIKELY(heap.options.free_fill >= 0))
        fill_memory(start, size, (u8)heap.options.free_fill);
    if (heap.options.hooks.freed)
        heap.options.hooks.freed(start, size);
    // It will be unmapped, not used again; at once if it is larger than the quarantine.
    if (!ref && size <= min_u64(heap.options.freelist_volume, PARKED_HUGE_MAX) &&
        heap.options.hooks.park && heap.options.free_fill < 0)
        heap.options.hooks.park(start, size);
    quarantine_put(thread, start, size, footprint, ref, context);
}

static HeapResult free_huge(HeapThread *thread, HugeBlock *block, GuestAddr start, HeapKind kind,
                            u32 context, HeapBlock *ret_block)
{
    u32 word;

    if (start != block->start)
        return HEAP_NOT_A_BLOCK;
    if (!claim(&block->word, &word)) {
        if (word_state(word) == HEAP_NEVER_USED)
            return HEAP_NOT_A_BLOCK;
        if (ret_block)
            describe_huge(block, ret_block);
        return HEAP_DOUBLE_FREE;
    }
    bool matches = heap_kinds_match(word_kind(word), kind);
    if (!matches && ret_block) {
        describe_huge(block, ret_block);
        ret_block->state = HEAP_LIVE;
    }
    block->free_context = context;
    end_block(thread, start, block->size, block->mapped_bytes, NULL, context);
    return matches ? HEAP_OK : HEAP_MISMATCHED;
}

// Not a live block of the heap at that place.
static HeapResult refuse_free(HeapThread *thread, GuestAddr start, u32 context, const SlotRef *ref,
                              HeapBlock *ret_block)
{
    HeapBlock block;

    if (external_live_at(start, &block) && block.kind == HEAP_CUSTOM) {
        if (ret_block)
            *ret_block = block;
        HeapResult result = heap_freelike(thread, start, context, NULL);
        return result == HEAP_OK ? HEAP_MISMATCHED : result;
    }
    if (!ref)
        return HEAP_NOT_A_BLOCK;
    describe_slot(ref->slab, ref->slot, &block);
    if (block.state == HEAP_NEVER_USED)
        return HEAP_NOT_A_BLOCK;
    if (ret_block)
        *ret_block = block;
    return HEAP_DOUBLE_FREE;
}

void heap_fetch(GuestAddr start)
{
    u64 entry = table_entry(start);
    if (!entry || entry_is_huge(entry))
        return;
    const Slab *slab = segment_slab((Segment *)entry, start);
    if (slab && start >= slab->first)
        __builtin_prefetch(&slab->meta[slab_slot(slab, start)], 1);
    if (heap.options.hooks.soon)
        heap.options.hooks.soon(start);
}

HeapResult heap_free(HeapThread *thread, GuestAddr start, HeapKind kind, u32 context,
                     HeapBlock *ret_block)
{
    u64 entry = table_entry(start);
    SlotRef ref;
    u32 word;

    if (UNLIKELY(entry_is_huge(entry)))
        return free_huge(thread, entry_huge(entry), start, kind, context, ret_block);
    if (UNLIKELY(!entry || !slot_by_start(start, entry, &ref)))
        return refuse_free(thread, start, context, NULL, ret_block);
    if (UNLIKELY(!claim(&ref.meta->word, &word)))
        return refuse_free(thread, start, context, &ref, ret_block);
    bool matches = heap_kinds_match(word_kind(word), kind);
    if (UNLIKELY(!matches) && ret_block) {
        describe_slot(ref.slab, ref.slot, ret_block);
        ret_block->state = HEAP_LIVE;
    }
    ref.meta->free_context = context;
    end_block(thread, start, ref.meta->size, ref.slab->stride, &ref, context);
    return matches ? HEAP_OK : HEAP_MISMATCHED;
}

bool heap_live_at(GuestAddr start, HeapBlock *ret_block)
{
    u64 entry = table_entry(start);
    SlotRef ref;

    if (entry_is_huge(entry) && entry_huge(entry)->start == start)
        describe_huge(entry_huge(entry), ret_block);
    else if (entry && !entry_is_huge(entry) && slot_by_start(start, entry, &ref))
        describe_slot(ref.slab, ref.slot, ret_block);
    else
        return false;
    return ret_block->state == HEAP_LIVE;
}

HeapResult heap_realloc(HeapThread *thread, GuestAddr start, u64 size, u32 context, bool is_full,
                        GuestAddr *ret_start)
{
    HeapBlock old;

    if (!heap_live_at(start, &old)) {
        if (!heap_find(start, &old) || old.is_external || old.start != start)
            return HEAP_NOT_A_BLOCK;
        return HEAP_DOUBLE_FREE;
    }
    GuestAddr moved = is_full ? heap_alloc_full(thread, size, SLOT_ALIGN, HEAP_MALLOC, context)
                              : heap_alloc(thread, size, SLOT_ALIGN, HEAP_MALLOC, context);
    if (!moved)
        return is_full ? HEAP_NO_MEMORY : HEAP_NEEDS_FULL;
    copy_memory(start, moved, min_u64(size, old.size_bytes));
    *ret_start = moved;
    return heap_free(thread, start, HEAP_MALLOC, context, NULL);
}

bool heap_usable_size(GuestAddr start, u64 *ret_size_bytes)
{
    HeapBlock block;

    if (!heap_live_at(start, &block) && !external_live_at(start, &block))
        return false;
    *ret_size_bytes = block.size_bytes;
    return true;
}
