// SPDX-License-Identifier: MIT
//
// Setting and searching V bytes and U bits over ranges.
#include "base/fill.h"
#include "engine/calltags/calltags.h"
#include "tools/memcheck/memcheck.h"

enum { RED_ZONE = 128 };

typedef u64 Any64 __attribute__((aligned(1), may_alias));

// Bits [first, first + count) of a byte of the U map. Neighbours in one byte belong to one block
// or to no one: no other thread writes it.
static void set_u_part(u8 *at, u32 first, u32 count, bool set)
{
    u8 bits = (u8)(((1u << count) - 1) << first);
    *at = set ? *at | bits : *at & (u8)~bits;
}

static void set_u_bits(GuestAddr start, u64 size, bool set)
{
    u32 first = start & 7;
    if (first) {
        u32 count = size < 8 - first ? (u32)size : 8 - first;
        set_u_part(u_bits_of(start), first, count, set);
        start += count;
        size -= count;
    }
    fill_bytes(u_bits_of(start), set ? 0xff : 0, size / 8);
    if (size & 7)
        set_u_part(u_bits_of(start + size), 0, size & 7, set);
}

void shadow_clear_v(GuestAddr start, u64 size)
{
    fill_bytes(shadow_of(start), 0, size);
}

void shadow_make_defined(GuestAddr start, u64 size)
{
    fill_bytes(shadow_of(start), 0, size);
    set_u_bits(start, size, false);
}

void shadow_make_undefined(GuestAddr start, u64 size)
{
    origins_forget(start, size);
    fill_bytes(shadow_of(start), 0xff, size);
    set_u_bits(start, size, false);
}

void shadow_make_touchable(GuestAddr start, u64 size)
{
    set_u_bits(start, size, false);
}

void shadow_make_noaccess(GuestAddr start, u64 size)
{
    fill_bytes(shadow_of(start), 0xff, size);
    set_u_bits(start, size, true);
}

bool shadow_is_mapped(GuestAddr start, u64 size)
{
    if (start >= SHADOWED_END || size > SHADOWED_END - start)
        return false;
    GuestAddr last = PAGE_DOWN(start + size - 1);
    for (GuestAddr page = PAGE_DOWN(start); page <= last; page += PAGE_SIZE) {
        if (!shadow_is_open(page))
            return false;
        if (size > 64 * PAGE_SIZE && page < last - PAGE_SIZE)
            page = last - PAGE_SIZE; // the ends tell for the middle
    }
    return true;
}

// ------------------------------------------------------------------- tags

bool shadow_has_tag(GuestAddr start, u64 size)
{
    for (GuestAddr at = start & ~7ull; at < start + size; at += 8) {
        if (calltags_is_tag(at))
            return true;
    }
    return false;
}

void shadow_read(GuestAddr start, u64 size, u8 *ret_v)
{
    bool tag = false;
    for (GuestAddr at = start; at < start + size; at++) {
        if (at == start || !(at & 7))
            tag = calltags_is_tag(at & ~7ull);
        *ret_v++ = tag ? 0 : *shadow_of(at);
    }
}

void shadow_drop_tags(GuestAddr start, u64 size)
{
    for (GuestAddr at = start & ~7ull; at < start + size; at += 8) {
        if (*shadow_of(at) && calltags_is_tag(at))
            *(u64 *)shadow_of(at) = 0;
    }
}

// The first V byte in [at, end) that is not 0.
static GuestAddr skip_zero(GuestAddr at, GuestAddr end)
{
    for (;;) {
        while (at < end && at & 7 && *shadow_of(at) == 0)
            at++;
        while (!(at & 7) && at + 8 <= end && *(const u64 *)shadow_of(at) == 0)
            at += 8;
        while (at < end && *shadow_of(at) == 0)
            at++;
        if (at >= end)
            return end;
        if (!shadow_has_tag(at, 1))
            return at;
        at = (at | 7) + 1;
    }
}

// By the U map alone, which is 64 times shorter than what it is about when read by words.
bool shadow_all_touchable(ToolThread *thread, GuestAddr start, u64 size)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    GuestAddr end = start + size, sp = thread->gpr[RSP];
    if (end > mt->stack_lo && start < sp - RED_ZONE && is_at_home(mt, sp))
        return false; // some of it may be below the stack (K3)
    while (start < end) {
        u64 bits = *(const Any64 *)u_bits_of(start) >> (start & 7);
        u64 count = 64 - (start & 7);
        if (end - start < count)
            bits &= (1ull << (end - start)) - 1;
        if (bits)
            return false;
        start += count;
    }
    return true;
}

// The first of these bytes whose shadow is not there. The size may be nonsense.
static GuestAddr first_without_shadow(GuestAddr start, u64 size)
{
    if (start >= SHADOWED_END)
        return start;
    GuestAddr end = start + min_u64(size, SHADOWED_END - start), page = PAGE_DOWN(start);
    while (page < end && shadow_is_open(page))
        page += PAGE_SIZE;
    return max_u64(start, min_u64(page, end));
}

GuestAddr shadow_first_noaccess(ToolThread *thread, GuestAddr start, u64 size)
{
    if (!shadow_is_mapped(start, size))
        size = first_without_shadow(start, size) - start;
    GuestAddr end = start + size;
    if (LIKELY(shadow_all_touchable(thread, start, size)))
        return end;
    for (GuestAddr at = skip_zero(start, end); at < end; at = skip_zero(at + 1, end)) {
        if (*u_bits_of(at) >> (at & 7) & 1 || shadow_below_stack(thread, at))
            return at;
    }
    return end;
}

void shadow_define_touchable(ToolThread *thread, GuestAddr start, u64 size)
{
    GuestAddr end = start + size;
    if (LIKELY(shadow_all_touchable(thread, start, size))) {
        shadow_clear_v(start, size);
        return;
    }
    for (GuestAddr at = skip_zero(start, end); at < end; at = skip_zero(at + 1, end)) {
        if (!(*u_bits_of(at) >> (at & 7) & 1) && !shadow_below_stack(thread, at))
            *shadow_of(at) = 0;
    }
}

GuestAddr shadow_first_undefined(GuestAddr start, u64 size)
{
    return skip_zero(start, start + size);
}
