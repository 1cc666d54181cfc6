// SPDX-License-Identifier: MIT
//
// Reading and writing operands: their V bits in a Definedness or in shadow memory, their
// values in registers or in the client's memory.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/definedness/step.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

u32 place_top(void)
{
    u16 status;
    __asm__ volatile("fnstsw %0" : "=a"(status));
    return status >> 11 & 7;
}

static u8 *v_bytes(Running *r, const Place *place)
{
    if (place->kind == PLACE_MEMORY)
        return r->values->memory_v;
    if (place->kind == PLACE_X87)
        return r->d->x87[(place_top() + place->number) & 7];
    return (u8 *)r->d + place->at;
}

static u64 load(const u8 *at, u32 size)
{
    u64 v = 0;
    switch (size) {
    case 1: return *at;
    case 2: return *(const Any16 *)at;
    case 4: return *(const Any32 *)at;
    case 8: return *(const Any64 *)at;
    default:
        for (u32 i = 0; i < size && i < 8; i++)
            v |= (u64)at[i] << 8 * i;
        return v;
    }
}

static void store(u8 *at, u32 size, u64 v)
{
    switch (size) {
    case 1: *at = (u8)v; break;
    case 2: *(Any16 *)at = (u16)v; break;
    case 4: *(Any32 *)at = (u32)v; break;
    case 8: *(Any64 *)at = v; break;
    default:
        for (u32 i = 0; i < size; i++)
            at[i] = i < 8 ? (u8)(v >> 8 * i) : 0;
    }
}

u64 place_v(Running *r, const Place *place)
{
    switch (place->kind) {
    case PLACE_GPR: return r->d->gpr[place->number] >> place->shift & mask_of(place->size);
    case PLACE_NONE:
    case PLACE_IMMEDIATE: return 0;
    default: break;
    }
    const u8 *at = v_bytes(r, place);
    return at ? load(at, place->size < 8 ? place->size : 8) : 0;
}

u64 place_value(Running *r, const Place *place)
{
    u64 value = 0;
    switch (place->kind) {
    case PLACE_GPR: return r->values->gpr[place->number] >> place->shift & mask_of(place->size);
    case PLACE_IMMEDIATE: return r->step->immediate;
    case PLACE_VECTOR: return *(const Any64 *)r->values->vector[place->number];
    case PLACE_MEMORY:
        if (!r->values->memory || !guest_read((GuestAddr)r->values->memory, &value,
                                              place->size < 8 ? place->size : 8))
            r->unreadable = true;
        return value;
    default: return 0;
    }
}

Known place_known(Running *r, const Place *place)
{
    return (Known){place_value(r, place), place_v(r, place)};
}

void place_set_v(Running *r, const Place *place, u64 v)
{
    if (place->kind == PLACE_GPR) {
        u64 mask = mask_of(place->size) << place->shift;
        u64 *at = &r->d->gpr[place->number];
        *at = place->size == 4 ? (u32)v : (*at & ~mask) | (v << place->shift & mask);
        return;
    }
    u8 *at = v_bytes(r, place);
    if (place->kind == PLACE_NONE || place->kind == PLACE_IMMEDIATE || !at)
        return;
    store(at, place->size, v);
    for (u32 i = place->size; i < place->written_upper; i++)
        at[i] = 0;
}

static void spread(Bytes *bytes, const Place *place)
{
    if (!place->broadcast)
        return;
    for (u32 i = place->broadcast; i < sizeof(bytes->at); i++)
        bytes->at[i] = bytes->at[i - place->broadcast];
}

static void clear(Bytes *bytes)
{
    Any64 *words = (Any64 *)bytes->at;
    for (u32 i = 0; i < 8; i++)
        words[i] = 0;
}

void place_bytes_v(Running *r, const Place *place, Bytes *ret)
{
    clear(ret);
    if (place->kind == PLACE_GPR || place->kind == PLACE_NONE || place->kind == PLACE_IMMEDIATE) {
        *(Any64 *)ret->at = place_v(r, place);
        return;
    }
    const u8 *at = v_bytes(r, place);
    if (!at)
        return;
    u32 i = 0;
    for (; i + 8 <= place->size; i += 8)
        *(Any64 *)(ret->at + i) = *(const Any64 *)(at + i);
    for (; i < place->size; i++)
        ret->at[i] = at[i];
    spread(ret, place);
}

// Where a mask has lanes off, the operand may reach beyond what there is.
static bool read_lanes(Running *r, Bytes *ret)
{
    LaneAccess lanes[LANES_MAX];
    u32 count = r->step->lanes == LANES_MASK ? definedness_lanes(r->step, r->values, lanes) : 0;
    for (u32 i = 0; i < count; i++) {
        if (!guest_read(lanes[i].address, ret->at + lanes[i].at, lanes[i].size))
            return false;
    }
    return r->step->lanes == LANES_MASK;
}

void place_bytes_value(Running *r, const Place *place, Bytes *ret)
{
    clear(ret);
    if (place->kind == PLACE_VECTOR) {
        const u8 *at = r->values->vector[place->number];
        for (u32 i = 0; i < place->size; i += 8)
            *(Any64 *)(ret->at + i) = *(const Any64 *)(at + i);
    } else if (place->kind == PLACE_MEMORY) {
        if (!r->values->memory ||
            (!guest_read((GuestAddr)r->values->memory, ret->at, place->size) &&
             !read_lanes(r, ret)))
            r->unreadable = true;
        spread(ret, place);
    } else {
        *(Any64 *)ret->at = place_value(r, place);
    }
}

void place_set_bytes(Running *r, const Place *place, const Bytes *v)
{
    if (place->kind == PLACE_GPR) {
        place_set_v(r, place, *(const Any64 *)v->at);
        return;
    }
    u8 *at = v_bytes(r, place);
    if (place->kind == PLACE_NONE || place->kind == PLACE_IMMEDIATE || !at)
        return;
    u32 i = 0;
    for (; i + 8 <= place->size; i += 8)
        *(Any64 *)(at + i) = *(const Any64 *)(v->at + i);
    for (; i < place->size; i++)
        at[i] = v->at[i];
    for (; i < place->written_upper; i++)
        at[i] = 0;
}

bool place_any(Running *r, const Place *place)
{
    if (place->kind == PLACE_GPR)
        return place_v(r, place) != 0;
    if (place->kind == PLACE_NONE || place->kind == PLACE_IMMEDIATE)
        return false;
    const u8 *at = v_bytes(r, place);
    u32 size = place->kind == PLACE_MEMORY ? r->step->memory_size : place->size;
    for (u32 i = 0; at && i < size; i++) {
        if (at[i])
            return true;
    }
    return false;
}

void place_fill(Running *r, const Place *place, bool undefined)
{
    if (place->kind == PLACE_GPR) {
        place_set_v(r, place, all_if(undefined));
        return;
    }
    u8 *at = v_bytes(r, place);
    if (place->kind == PLACE_NONE || place->kind == PLACE_IMMEDIATE || !at)
        return;
    u32 size = place->kind == PLACE_MEMORY ? r->step->memory_size : place->size;
    u32 i = 0;
    for (; i < size; i++)
        at[i] = undefined ? 0xff : 0;
    for (; i < place->written_upper; i++)
        at[i] = 0;
}

// ------------------------------------------------------------- hidden operands

u8 *place_hidden(GuestAddr address, u32 size)
{
    return shadow_is_mapped(address, size) ? shadow_of(address) : NULL;
}

u64 place_hidden_v(GuestAddr address, u32 size)
{
    const u8 *at = place_hidden(address, size);
    return at && !shadow_has_tag(address, size) ? load(at, size) : 0;
}

void place_set_hidden_v(GuestAddr address, u32 size, u64 v)
{
    u8 *at = place_hidden(address, size);
    if (at)
        store(at, size, v);
}
