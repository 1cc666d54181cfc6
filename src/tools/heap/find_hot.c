// SPDX-License-Identifier: MIT
//
// From any address to the block it concerns, without a lock, and the walk over all live
// blocks. An address in the gap between two blocks belongs to the nearer one, and to
// the lower one when both are as near: reading too far is the commoner mistake.
#include "base/pages.h"
#include "tools/heap/heap_internal.h"

#define REACH            4096ull // nothing farther away is called near
#define RECYCLED_PENALTY 64      // distance by which a recycled block loses to others

static void set_common(HeapBlock *block, u32 word, u32 alloc_context, u32 free_context)
{
    block->alloc_context = alloc_context;
    block->free_context = free_context;
    block->thread = (u16)word;
    block->kind = (u8)word_kind(word);
    block->state = (u8)word_state(word);
    block->alignment = block->state == HEAP_LIVE ? code_alignment(free_context) : 0;
    block->relation = HEAP_INSIDE;
    block->is_external = false;
    block->distance_bytes = 0;
    block->pool = 0;
}

void describe_slot(const Slab *slab, u32 slot, HeapBlock *ret_block)
{
    const SlotMeta *meta = &slab->meta[slot];
    u32 word = __atomic_load_n(&meta->word, __ATOMIC_ACQUIRE);

    // Read again while the block changes hands; the second look is as good as any.
    for (int tries = 0; tries < 4; tries++) {
        ret_block->start = slab->first + (u64)slot * slab->stride + word_shift(word);
        ret_block->size_bytes = __atomic_load_n(&meta->size, __ATOMIC_RELAXED);
        set_common(ret_block, word, __atomic_load_n(&meta->alloc_context, __ATOMIC_RELAXED),
                   __atomic_load_n(&meta->free_context, __ATOMIC_ACQUIRE));
        u32 after = __atomic_load_n(&meta->word, __ATOMIC_ACQUIRE);
        if (LIKELY(after == word))
            return;
        word = after;
    }
}

void describe_huge(const HugeBlock *block, HeapBlock *ret_block)
{
    u32 word = __atomic_load_n(&block->word, __ATOMIC_ACQUIRE);

    ret_block->start = block->start;
    ret_block->size_bytes = block->size;
    set_common(ret_block, word, block->alloc_context, block->free_context);
}

static void relate(HeapBlock *block, GuestAddr address)
{
    GuestAddr end = block->start + block->size_bytes;

    if (address < block->start) {
        block->relation = HEAP_BEFORE;
        block->distance_bytes = block->start - address;
    } else if (address >= end) {
        block->relation = HEAP_AFTER;
        block->distance_bytes = address - end;
    } else {
        block->relation = HEAP_INSIDE;
        block->distance_bytes = address - block->start;
    }
}

static u64 cost_of(const HeapBlock *block)
{
    if (block->relation == HEAP_INSIDE)
        return 0;
    return 1 + block->distance_bytes +
           (block->state == HEAP_RECYCLED ? heap.gap + RECYCLED_PENALTY : 0);
}

// Keeps the candidate if it is better than what is there. On a tie the earlier stays.
static void consider(const Slab *slab, u64 slot, GuestAddr address, u64 *best, HeapBlock *ret_block)
{
    HeapBlock block;

    describe_slot(slab, (u32)slot, &block);
    if (block.state == HEAP_NEVER_USED)
        return;
    relate(&block, address);
    u64 cost = cost_of(&block);
    if (cost < *best && (cost == 0 || block.distance_bytes <= REACH)) {
        *best = cost;
        *ret_block = block;
    }
}

// Lower neighbours before higher ones, so that they win ties.
static void search_slab(const Slab *slab, GuestAddr address, u64 *best, HeapBlock *ret_block)
{
    u64 count = slab->slot_count;

    if (count == 0)
        return;
    u64 near = address < slab->first ? 0 : min_u64(slab_slot(slab, address), count - 1);
    u64 reach = slab->stride ? REACH / slab->stride + 2 : 1;
    u64 low = near > reach ? near - reach : 0;
    u64 high = min_u64(count - 1, near + reach);
    consider(slab, near, address, best, ret_block);
    if (*best == 0)
        return;
    for (u64 slot = near; slot-- > low;)
        consider(slab, slot, address, best, ret_block);
    for (u64 slot = near + 1; slot <= high; slot++)
        consider(slab, slot, address, best, ret_block);
}

static bool find_in_segment(Segment *segment, GuestAddr address, HeapBlock *ret_block)
{
    u64 best = ~0ull;
    Slab *slab = segment_slab(segment, address);
    u64 offset = address - segment->base;

    // Near a seam the block may be in the slab below or above.
    Slab *below = offset >= REACH ? segment_slab(segment, address - REACH) : slab;
    Slab *above = offset + REACH < SEGMENT_BYTES ? segment_slab(segment, address + REACH) : slab;
    if (below && below != slab)
        search_slab(below, address, &best, ret_block);
    if (slab)
        search_slab(slab, address, &best, ret_block);
    if (above && above != slab)
        search_slab(above, address, &best, ret_block);
    return best != ~0ull;
}

static bool find_huge(const HugeBlock *huge, GuestAddr address, HeapBlock *ret_block)
{
    HeapBlock block;

    describe_huge(huge, &block);
    if (block.state == HEAP_NEVER_USED)
        return false;
    relate(&block, address);
    if (block.relation != HEAP_INSIDE && block.distance_bytes > REACH)
        return false;
    *ret_block = block;
    return true;
}

static bool find_own(GuestAddr address, HeapBlock *ret_block)
{
    u64 entry = table_entry(address);
    if (entry && !entry_is_huge(entry))
        return find_in_segment((Segment *)entry, address, ret_block);
    if (!entry) // a huge block begins close to the start of its mapping
        entry = table_entry(address + REACH);
    return entry_is_huge(entry) && find_huge(entry_huge(entry), address, ret_block);
}

bool heap_find(GuestAddr address, HeapBlock *ret_block)
{
    return external_find(address, ret_block) || find_own(address, ret_block) ||
           external_find_near(address, ret_block);
}
