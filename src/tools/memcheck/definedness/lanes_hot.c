// SPDX-License-Identifier: MIT
//
// Memory that is touched in lanes: masked moves of AVX and AVX-512, maskmovdqu, gathers and
// scatters, and what a mask leaves over of a vector. A lane whose mask bit is 0 is not touched,
// wherever it lies. A mask bit that is undefined counts as it is; that of a store is reported,
// since it decides what is in memory afterwards. Of a load, a lane that is off but might be on is
// undefined: it may be no memory at all.
#include "tools/memcheck/definedness/step.h"

enum { DI = 7, SCALAR_LANES = 1 };

bool definedness_has_lanes(const DefinednessStep *step)
{
    return step->lanes != LANES_NONE;
}

bool definedness_lanes_write(const DefinednessStep *step)
{
    return step->lanes == LANES_DI || step->lanes == LANES_SCATTER || step->memory_writes;
}

// By the top bits of the lanes of a vector.
static u32 by_vector(const DefinednessStep *step, const DefinednessValues *values, u32 source,
                     u32 n, GuestAddr address, LaneAccess *ret)
{
    const u8 *mask = values->vector[step->source[source].number];
    u32 count = 0;
    for (u32 at = 0; at < step->source[source].size; at += n) {
        if (mask[at + n - 1] & 0x80)
            ret[count++] = (LaneAccess){address + at, (u8)at, (u8)n};
    }
    return count;
}

// An element of a tuple is loaded if any of the lanes that it goes to is on.
static u64 fold(u64 on, u32 elements)
{
    u64 all = (1ull << elements) - 1, folded = 0;
    for (; on; on >>= elements)
        folded |= on & all;
    return folded;
}

static u32 lanes_of_mask(const DefinednessStep *step)
{
    const Place *to = &step->destination;
    u32 total = to->kind == PLACE_VECTOR ? to->size
                : to->kind == PLACE_MASK ? step->size : step->memory_size;
    u32 lanes = step->mask_scalar ? SCALAR_LANES : total / step->mask_lane;
    return step->mask_lanes && step->mask_lanes < lanes ? step->mask_lanes : lanes;
}

static u32 lanes_of_index(const DefinednessStep *step)
{
    u32 lanes = step->source[0].size / step->lane, indices = step->source[2].size / step->lane_to;
    return lanes < indices ? lanes : indices;
}

// By a mask register. The lanes of memory may be narrower or wider than those of the register.
// `on`: the mask.
static u32 by_mask(const DefinednessStep *step, GuestAddr address, u64 on, LaneAccess *ret)
{
    u32 lanes = lanes_of_mask(step);
    if (lanes < 64)
        on &= (1ull << lanes) - 1;
    u32 n = lanes ? step->memory_size / lanes : 0, count = 0;
    bool tuples = step->tuples && step->memory_size > step->mask_lane;
    if (tuples) {
        n = step->mask_lane;
        lanes = step->memory_size / n;
        on = fold(on, lanes);
    }
    bool whole = !tuples && (step->broadcasts || n == 0);
    if (step->lanes == LANES_PACKED) {
        u32 size = (u32)__builtin_popcountll(on) * step->mask_lane;
        for (u32 at = 0; at < size; at += step->mask_lane)
            ret[count++] = (LaneAccess){address + at, (u8)at, step->mask_lane};
        return count;
    }
    if (whole && on)
        ret[count++] = (LaneAccess){address, 0, (u8)step->memory_size};
    for (u32 i = 0; i < lanes && !whole; i++) {
        if (on >> i & 1)
            ret[count++] = (LaneAccess){address + i * n, (u8)(i * n), (u8)n};
    }
    return count;
}

// source 1: the mask of AVX2, 2: the index, 3: the base.
static u32 by_index(const DefinednessStep *step, const DefinednessValues *values, LaneAccess *ret)
{
    const Place *index = &step->source[2], *mask = &step->source[1];
    const u8 *indices = values->vector[index->number];
    u32 n = step->lane, lanes = lanes_of_index(step), count = 0;
    u64 base = step->source[3].kind == PLACE_GPR ? values->gpr[step->source[3].number] : 0;
    bool by_lanes = mask->kind == PLACE_VECTOR;
    const u8 *tops = by_lanes ? values->vector[mask->number] : NULL;
    u64 on = by_lanes ? 0 : rule_mask_value(step->mask, lanes);
    for (u32 i = 0; i < lanes; i++) {
        const u8 *at = indices + i * step->lane_to;
        i64 offset = step->lane_to == 4 ? (i32)*(const Any32 *)at : (i64)*(const Any64 *)at;
        if (by_lanes ? tops[(i + 1) * n - 1] & 0x80 : on >> i & 1)
            ret[count++] = (LaneAccess){base + (u64)(offset * step->size) + step->immediate,
                                        (u8)(i * n), (u8)n};
    }
    return count;
}

u32 definedness_lanes(const DefinednessStep *step, const DefinednessValues *values,
                      LaneAccess ret[LANES_MAX])
{
    switch (step->lanes) {
    case LANES_VECTOR: return by_vector(step, values, 0, step->lane, values->address, ret);
    case LANES_DI: return by_vector(step, values, 1, 1, values->gpr[DI], ret);
    case LANES_MASK:
    case LANES_PACKED:
        return by_mask(step, values->address, rule_mask_value(step->mask, lanes_of_mask(step)),
                       ret);
    case LANES_GATHER:
    case LANES_SCATTER: return by_index(step, values, ret);
    default: return 0;
    }
}

void definedness_lanes_unsure(const DefinednessStep *step, const Definedness *d, u8 ret_v[64])
{
    LaneAccess lanes[LANES_MAX];
    if (step->lanes != LANES_MASK)
        return; // the rules of the others ask for the mask themselves
    u32 count = by_mask(step, 0, d->mask[step->mask], lanes);
    for (u32 i = 0; i < count; i++) {
        for (u32 k = 0; k < lanes[i].size; k++)
            ret_v[lanes[i].at + k] = 0xff;
    }
}

static bool tops_are_undefined(const Definedness *d, const Place *mask, u32 n)
{
    const u8 *v = d->vector[mask->number];
    u8 top = 0;
    for (u32 at = n - 1; mask->kind == PLACE_VECTOR && at < mask->size; at += n)
        top |= v[at];
    return top & 0x80;
}

bool definedness_lanes_undefined(const DefinednessStep *step, const Definedness *d,
                                 MemberSet *ret_mask)
{
    u32 lanes;
    const Place *tops = &step->source[step->lanes == LANES_DI];
    switch (step->lanes) {
    case LANES_VECTOR:
    case LANES_DI:
        *ret_mask = definedness_member(tops);
        return tops_are_undefined(d, tops, step->lanes == LANES_DI ? 1 : step->lane);
    case LANES_MASK:
    case LANES_PACKED: lanes = lanes_of_mask(step); break;
    case LANES_SCATTER: lanes = lanes_of_index(step); break;
    default: return false;
    }
    *ret_mask = MEMBER_MASK(step->mask);
    return lanes && d->mask[step->mask] << (64 - lanes);
}
