// SPDX-License-Identifier: MIT
//
// Blocks with a mapping of their own. Mappings are aligned to segments, so no two of
// them share an entry of the table, at the price of address space alone. A block that
// leaves quarantine waits for heap_settle(): unmapping needs full context.
#include "base/pages.h"
#include "tools/heap/heap_internal.h"

static u64 entry_count(const HugeBlock *block)
{
    return (block->mapped_bytes + SEGMENT_BYTES - 1) >> SEGMENT_SHIFT;
}

static void set_entries(const HugeBlock *block, u64 value)
{
    u64 *entry = &heap.table[block->base >> SEGMENT_SHIFT];

    for (u64 i = 0; i < entry_count(block); i++)
        __atomic_store_n(&entry[i], value, __ATOMIC_RELEASE);
}

// Under the huge lock. Records are carved from whole pages and never given back (H3).
static HugeBlock *record_new(void)
{
    if (!heap.huge_unused) {
        HugeBlock *records = pages_map(PAGE_SIZE);
        for (u32 i = 0; records && i < PAGE_SIZE / sizeof(HugeBlock); i++) {
            records[i].next = heap.huge_unused;
            heap.huge_unused = &records[i];
        }
    }
    HugeBlock *record = heap.huge_unused;
    if (record)
        heap.huge_unused = record->next;
    return record;
}

static HugeBlock *record_add(GuestAddr base, u64 mapped_bytes)
{
    lock_acquire(&heap.huge_lock);
    HugeBlock *block = record_new();
    if (block && !vec_push(&heap.huge_live, &block)) {
        block->next = heap.huge_unused;
        heap.huge_unused = block;
        block = NULL;
    }
    if (block) {
        block->base = base;
        block->mapped_bytes = mapped_bytes;
        block->start = base; // not a block yet: its state says so
        block->size = 0;
        block->word = 0;
        block->index = (u32)heap.huge_live.count - 1;
    }
    lock_release(&heap.huge_lock);
    return block;
}

HugeBlock *huge_alloc(u64 size, u64 alignment)
{
    u64 lead = round_up(heap.gap, alignment);
    u64 mapped_bytes = PAGE_UP(lead + max_u64(size, 1) + heap.gap);
    GuestAddr base = heap.options.hooks.map(mapped_bytes, max_u64(SEGMENT_BYTES, alignment));

    if (!base)
        return NULL;
    ASSERT(base % SEGMENT_BYTES == 0 && (base + mapped_bytes) >> ADDRESS_BITS == 0);
    HugeBlock *block = record_add(base, mapped_bytes);
    if (!block) {
        heap.options.hooks.unmap(base, mapped_bytes);
        return NULL;
    }
    block->start = base + lead;
    block->size = size;
    // Only the gaps: what lies between is about to be a block, and may be a terabyte.
    if (heap.options.hooks.fresh) {
        heap.options.hooks.fresh(base, lead);
        heap.options.hooks.fresh(block->start + size, base + mapped_bytes - block->start - size);
    }
    set_entries(block, (u64)block | 1);
    return block;
}

void huge_retire(HugeBlock *block)
{
    __atomic_store_n(&block->word, word_with_state(block->word, HEAP_RECYCLED), __ATOMIC_RELEASE);
    lock_acquire(&heap.huge_lock);
    block->next = heap.huge_dying;
    __atomic_store_n(&heap.huge_dying, block, __ATOMIC_RELEASE);
    lock_release(&heap.huge_lock);
}

bool heap_is_unsettled(void)
{
    return __atomic_load_n(&heap.huge_dying, __ATOMIC_RELAXED) != NULL;
}

static HugeBlock *take_dying(void)
{
    lock_acquire(&heap.huge_lock);
    HugeBlock *block = heap.huge_dying;
    if (block) {
        heap.huge_dying = block->next;
        HugeBlock *last = *(HugeBlock **)vec_at(&heap.huge_live, heap.huge_live.count - 1);
        vec_remove_unordered(&heap.huge_live, block->index);
        last->index = block->index;
        set_entries(block, 0);
    }
    lock_release(&heap.huge_lock);
    return block;
}

void heap_settle(void)
{
    for (HugeBlock *block; heap_is_unsettled() && (block = take_dying());) {
        heap.options.hooks.unmap(block->base, block->mapped_bytes);
        lock_acquire(&heap.huge_lock);
        block->next = heap.huge_unused;
        heap.huge_unused = block;
        lock_release(&heap.huge_lock);
    }
}

void huge_destroy(void)
{
    for (size_t i = 0; i < heap.huge_live.count; i++) {
        HugeBlock *block = *(HugeBlock **)vec_at(&heap.huge_live, i);
        heap.options.hooks.unmap(block->base, block->mapped_bytes);
    }
    vec_free(&heap.huge_live);
}
