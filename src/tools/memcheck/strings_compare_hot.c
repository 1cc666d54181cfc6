// SPDX-License-Identifier: MIT
//
// The functions that compare: memcmp, strcmp and their kin.
#include "tools/memcheck/strings_call.h"

enum { PAGE_REACH = 4096 - 8 }; // an 8-byte load at a higher offset crosses into the next page

// Goes over equal words whose shadow is clear. Returns how many bytes are known to be equal,
// defined and without an end; a multiple of 8, so of elements.
static u64 skip_equal(const StringCall *s, GuestAddr a, GuestAddr b, u64 size)
{
    Lanes lanes = lanes_of(s->element);
    bool stops = s->data & STRING_STOPS;
    u64 done = 0, word_a, word_b, v_a, v_b;
    while (size - done >= 8) {
        GuestAddr at_a = a + done, at_b = b + done;
        // What lies behind the end of a string is not the string's.
        if (stops && ((at_a & 4095) > PAGE_REACH || (at_b & 4095) > PAGE_REACH))
            break;
        if (!load_u64(SHADOW(at_a), &v_a) || !load_u64(SHADOW(at_b), &v_b) || v_a | v_b ||
            !load_u64(at_a, &word_a) || !load_u64(at_b, &word_b) || word_a != word_b ||
            (stops && zero_lanes(lanes, word_a)))
            break;
        done += 8;
    }
    return done;
}

static u64 fold(u64 value)
{
    return value - 'A' < 26 ? value + 'a' - 'A' : value;
}

// The order of two defined elements, as glibc and musl return it.
static i32 order(const StringCall *s, u64 a, u64 b)
{
    if (s->data & STRING_WIDE)
        return (i32)a < (i32)b ? -1 : (i32)a > (i32)b;
    return (i32)(a - b);
}

// Whether undefined bits decide which of two different elements is the greater.
static bool order_is_unknown(u64 a, u64 a_v, u64 b, u64 b_v)
{
    u64 a_least = a & ~a_v, a_most = a | a_v, b_least = b & ~b_v, b_most = b | b_v;
    return !(a_most < b_least || b_most < a_least);
}

typedef enum Verdict { GO_ON, EQUAL_END, DIFFERENT, DECLINED } Verdict;

static Verdict compare_one(StringCall *s, GuestAddr a, GuestAddr b, i32 *ret_order)
{
    u64 x, y, x_v, y_v;
    if (!string_take(s, a, &x, &x_v) || !string_take(s, b, &y, &y_v))
        return DECLINED;
    if (s->data & STRING_FOLDS && x != y) {
        // Only libc knows the letters of the locale; that of the Turkish i is even ASCII.
        if ((x | y) & 0x80 || (fold(x) == fold(y) && fold(x) == 'i'))
            return DECLINED;
        x = fold(x);
        y = fold(y);
    }
    if (string_is_same(s, x, x_v, y, y_v)) {
        bool ends = s->data & STRING_STOPS && string_is_same(s, x, x_v & y_v, 0, 0);
        return ends ? EQUAL_END : GO_ON;
    }
    if (UNLIKELY(x_v | y_v) && !(s->told & STRING_TOLD_CONDITION) &&
        !(s->data & STRING_UNORDERED) && order_is_unknown(x, x_v, y, y_v))
        s->result_unknown = true;
    *ret_order = order(s, x, y);
    return DIFFERENT;
}

u64 string_compare(ToolThread *thread, ToolCall *call)
{
    StringCall s = string_begin(thread, call);
    GuestAddr a = call->args[0], b = call->args[1];
    u64 count = s.data & STRING_LIMIT_2 ? call->args[2] : STRING_NO_LIMIT;
    u64 size = count > CLIENT_END / 4 ? CLIENT_END : count * s.element, at = 0;
    i32 result = 0;
    while (at < size) {
        if (LIKELY(a < CLIENT_END - at && b < CLIENT_END - at) && size - at >= 8)
            at += skip_equal(&s, a + at, b + at, size - at);
        // Up to 8 bytes by element: the word that was different, or ends, or is unclear.
        for (unsigned i = 0; i < 8 / s.element && at < size; i++, at += s.element) {
            switch (compare_one(&s, a + at, b + at, &result)) {
            case GO_ON: continue;
            case DECLINED: return string_decline(&s);
            case EQUAL_END: return string_return(&s, 0);
            case DIFFERENT: return string_return(&s, (u64)(u32)result);
            }
        }
    }
    return string_return(&s, 0);
}
