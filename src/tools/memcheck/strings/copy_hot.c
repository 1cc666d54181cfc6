// SPDX-License-Identifier: MIT
//
// The functions that write: memcpy, strcpy, strncat, memset and their kin. The fortified ones
// are the same where all is well, and the originals where the destination is too small.
#include "tools/memcheck/strings/call.h"

#include "tools/memcheck/strings/strings.h"

// The bytes of so many elements, or more than there can be.
static u64 bytes_of(const StringCall *s, u64 count)
{
    return count > CLIENT_END / 4 ? CLIENT_END : count << s->shift;
}

// Whether a fortified function has to stop the program.
static bool exceeds(const StringCall *s, u64 count)
{
    u64 argument = STRING_CHECKED_ARGUMENT(s->data);
    return argument && count > s->call->args[argument];
}

static void check_overlap(StringCall *s, GuestAddr to, u64 to_size, GuestAddr from, u64 from_size,
                          u64 count)
{
    if (to - from < from_size || from - to < to_size)
        string_report_overlap(s, to, from, count, s->call->function->name);
}

// Where memcpy and memmove are one function, the caller's relocation tells which was meant. Onto
// itself gcc copies what is assigned to itself.
static void check_one_of_both(StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    if (to != from && (to - from < size || from - to < size) &&
        string_called_as_memcpy(s->call->return_address))
        string_report_overlap(s, to, from, s->call->args[2], "memcpy");
}

// memcpy, memmove, mempcpy, bcopy
u64 string_copy(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    bool swapped = s.data & STRING_SWAPPED;
    GuestAddr to = call->args[swapped ? 1 : 0], from = call->args[swapped ? 0 : 1];
    u64 size = bytes_of(&s, call->args[2]);
    if (exceeds(&s, call->args[2]))
        return string_decline(&s);
    if (s.data & STRING_OVERLAP)
        check_overlap(&s, to, size, from, size, call->args[2]);
    else if (!swapped && s.element == 1)
        check_one_of_both(&s, to, from, size);
    if (!string_move(&s, to, from, size))
        return string_decline(&s);
    return string_return(&s, s.data & STRING_END ? to + size : to);
}

// memccpy
u64 string_copy_until(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr to = call->args[0], from = call->args[1], at;
    u64 limit = call->args[3], last = (u8)call->args[2];
    if (string_argument_v(&s, 3))
        string_tell_condition(&s, 3);
    if (string_argument_v(&s, 2) & 0xff && limit)
        string_tell_condition(&s, 2);
    if (!string_seek(&s, from, limit, last, last, &at))
        return string_decline(&s);
    bool found = at != from + min_u64(limit, CLIENT_END - from);
    u64 size = at - from + (found ? 1 : 0);
    check_overlap(&s, to, size, from, size, limit);
    if (!string_move(&s, to, from, size))
        return string_decline(&s);
    return string_return(&s, found ? to + size : 0);
}

// ---------------------------------------------------------------------- strings

static bool length(StringCall *s, GuestAddr start, u64 limit, u64 *ret_count)
{
    GuestAddr end;
    if (!string_seek(s, start, limit, 0, 0, &end))
        return false;
    *ret_count = (end - start) >> s->shift;
    return true;
}

// strlcpy, strlcat: the limit is that of the destination, and there is always an end.
static u64 copy_sized(StringCall *s)
{
    GuestAddr to = s->call->args[0], from = s->call->args[1];
    u64 limit = s->call->args[2], old = 0, count;
    if (exceeds(s, limit))
        return string_decline(s);
    if ((s->data & STRING_APPENDS && !length(s, to, limit, &old)) ||
        !length(s, from, STRING_NO_LIMIT, &count))
        return string_decline(s);
    if (old == limit)
        return string_return(s, old + count);
    u64 copied = min_u64(count, limit - old - 1) * s->element;
    GuestAddr at = to + old * s->element;
    check_overlap(s, at, copied + s->element, from, copied + s->element, limit);
    if (!string_move(s, at, from, copied) || !string_set(s, at + copied, 0, 0, s->element))
        return string_decline(s);
    return string_return(s, old + count);
}

// strcpy, stpcpy, strncpy, stpncpy, strcat, strncat
u64 string_copy_text(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    GuestAddr to = call->args[0], from = call->args[1];
    u64 limit = s.data & STRING_LIMIT_2 ? call->args[2] : STRING_NO_LIMIT, old = 0, count;
    if (s.data & STRING_SIZED)
        return copy_sized(&s);
    if (s.data & STRING_PADS && exceeds(&s, limit))
        return string_decline(&s);
    if ((s.data & STRING_APPENDS && !length(&s, to, STRING_NO_LIMIT, &old)) ||
        !length(&s, from, limit, &count))
        return string_decline(&s);

    u64 read = count < limit ? count + 1 : count; // with the end, if it is seen
    u64 written = s.data & STRING_PADS ? limit : count + 1;
    if (!(s.data & STRING_PADS) && exceeds(&s, old + written))
        return string_decline(&s);
    GuestAddr at = to + old * s.element;
    // What is written, and for a string that grows what was there.
    check_overlap(&s, to, bytes_of(&s, old + written), from, bytes_of(&s, read), limit);
    u64 copied = count * s.element;
    if (!string_move(&s, at, from, copied))
        return string_decline(&s);
    // From the source where it has one, so that V bits come along: it may be undefined.
    u64 v = 0;
    if (read > count && in_client(from + copied, s.element) && written > count &&
        load_element(SHADOW(from + copied), s.element, &v) && v &&
        string_first_bad(&s, from + copied, s.element) != from + copied + s.element)
        v = 0;
    if ((written > count && !string_set(&s, at + copied, 0, v, s.element)) ||
        (written > count + 1 &&
         !string_set(&s, at + copied + s.element, 0, 0, bytes_of(&s, written - count - 1))))
        return string_decline(&s);
    return string_return(&s, s.data & STRING_END ? at + copied : to);
}

// -------------------------------------------------------------------------- fill

// memset, wmemset, bzero
u64 string_fill(ToolThread *thread, ToolCall *call)
{
    StringCall s;
    string_begin(&s, thread, call);
    bool zeroes = s.data & STRING_ZEROES;
    u64 count = call->args[zeroes ? 1 : 2];
    if (exceeds(&s, count))
        return string_decline(&s);
    if (!string_set(&s, call->args[0], zeroes ? 0 : call->args[1],
                    zeroes ? 0 : string_argument_v(&s, 1), bytes_of(&s, count)))
        return string_decline(&s);
    return string_return(&s, call->args[0]);
}
