// SPDX-License-Identifier: MIT
//
// Segments and their units. Freed units keep their pages for a while, because programs that free
// and allocate buffers of 100 KiB in turn would otherwise fault every page in again; they are
// parked when the heap grows, and now and then (quarantine_trim()). Segments themselves stay
// mapped: without pages they cost only address space.
//
// The metadata of a slab is a piece of its segment's, as long as the slab has slots, rounded up to
// a power of two: pieces are used again for slabs of the same length.
#include <linux/mman.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "tools/heap/heap_internal.h"

Heap heap;

// Of word `index`: those bits that stand for the units [first, end).
static u64 word_mask(u32 index, u32 first, u32 end)
{
    u32 low = index * 64, high = low + 64;
    if (first >= high || end <= low)
        return 0;
    u64 mask = end >= high ? ~0ull : (1ull << (end - low)) - 1;
    return first <= low ? mask : mask & (~0ull << (first - low));
}

static void units_add(UnitSet *set, u32 first, u32 end)
{
    for (u32 i = 0; i < UNITS / 64; i++)
        set->words[i] |= word_mask(i, first, end);
}

// Returns how many of them were there.
static u32 units_remove(UnitSet *set, u32 first, u32 end)
{
    u32 count = 0;
    for (u32 i = 0; i < UNITS / 64; i++) {
        u64 mask = word_mask(i, first, end);
        count += (u32)__builtin_popcountll(set->words[i] & mask);
        set->words[i] &= ~mask;
    }
    return count;
}

// The first unit from `at` on that is in the set, or is not; UNITS: none.
static u32 units_next(const UnitSet *set, u32 at, bool is_in)
{
    while (at < UNITS) {
        u64 bits = (is_in ? set->words[at / 64] : ~set->words[at / 64]) >> (at % 64);
        if (bits)
            return at + (u32)__builtin_ctzll(bits);
        at = (at | 63) + 1;
    }
    return UNITS;
}

// The lowest unit at which unit_count free ones begin, or UNITS.
static u32 find_run(const UnitSet *set, u64 unit_count)
{
    for (u32 at = units_next(set, 0, true); at + unit_count <= UNITS;) {
        u32 end = units_next(set, at, false);
        if (end - at >= unit_count)
            return at;
        at = units_next(set, end, true);
    }
    return UNITS;
}

// Not vec_at(): base/vec.c is not built for light exits.
static Segment *segment_at(size_t index)
{
    return ((Segment **)heap.segments.data)[index];
}

static Segment *segment_with_run(u64 unit_count, u32 *ret_unit)
{
    while (heap.first_free_segment < heap.segments.count &&
           !units_any(&segment_at(heap.first_free_segment)->free_units))
        heap.first_free_segment++;
    for (size_t i = heap.first_free_segment; i < heap.segments.count; i++) {
        Segment *segment = segment_at(i);
        *ret_unit = find_run(&segment->free_units, unit_count);
        if (*ret_unit < UNITS)
            return segment;
    }
    return NULL;
}

// Tells the tool of those units in [first, end) that are in `fresh`, each run of them at once.
static void announce_fresh(const Segment *segment, const UnitSet *fresh, u32 first, u32 end)
{
    while (heap.options.hooks.fresh && (first = units_next(fresh, first, true)) < end) {
        u32 after = (u32)min_u64(units_next(fresh, first, false), end);
        heap.options.hooks.fresh(segment->base + first * UNIT_BYTES,
                                 (after - first) * UNIT_BYTES);
        first = after;
    }
}

static u32 piece_size(u32 slot_count)
{
    return slot_count <= 1 ? 0 : 32 - (u32)__builtin_clz(slot_count - 1);
}

// Under the segment lock. All zero but for the link, which is in a slot without a state.
static SlotMeta *piece_take(Segment *segment, u32 size)
{
    u32 at = segment->meta_free[size];
    if (at) {
        segment->meta_free[size] = segment->meta[at].size;
        segment->meta[at].size = 0;
    } else {
        at = segment->meta_used;
        segment->meta_used += 1u << size;
        DEBUG_ASSERT(segment->meta_used <= META_SLOTS);
    }
    return &segment->meta[at];
}

static void piece_give(Segment *segment, SlotMeta *piece, u32 size)
{
    piece->size = segment->meta_free[size];
    segment->meta_free[size] = (u32)(piece - segment->meta);
}

Slab *units_take(u64 unit_count, u32 slot_count)
{
    u32 unit;

    lock_acquire(&heap.segment_lock);
    Segment *segment = segment_with_run(unit_count, &unit);
    if (!segment) {
        lock_release(&heap.segment_lock);
        return NULL;
    }
    u32 end = unit + (u32)unit_count;
    UnitSet fresh = segment->fresh_units;
    units_remove(&segment->free_units, unit, end);
    units_remove(&segment->fresh_units, unit, end);
    u64 unparked = units_remove(&segment->parked_units, unit, end) * UNIT_BYTES;
    __atomic_fetch_add(&heap.unparked_bytes, unparked, __ATOMIC_RELAXED);
    heap.dirty_bytes -= units_remove(&segment->dirty_units, unit, end) * UNIT_BYTES;
    SlotMeta *meta = piece_take(segment, piece_size(slot_count));
    lock_release(&heap.segment_lock);

    announce_fresh(segment, &fresh, unit, end);
    Slab *slab = &segment->slabs[unit];
    slab->first = segment->base + unit * UNIT_BYTES;
    slab->meta = meta;
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
        __atomic_store_n(&segment->head[unit + i], (u16)unit, __ATOMIC_RELEASE);
}

// The next owner of the units must find every slot unused.
static void forget_meta(Slab *slab)
{
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
    u32 end = unit + slab->unit_count, size = piece_size(slab->slot_count);

    for (u32 i = 0; i < slab->unit_count; i++)
        __atomic_store_n(&segment->head[unit + i], NO_SLAB, __ATOMIC_RELEASE);
    forget_meta(slab);
    slab->slot_count = 0;

    lock_acquire(&heap.segment_lock);
    if (slab->class_index == CLASS_MEDIUM && slab->is_parked) {
        units_add(&segment->parked_units, unit, end);
    } else if (heap.options.hooks.park || heap.dirty_bytes + bytes <= DIRTY_MAX) {
        heap.dirty_bytes += bytes;
        units_add(&segment->dirty_units, unit, end);
    } else {
        // Under the lock, so that the units cannot be taken and then lose their content.
        discard(segment->base + unit * UNIT_BYTES, bytes);
        units_add(&segment->fresh_units, unit, end);
    }
    units_add(&segment->free_units, unit, end);
    piece_give(segment, slab->meta, size);
    heap.first_free_segment = (u32)min_u64(heap.first_free_segment, segment->index);
    lock_release(&heap.segment_lock);
}

static void park_units(Segment *segment)
{
    for (u32 at = units_next(&segment->free_units, 0, true), end; at < UNITS; at = end) {
        bool is_done = units_have(&segment->parked_units, at);
        bool is_fresh = units_have(&segment->fresh_units, at);
        for (end = at + 1; end < UNITS && units_have(&segment->free_units, end); end++) {
            if (units_have(&segment->parked_units, end) != is_done ||
                units_have(&segment->fresh_units, end) != is_fresh)
                break;
        }
        if (!is_done && !is_fresh) {
            heap.options.hooks.park(segment->base + at * UNIT_BYTES, (end - at) * UNIT_BYTES);
            __atomic_fetch_add(&heap.parked_bytes, (end - at) * UNIT_BYTES, __ATOMIC_RELAXED);
            heap.dirty_bytes -= units_remove(&segment->dirty_units, at, end) * UNIT_BYTES;
            units_add(&segment->parked_units, at, end);
        }
        end = units_next(&segment->free_units, end, true);
    }
}

void units_park(void)
{
    lock_acquire(&heap.segment_lock);
    for (size_t i = heap.first_free_segment; i < heap.segments.count; i++)
        park_units(segment_at(i));
    lock_release(&heap.segment_lock);
}

static Segment *segment_new(GuestAddr base)
{
    Segment *segment = pages_map(sizeof(Segment));
    void *meta = pages_reserve(META_SLOTS * sizeof(SlotMeta));

    if (!segment || !meta || !pages_open(meta, META_SLOTS * sizeof(SlotMeta))) {
        if (segment)
            pages_unmap(segment, sizeof(Segment));
        if (meta)
            pages_unmap(meta, META_SLOTS * sizeof(SlotMeta));
        return NULL;
    }
    // Most of it is never used.
    raw_syscall3(SYS_madvise, (u64)meta, META_SLOTS * sizeof(SlotMeta), MADV_NOHUGEPAGE);
    segment->base = base;
    segment->meta = meta;
    segment->meta_used = 1; // 0 ends lists
    units_add(&segment->free_units, 0, UNITS);
    units_add(&segment->fresh_units, 0, UNITS);
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
        pages_unmap(segment->meta, META_SLOTS * sizeof(SlotMeta));
        pages_unmap(segment, sizeof(Segment));
    }
    vec_free(&heap.segments);
}
