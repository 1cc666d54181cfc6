// SPDX-License-Identifier: MIT
//
// The quick forms of the functions that look for one element.
#include "tools/memcheck/strings_quick.h"

#include "tools/memcheck/strings_seek.h"

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
