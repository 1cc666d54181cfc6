// SPDX-License-Identifier: MIT
//
// Setting and searching V bytes and U bits over ranges.
#include "base/fill.h"
#include "base/futex_lock.h"
#include "engine/calltags/calltags.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

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
    shadow_forget_forbidden(start, start + size);
    fill_bytes(shadow_of(start), 0xff, size);
    set_u_bits(start, size, true);
}

// ------------------------------------------------------------ what is forbidden on stacks

typedef struct StackRange {
    GuestAddr start, end; // equal: none
} StackRange;

enum { STACK_RANGES = 64 };
static Lock stack_lock; // of what follows, for writers
static StackRange stack_ranges[STACK_RANGES];
static u32 stack_range_count; // in use, or were; atomic

static bool is_stack_range(GuestAddr address)
{
    u32 count = __atomic_load_n(&stack_range_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++) {
        if (address - stack_ranges[i].start < stack_ranges[i].end - stack_ranges[i].start)
            return true;
    }
    return false;
}

// The one that has it all, or that it has all of, or a free one. If there is none, another is
// forgotten: what was forbidden there stays so.
static StackRange *range_for(GuestAddr start, GuestAddr end)
{
    static u32 next;
    for (u32 i = 0; i < stack_range_count; i++) {
        StackRange *range = &stack_ranges[i];
        bool has = start >= range->start && end <= range->end;
        if (has || (range->start >= start && range->end <= end) || range->start == range->end)
            return range;
    }
    if (stack_range_count == STACK_RANGES)
        return &stack_ranges[next++ % STACK_RANGES];
    __atomic_store_n(&stack_range_count, stack_range_count + 1, __ATOMIC_RELEASE);
    return &stack_ranges[stack_range_count - 1];
}

void shadow_forbid_stack(GuestAddr start, u64 size)
{
    GuestAddr end = start + size;
    lock_acquire(&stack_lock);
    StackRange *range = range_for(start, end);
    if (start < range->start || end > range->end)
        *range = (StackRange){start, end};
    lock_release(&stack_lock);
    fill_bytes(shadow_of(start), V_FORBIDDEN, size);
    set_u_bits(start, size, true);
}

void shadow_forget_forbidden(GuestAddr start, GuestAddr end)
{
    if (LIKELY(!__atomic_load_n(&stack_range_count, __ATOMIC_RELAXED)))
        return;
    lock_acquire(&stack_lock);
    for (u32 i = 0; i < stack_range_count; i++) {
        if (stack_ranges[i].start < end && start < stack_ranges[i].end)
            stack_ranges[i] = (StackRange){0, 0};
    }
    lock_release(&stack_lock);
}

void shadow_fork_prepare(void)
{
    lock_acquire(&stack_lock);
}

void shadow_fork_done(bool in_child)
{
    if (in_child)
        lock_reset_after_fork(&stack_lock);
    else
        lock_release(&stack_lock);
}

bool shadow_is_forbidden(GuestAddr address)
{
    if (!(*u_bits_of(address) >> (address & 7) & 1))
        return false;
    if (*shadow_of(address) == V_FORBIDDEN || LIKELY(!is_stack_range(address)))
        return true;
    set_u_bits(address, 1, false); // its frame was left since
    return false;
}

// A stack grows when it is touched; so does its shadow (shadow_fault()).
static bool grows(GuestAddr page)
{
    return __atomic_load_n(&aspace_may_grow, __ATOMIC_RELAXED) && engine_can_read(shadow_of(page));
}

static inline bool has_shadow(GuestAddr start, u64 size, bool may_grow)
{
    if (start >= SHADOWED_END || size > SHADOWED_END - start)
        return false;
    GuestAddr last = PAGE_DOWN(start + size - 1);
    for (GuestAddr page = PAGE_DOWN(start); page <= last; page += PAGE_SIZE) {
        if (!shadow_is_open(page) && !(may_grow && grows(page)))
            return false;
        if (size > 64 * PAGE_SIZE && page < last - PAGE_SIZE)
            page = last - PAGE_SIZE; // the ends tell for the middle
    }
    return true;
}

bool shadow_is_mapped(GuestAddr start, u64 size)
{
    return has_shadow(start, size, true);
}

bool shadow_is_mapped_now(GuestAddr start, u64 size)
{
    return has_shadow(start, size, false);
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
        if (shadow_is_forbidden(at) || shadow_below_stack(thread, at))
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
        if (!shadow_is_forbidden(at) && !shadow_below_stack(thread, at))
            *shadow_of(at) = 0;
    }
}

GuestAddr shadow_first_undefined(GuestAddr start, u64 size)
{
    return skip_zero(start, start + size);
}
