// SPDX-License-Identifier: MIT
//
// The walk over all live blocks in order of address, for the leak check: segments and huge blocks
// sorted by base, merged with the external blocks. Nothing may run in the heap
// meanwhile, so no lock is taken.
#include "base/pages.h"
#include "tools/heap/heap_internal.h"

typedef struct Walk {
    HeapVisit *fn;
    void *data;
    bool skip_containers;
    HeapBlock external; // the next one to visit
    bool has_external;
} Walk;

static void external_advance(Walk *walk)
{
    HeapBlock last = walk->external;

    walk->has_external = external_next_behind(&last, &walk->external);
}

static bool is_inside(const HeapBlock *inner, const HeapBlock *outer)
{
    u64 offset = inner->start - outer->start;

    return offset < outer->size_bytes && inner->size_bytes <= outer->size_bytes - offset;
}

// All of a pool's chunk may be one MALLOCLIKE block: then that one counts.
static bool is_same_as_next(const HeapBlock *external)
{
    HeapBlock next;

    return external_next_behind(external, &next) && next.start == external->start &&
           next.size_bytes == external->size_bytes;
}

static void visit_externals_before(Walk *walk, GuestAddr address)
{
    while (walk->has_external && walk->external.start < address) {
        if (!walk->skip_containers || !is_same_as_next(&walk->external))
            walk->fn(walk->data, &walk->external);
        external_advance(walk);
    }
}

static void visit(Walk *walk, const HeapBlock *block)
{
    if (block->state != HEAP_LIVE)
        return;
    visit_externals_before(walk, block->start);
    if (walk->has_external && walk->skip_containers && is_inside(&walk->external, block))
        return;
    walk->fn(walk->data, block);
}

static void visit_segment(Walk *walk, const Segment *segment)
{
    for (u32 unit = 0; unit < UNITS;) {
        const Slab *slab = &segment->slabs[unit];
        if (segment->head[unit] != unit) {
            unit++;
            continue;
        }
        for (u32 slot = 0; slot < slab->slot_count; slot++) {
            HeapBlock block;
            if (word_state(slab->meta[slot].word) != HEAP_LIVE)
                continue;
            describe_slot(slab, slot, &block);
            visit(walk, &block);
        }
        unit += slab->unit_count;
    }
}

// Heap sort: qsort() would call malloc.
static void sift_down(GuestAddr *bases, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && bases[child + 1] > bases[child])
            child++;
        if (bases[root] >= bases[child])
            return;
        GuestAddr base = bases[root];
        bases[root] = bases[child];
        bases[child] = base;
    }
}

static void sort_bases(GuestAddr *bases, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(bases, i, count);
    for (size_t i = count; i-- > 1;) {
        GuestAddr last = bases[i];
        bases[i] = bases[0];
        bases[0] = last;
        sift_down(bases, 0, i);
    }
}

bool heap_for_each_live(bool skip_containers, HeapVisit *fn, void *data)
{
    Walk walk = {.fn = fn, .data = data, .skip_containers = skip_containers};
    size_t segments = heap.segments.count, huge = heap.huge_live.count;
    u64 bytes = (segments + huge + 1) * sizeof(GuestAddr);
    GuestAddr *bases = pages_map(bytes);

    if (!bases)
        return false;
    for (size_t i = 0; i < segments; i++)
        bases[i] = (*(Segment **)vec_at(&heap.segments, i))->base;
    for (size_t i = 0; i < huge; i++)
        bases[segments + i] = (*(HugeBlock **)vec_at(&heap.huge_live, i))->base;
    sort_bases(bases, segments + huge);

    walk.has_external = external_next(0, &walk.external);
    for (size_t i = 0; i < segments + huge; i++) {
        u64 entry = table_entry(bases[i]);
        HeapBlock block;
        if (!entry_is_huge(entry)) {
            visit_segment(&walk, (const Segment *)entry);
            continue;
        }
        describe_huge(entry_huge(entry), &block);
        visit(&walk, &block);
    }
    visit_externals_before(&walk, ~0ull);
    pages_unmap(bases, bytes);
    return true;
}

void heap_for_each_region(HeapRegionVisit *fn, void *data)
{
    for (size_t i = 0; i < heap.segments.count; i++)
        fn(data, (*(Segment **)vec_at(&heap.segments, i))->base, SEGMENT_BYTES);
    for (size_t i = 0; i < heap.huge_live.count; i++) {
        const HugeBlock *block = *(HugeBlock **)vec_at(&heap.huge_live, i);
        fn(data, block->base, block->mapped_bytes);
    }
}
