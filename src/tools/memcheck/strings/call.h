// SPDX-License-Identifier: MIT
//
// The functions of string.h, strings.h and wchar.h, run by the engine; private to its folder.
//
// A handler does what the function does, on the client's memory, with words where a plain loop
// has bytes, and tells of what such a loop would meet first: an element that may not be touched,
// one on whose undefined bits the outcome depends, an argument that is undefined. Copies
// move V bits.
//
// Glossary
//   element  a byte, or a wchar_t of 4
//   fast     the path through words whose shadow is clear where it matters; it says no at the first
//            word whose shadow is not
//   slow     the way by elements, which tells
//   decline  the original runs instead: after a fault, so that it happens to the client where
//            and how it would have, and where only libc knows the answer
//
// What must stay true
//   N1  Nothing has been written, or writing it again does the same, when a handler declines.
//   N2  Client memory is touched through access.h only: the shadow knows what
//       may be touched, not what the kernel lets through.
#ifndef MUNINN_TOOLS_MEMCHECK_STRINGS_CALL_H
#define MUNINN_TOOLS_MEMCHECK_STRINGS_CALL_H

#include "tools/memcheck/events/events.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/strings/access.h"
#include "tools/memcheck/strings/strings.h"

// A call of one of them.
typedef struct StringCall {
    ToolThread *thread;
    ToolCall *call;
    u64 data;         // ToolFunction.data
    u32 element;      // bytes
    u32 shift;        // and as a power of two
    u32 told;         // STRING_TOLD_ bits: each kind of error once in a call
    bool result_unknown;
    GuestAddr undefined_at; // the last undefined element that was taken; 0: none
    GuestAddr letters;      // the locale's table of lower case; 0: not asked for
} StringCall;
enum {
    STRING_TOLD_READ = 1,
    STRING_TOLD_WRITE = 2,
    STRING_TOLD_CONDITION = 4,
    STRING_TOLD_VALUE = 8,
};

// --- check_hot.c
void string_check_arguments(StringCall *s);
void string_mark_result(StringCall *s);
extern const u8 string_argument_register[6];
// The V bits of an argument.
u64 string_argument_v(const StringCall *s, unsigned argument);
u64 string_decline(StringCall *s);

static inline void string_begin(StringCall *s, ToolThread *thread, ToolCall *call)
{
    s->thread = thread;
    s->call = call;
    s->data = call->function->data;
    s->shift = s->data & STRING_WIDE ? 2 : 0;
    s->element = 1u << s->shift;
    s->told = 0;
    s->result_unknown = false;
    s->undefined_at = 0;
    s->letters = 0;
    syscalls_settle(thread);
    if (UNLIKELY(definedness_of(thread)->set))
        string_check_arguments(s);
}

static inline u64 string_return(StringCall *s, u64 result)
{
    if (UNLIKELY(definedness_of(s->thread)->set || s->result_unknown))
        string_mark_result(s);
    return result;
}

// False: it is in a range that the program does not want to hear of.
bool string_tell_access(StringCall *s, GuestAddr address, bool is_write);
// Of an argument, or of an element.
enum { STRING_ELEMENT = 6 };
void string_tell_condition(StringCall *s, unsigned argument);
// The first byte that may not be touched, exactly; start + size: none.
GuestAddr string_first_bad(const StringCall *s, GuestAddr start, u64 size);
bool string_take_slow(StringCall *s, GuestAddr at, u64 *ret_value, u64 *ret_v);

// An element and its V bits, which are 0 if it may not be touched: that has been told of. False:
// it can not be read.
static inline bool string_take(StringCall *s, GuestAddr at, u64 *ret_value, u64 *ret_v)
{
    u64 v;
    if (LIKELY(at < CLIENT_END - 8) && LIKELY(load_element(SHADOW(at), s->element, &v)) &&
        LIKELY(v == 0)) {
        *ret_v = 0;
        return load_element(at, s->element, ret_value);
    }
    return string_take_slow(s, at, ret_value, ret_v);
}

// Whether two values are the same; tells if that depends on undefined bits.
static inline bool string_is_same(StringCall *s, u64 a, u64 a_v, u64 b, u64 b_v)
{
    if (LIKELY((a_v | b_v) == 0))
        return a == b;
    if ((a ^ b) & ~(a_v | b_v))
        return false;
    string_tell_condition(s, STRING_ELEMENT);
    return a == b;
}

// --- scan_hot.c
// The first of at most `limit` elements that is `a` or `b` (values without V bits), as an address;
// start + limit elements: none. False: decline.
bool string_seek(StringCall *s, GuestAddr start, u64 limit, u64 a, u64 b, GuestAddr *ret_at);
#define STRING_NO_LIMIT (~0ull)

// --- bulk_hot.c: data and V bits of ranges, with checks. False: decline.
bool string_move(StringCall *s, GuestAddr to, GuestAddr from, u64 size);
// The size is a multiple of the element's; v are V bits of value.
bool string_set(StringCall *s, GuestAddr to, u64 value, u64 v, u64 size);

// --- report_hot.c
void string_report_access(StringCall *s, GuestAddr address, bool is_write);
// Of an element (STRING_ELEMENT), or of an argument.
void string_report_condition(StringCall *s, unsigned argument);
void string_report_value(StringCall *s, unsigned argument);
void string_report_overlap(StringCall *s, GuestAddr to, GuestAddr from, u64 count,
                           const char *name);
// --- fold_hot.c
// Two letters in lower case. False: decline, or call->needs_full is set.
bool string_fold(StringCall *s, u64 *x, u64 *y);
// --- objects_hot.c
bool string_called_as_memcpy(GuestAddr return_address);
// A function that the object with that code exports; 0: none of that name.
GuestAddr string_exported_by(GuestAddr code, const char *name);
// What is going to be copied has undefined bytes.
void string_note_origins(StringCall *s, GuestAddr to, GuestAddr from, u64 size);

#endif
