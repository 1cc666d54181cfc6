// SPDX-License-Identifier: MIT
//
// The short queue of what a thread frees again and again (quarantine_hot.c says why), for the
// functions that put a block into quarantine. Private to heap/.
#ifndef MUNINN_TOOLS_HEAP_BRIEF_H
#define MUNINN_TOOLS_HEAP_BRIEF_H

#include "tools/heap/heap_internal.h"

// Keeps all registers, as its callers do (toolapi.h: TOOL_QUICK).
#define HEAP_QUICK __attribute__((no_caller_saved_registers))

// Of what comes out of it, and finds no room in its magazine or is not small.
HEAP_QUICK void brief_release_apart(HeapThread *thread, const BriefBlock *block);

static inline u16 *brief_frees(BriefQueue *brief, u32 context)
{
    return &brief->frees[(context ^ context >> 10) % BRIEF_PLACES];
}

// True for the blocks of one piece of memory in BRIEF_SAMPLE, each time others. Neighbours share
// that fate: if every slab had a block that stays, none could be used for other sizes.
static inline bool brief_is_sampled(const BriefQueue *brief, GuestAddr start)
{
    u64 turn = brief->turn / BRIEF_TURN;
    u64 piece = (start >> BRIEF_PIECE_SHIFT) + turn * 0x9e3779b97f4a7c15ull;
    return (piece * 0xd6e8feb86659fd93ull >> 32) % BRIEF_SAMPLE == 0;
}

// Whether a block that is freed at `context` goes through this queue. False: it goes the long way.
static inline bool brief_takes(BriefQueue *brief, GuestAddr start, u64 footprint, u32 context)
{
    return *brief_frees(brief, context) >= BRIEF_FREES && !brief_is_sampled(brief, start) &&
           footprint <= heap.options.brief_volume / 16;
}

// One more was freed there, whichever way it goes.
static inline void brief_count(BriefQueue *brief, u32 context)
{
    u16 *frees = brief_frees(brief, context);
    if (UNLIKELY(*frees < BRIEF_FREES))
        ++*frees;
    else
        brief->turn++;
}

static inline void brief_release(HeapThread *thread, const BriefBlock *block)
{
    u32 class_index = block->class_index;
    if (UNLIKELY(class_index == CLASS_MEDIUM ||
                 thread->counts[class_index] == heap.classes[class_index].magazine_slots)) {
        brief_release_apart(thread, block);
        return;
    }
    SlotMeta *meta = block->slot.meta;
    __atomic_store_n(&meta->word, word_with_state(meta->word, HEAP_RECYCLED), __ATOMIC_RELAXED);
    thread->slots[class_index][thread->counts[class_index]++] = block->slot;
}

static inline void brief_take(HeapThread *thread)
{
    enum { AHEAD = 8 }; // metadata has left the cache
    BriefQueue *brief = &thread->brief;
    const BriefBlock *block = &brief->blocks[brief->first++ % BRIEF_BLOCKS];
    brief->count--;
    brief->volume -= block->footprint;
    __builtin_prefetch(brief->blocks[(brief->first + AHEAD) % BRIEF_BLOCKS].slot.meta, 1);
    brief_release(thread, block);
}

static inline void brief_put(HeapThread *thread, const SlotRef *ref)
{
    BriefQueue *brief = &thread->brief;
    const Slab *slab = ref->slab;
    BriefBlock *block = &brief->blocks[(brief->first + brief->count++) % BRIEF_BLOCKS];
    block->slot.start = slab->first + (u64)ref->slot * slab->stride;
    block->slot.meta = ref->meta;
    block->footprint = slab->stride;
    block->class_index = slab->class_index;
    brief->volume += slab->stride;
    while (brief->count == BRIEF_BLOCKS || brief->volume > heap.options.brief_volume)
        brief_take(thread);
}

#endif
