// SPDX-License-Identifier: MIT
//
// What all string functions have in common: their arguments, their results, and the errors
// that their accesses can be.
#include "tools/memcheck/strings/call.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/strings/strings.h"

enum { RED_ZONE = 128 };

const u8 string_argument_register[6] = {RDI, RSI, RDX, RCX, R8, R9};

u64 string_argument_v(const StringCall *s, unsigned argument)
{
    const Definedness *d = definedness_of(s->thread);
    return d->set ? d->gpr[string_argument_register[argument]] : 0;
}

// The argument that bounds the elements, or 0: none. A size of the destination bounds too.
static unsigned limit_argument(u64 data)
{
    return data & STRING_LIMIT_1 ? 1 : data & STRING_LIMIT_2 ? 2 : 0;
}

void string_check_arguments(StringCall *s)
{
    unsigned limit = limit_argument(s->data);
    if (limit && string_argument_v(s, limit))
        string_tell_condition(s, limit);
    if (limit && s->call->args[limit] == 0)
        return; // pointers are not used
    for (unsigned i = 0; i < STRING_POINTER_COUNT(s->data); i++) {
        if (!string_argument_v(s, i))
            continue;
        s->told |= STRING_TOLD_VALUE;
        string_report_value(s, i);
        break;
    }
    u64 mask = s->data & STRING_WIDE ? 0xffffffff : 0xff;
    if (s->data & STRING_MATCHES && string_argument_v(s, 1) & mask)
        string_tell_condition(s, 1);
}

void string_mark_result(StringCall *s)
{
    Definedness *d = definedness_of(s->thread);
    set_result_defined(s->thread);
    if (s->result_unknown && memcheck_options->undef_value_errors) {
        d->gpr[RAX] = ~0ull;
        d->set |= MEMBER_GPR(RAX);
    }
}

// What has been told of is not told of again by the original's code.
u64 string_decline(StringCall *s)
{
    MemcheckThread *mt = memcheck_thread(s->thread);
    if (s->told & (STRING_TOLD_READ | STRING_TOLD_WRITE)) {
        mt->told_entry = s->call->entry;
        mt->told_sp = s->thread->gpr[RSP];
    }
    if (s->told & (STRING_TOLD_CONDITION | STRING_TOLD_VALUE)) {
        for (size_t i = 0; i < ARRAY_LEN(string_argument_register); i++)
            definedness_of(s->thread)->gpr[string_argument_register[i]] = 0;
    }
    s->call->run_original = true;
    return 0;
}

bool string_tell_access(StringCall *s, GuestAddr address, bool is_write)
{
    u32 bit = is_write ? STRING_TOLD_WRITE : STRING_TOLD_READ;
    if (s->told & bit)
        return true;
    if (ranges_is_ignored(s->thread, address))
        return false;
    s->told |= bit;
    string_report_access(s, address, is_write);
    return true;
}

void string_tell_condition(StringCall *s, unsigned argument)
{
    if (s->told & STRING_TOLD_CONDITION)
        return;
    s->told |= STRING_TOLD_CONDITION;
    string_report_condition(s, argument);
}

// Whether the byte, whose V byte is not 0, may not be touched, or is below the stack (K3).
static bool is_bad(const StringCall *s, GuestAddr at)
{
    return shadow_is_forbidden(at) || shadow_below_stack(s->thread, at);
}

// In one page, whose shadow is there.
static GuestAddr first_bad_in_page(const StringCall *s, GuestAddr at, GuestAddr end)
{
    if (LIKELY(shadow_all_touchable(s->thread, at, end - at)))
        return end;
    while (at < end) {
        if (!(at & 7) && at + 8 <= end) {
            // Of 8 bytes that lie together in the U map, none or all are below the stack.
            if (*(const u64 *)shadow_of(at) == 0 ||
                (*u_bits_of(at) == 0 && !is_bad(s, at) && !is_bad(s, at + 7))) {
                at += 8;
                continue;
            }
        }
        if (*shadow_of(at) >= V_FORBIDDEN && is_bad(s, at))
            return at;
        at++;
    }
    return end;
}

GuestAddr string_first_bad(const StringCall *s, GuestAddr start, u64 size)
{
    u64 v;
    if (start >= SHADOWED_END)
        return start;
    if (size > SHADOWED_END) // a negative number of bytes
        size = SHADOWED_END;
    GuestAddr end = start + size;
    for (GuestAddr at = start; at < end;) {
        if (at >= SHADOWED_END || !load_u8(SHADOW(at), &v))
            return at;
        GuestAddr page_end = min_u64(PAGE_DOWN(SHADOW(at)) + PAGE_SIZE - SHADOW_OFFSET, end);
        at = first_bad_in_page(s, at, page_end);
        if (at < page_end)
            return at;
    }
    return start + size;
}

// Without a shadow it is not the client's memory, whatever it is.
bool string_take_slow(StringCall *s, GuestAddr at, u64 *ret_value, u64 *ret_v)
{
    bool bad = string_first_bad(s, at, s->element) != at + s->element;
    if (bad)
        string_tell_access(s, at, false);
    if (!in_client(at, s->element) || !load_element(SHADOW(at), s->element, ret_v))
        return false;
    if (bad || (*ret_v && shadow_has_tag(at, s->element)))
        *ret_v = 0;
    if (*ret_v)
        s->undefined_at = at;
    return load_element(at, s->element, ret_value);
}
