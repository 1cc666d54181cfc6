// SPDX-License-Identifier: MIT
//
// Slabs of a size class, and the magazines between them and threads. A magazine
// is a thread's stack of free slots of a class; it is filled from slabs and emptied
// into them by halves, under the lock of the class, so the lock is taken
// once in dozens of allocations. Slots that quarantine releases go to the magazine of the
// thread that released them and mostly never see their slab again.
#include "tools/heap/heap_internal.h"

#define MAGAZINE_BYTES (128 * KiB) // the most memory in one magazine

// Seven slots or more, and little wasted at the end. Not more than that: a slab is used for
// something else only when all its blocks have left.
static u32 units_for_stride(u32 stride)
{
    u32 units = 1;
    for (; units < 16; units++) {
        u64 room = units * UNIT_BYTES - heap.gap;
        if (room / stride >= 7 && room % stride <= room / 32)
            break;
    }
    return units;
}

void classes_init(void)
{
    for (u32 i = 0; i < CLASS_COUNT; i++) {
        ClassList *list = &heap.classes[i];
        *list = (ClassList){0};
        list->stride = class_capacity(i) + (u32)heap.gap;
        list->unit_count = units_for_stride(list->stride);
        list->slot_count = (u16)((list->unit_count * UNIT_BYTES - heap.gap) / list->stride);
        list->reciprocal = ((1ull << 40) + list->stride - 1) / list->stride;
        list->magazine_slots =
            (u16)max_u64(2, min_u64(MAGAZINE_SLOTS, MAGAZINE_BYTES / list->stride));
    }
}

// Those that are mostly in use are filled up first, so that the others become empty, and can
// be used for other sizes.
static u8 list_of(const Slab *slab)
{
    return 2u * slab->free_count >= slab->slot_count;
}

static void list_add(ClassList *list, Slab *slab)
{
    slab->list = list_of(slab);
    Slab **head = &list->partial[slab->list];
    slab->previous = NULL;
    slab->next = *head;
    if (*head)
        (*head)->previous = slab;
    *head = slab;
    slab->is_listed = true;
}

static void list_remove(ClassList *list, Slab *slab)
{
    if (slab->previous)
        slab->previous->next = slab->next;
    else
        list->partial[slab->list] = slab->next;
    if (slab->next)
        slab->next->previous = slab->previous;
    slab->is_listed = false;
}

// After its free_count has changed.
static void list_update(ClassList *list, Slab *slab)
{
    if (slab->is_listed && (slab->free_count == 0 || slab->list != list_of(slab)))
        list_remove(list, slab);
    if (!slab->is_listed && slab->free_count)
        list_add(list, slab);
}

static Slab *slab_new(ClassList *list, u32 class_index)
{
    Slab *slab = units_take(list->unit_count, list->slot_count);

    if (!slab)
        return NULL;
    slab->first += heap.gap;
    slab->stride = list->stride;
    slab->reciprocal = list->reciprocal;
    slab->slot_count = list->slot_count;
    slab->free_count = list->slot_count;
    slab->class_index = (u8)class_index;
    // All words: the last owner of the units may have had more slots.
    for (u32 i = 0; i < UNIT_SLOTS; i += 64) {
        u32 left = list->slot_count > i ? list->slot_count - i : 0;
        slab->free_bits[i / 64] = left >= 64 ? ~0ull : (1ull << left) - 1;
    }
    slab_publish(slab);
    return slab;
}

// The lowest slots first, so that memory is touched from the bottom up.
static u32 slab_take(Slab *slab, u32 wanted, FreeSlot *ret_slots)
{
    u32 taken = 0;

    for (u32 word = 0; taken < wanted && word * 64 < slab->slot_count; word++) {
        u64 bits = slab->free_bits[word];
        for (; bits && taken < wanted; bits &= bits - 1) {
            u32 slot = word * 64 + (u32)__builtin_ctzll(bits);
            ret_slots[taken].start = slab->first + (u64)slot * slab->stride;
            ret_slots[taken].meta = &slab->meta[slot];
            taken++;
        }
        slab->free_bits[word] = bits;
    }
    slab->free_count = (u16)(slab->free_count - taken);
    return taken;
}

// A magazine is a stack: reversed, the lowest address is the next to go.
static void reverse(FreeSlot *slots, u32 count)
{
    for (u32 i = 0; i < count / 2; i++) {
        FreeSlot slot = slots[i];
        slots[i] = slots[count - 1 - i];
        slots[count - 1 - i] = slot;
    }
}

bool magazine_refill(HeapThread *thread, u32 class_index)
{
    ClassList *list = &heap.classes[class_index];
    FreeSlot *slots = thread->slots[class_index];

    lock_acquire(&list->lock);
    Slab *slab = list->partial[0] ? list->partial[0] : list->partial[1];
    if (!slab)
        slab = slab_new(list, class_index);
    u32 taken = 0;
    if (slab) {
        taken = slab_take(slab, (list->magazine_slots + 1u) / 2, slots);
        list_update(list, slab);
    }
    lock_release(&list->lock);
    reverse(slots, taken);
    thread->counts[class_index] = (u16)taken;
    return taken != 0;
}

static void slab_put(ClassList *list, const FreeSlot *free_slot)
{
    Slab *slab = segment_slab((Segment *)table_entry(free_slot->start), free_slot->start);
    u32 slot = (u32)(free_slot->meta - slab->meta);

    DEBUG_ASSERT(!(slab->free_bits[slot / 64] >> (slot % 64) & 1));
    slab->free_bits[slot / 64] |= 1ull << (slot % 64);
    slab->free_count++;
    list_update(list, slab);
    // The last slab of a class stays, or one block allocated and freed in turn would
    // make and unmake it each time.
    bool is_last = !slab->next && !slab->previous && !list->partial[0];
    if (slab->free_count == slab->slot_count && !is_last) {
        list_remove(list, slab);
        units_give(slab);
    }
}

void slot_give(u32 class_index, FreeSlot slot)
{
    ClassList *list = &heap.classes[class_index];
    lock_acquire(&list->lock);
    slab_put(list, &slot);
    lock_release(&list->lock);
}

static void magazine_flush(HeapThread *thread, u32 class_index, u32 count)
{
    ClassList *list = &heap.classes[class_index];
    FreeSlot *slots = thread->slots[class_index];
    u32 kept = thread->counts[class_index] - count;

    lock_acquire(&list->lock);
    for (u32 i = 0; i < count; i++)
        slab_put(list, &slots[i]);
    lock_release(&list->lock);
    for (u32 i = 0; i < kept; i++)
        slots[i] = slots[count + i];
    thread->counts[class_index] = (u16)kept;
}

void magazine_put(HeapThread *thread, u32 class_index, FreeSlot slot)
{
    u32 limit = heap.classes[class_index].magazine_slots;

    if (UNLIKELY(thread->counts[class_index] == limit))
        magazine_flush(thread, class_index, (limit + 1) / 2);
    thread->slots[class_index][thread->counts[class_index]++] = slot;
}

void magazines_empty(HeapThread *thread)
{
    for (u32 i = 0; i < CLASS_COUNT; i++) {
        if (thread->counts[i])
            magazine_flush(thread, i, thread->counts[i]);
    }
}

GuestAddr medium_alloc(u64 size, u64 alignment, SlotMeta **ret_meta)
{
    u64 lead = round_up(heap.gap, alignment);
    u64 room = max_u64(round_up(size, SLOT_ALIGN), SLOT_ALIGN);
    Slab *slab = units_take((lead + room + heap.gap + UNIT_BYTES - 1) / UNIT_BYTES, 1);

    if (!slab)
        return 0;
    slab->first += lead;
    slab->stride = (u32)(room + heap.gap);
    slab->reciprocal = 0;
    slab->free_count = 0;
    slab->class_index = CLASS_MEDIUM;
    slab->is_parked = false;
    slab->slot_count = 1;
    slab_publish(slab);
    *ret_meta = slab->meta;
    return slab->first;
}
