// SPDX-License-Identifier: MIT
//
// What all string functions have in common: their arguments, their results, and the errors
// that their accesses can be.
#include "tools/memcheck/strings_call.h"

#include "tools/memcheck/heap_functions.h"

enum { RED_ZONE = 128 };

static const u8 argument_register[6] = {RDI, RSI, RDX, RCX, R8, R9};

u64 string_argument_v(const StringCall *s, unsigned argument)
{
    const Definedness *d = &memcheck_thread(s->thread)->defined;
    return d->set ? d->gpr[argument_register[argument]] : 0;
}

// The argument that bounds the elements, or 0: none. A size of the destination bounds too.
static unsigned limit_argument(u64 data)
{
    return data & STRING_LIMIT_1 ? 1 : data & STRING_LIMIT_2 ? 2 : 0;
}

static void check_arguments(StringCall *s)
{
    unsigned limit = limit_argument(s->data);
    if (limit && string_argument_v(s, limit))
        string_tell_condition(s);
    if (limit && s->call->args[limit] == 0)
        return; // pointers are not used
    for (unsigned i = 0; i < STRING_POINTER_COUNT(s->data); i++) {
        if (!string_argument_v(s, i))
            continue;
        string_report_value(s);
        break;
    }
    u64 mask = s->data & STRING_WIDE ? 0xffffffff : 0xff;
    if (s->data & STRING_MATCHES && string_argument_v(s, 1) & mask)
        string_tell_condition(s);
}

StringCall string_begin(ToolThread *thread, ToolCall *call)
{
    StringCall s = {
        .thread = thread,
        .call = call,
        .data = call->function->data,
        .element = call->function->data & STRING_WIDE ? 4 : 1,
    };
    if (UNLIKELY(memcheck_thread(thread)->defined.set))
        check_arguments(&s);
    return s;
}

u64 string_return(StringCall *s, u64 result)
{
    Definedness *d = &memcheck_thread(s->thread)->defined;
    set_result_defined(s->thread);
    if (UNLIKELY(s->result_unknown)) {
        d->gpr[RAX] = ~0ull;
        d->set |= MEMBER_GPR(RAX);
    }
    return result;
}

u64 string_decline(StringCall *s)
{
    s->call->run_original = true;
    return 0;
}

void string_tell_access(StringCall *s, GuestAddr address, bool is_write)
{
    u32 bit = is_write ? STRING_TOLD_WRITE : STRING_TOLD_READ;
    if (s->told & bit)
        return;
    s->told |= bit;
    string_report_access(s, address, is_write);
}

void string_tell_condition(StringCall *s)
{
    if (s->told & STRING_TOLD_CONDITION)
        return;
    s->told |= STRING_TOLD_CONDITION;
    string_report_condition(s);
}

// Whether the byte, whose V byte is 0xff, has a U bit or is below the stack (K3).
static bool is_bad(const StringCall *s, GuestAddr at)
{
    const MemcheckThread *mt = memcheck_thread(s->thread);
    u64 sp = s->thread->gpr[RSP];
    return *u_bits_of(at) >> (at & 7) & 1 ||
           (at >= mt->stack_lo && at < sp - RED_ZONE && sp <= mt->stack_hi);
}

// In one page, whose shadow is there.
static GuestAddr first_bad_in_page(const StringCall *s, GuestAddr at, GuestAddr end)
{
    while (at < end) {
        if (!(at & 7) && at + 8 <= end) {
            // Of 8 bytes that lie together in the U map, none or all are below the stack.
            if (*(const u64 *)shadow_of(at) == 0 ||
                (*u_bits_of(at) == 0 && !is_bad(s, at) && !is_bad(s, at + 7))) {
                at += 8;
                continue;
            }
        }
        if (*shadow_of(at) == 0xff && is_bad(s, at))
            return at;
        at++;
    }
    return end;
}

GuestAddr string_first_bad(const StringCall *s, GuestAddr start, u64 size)
{
    u64 v;
    if (size > CLIENT_END) // a negative number of bytes
        size = CLIENT_END;
    GuestAddr end = start + size;
    for (GuestAddr at = start; at < end;) {
        if (at >= CLIENT_END || !load_u8(SHADOW(at), &v))
            return at;
        GuestAddr page_end = min_u64(PAGE_DOWN(at) + PAGE_SIZE, end);
        at = first_bad_in_page(s, at, page_end);
        if (at < page_end)
            return at;
    }
    return start + size;
}

bool string_take_slow(StringCall *s, GuestAddr at, u64 *ret_value, u64 *ret_v)
{
    GuestAddr bad = string_first_bad(s, at, s->element);
    *ret_v = 0;
    if (bad != at + s->element)
        string_tell_access(s, at, false);
    else if (!load_element(SHADOW(at), s->element, ret_v))
        return false;
    return at < CLIENT_END && load_element(at, s->element, ret_value);
}
