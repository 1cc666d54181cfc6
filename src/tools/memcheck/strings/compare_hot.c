// SPDX-License-Identifier: MIT
//
// The functions that compare: memcmp, strcmp and their kin.
#include "tools/memcheck/strings/call.h"

#include "tools/memcheck/strings/strings.h"

enum { PAGE_REACH = 4096 - 8 }; // an 8-byte load at a higher offset crosses into the next page

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

typedef enum Verdict { GO_ON, EQUAL_END, DIFFERENT, DECLINED, UNCLEAR } Verdict;

// By words, as long as what they tell is defined: *at is how far that goes. UNCLEAR: not
// further, for one of many reasons.
static Verdict compare_quick(const StringCall *s, GuestAddr a, GuestAddr b, u64 size, u64 *at,
                             i32 *ret_order)
{
    Lanes lanes = lanes_of(s->element);
    unsigned width = s->element * 8;
    u64 word_a, word_b, v_a, v_b, stops = s->data & STRING_STOPS ? ~0ull : 0;
    for (; *at < size; *at += 8) {
        GuestAddr at_a = a + *at, at_b = b + *at;
        u64 left = size - *at, mask = left >= 8 ? ~0ull : (1ull << 8 * left) - 1;
        // What lies behind the end is not the string's: never into another page for it.
        if (((at_a & 4095) > PAGE_REACH || (at_b & 4095) > PAGE_REACH) && (stops || left < 8))
            return UNCLEAR;
        if (!load_u64(SHADOW(at_a), &v_a) || !load_u64(SHADOW(at_b), &v_b) ||
            !load_u64(at_a, &word_a) || !load_u64(at_b, &word_b))
            return UNCLEAR;
        u64 v = (v_a | v_b) & mask, different = (word_a ^ word_b) & mask;
        u64 ends = zero_lanes(lanes, word_a) & mask & stops;
        if (LIKELY(!(different | ends | v)))
            continue;
        if (!(different | ends) || s->data & STRING_FOLDS)
            return UNCLEAR;
        // The lowest bits of both are right; the lane of the lower one decides.
        unsigned shift = (unsigned)__builtin_ctzll(different | ends) & ~(width - 1);
        if (v & (~0ull >> (64 - width - shift)))
            return UNCLEAR;
        u64 lane = ~0ull >> (64 - width), x = word_a >> shift & lane, y = word_b >> shift & lane;
        *ret_order = order(s, x, y);
        return x == y ? EQUAL_END : DIFFERENT;
    }
    return EQUAL_END;
}

static Verdict compare_one(StringCall *s, GuestAddr a, GuestAddr b, i32 *ret_order)
{
    u64 x, y, x_v, y_v;
    if (!string_take(s, a, &x, &x_v) || !string_take(s, b, &y, &y_v))
        return DECLINED;
    if (s->data & STRING_FOLDS && x != y && !string_fold(s, &x, &y))
        return DECLINED;
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
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr a = call->args[0], b = call->args[1];
    u64 count = s.data & STRING_LIMIT_2 ? call->args[2] : STRING_NO_LIMIT;
    u64 size = count > CLIENT_END / 4 ? CLIENT_END : count * s.element, at = 0;
    i32 result = 0;
    Verdict verdict = UNCLEAR;
    while (at < size) {
        if (LIKELY(a < CLIENT_END - at && b < CLIENT_END - at))
            verdict = compare_quick(&s, a, b, size, &at, &result);
        // By elements up to where words can be tried again.
        for (unsigned i = 0; verdict == UNCLEAR || verdict == GO_ON; i++, at += s.element) {
            if (i == 8u >> s.shift || at >= size)
                break;
            verdict = compare_one(&s, a + at, b + at, &result);
        }
        switch (verdict) {
        case DECLINED: return string_decline(&s);
        case EQUAL_END: return string_return(&s, 0);
        case DIFFERENT: return string_return(&s, (u64)(u32)result);
        default: break;
        }
    }
    return string_return(&s, 0);
}
