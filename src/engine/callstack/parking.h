// SPDX-License-Identifier: MIT
//
// The table of parked spans, ordered by address. Private to this folder.
#ifndef MUNINN_ENGINE_CALLSTACK_PARKING_H
#define MUNINN_ENGINE_CALLSTACK_PARKING_H

#include "base/futex_lock.h"
#include "engine/callstack/callstack.h"

typedef struct ParkedSpan {
    GuestAddr left_sp;  // [left_sp, hi] is in use by the parked stack
    GuestAddr hi;
    GuestAddr lo;       // as in StackSpan
    CallEntry *entries; // copies; outermost first
    u64 count;
    u32 size_class;
    u64 parked_at;      // a counter: the smallest was left longest ago
} ParkedSpan;

void parking_put(const StackSpan *span, const CallEntry *entries, u64 count);

// Removes the span that has `sp` in use and hands it over; its entries
// belong to the caller until parking_release().
bool parking_take(GuestAddr sp, ParkedSpan *ret_parked);
bool parking_knows(GuestAddr sp);
void parking_release(ParkedSpan *parked);

// The same for the span to which the test gives the highest score, if that is above 0.
typedef u64 ParkedTest(const ParkedSpan *parked, GuestAddr sp, u64 *ret_distance, u64 *ret_count);
bool parking_take_matching(ParkedTest *test, GuestAddr sp, ParkedSpan *ret_parked,
                           u64 *ret_distance, u64 *ret_count);

Lock *parking_lock(void);
u32 parking_count(void);

#endif
