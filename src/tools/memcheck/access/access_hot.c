// SPDX-License-Identifier: MIT
//
// The slow paths of accesses, called from blocks: stores to what is not defined or not
// to be touched, steps of dirty blocks, string instructions.
#include "base/fill.h"
#include "engine/aspace/aspace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

// The flags as the gateway has pushed them.
static u64 client_flags(const ToolThread *thread)
{
    return *(const u64 *)(thread->gateway.engine_rsp - 8);
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

// Code that looks for the end of a string compares vectors, four at a time, wherever they begin: it
// knows that a page is there as a whole. What it finds where nothing is is undefined, and is
// told of as soon as it decides something.
static bool is_search(ToolThread *thread, GuestAddr address, u64 size)
{
    enum { AT_ONCE = 4 };
    if (!memcheck_options->partial_loads_ok || !shadow_is_mapped(address, size))
        return false;
    GuestAddr page = address & ~(PAGE_SIZE - 1);
    GuestAddr from = address - page < AT_ONCE * size ? page : address - AT_ONCE * size;
    // An aligned one may also begin before the string.
    GuestAddr four = (address & ~(AT_ONCE * size - 1)) + AT_ONCE * size;
    GuestAddr to = address % size == 0 && four > address + size ? four : address + size;
    for (GuestAddr at = to; at > from; at--) {
        if (shadow_first_noaccess(thread, at - 1, 1) != at - 1)
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

// --undef-value-errors=no: a load from where the shadow is not zero. What is undefined, a stack
// that was left and is used again, becomes defined.
void access_load(ToolThread *thread, u64 what, GuestAddr address)
{
    u64 size = what & 0xffffffff;
    if (shadow_is_mapped(address, size) && shadow_has_tag(address, size))
        return;
    if (shadow_first_noaccess(thread, address, size) == address + size)
        clear(thread, address, size, true);
    else if (!is_partial_load(thread, address, size) &&
             !(what & ACCESS_COMPARED && is_search(thread, address, size)))
        error_access(thread, address, size, false);
}

// xlat: its index is in no operand.
void access_table(ToolThread *thread, u64 unused, GuestAddr base)
{
    (void)unused;
    GuestAddr at = base + (u8)thread->gpr[RAX];
    if (shadow_is_mapped(at, 1) && !*shadow_of(at))
        return;
    if (memcheck_options->undef_value_errors)
        tool_fail_guard(thread);
    else
        access_load(thread, 1, at);
}

// What has no guard: fldenv, fnsave and their like.
void access_any(ToolThread *thread, u64 what, GuestAddr address)
{
    u64 size = what & 0xffffffff;
    if (size == 0 || address == 0)
        return;
    if (what & ACCESS_WRITES && shadow_is_mapped(address, size))
        access_store(thread, size, address);
    else if (check(thread, address, size, what & ACCESS_WRITES) &&
             memcheck_options->undef_value_errors &&
             shadow_first_undefined(address, size) < address + size)
        tool_fail_guard(thread); // what is undefined is for a step
}

// Memory that an instruction touches without naming it. What is on the stack is not checked:
// no more than in a clean block.
static void check_hidden(ToolThread *thread, const DefinednessStep *step,
                         const HiddenAccess *hidden, unsigned count)
{
    if (definedness_string(step).kind == STRING_NONE && count && hidden[0].size > 1)
        return;
    for (unsigned i = 0; i < count; i++)
        check(thread, hidden[i].address, hidden[i].size, hidden[i].writes);
}

// A store may have cleared V bytes of what may not be touched (K1).
static void mark_again(const HiddenAccess *hidden, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!hidden[i].writes || !shadow_is_mapped(hidden[i].address, hidden[i].size))
            continue;
        for (u32 k = 0; k < hidden[i].size; k++) {
            GuestAddr at = hidden[i].address + k;
            if (*u_bits_of(at) >> (at & 7) & 1)
                *shadow_of(at) = 0xff;
        }
    }
}

// Memory that a step touches in lanes, as if it were one operand.
typedef struct Lanes {
    LaneAccess lane[LANES_MAX];
    u32 count;
    bool write;
    bool bad; // one may not be touched, which has been told of: then nothing is stored
    _Alignas(8) u8 v[64];
} Lanes;

// What a load finds: bytes that may not be touched, which was reported, count as defined; the
// others are as defined as they are.
static void read_good_bytes(ToolThread *thread, GuestAddr address, u32 size, u8 *ret_v)
{
    for (u32 i = 0; i < size; i++) {
        GuestAddr at = address + i;
        ret_v[i] = 0;
        if (shadow_is_mapped(at, 1) && shadow_first_noaccess(thread, at, 1) != at)
            shadow_read(at, 1, &ret_v[i]);
    }
}

static void open_lanes(ToolThread *thread, const DefinednessStep *step, DefinednessValues *values,
                       Lanes *ret)
{
    ret->count = definedness_lanes(step, values, ret->lane);
    ret->write = definedness_lanes_write(step);
    ret->bad = false;
    for (u32 i = 0; i < sizeof(ret->v); i++)
        ret->v[i] = 0;
    if (!ret->write)
        definedness_lanes_unsure(step, definedness_of(thread), ret->v);
    for (u32 i = 0; i < ret->count && !ret->bad; i++)
        ret->bad = !check(thread, ret->lane[i].address, ret->lane[i].size, ret->write);
    for (u32 i = 0; i < ret->count && !ret->bad; i++)
        shadow_read(ret->lane[i].address, ret->lane[i].size, &ret->v[ret->lane[i].at]);
    for (u32 i = 0; i < ret->count && ret->bad; i++)
        read_good_bytes(thread, ret->lane[i].address, ret->lane[i].size,
                        &ret->v[ret->lane[i].at]);
    values->memory = (const u8 *)values->address;
    values->memory_v = ret->v;
}

static void close_lanes(const Lanes *lanes)
{
    for (u32 i = 0; i < lanes->count && lanes->write && !lanes->bad; i++) {
        for (u32 k = 0; k < lanes->lane[i].size; k++)
            *shadow_of(lanes->lane[i].address + k) = lanes->v[lanes->lane[i].at + k];
    }
}

// In a clean block: undefined lanes that are read are left to a dirty one.
void access_lanes(ToolThread *thread, u64 arg, GuestAddr address)
{
    const DefinednessStep *step = (const DefinednessStep *)arg;
    const DefinednessValues values = {
        .gpr = thread->gpr,
        .vector = (const u8(*)[64])thread->tool.vectors,
        .address = address,
    };
    LaneAccess lane[LANES_MAX];
    u32 count = definedness_lanes(step, &values, lane);
    bool write = definedness_lanes_write(step);
    for (u32 i = 0; i < count; i++) {
        bool mapped = shadow_is_mapped(lane[i].address, lane[i].size);
        if (mapped &&
            shadow_first_undefined(lane[i].address, lane[i].size) == lane[i].address + lane[i].size)
            continue;
        if (write && !mapped) {
            check(thread, lane[i].address, lane[i].size, true);
        } else if (write) {
            access_store(thread, lane[i].size, lane[i].address);
        } else if (memcheck_options->undef_value_errors) {
            tool_fail_guard(thread);
            return;
        } else {
            access_load(thread, lane[i].size, lane[i].address);
        }
    }
}

// So many errors were told of that no more are wanted (--error-limit): what is loaded becomes
// defined, since what it leads to would be found for nobody.
void access_give_up(GuestAddr address, u64 size)
{
    if (!shadow_has_tag(address, size) && shadow_is_mapped(address, size))
        shadow_clear_v(address, size);
}

// V bytes of an operand with a return address in it. One that is changed is data.
static u8 *v_without_tags(GuestAddr address, DefinednessAccess access, u8 room[64])
{
    if (access.writes || access.size > 64) {
        shadow_drop_tags(address, access.size);
        return shadow_of(address);
    }
    shadow_read(address, access.size, room);
    return room;
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
        .vector = (const u8(*)[64])thread->tool.vectors,
        .address = address,
    };
    Lanes lanes;
    bool has_lanes = definedness_has_lanes(step);
    if (UNLIKELY(has_lanes)) {
        open_lanes(thread, step, &values, &lanes);
    } else if (UNLIKELY(definedness_is_state(step))) {
        if (!access_state_is_good(thread, step, address))
            return; // reported: what it saves is nowhere
    } else if (access.size) {
        bool ok = (access.reads && !access.writes && access.size <= sizeof(invalid_v) &&
                   (is_partial_load(thread, address, access.size) ||
                    (definedness_is_compared(step) &&
                     is_search(thread, address, access.size)))) ||
                  check(thread, address, access.size, access.writes && !access.reads);
        bool mapped = ok || shadow_is_mapped(address, access.size);
        if (access.reads)
            syscalls_settle(thread);
        if (ok && access.reads && UNLIKELY(relay_is_closed(thread)))
            access_give_up(address, access.size);
        if (ok) {
            values.memory = (const u8 *)address;
            values.memory_v = shadow_of(address);
            if (access.reads && UNLIKELY(shadow_has_tag(address, access.size)))
                values.memory_v = v_without_tags(address, access, invalid_v);
        } else {
            // Reported: what it writes is nowhere.
            for (size_t i = 0; i < sizeof(invalid_v); i++)
                invalid_v[i] = 0;
            if (access.reads && access.size <= sizeof(invalid_v))
                read_good_bytes(thread, address, access.size, invalid_v);
            values.memory = mapped && access.reads ? (const u8 *)address : NULL;
            values.memory_v = access.size <= sizeof(invalid_v) ? invalid_v : NULL;
        }
    }
    OriginStep origins;
    HiddenAccess hidden[2];
    unsigned hidden_count = definedness_hidden(step, thread->gpr, hidden);
    origins_before(thread, step, address, values.memory_v, &origins);
    if (UNLIKELY(hidden_count)) {
        check_hidden(thread, step, hidden, hidden_count);
        origins_hidden(thread, hidden, hidden_count, &origins);
    }
    u32 events = definedness_run(step, definedness_of(thread), &values);
    origins_after(thread, &origins, values.memory_v);
    if (UNLIKELY(hidden_count))
        mark_again(hidden, hidden_count);
    if (UNLIKELY(has_lanes) && access.size)
        close_lanes(&lanes);
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

static void drop_vectors(Definedness *d, MemberSet vectors, MemberSet kept)
{
    for (MemberSet left = d->set & vectors; left; left &= left - 1) {
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
    drop_vectors(d, MEMBERS_VECTOR,
                 is_return ? MEMBER_VECTOR(0) | MEMBER_VECTOR(1) : 0xffull << 32);
}

void access_forget_copies(ToolThread *thread, u64 vectors, GuestAddr unused)
{
    (void)unused;
    drop_vectors(definedness_of(thread), vectors, vectors);
}

// General registers, flags and vectors.
void access_forget(ToolThread *thread, u64 members, GuestAddr unused)
{
    Definedness *d = definedness_of(thread);
    (void)unused;
    for (MemberSet left = d->set & members; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        if (member < 16)
            d->gpr[member] = 0;
        else if (member < 32)
            d->flags = 0;
        for (size_t i = 0; i < 8 && member >= 32; i++)
            ((u64 *)d->vector[member - 32])[i] = 0;
    }
    d->set &= ~members;
}

// An operand that is below the red zone whatever rsp is. What its shadow shows is told by others.
void access_below(ToolThread *thread, u64 what, GuestAddr address)
{
    u64 size = what & 0xffffffff;
    if (shadow_below_stack(thread, address) && shadow_is_mapped(address, size) &&
        shadow_first_undefined(address, size) == address + size)
        error_access(thread, address, size, what & ACCESS_WRITES);
}

void set_result_defined(ToolThread *thread)
{
    static const u8 changed[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11};
    Definedness *d = definedness_of(thread);
    if (d->set == 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        d->gpr[changed[i]] = 0;
        d->set &= ~MEMBER_GPR(changed[i]);
    }
    d->flags = 0;
    d->set &= ~MEMBER_FLAGS;
}
