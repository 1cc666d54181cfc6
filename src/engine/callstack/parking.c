// SPDX-License-Identifier: MIT
//
// Parked spans in an array sorted by left_sp: a look-up is a binary search, a
// change moves at most CALLSTACK_PARKED_MAX small records. Ranges in use never overlap: a new
// one removes those it covers, since memory is in use by one stack at a time.
// Entries lie in blocks of power-of-two size from an arena, with a free list for each size.
#include "engine/callstack/parking.h"

#include "base/arena.h"
#include "base/assert.h"
#include "engine/callstack/spans.h"

enum {
    SMALLEST_BLOCK = 16, // entries
    SIZE_CLASSES = 17,   // up to 2^20 entries
};

_Static_assert(SMALLEST_BLOCK << (SIZE_CLASSES - 1) >= CALLSTACK_ENTRIES_MAX,
               "a whole stack fits the largest block");

// All under the lock.
static Lock lock;
static ParkedSpan spans[CALLSTACK_PARKED_MAX];
static u32 span_count;
static u64 clock;
static Arena blocks;
static CallEntry *free_blocks[SIZE_CLASSES]; // linked through the first word

Lock *parking_lock(void)
{
    return &lock;
}

u32 parking_count(void)
{
    return span_count;
}

static CallEntry *take_block(u64 count, u32 *ret_size_class)
{
    u32 size_class = 0;

    while ((u64)SMALLEST_BLOCK << size_class < count)
        size_class++;
    ASSERT(size_class < SIZE_CLASSES);
    *ret_size_class = size_class;

    CallEntry *block = free_blocks[size_class];
    if (block) {
        free_blocks[size_class] = *(CallEntry **)block;
        return block;
    }
    return arena_alloc(&blocks, ((u64)SMALLEST_BLOCK << size_class) * sizeof(CallEntry),
                       sizeof(CallEntry));
}

static void give_block(ParkedSpan *span)
{
    *(CallEntry **)span->entries = free_blocks[span->size_class];
    free_blocks[span->size_class] = span->entries;
    span->entries = NULL;
}

// The number of spans that begin at or below sp.
static u32 count_up_to(GuestAddr sp)
{
    u32 low = 0, high = span_count;

    while (low < high) {
        u32 middle = (low + high) / 2;
        if (spans[middle].left_sp <= sp)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(u32 index)
{
    span_count--;
    for (u32 i = index; i < span_count; i++)
        spans[i] = spans[i + 1];
}

static void forget_at(u32 index)
{
    give_block(&spans[index]);
    remove_at(index);
}

static void forget_overlapping(GuestAddr lo, GuestAddr hi)
{
    for (u32 i = count_up_to(hi); i-- > 0;) {
        if (spans[i].hi >= lo)
            forget_at(i);
    }
}

static void forget_oldest(void)
{
    u32 oldest = 0;

    for (u32 i = 1; i < span_count; i++) {
        if (spans[i].parked_at < spans[oldest].parked_at)
            oldest = i;
    }
    forget_at(oldest);
}

void parking_put(const StackSpan *span, const CallEntry *entries, u64 count)
{
    lock_acquire(&lock);
    forget_overlapping(span->left_sp, span->hi);
    if (span_count == CALLSTACK_PARKED_MAX)
        forget_oldest();

    ParkedSpan parked = { .left_sp = span->left_sp, .hi = span->hi, .lo = span->lo,
                          .count = count, .parked_at = ++clock };
    parked.entries = take_block(count, &parked.size_class);
    if (parked.entries) {
        copy_entries(parked.entries, entries, count);
        // The contexts stood on the chain below; the span may be resumed elsewhere.
        for (u64 i = 0; i < count; i++)
            parked.entries[i].context = 0;
        u32 index = count_up_to(parked.left_sp);
        for (u32 i = span_count; i > index; i--)
            spans[i] = spans[i - 1];
        spans[index] = parked;
        span_count++;
    }
    lock_release(&lock);
}

// The index of the span that has sp in use, or span_count.
static u32 find(GuestAddr sp)
{
    u32 index = count_up_to(sp);

    return index > 0 && sp <= spans[index - 1].hi ? index - 1 : span_count;
}

bool parking_knows(GuestAddr sp)
{
    lock_acquire(&lock);
    bool known = find(sp) < span_count;
    lock_release(&lock);
    return known;
}

bool parking_take(GuestAddr sp, ParkedSpan *ret_parked)
{
    lock_acquire(&lock);
    u32 index = find(sp);
    bool found = index < span_count;
    if (found) {
        *ret_parked = spans[index];
        remove_at(index);
    }
    lock_release(&lock);
    return found;
}

void parking_release(ParkedSpan *parked)
{
    lock_acquire(&lock);
    give_block(parked);
    lock_release(&lock);
}

bool parking_take_matching(ParkedTest *test, GuestAddr sp, ParkedSpan *ret_parked,
                           u64 *ret_distance, u64 *ret_count)
{
    u64 best_score = 0;
    u32 best = 0;

    lock_acquire(&lock);
    for (u32 i = 0; i < span_count; i++) {
        u64 distance, count;
        u64 score = test(&spans[i], sp, &distance, &count);
        if (score > best_score) {
            best = i;
            best_score = score;
            *ret_distance = distance;
            *ret_count = count;
        }
    }
    if (best_score > 0) {
        *ret_parked = spans[best];
        remove_at(best);
    }
    lock_release(&lock);
    return best_score > 0;
}

void callstack_forget_range(GuestAddr lo, GuestAddr hi)
{
    if (hi <= lo)
        return;
    lock_acquire(&lock);
    forget_overlapping(lo, hi - 1);
    lock_release(&lock);
}
