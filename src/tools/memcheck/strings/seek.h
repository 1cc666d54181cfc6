// SPDX-License-Identifier: MIT
//
// The search for an element by words; private to the string functions.
#ifndef MUNINN_TOOLS_MEMCHECK_STRINGS_SEEK_H
#define MUNINN_TOOLS_MEMCHECK_STRINGS_SEEK_H

#include "tools/memcheck/strings/access.h"

// What the fast path knows when it ends.
typedef enum SeekOutcome { SEEK_FOUND, SEEK_NOT_FOUND, SEEK_TROUBLE } SeekOutcome;

// Bits of the bytes below `end` in the word at `base`, which begins below it.
static inline u64 bytes_below(GuestAddr base, GuestAddr end)
{
    return end - base >= 8 ? ~0ull : (1ull << 8 * (end - base)) - 1;
}

// The first element that is `a` or `b` and has no undefined bits up to it. By aligned words: they
// never reach into a page that the string does not touch.
static inline SeekOutcome seek_quick(u32 element, GuestAddr start, GuestAddr end, u64 a, u64 b,
                                     GuestAddr *ret_at)
{
    Lanes lanes = lanes_of(element);
    bool two = a != b;
    GuestAddr at = start & ~7ull;
    a *= lanes.ones;
    b *= lanes.ones;
    u64 before = (1ull << 8 * (start & 7)) - 1; // bytes of the first word that are not part of it
    u64 word, v;
    while (at < end) {
        if (!load_u64(SHADOW(at), &v) || !load_u64(at, &word))
            return SEEK_TROUBLE;
        u64 found = zero_lanes(lanes, (word ^ a) | before);
        if (two)
            found |= zero_lanes(lanes, (word ^ b) | before);
        if (UNLIKELY(found | v)) {
            u64 relevant = up_to(found) & ~before & bytes_below(at, end);
            if (v & relevant)
                return SEEK_TROUBLE;
            if (found) {
                *ret_at = at + (((u64)__builtin_ctzll(found) + 1) >> 3) - element;
                return *ret_at < end ? SEEK_FOUND : SEEK_NOT_FOUND;
            }
        }
        before = 0;
        at += 8;
    }
    return SEEK_NOT_FOUND;
}

#endif
