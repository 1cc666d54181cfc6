// SPDX-License-Identifier: MIT
//
// The functions that look for a string, or for any of a set: strstr, memmem, strspn, strpbrk
// and their kin.
#include "tools/memcheck/strings/call.h"

#include "tools/memcheck/strings/strings.h"

// ------------------------------------------------------------------------ sets

typedef struct Set {
    u64 bytes[4];    // a bit for each byte; of wide ones: their low bytes
    GuestAddr start; // for wide ones, the set itself
    bool wide;
} Set;

static bool read_set(StringCall *s, GuestAddr start, Set *ret_set)
{
    u64 value, v;
    *ret_set = (Set){.start = start, .wide = s->element == 4};
    for (GuestAddr at = start;; at += s->element) {
        if (!string_take(s, at, &value, &v))
            return false;
        if (v)
            string_tell_condition(s, STRING_ELEMENT);
        if (value == 0)
            return true;
        ret_set->bytes[value >> 6 & 3] |= 1ull << (value & 63);
    }
}

static bool is_in(const Set *set, u64 value)
{
    u64 member;
    if (!(set->bytes[value >> 6 & 3] >> (value & 63) & 1))
        return false;
    if (!set->wide)
        return true;
    for (GuestAddr at = set->start; load_u32(at, &member) && member; at += 4) {
        if (member == value)
            return true;
    }
    return false;
}

// strspn, strcspn, strpbrk
u64 string_span(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr start = call->args[0], at;
    bool accepts = s.data & STRING_ACCEPTS;
    u64 value, v;
    Set set;
    if (!read_set(&s, call->args[1], &set))
        return string_decline(&s);
    for (at = start;; at += s.element) {
        if (!string_take(&s, at, &value, &v))
            return string_decline(&s);
        if (UNLIKELY(v))
            string_tell_condition(&s, STRING_ELEMENT);
        if (value == 0 || is_in(&set, value) != accepts)
            break;
    }
    if (s.data & STRING_LENGTH)
        return string_return(&s, (at - start) >> s.shift);
    return string_return(&s, value ? at : 0);
}

// --------------------------------------------------------------------- strings

typedef struct Search {
    GuestAddr needle, end; // [needle, end)
    GuestAddr limit;       // where no needle can begin any more, for memmem
    u64 work;              // elements compared
} Search;

typedef enum Match { MATCH, NO_MATCH, NO_MORE, UNKNOWN } Match;

// Whether the needle is at `at`, of which the first element may be known to be.
static Match match_at(StringCall *s, Search *search, GuestAddr at, u64 known)
{
    u64 a, a_v, b, b_v;
    for (GuestAddr n = search->needle + known * s->element; n < search->end; n += s->element) {
        GuestAddr place = at + (n - search->needle);
        search->work++;
        if (!string_take(s, place, &a, &a_v) || !string_take(s, n, &b, &b_v))
            return UNKNOWN;
        if (s->data & STRING_FOLDS && a != b && !string_fold(s, &a, &b))
            return UNKNOWN;
        if (!string_is_same(s, a, a_v, b, b_v))
            return s->data & STRING_STOPS && a == 0 ? NO_MORE : NO_MATCH;
    }
    return MATCH;
}

// The next place where the first element of the needle is; `limit`: none.
static bool next_candidate(StringCall *s, const Search *search, GuestAddr at, u64 first,
                           GuestAddr *ret_at)
{
    u64 value;
    if (s->data & STRING_FOLDS) {
        *ret_at = at; // all are
        return true;
    }
    if (!(s->data & STRING_STOPS))
        return string_seek(s, at, search->limit - at, first, first, ret_at);
    if (!string_seek(s, at, STRING_NO_LIMIT, first, 0, ret_at) ||
        !load_element(*ret_at, s->element, &value))
        return false;
    if (value != first)
        *ret_at = search->limit;
    return true;
}

// By first elements. A search that goes badly, which one in large repetitive data can, is
// left to libc, whose time is linear.
static Match run_search(StringCall *s, Search *search, GuestAddr start, GuestAddr *ret_at)
{
    enum { WORK_FREE = 4096, WORK_RATIO = 8 };
    u64 first, v;
    if (!string_take(s, search->needle, &first, &v))
        return UNKNOWN;
    if (v)
        string_tell_condition(s, STRING_ELEMENT);
    for (GuestAddr at = start;; at += s->element) {
        if (!next_candidate(s, search, at, first, &at))
            return UNKNOWN;
        if (at >= search->limit)
            return NO_MORE;
        Match match = match_at(s, search, at, s->data & STRING_FOLDS ? 0 : 1);
        if (match != NO_MATCH) {
            *ret_at = at;
            return match;
        }
        if (search->work > WORK_FREE + WORK_RATIO * (at - start))
            return UNKNOWN;
    }
}

// strstr(where, needle), memmem(where, size, needle, size), strcasestr, wcsstr
u64 string_find(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr start = call->args[0], at = start;
    Search search = {.needle = call->args[1], .limit = CLIENT_END};
    if (s.data & STRING_STOPS) {
        if (!string_seek(&s, search.needle, STRING_NO_LIMIT, 0, 0, &search.end))
            return string_decline(&s);
    } else {
        u64 size = call->args[1], needle_size = call->args[3];
        for (unsigned i = 1; i <= 3; i += 2) {
            if (string_argument_v(&s, i))
                string_tell_condition(&s, i);
        }
        if (needle_size > size)
            return string_return(&s, 0);
        if (needle_size && (!in_client(start, size) || !in_client(call->args[2], needle_size)))
            return string_decline(&s);
        search.needle = call->args[2];
        search.end = search.needle + needle_size;
        search.limit = start + size - needle_size + 1;
    }
    if (search.end == search.needle)
        return string_return(&s, start);
    switch (run_search(&s, &search, start, &at)) {
    case MATCH: return string_return(&s, at);
    case UNKNOWN: return string_decline(&s);
    default: return string_return(&s, 0);
    }
}
