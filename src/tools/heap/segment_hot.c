// SPDX-License-Identifier: MIT
//
// Segments and their units. A segment's free units are the bits of one word, so a
// run of any length is found with shifts. Freed units keep their pages while little
// is kept in all, because programs that free and allocate buffers of 100 KiB in turn
// would otherwise fault every page in again; beyond that they are given back.
// Segments themselves stay mapped: without pages they cost only address space.
#include <linux/mman.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "tools/heap/heap_internal.h"

#define DIRTY_MAX (8 * MiB)

Heap heap;

static u64 run_mask(u32 unit, u64 unit_count)
{
    return (unit_count == 64 ? ~0ull : (1ull << unit_count) - 1) << unit;
}

// The lowest unit at which unit_count free ones begin, or UNITS.
static u32 find_run(u64 free_units, u64 unit_count)
{
    for (u64 i = 1; i < unit_count && free_units; i++)
        free_units &= free_units >> 1;
    return free_units ? (u32)__builtin_ctzll(free_units) : UNITS;
}

// Not vec_at(): base/vec.c is not built for light exits.
static Segment *segment_at(size_t index)
{
    return ((Segment **)heap.segments.data)[index];
}

static Segment *segment_with_run(u64 unit_count, u32 *ret_unit)
{
    while (heap.first_free_segment < heap.segments.count &&
           segment_at(heap.first_free_segment)->free_units == 0)
        heap.first_free_segment++;
    for (size_t i = heap.first_free_segment; i < heap.segments.count; i++) {
        Segment *segment = segment_at(i);
        *ret_unit = find_run(segment->free_units, unit_count);
        if (*ret_unit < UNITS)
            return segment;
    }
    return NULL;
}

// Tells the tool of the units in `mask`, each run of them at once.
static void announce_fresh(Segment *segment, u64 mask)
{
    while (mask && heap.options.hooks.fresh) {
        u32 unit = (u32)__builtin_ctzll(mask);
        u64 rest = ~(mask >> unit);
        u32 length = rest ? (u32)__builtin_ctzll(rest) : UNITS;
        heap.options.hooks.fresh(segment->base + unit * UNIT_BYTES, length * UNIT_BYTES);
        mask &= ~run_mask(unit, length);
    }
}

Slab *units_take(u64 unit_count)
{
    u32 unit;

    lock_acquire(&heap.segment_lock);
    Segment *segment = segment_with_run(unit_count, &unit);
    if (!segment) {
        lock_release(&heap.segment_lock);
        return NULL;
    }
    u64 mask = run_mask(unit, unit_count);
    u64 fresh = segment->fresh_units & mask;
    segment->free_units &= ~mask;
    segment->fresh_units &= ~mask;
    for (u64 dirty = segment->dirty_units & mask; dirty; dirty &= dirty - 1)
        heap.dirty_bytes -= UNIT_BYTES;
    segment->dirty_units &= ~mask;
    lock_release(&heap.segment_lock);

    announce_fresh(segment, fresh);
    Slab *slab = &segment->slabs[unit];
    slab->first = segment->base + unit * UNIT_BYTES;
    slab->meta = &segment->meta[unit * UNIT_SLOTS];
    slab->unit_count = (u8)unit_count;
    return slab;
}

Segment *slab_segment(const Slab *slab, u32 *ret_unit)
{
    Segment *segment = (Segment *)table_entry(slab->first);

    *ret_unit = (u32)(slab - segment->slabs);
    return segment;
}

void slab_publish(Slab *slab)
{
    u32 unit;
    Segment *segment = slab_segment(slab, &unit);

    for (u32 i = 0; i < slab->unit_count; i++)
        __atomic_store_n(&segment->head[unit + i], (u8)unit, __ATOMIC_RELEASE);
}

// The next owner of the units must find every slot unused.
static void forget_meta(Slab *slab)
{
    u64 bytes = slab->slot_count * sizeof(SlotMeta);

    if (bytes >= 4 * PAGE_SIZE) {
        pages_discard(slab->meta, bytes);
        return;
    }
    for (u32 i = 0; i < slab->slot_count; i++)
        slab->meta[i] = (SlotMeta){0};
}

static void discard(GuestAddr start, u64 size_bytes)
{
    if (heap.options.hooks.discard)
        heap.options.hooks.discard(start, size_bytes);
    else
        pages_discard((void *)start, size_bytes);
}

void units_give(Slab *slab)
{
    u32 unit;
    Segment *segment = slab_segment(slab, &unit);
    u64 bytes = slab->unit_count * UNIT_BYTES;
    u64 mask = run_mask(unit, slab->unit_count);

    for (u32 i = 0; i < slab->unit_count; i++)
        __atomic_store_n(&segment->head[unit + i], NO_SLAB, __ATOMIC_RELEASE);
    forget_meta(slab);
    slab->slot_count = 0;

    lock_acquire(&heap.segment_lock);
    bool keep = heap.dirty_bytes + bytes <= DIRTY_MAX;
    if (keep) {
        heap.dirty_bytes += bytes;
        segment->dirty_units |= mask;
    } else {
        // Under the lock, so that the units cannot be taken and then lose their content.
        discard(segment->base + unit * UNIT_BYTES, bytes);
        segment->fresh_units |= mask;
    }
    segment->free_units |= mask;
    heap.first_free_segment = (u32)min_u64(heap.first_free_segment, segment->index);
    lock_release(&heap.segment_lock);
}

static Segment *segment_new(GuestAddr base)
{
    Segment *segment = pages_map(sizeof(Segment));
    void *meta = pages_reserve(UNITS * UNIT_SLOTS * sizeof(SlotMeta));

    if (!segment || !meta || !pages_open(meta, UNITS * UNIT_SLOTS * sizeof(SlotMeta))) {
        if (segment)
            pages_unmap(segment, sizeof(Segment));
        if (meta)
            pages_unmap(meta, UNITS * UNIT_SLOTS * sizeof(SlotMeta));
        return NULL;
    }
    // Sparse: a huge page for each slab would cost more than the client's memory.
    raw_syscall3(SYS_madvise, (u64)meta, UNITS * UNIT_SLOTS * sizeof(SlotMeta), MADV_NOHUGEPAGE);
    segment->base = base;
    segment->meta = meta;
    segment->free_units = ~0ull;
    segment->fresh_units = ~0ull;
    for (u32 i = 0; i < UNITS; i++)
        segment->head[i] = NO_SLAB;
    return segment;
}

bool segment_add(void)
{
    GuestAddr base = heap.options.hooks.map(SEGMENT_BYTES, SEGMENT_BYTES);

    if (!base)
        return false;
    ASSERT(base % SEGMENT_BYTES == 0 && base >> ADDRESS_BITS == 0);
    Segment *segment = segment_new(base);
    if (!segment) {
        heap.options.hooks.unmap(base, SEGMENT_BYTES);
        return false;
    }
    __atomic_store_n(&heap.table[base >> SEGMENT_SHIFT], (u64)segment, __ATOMIC_RELEASE);
    lock_acquire(&heap.segment_lock);
    segment->index = (u32)heap.segments.count;
    bool ok = vec_push(&heap.segments, &segment) != NULL;
    lock_release(&heap.segment_lock);
    return ok;
}

void segments_destroy(void)
{
    for (size_t i = 0; i < heap.segments.count; i++) {
        Segment *segment = segment_at(i);
        heap.options.hooks.unmap(segment->base, SEGMENT_BYTES);
        pages_unmap(segment->meta, UNITS * UNIT_SLOTS * sizeof(SlotMeta));
        pages_unmap(segment, sizeof(Segment));
    }
    vec_free(&heap.segments);
}
