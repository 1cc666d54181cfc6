// SPDX-License-Identifier: MIT
//
// The fast forms of the functions that look for one element, or for any of a small set.
#include "tools/memcheck/strings/quick.h"

#include "tools/memcheck/strings/seek.h"
#include "tools/memcheck/strings/strings.h"

#define ALWAYS static inline __attribute__((always_inline))

// Where `a` or `b` is; ret_end: nowhere before that. TOOL_QUICK_NO: it is not that simple.
ALWAYS u64 seek(u64 start, u64 limit, u64 a, u64 b, u64 end_result)
{
    GuestAddr at;
    if (start >= CLIENT_END || limit > CLIENT_END - start)
        return TOOL_QUICK_NO;
    switch (seek_quick(1, start, start + limit, a, b, &at)) {
    case SEEK_FOUND: return at;
    case SEEK_NOT_FOUND: return end_result;
    default: return TOOL_QUICK_NO;
    }
}

ALWAYS u64 seek_end(u64 start, u64 a, u64 b)
{
    return seek(start, CLIENT_END - start, a, b, TOOL_QUICK_NO);
}

TOOL_QUICK quick_strlen(u64 start, u64 unused, u64 unused_too, u64 unused_three)
{
    (void)unused, (void)unused_too, (void)unused_three;
    u64 end = seek_end(start, 0, 0);
    return end == TOOL_QUICK_NO ? end : end - start;
}

TOOL_QUICK quick_strnlen(u64 start, u64 limit, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    u64 end = seek(start, limit, 0, 0, start + limit);
    return end == TOOL_QUICK_NO ? end : end - start;
}

TOOL_QUICK quick_strchrnul(u64 start, u64 needle, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    return seek_end(start, (u8)needle, 0);
}

TOOL_QUICK quick_strchr(u64 start, u64 needle, u64 unused, u64 unused_too)
{
    u64 value, at = seek_end(start, (u8)needle, 0);
    (void)unused, (void)unused_too;
    if (at == TOOL_QUICK_NO || !load_u8(at, &value))
        return TOOL_QUICK_NO;
    return value == (u8)needle ? at : 0;
}

TOOL_QUICK quick_memchr(u64 start, u64 needle, u64 limit, u64 unused)
{
    (void)unused;
    return seek(start, limit, (u8)needle, (u8)needle, 0);
}

TOOL_QUICK quick_rawmemchr(u64 start, u64 needle, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    return seek_end(start, (u8)needle, (u8)needle);
}

// ----------------------------------------------------------------------- small sets

// A set in two words; the masks are of the lanes that its characters are in.
typedef struct SmallSet {
    u64 low, high, low_mask, high_mask;
} SmallSet;

// The characters before the end that is in `word`, if it is. False: some are undefined.
ALWAYS bool members_of(u64 word, u64 v, u64 *ret_mask, bool *ret_ends)
{
    u64 ends = zero_lanes(lanes_of(1), word), last = up_to(ends);
    *ret_ends = ends != 0;
    *ret_mask = ends ? last >> 8 : ~0ull;
    return !(v & last);
}

ALWAYS bool read_small_set(u64 start, SmallSet *ret)
{
    u64 v_low, v_high;
    bool ends;
    // Never into another page for what lies behind the end.
    if (start >= CLIENT_END || (start & 4095) > 4096 - 16 || !load_u64(SHADOW(start), &v_low) ||
        !load_u64(start, &ret->low) || !members_of(ret->low, v_low, &ret->low_mask, &ends))
        return false;
    ret->high = ret->high_mask = 0;
    if (ends)
        return true;
    return load_u64(SHADOW(start + 8), &v_high) && load_u64(start + 8, &ret->high) &&
           members_of(ret->high, v_high, &ret->high_mask, &ends) && ends;
}

// Where the first character is that is (or is not) in the set, or the end.
ALWAYS u64 span(u64 start, u64 set_start, bool accepts, u64 *ret_value)
{
    const Lanes lanes = lanes_of(1);
    SmallSet set;
    u64 v;
    if (start >= CLIENT_END || !read_small_set(set_start, &set))
        return TOOL_QUICK_NO;
    for (u64 at = start;; at++) {
        if (!load_u8(SHADOW(at), &v) || v || !load_u8(at, ret_value))
            return TOOL_QUICK_NO;
        u64 all = *ret_value * lanes.ones;
        // Beyond the first lane that is the same others may seem so, but none before it.
        bool is_in = (zero_lanes(lanes, set.low ^ all) & set.low_mask) |
                     (zero_lanes(lanes, set.high ^ all) & set.high_mask);
        if (*ret_value == 0 || is_in != accepts)
            return at;
    }
}

TOOL_QUICK quick_strspn(u64 start, u64 set, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    u64 value, end = span(start, set, true, &value);
    return end == TOOL_QUICK_NO ? end : end - start;
}

TOOL_QUICK quick_strcspn(u64 start, u64 set, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    u64 value, end = span(start, set, false, &value);
    return end == TOOL_QUICK_NO ? end : end - start;
}

TOOL_QUICK quick_strpbrk(u64 start, u64 set, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    u64 value, at = span(start, set, false, &value);
    return at == TOOL_QUICK_NO || value ? at : 0;
}
