// SPDX-License-Identifier: MIT
//
// Walks every structure of the heap and panics at the first that contradicts another. For
// tests and debug builds; all threads must be outside the heap.
#include "tools/heap/heap_internal.h"

static Segment *segment_at(size_t index)
{
    return *(Segment **)vec_at(&heap.segments, index);
}

static bool is_listed_in(const ClassList *list, const Slab *slab)
{
    for (const Slab *each = list->partial[slab->list]; each; each = each->next) {
        if (each == slab)
            return true;
    }
    return false;
}

static void validate_free_slots(const Slab *slab)
{
    u32 free = 0;

    for (u32 slot = 0; slot < UNIT_SLOTS; slot++) {
        if (!(slab->free_bits[slot / 64] >> (slot % 64) & 1))
            continue;
        ASSERT(slot < slab->slot_count);
        HeapState state = word_state(slab->meta[slot].word);
        ASSERT(state == HEAP_NEVER_USED || state == HEAP_RECYCLED);
        free++;
    }
    ASSERT(free == slab->free_count);
}

static void validate_slab(const Segment *segment, u32 unit)
{
    const Slab *slab = &segment->slabs[unit];
    GuestAddr end = segment->base + (unit + slab->unit_count) * UNIT_BYTES;

    ASSERT(slab->slot_count > 0 && slab->meta > segment->meta &&
           slab->meta + slab->slot_count <= segment->meta + segment->meta_used);
    ASSERT(slab->first >= segment->base + unit * UNIT_BYTES + heap.gap);
    ASSERT(slab->first + (u64)slab->slot_count * slab->stride <= end);
    for (u32 i = 0; i < slab->unit_count; i++)
        ASSERT(segment->head[unit + i] == unit && !units_have(&segment->free_units, unit + i));
    if (slab->class_index == CLASS_MEDIUM) {
        ASSERT(slab->slot_count == 1);
        return;
    }
    ASSERT(slab->is_listed == (slab->free_count > 0));
    ASSERT(slab->is_listed == is_listed_in(&heap.classes[slab->class_index], slab));
    validate_free_slots(slab);
    for (u32 slot = 0; slot < slab->slot_count; slot++) {
        const SlotMeta *meta = &slab->meta[slot];
        u64 used = word_shift(meta->word) + meta->size;
        ASSERT(word_state(meta->word) != HEAP_LIVE || used + heap.gap <= slab->stride);
    }
}

static void validate_segment(const Segment *segment)
{
    ASSERT(table_entry(segment->base) == (u64)segment);
    for (u32 unit = 0; unit < UNITS; unit++) {
        u32 head = segment->head[unit];
        bool is_free = units_have(&segment->free_units, unit);
        ASSERT(is_free || !units_have(&segment->dirty_units, unit));
        ASSERT(is_free || !units_have(&segment->fresh_units, unit));
        ASSERT((head == NO_SLAB) == is_free);
        ASSERT(head == NO_SLAB || (head <= unit && segment->head[head] == head));
        if (head == unit)
            validate_slab(segment, unit);
    }
}

static void validate_magazines(const HeapThread *thread)
{
    for (u32 class_index = 0; class_index < CLASS_COUNT; class_index++) {
        ASSERT(thread->counts[class_index] <= heap.classes[class_index].magazine_slots);
        for (u32 i = 0; i < thread->counts[class_index]; i++) {
            const FreeSlot *slot = &thread->slots[class_index][i];
            const Slab *slab = segment_slab((Segment *)table_entry(slot->start), slot->start);
            u64 index = (u64)(slot->meta - slab->meta);
            HeapState state = word_state(slot->meta->word);
            ASSERT(slab->class_index == class_index && index < slab->slot_count);
            ASSERT(slot->start == slab->first + index * slab->stride);
            ASSERT(!(slab->free_bits[index / 64] >> (index % 64) & 1));
            ASSERT(state == HEAP_NEVER_USED || state == HEAP_RECYCLED);
        }
    }
}

static u64 validate_chunk(const QuarantineChunk *chunk)
{
    u64 volume = 0;

    for (u32 i = chunk->first; i < chunk->count; i++) {
        GuestAddr start = chunk->entries[i];
        u64 entry = table_entry(start);
        SlotRef ref;
        ASSERT(entry);
        if (entry_is_huge(entry)) {
            ASSERT(entry_huge(entry)->start == start);
            ASSERT(word_state(entry_huge(entry)->word) == HEAP_QUARANTINED);
            volume += entry_huge(entry)->mapped_bytes;
            continue;
        }
        ASSERT(slot_by_start(start, entry, &ref));
        ASSERT(word_state(ref.meta->word) == HEAP_QUARANTINED);
        volume += ref.slab->stride;
    }
    return volume;
}

static void validate_quarantine(void)
{
    u64 volume = 0;

    for (const QuarantineChunk *chunk = heap.small.head; chunk; chunk = chunk->next)
        volume += validate_chunk(chunk);
    for (const QuarantineChunk *chunk = heap.big.head; chunk; chunk = chunk->next)
        volume += validate_chunk(chunk);
    ASSERT(volume == heap.volume && volume <= heap.options.freelist_volume);
}

// Blocks and bytes, as the counters count them.
typedef struct Sum {
    u64 blocks;
    u64 bytes;
    GuestAddr last;
} Sum;

static void add_block(void *data, const HeapBlock *block)
{
    Sum *sum = data;

    ASSERT(sum->blocks == 0 || block->start >= sum->last);
    sum->last = block->start;
    if (block->kind == HEAP_POOL)
        return;
    sum->blocks++;
    sum->bytes += block->size_bytes;
}

void heap_validate(void)
{
    HeapStats stats;
    Sum sum = {0};

    for (size_t i = 0; i < heap.segments.count; i++) {
        ASSERT(segment_at(i)->index == i);
        ASSERT(i >= heap.first_free_segment || !units_any(&segment_at(i)->free_units));
        validate_segment(segment_at(i));
    }
    for (const HeapThread *thread = heap.threads; thread; thread = thread->next) {
        validate_magazines(thread);
        if (thread->chunk)
            ASSERT(validate_chunk(thread->chunk) == thread->chunk->volume);
    }
    validate_quarantine();
    external_validate();
    heap_stats(&stats);
    if (heap_for_each_live(false, add_block, &sum))
        ASSERT(sum.blocks == stats.live_blocks && sum.bytes == stats.live_bytes);
}
