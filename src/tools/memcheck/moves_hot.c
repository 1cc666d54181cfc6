// SPDX-License-Identifier: MIT
//
// Steps of instructions that only move a value: most of what dirty blocks do is to copy
// structures with holes in them. Whatever is unusual about one goes the general way.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"

typedef u16 Any16 __attribute__((aligned(1), may_alias));
typedef u32 Any32 __attribute__((aligned(1), may_alias));
typedef u64 Any64 __attribute__((aligned(1), may_alias));

// True: all of it may be touched, and its shadow is there. At most 32 bytes.
static bool may_touch(ToolThread *thread, GuestAddr address, u32 size)
{
    GuestAddr last = address + size - 1;
    if (!shadow_is_open(address) || !shadow_is_open(last))
        return false;
    u64 bits = *(const Any64 *)u_bits_of(address) >> (address & 7);
    return !(bits & ((1ull << size) - 1)) && !shadow_below_stack(thread, address);
}

// Returns what was moved, all of it by "or".
static u64 move_bytes(u8 *to, const u8 *from, u32 size)
{
    u64 v, any = 0;
    switch (size) {
    case 1: v = *to = *from; return v;
    case 2: v = *(Any16 *)to = *(const Any16 *)from; return v;
    case 4: v = *(Any32 *)to = *(const Any32 *)from; return v;
    default: break;
    }
    for (u32 i = 0; i < size; i += 8) {
        v = *(const Any64 *)(from + i);
        *(Any64 *)(to + i) = v;
        any |= v;
    }
    return any;
}

static u64 any_beyond(const u8 *at, u32 from, u32 to)
{
    u64 any = 0;
    for (u32 i = from; i < to; i += 8)
        any |= *(const Any64 *)(at + i);
    return any;
}

// To a register, with the zeros that follow. A general one is written as a whole: it is soon
// read so, which would wait for the store of a part.
static u64 move_to_member(u8 *to, const u8 *from, const DefinednessMove *m)
{
    if (m->written == 8) {
        u64 v = m->size == 8   ? *(const Any64 *)from
                : m->size == 4 ? *(const Any32 *)from
                : m->size == 2 ? *(const Any16 *)from
                               : *from;
        *(Any64 *)to = v;
        return v;
    }
    u64 any = move_bytes(to, from, m->size);
    for (u32 i = m->size; i < m->written; i += 8)
        *(Any64 *)(to + i) = 0;
    return any;
}

void access_move(ToolThread *thread, u64 arg, GuestAddr address)
{
    const AccessMove *move = (const AccessMove *)arg;
    Definedness *d = definedness_of(thread);
    const DefinednessMove *m = &move->move;
    bool loads = m->from == MOVE_MEMORY, stores = m->to == MOVE_MEMORY;
    if (UNLIKELY(m->address & d->set) ||
        ((loads || stores) && UNLIKELY(!may_touch(thread, address, m->size)))) {
        access_step(thread, (u64)move->step, address);
        return;
    }
    static const u8 zero[64];
    if (loads && UNLIKELY(relay_is_closed(thread)))
        access_give_up(address, m->size);
    const u8 *from = loads ? shadow_of(address) : (const u8 *)d + m->from;
    if (loads && UNLIKELY(shadow_has_tag(address, m->size)))
        from = zero;
    u8 *to = stores ? shadow_of(address) : (u8 *)d + m->to;
    u64 any = stores ? move_bytes(to, from, m->size) : move_to_member(to, from, m);
    if (stores) {
        if (any)
            origins_stored(thread, address, m->size, m->from_member);
        return;
    }
    u64 rest = m->whole > m->written ? any_beyond(to, m->written, m->whole) : 0;
    MemberSet member = 1ull << m->to_member;
    d->set = any | rest ? d->set | member : d->set & ~member;
    if (any)
        origins_moved(thread, m->to_member, loads ? address : 0, m->size, m->from_member);
}
