// SPDX-License-Identifier: MIT
//
// The functions that look for one element: strlen, memchr, strchr, strrchr and their kin.
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/strings/call.h"
#include "tools/memcheck/strings/seek.h"
#include "tools/memcheck/strings/strings.h"

static bool seek_slow(StringCall *s, GuestAddr start, GuestAddr end, u64 a, u64 b,
                      GuestAddr *ret_at)
{
    u64 value, v;
    GuestAddr at = start;
    for (; at != end; at += s->element) {
        if (!string_take(s, at, &value, &v))
            return false;
        // Both, as a loop would ask.
        bool is_a = string_is_same(s, value, v, a, 0);
        if (is_a || (a != b && string_is_same(s, value, v, b, 0)))
            break;
    }
    *ret_at = at;
    return true;
}

// Where `limit` elements end; beyond the client's memory nothing can be found.
static GuestAddr end_of(const StringCall *s, GuestAddr start, u64 limit)
{
    if (start >= SHADOWED_END || limit > (SHADOWED_END - start) >> s->shift)
        return start + (SHADOWED_END & ~(u64)(s->element - 1));
    return start + (limit << s->shift);
}

bool string_seek(StringCall *s, GuestAddr start, u64 limit, u64 a, u64 b, GuestAddr *ret_at)
{
    GuestAddr end = end_of(s, start, limit);
    if (LIKELY(start < SHADOWED_END && !(start & (s->element - 1)))) {
        SeekOutcome outcome = seek_quick(s->element, start, end, a, b, ret_at);
        if (LIKELY(outcome == SEEK_FOUND))
            return true;
        *ret_at = end;
        if (outcome == SEEK_NOT_FOUND)
            return true;
    }
    return seek_slow(s, start, end, a, b, ret_at);
}

static u64 limit_of(const StringCall *s)
{
    return s->data & STRING_LIMIT_1   ? s->call->args[1]
           : s->data & STRING_LIMIT_2 ? s->call->args[2]
                                      : STRING_NO_LIMIT;
}

static u64 needle_of(const StringCall *s)
{
    return s->data & STRING_WIDE ? (u32)s->call->args[1] : (u8)s->call->args[1];
}

u64 string_scan(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr start = call->args[0], at;
    u64 limit = limit_of(&s), value;
    u64 needle = s.data & STRING_MATCHES ? needle_of(&s) : 0;
    if (!string_seek(&s, start, limit, needle, s.data & STRING_STOPS ? 0 : needle, &at))
        return string_decline(&s);
    if (s.data & STRING_LENGTH)
        return string_return(&s, (at - start) >> s.shift);
    if (s.data & STRING_OR_END)
        return string_return(&s, at);
    if (at == end_of(&s, start, limit))
        return string_return(&s, 0);
    if (s.data & STRING_STOPS && (!load_element(at, s.element, &value) || value != needle))
        return string_return(&s, 0);
    return string_return(&s, at);
}

// ------------------------------------------------------------------- backwards

// From the end of a range down: only what is behind the match is looked at.
static bool seek_down(StringCall *s, GuestAddr start, GuestAddr end, u64 needle, GuestAddr *ret_at)
{
    u64 value, v;
    Lanes lanes = lanes_of(1);
    *ret_at = 0;
    while (end > start) {
        if (s->element == 1 && end - start >= 8 && in_client(end - 8, 8) &&
            load_u64(SHADOW(end - 8), &v) && !v && load_u64(end - 8, &value) &&
            !zero_lanes(lanes, value ^ needle * lanes.ones)) {
            end -= 8;
            continue;
        }
        end -= s->element;
        if (!string_take(s, end, &value, &v))
            return false;
        if (string_is_same(s, value, v, needle, 0)) {
            *ret_at = end;
            return true;
        }
    }
    return true;
}

// strrchr, memrchr
u64 string_scan_back(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr start = call->args[0], end, at;
    u64 needle = needle_of(&s);
    if (s.data & STRING_STOPS) {
        // All of the string is looked at; what is undefined in it has been told of.
        if (!string_seek(&s, start, STRING_NO_LIMIT, 0, 0, &end))
            return string_decline(&s);
        end += s.element;
    } else {
        end = end_of(&s, start, limit_of(&s));
        if (end < start || end > SHADOWED_END) {
            GuestAddr bad = string_first_bad(&s, start, end - start);
            string_tell_access(&s, bad, false);
            return string_decline(&s);
        }
    }
    if (!seek_down(&s, start, end, needle, &at))
        return string_decline(&s);
    return string_return(&s, at);
}
