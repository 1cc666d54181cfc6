// SPDX-License-Identifier: MIT
//
// The fast path of heap_alloc() and heap_free(), to be inlined into functions that keep all
// registers: saving and loading registers around a call would be a tenth of what they take. The
// caller does what the hooks allocated() and freed() would do; malloc_fill and free_fill have no
// effect here. No other file outside of this folder may use the heap's structures.
#ifndef MUNINN_TOOLS_HEAP_HEAP_QUICK_H
#define MUNINN_TOOLS_HEAP_HEAP_QUICK_H

#include "base/fill.h"
#include "tools/heap/brief.h"
#include "tools/heap/heap_internal.h"

#define HEAP_INLINE static inline __attribute__((always_inline))

// A small block; 0: heap_alloc() is to be asked. *ret_next is where the next one of its class will
// be, or 0.
HEAP_INLINE GuestAddr heap_quick_alloc(HeapThread *thread, u64 size, u32 kind, u32 context,
                                       GuestAddr *ret_next)
{
    if (UNLIKELY(size > SMALL_MAX))
        return 0;
    u32 class_index = class_of_size(size), count = thread->counts[class_index];
    if (UNLIKELY(count == 0))
        return 0;
    thread->counts[class_index] = (u16)--count;
    FreeSlot slot = thread->slots[class_index][count];
    *ret_next = 0;
    if (LIKELY(count)) {
        const FreeSlot *next = &thread->slots[class_index][count - 1];
        __builtin_prefetch(next->meta, 1);
        *ret_next = next->start;
    }
    write_meta(slot.meta, size, context, 0, meta_word(thread->index, kind & 7, HEAP_LIVE, 0));
    thread->tally->allocs++;
    thread->tally->allocated_bytes += size;
    if (kind & HEAP_ZEROED)
        fill_bytes((u8 *)slot.start, 0, size);
    return slot.start;
}

static inline bool has_room(const QuarantineChunk *chunk, u64 footprint)
{
    return chunk && chunk->count < CHUNK_ENTRIES - 1 &&
           chunk->volume + footprint < heap.chunk_volume;
}

// As claim(), of a word that is live.
static inline bool claim_quickly(u32 *place, u32 word)
{
    if (LIKELY(heap.active_threads == 1)) {
        *place = word_with_state(word, HEAP_QUARANTINED);
        return true;
    }
    return claim(place, &word);
}

// Where the block at `start` would be, fetched while the caller does something else. False: it is
// none that heap_quick_free() takes.
HEAP_INLINE bool heap_quick_find(GuestAddr start, SlotRef *ret)
{
    u64 entry = table_entry(start);
    if (UNLIKELY(!entry || entry_is_huge(entry) || !slot_at(start, entry, ret)))
        return false;
    __builtin_prefetch(ret->meta, 1);
    return true;
}

// Whether a block of kind `allocated` may be freed by this function, and need not be looked at more
// closely. `freed` is a constant: what is left is a test of a bit.
HEAP_INLINE bool quick_kind_fits(u32 allocated, HeapKind freed)
{
    u32 kinds = 1u << freed | 1u << HEAP_ANY;
    if (freed == HEAP_NEW || freed == HEAP_NEW_ARRAY)
        kinds |= 1u << HEAP_ANY_NEW;
    if (freed == HEAP_ANY_NEW || freed == HEAP_ANY)
        kinds |= 1u << HEAP_NEW | 1u << HEAP_NEW_ARRAY | 1u << HEAP_ANY_NEW;
    if (freed == HEAP_ANY)
        kinds |= 1u << HEAP_MALLOC;
    return kinds >> allocated & 1;
}

// Whether heap_quick_free() takes it, unless another thread is quicker.
HEAP_INLINE bool heap_quick_frees(HeapThread *thread, GuestAddr start, const SlotRef *ref,
                                  HeapKind kind, u32 context, bool *ret_is_brief)
{
    u32 word = __atomic_load_n(&ref->meta->word, __ATOMIC_ACQUIRE);
    u64 footprint = ref->slab->stride;
    if (UNLIKELY(!slot_begins(ref, word, start) || word_state(word) != HEAP_LIVE ||
                 !quick_kind_fits(word_kind(word), kind) || ref->meta->size > heap.quick_free_max))
        return false;
    *ret_is_brief = brief_takes(&thread->brief, start, footprint, context);
    return LIKELY(*ret_is_brief || has_room(thread->chunk, footprint));
}

// Whether the block that heap_quick_find() has found was asked for with this size and with no
// alignment.
HEAP_INLINE bool heap_quick_has_size(const SlotRef *ref, u64 size)
{
    return ref->meta->size == size && ref->meta->free_context == 0;
}

// The size of the block, which is in quarantine now; ~0: heap_free() has to know better, and
// nothing has happened.
HEAP_INLINE u64 heap_quick_free(HeapThread *thread, GuestAddr start, const SlotRef *ref,
                                HeapKind kind, u32 context)
{
    bool is_brief;
    u32 word = __atomic_load_n(&ref->meta->word, __ATOMIC_ACQUIRE);
    if (UNLIKELY(!heap_quick_frees(thread, start, ref, kind, context, &is_brief)) ||
        UNLIKELY(!claim_quickly(&ref->meta->word, word)))
        return ~0ull;
    u64 size = ref->meta->size;
    ref->meta->free_context = context;
    thread->tally->frees++;
    thread->tally->freed_bytes += size;
    brief_count(&thread->brief, context);
    if (LIKELY(is_brief)) {
        brief_put(thread, ref);
    } else {
        QuarantineChunk *chunk = thread->chunk;
        chunk->entries[chunk->count++] = start;
        chunk->volume += ref->slab->stride;
    }
    return size;
}

// A small block that the other's content can be moved to before that is freed; 0: heap_realloc()
// is to be asked, and nothing has happened. With other threads one might free it meanwhile.
HEAP_INLINE GuestAddr heap_quick_realloc(HeapThread *thread, GuestAddr old, const SlotRef *ref,
                                         u64 size, u32 context, GuestAddr *ret_next)
{
    bool is_brief;
    if (UNLIKELY(heap.active_threads != 1) ||
        UNLIKELY(!heap_quick_frees(thread, old, ref, HEAP_MALLOC, context, &is_brief)))
        return 0;
    return heap_quick_alloc(thread, size, HEAP_MALLOC, context, ret_next);
}

#endif
