// SPDX-License-Identifier: MIT
//
// The slow paths of accesses, called from blocks: stores to what is not defined or not
// to be touched, steps of dirty blocks, string instructions, frames that are left.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"

// The flags as the gateway has pushed them.
static u64 client_flags(const ToolThread *thread)
{
    return *(const u64 *)(thread->engine_rsp - 8);
}

// Reports the access if any byte of it may not be touched. True: all may.
static bool check(ToolThread *thread, GuestAddr address, u64 size, bool is_write)
{
    if (shadow_first_noaccess(thread, address, size) == address + size)
        return true;
    error_access(thread, address, size, is_write);
    return false;
}

// An aligned load of which some bytes may be touched: vectorised code reads beyond what it was
// given, up to the next boundary. What may not be touched is undefined, as its shadow has it.
static bool is_partial_load(ToolThread *thread, GuestAddr address, u64 size)
{
    if (!memcheck_options->partial_loads_ok || size < 4 || address & (size - 1) ||
        !shadow_is_mapped(address, size))
        return false;
    for (GuestAddr at = address; at < address + size; at++) {
        if (shadow_first_noaccess(thread, at, 1) != at)
            return true;
    }
    return false;
}

// A byte that may not be touched keeps its V byte (K1).
static void clear(ToolThread *thread, GuestAddr address, u64 size, bool all)
{
    for (GuestAddr at = address; at < address + size; at++) {
        if (all || (*shadow_of(at) && shadow_first_noaccess(thread, at, 1) != at))
            *shadow_of(at) = 0;
    }
}

// Whether nothing stands against a store of up to 8 bytes whose shadow is mapped.
static bool may_store(ToolThread *thread, GuestAddr address, u64 size)
{
    u32 bits = *(const u16 *)u_bits_of(address) >> (address & 7);
    return size <= 8 && !(bits & ((1u << size) - 1)) && !shadow_below_stack(thread, address);
}

void access_store(ToolThread *thread, u64 size, GuestAddr address)
{
    // Memory that is written for the first time: by far the most frequent case. The guard
    // has read the shadow, so it is there.
    if (LIKELY(may_store(thread, address, size))) {
        switch (size) {
        case 8: *(u64 *)shadow_of(address) = 0; return;
        case 4: *(u32 *)shadow_of(address) = 0; return;
        case 2: *(u16 *)shadow_of(address) = 0; return;
        case 1: *shadow_of(address) = 0; return;
        default: break;
        }
    }
    bool all = check(thread, address, size, true);
    if (shadow_is_mapped(address, size))
        clear(thread, address, size, all);
}

// What has no guard: xsave, fxsave, masked and gathered accesses. They are checked for
// being touchable; what they store counts as defined.
void access_any(ToolThread *thread, u64 what, GuestAddr address)
{
    u64 size = what & 0xffffffff;
    if (size == 0 || address == 0)
        return;
    if (what & ACCESS_WRITES && shadow_is_mapped(address, size))
        access_store(thread, size, address);
    else
        check(thread, address, size, what & ACCESS_WRITES);
}

void access_step(ToolThread *thread, u64 arg, GuestAddr address)
{
    const DefinednessStep *step = (const DefinednessStep *)arg;
    MemcheckThread *mt = memcheck_thread(thread);
    DefinednessAccess access = definedness_access(step);
    u8 invalid_v[64];
    DefinednessValues values = {
        .gpr = thread->gpr,
        .eflags = client_flags(thread),
        .vector = (const u8(*)[64])thread->tool_vectors,
        .address = address,
    };
    if (access.size) {
        bool ok = (access.reads && !access.writes && access.size <= sizeof(invalid_v) &&
                   is_partial_load(thread, address, access.size)) ||
                  check(thread, address, access.size, access.writes && !access.reads);
        bool mapped = ok || shadow_is_mapped(address, access.size);
        if (ok) {
            values.memory = (const u8 *)address;
            values.memory_v = shadow_of(address);
        } else {
            // Reported: what it reads counts as defined, what it writes is nowhere.
            for (size_t i = 0; i < sizeof(invalid_v); i++)
                invalid_v[i] = 0;
            values.memory = mapped && access.reads ? (const u8 *)address : NULL;
            values.memory_v = access.size <= sizeof(invalid_v) ? invalid_v : NULL;
        }
    }
    OriginStep origins;
    origins_before(thread, step, address, values.memory_v, &origins);
    u32 events = definedness_run(step, definedness_of(thread), &values);
    origins_after(thread, &origins, values.memory_v);
    if (events) {
        mt->value_origin = origins.value;
        mt->address_origin = origins.address;
        error_undefined(thread, events);
    }
}

// What only bits beyond a scalar's make undefined is the temporary of a copy, dead by now.
static bool is_scalar(const u8 v[64])
{
    const u64 *words = (const u64 *)v;
    for (size_t i = 1; i < 8; i++) {
        if (words[i])
            return false;
    }
    return true;
}

static void drop_vectors(Definedness *d, MemberSet kept)
{
    for (MemberSet left = d->set & MEMBERS_VECTOR; left; left &= left - 1) {
        unsigned n = (unsigned)__builtin_ctzll(left) - 32;
        if (kept & MEMBER_VECTOR(n) && is_scalar(d->vector[n]))
            continue;
        u64 *words = (u64 *)d->vector[n];
        for (size_t i = 0; i < 8; i++)
            words[i] = 0;
        d->set &= ~MEMBER_VECTOR(n);
    }
}

// At calls and returns most registers hold nothing by the ABI. What they still carry
// would ride along through all that follows: it counts as defined.
void access_call(ToolThread *thread, u64 is_return, GuestAddr unused)
{
    Definedness *d = definedness_of(thread);
    MemberSet dead = is_return ? ACCESS_DEAD_GPRS_AT_RETURN : ACCESS_DEAD_GPRS_AT_CALL;
    (void)unused;
    for (MemberSet left = d->set & dead; left; left &= left - 1)
        d->gpr[__builtin_ctzll(left)] = 0;
    d->set &= ~dead;
    d->flags = 0;
    for (MemberSet left = d->set >> 20 & 0xff; left; left &= left - 1)
        d->mask[__builtin_ctzll(left)] = 0;
    d->set &= ~(MEMBER_FLAGS | 0xffull << 20);
    drop_vectors(d, is_return ? MEMBER_VECTOR(0) | MEMBER_VECTOR(1) : 0xffull << 32);
}

enum { FRAME_MAX = 8 << 20 };   // more is a change of stacks
enum { SMALL_FRAME = 1024 };    // rep stosb takes its time to begin

static void fill_undefined(GuestAddr start, u64 size)
{
    u8 *at = shadow_of(start);
    if (size > SMALL_FRAME) {
        __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(0xff) : "memory");
        return;
    }
    for (; size >= 8; size -= 8, at += 8)
        *(volatile u64 *)at = ~0ull; // not to become a call of memset
    while (size--)
        *(volatile u8 *)at++ = 0xff;
}

// `what` is (bytes << 1) for rsp going up by so many, 1 for `leave`.
void access_leave_frame(ToolThread *thread, u64 what, GuestAddr unused)
{
    (void)unused;
    GuestAddr sp = thread->gpr[RSP];
    u64 size = what == 1 ? thread->gpr[RBP] + 8 - sp : what >> 1;
    if (size < FRAME_MAX && shadow_is_mapped(sp, size))
        fill_undefined(sp, size);
}

// (bytes << 1) for rsp going down by so many, (register << 1 | 1) by what is in it.
void access_enter_frame(ToolThread *thread, u64 what, GuestAddr unused)
{
    (void)unused;
    u64 size = what & 1 ? thread->gpr[what >> 1] : what >> 1;
    GuestAddr sp = thread->gpr[RSP] - size;
    if (size < FRAME_MAX && shadow_is_mapped(sp, size))
        fill_undefined(sp, size);
}
