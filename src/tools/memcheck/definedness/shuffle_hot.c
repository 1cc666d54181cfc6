// SPDX-License-Identifier: MIT
//
// Rules for vector instructions that move bytes about, and the end of all vector rules:
// the mask of AVX-512 and the store.
#include "tools/memcheck/definedness/step.h"

// The client's mask registers are still in the hardware's: only general registers are used
// between its block and here. An instruction with more than 16 lanes has a machine with AVX512BW.
static u64 mask_value(u32 number, bool wide)
{
    u64 value = 0;
#define READ_MASK(k)                                                       \
    case k:                                                                \
        if (wide)                                                          \
            __asm__ volatile("kmovq %%k" #k ", %0" : "=r"(value));         \
        else                                                               \
            __asm__ volatile("kmovw %%k" #k ", %k0" : "=r"(value));        \
        break;
    switch (number) {
        READ_MASK(0)
        READ_MASK(1)
        READ_MASK(2)
        READ_MASK(3)
        READ_MASK(4)
        READ_MASK(5)
        READ_MASK(6)
        READ_MASK(7)
    default: break;
    }
#undef READ_MASK
    return value;
}

u64 rule_mask_value(u32 number, u32 lanes)
{
    return mask_value(number, lanes > 16);
}

// `value`: what is moved, or NULL. Where the mask is undefined, a bit that is the same whether
// its lane is on or off is defined all the same.
static void apply_mask(Running *r, Bytes *v, const Bytes *value)
{
    const DefinednessStep *step = r->step;
    u32 lane = step->mask_lane, lanes = step->mask_scalar ? 1
                                        : step->mask_lanes ? step->mask_lanes
                                                           : step->destination.size / lane;
    u64 undefined = r->d->mask[step->mask], on = rule_mask_value(step->mask, lanes);
    Bytes old = {0}, old_value = {0};
    if (step->mask_mode == MASK_MERGE) {
        place_bytes_v(r, &step->destination, &old);
        if (value)
            place_bytes_value(r, &step->destination, &old_value);
    }
    for (u32 i = 0; i < lanes; i++) {
        for (u32 k = i * lane; k < (i + 1) * lane; k++) {
            if (undefined >> i & 1)
                v->at[k] = value ? v->at[k] | old.at[k] | (value->at[k] ^ old_value.at[k]) : 0xff;
            else if (!(on >> i & 1))
                v->at[k] = old.at[k];
        }
    }
}

void rule_finish_moved(Running *r, Bytes *v, const Bytes *value)
{
    if (r->step->mask_mode != MASK_NONE)
        apply_mask(r, v, value);
    place_set_bytes(r, &r->step->destination, v);
}

void rule_finish(Running *r, Bytes *v)
{
    rule_finish_moved(r, v, NULL);
}

static void permute_bytes(const DefinednessStep *step, const Bytes from[2], Bytes *ret)
{
    const u8 *all = from[0].at;
    u32 total = step->destination.size;
    for (u32 i = 0; i < total; i++)
        ret->at[i] = step->permutation[i] == PERMUTE_ZERO ? 0 : all[step->permutation[i]];
    for (u32 i = total; i < 8; i++)
        ret->at[i] = 0;
}

static void permute(Running *r)
{
    const DefinednessStep *step = r->step;
    _Alignas(8) Bytes from[2], v, value;
    place_bytes_v(r, &step->source[0], &from[0]);
    place_bytes_v(r, &step->source[1], &from[1]);
    permute_bytes(step, from, &v);
    if (step->mask_knows_values) {
        place_bytes_value(r, &step->source[0], &from[0]);
        place_bytes_value(r, &step->source[1], &from[1]);
        permute_bytes(step, from, &value);
    }
    rule_finish_moved(r, &v, step->mask_knows_values ? &value : NULL);
}

static void widen_signed(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 from = step->lane, to = step->lane_to;
    Bytes a, v = {0};
    place_bytes_v(r, &step->source[step->source_count - 1], &a);
    for (u32 i = 0; i < step->destination.size / to; i++) {
        u8 fill = a.at[(i + 1) * from - 1] & 0x80 ? 0xff : 0;
        for (u32 k = 0; k < to; k++)
            v.at[i * to + k] = k < from ? a.at[i * from + k] : fill;
    }
    rule_finish(r, &v);
}

static bool any_bytes(const u8 *at, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        if (at[i])
            return true;
    }
    return false;
}

static void fill_bytes(u8 *at, u32 n, u8 with)
{
    for (u32 i = 0; i < n; i++)
        at[i] = with;
}

static void copy_bytes(u8 *to, const u8 *from, u32 n)
{
    for (u32 i = 0; i < n; i++)
        to[i] = from[i];
}

// Saturation makes every bit depend on every other.
static void pack(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 from = step->lane, to = step->lane_to;
    u32 lane = step->destination.kind == PLACE_MMX ? 8 : 16, half = lane / from;
    Bytes source[2], v = {0};
    place_bytes_v(r, &step->source[0], &source[0]);
    place_bytes_v(r, &step->source[1], &source[1]);
    for (u32 base = 0; base < step->destination.size; base += lane) {
        for (u32 k = 0; k < 2 * half; k++) {
            const u8 *at = source[k / half].at + base + (k % half) * from;
            fill_bytes(v.at + base + k * to, to, any_bytes(at, from) ? 0xff : 0);
        }
    }
    rule_finish(r, &v);
}

// ------------------------------------------------------- by the value of an operand

// pshufb, vpermilps, vpermilpd: elements of the same 128 bits.
static void shuffle_in_lanes(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, down = n == 8 ? 1 : 0; // vpermilpd looks at bit 1
    u8 matter = n == 1 ? 0x8f : n == 4 ? 3 : 2;
    Bytes data, control, control_v, v = {0};
    place_bytes_v(r, &step->source[0], &data);
    place_bytes_v(r, &step->source[1], &control_v);
    place_bytes_value(r, &step->source[1], &control);
    for (u32 at = 0; at < step->destination.size; at += n) {
        u8 index = control.at[at] & matter;
        const u8 *from = data.at + (at & ~15u) + ((index & 15) >> down) * n;
        if (control_v.at[at] & matter)
            fill_bytes(v.at + at, n, 0xff);
        else if (!(index & 0x80))
            copy_bytes(v.at + at, from, n);
    }
    rule_finish(r, &v);
}

// vpermd and its like: the control comes first.
static void shuffle_across(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, total = step->destination.size;
    u8 matter = (u8)(total / n - 1);
    Bytes data, control, control_v, v = {0};
    place_bytes_v(r, &step->source[1], &data);
    place_bytes_v(r, &step->source[0], &control_v);
    place_bytes_value(r, &step->source[0], &control);
    for (u32 at = 0; at < total; at += n) {
        if (control_v.at[at] & matter)
            fill_bytes(v.at + at, n, 0xff);
        else
            copy_bytes(v.at + at, data.at + (control.at[at] & matter) * n, n);
    }
    rule_finish(r, &v);
}

// vpermi2d, whose control is what it overwrites, and vpermt2d, whose control stands between the
// two vectors.
static void shuffle_two(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, total = step->destination.size, by = step->lane_to;
    u8 within = (u8)(total / n - 1), matter = (u8)(within * 2 + 1);
    Bytes data[2], control, control_v, v = {0};
    place_bytes_v(r, &step->source[by ? 0 : 1], &data[0]);
    place_bytes_v(r, &step->source[2], &data[1]);
    place_bytes_v(r, &step->source[by], &control_v);
    place_bytes_value(r, &step->source[by], &control);
    for (u32 at = 0; at < total; at += n) {
        u8 index = control.at[at] & matter;
        if (control_v.at[at] & matter)
            fill_bytes(v.at + at, n, 0xff);
        else
            copy_bytes(v.at + at, data[index > within].at + (index & within) * n, n);
    }
    rule_finish(r, &v);
}

static void blend_by_vector(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane;
    Bytes a, b, mask, a_v, b_v, mask_v, v = {0};
    place_bytes_value(r, &step->source[0], &a);
    place_bytes_value(r, &step->source[1], &b);
    place_bytes_value(r, &step->source[2], &mask);
    place_bytes_v(r, &step->source[0], &a_v);
    place_bytes_v(r, &step->source[1], &b_v);
    place_bytes_v(r, &step->source[2], &mask_v);
    for (u32 at = 0; at < step->destination.size; at++) {
        u32 top = at / n * n + n - 1;
        if (mask_v.at[top] & 0x80)
            v.at[at] = a_v.at[at] | b_v.at[at] | (a.at[at] ^ b.at[at]);
        else
            v.at[at] = mask.at[top] & 0x80 ? b_v.at[at] : a_v.at[at];
    }
    rule_finish(r, &v);
}

static void blend_by_mask(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, lanes = step->destination.size / n;
    bool knows = step->mask_knows_values, zeros = step->mask_mode == MASK_ZERO;
    Bytes a, b, a_value = {0}, b_value = {0};
    place_bytes_v(r, &step->source[0], &a);
    place_bytes_v(r, &step->source[1], &b);
    if (knows && !zeros)
        place_bytes_value(r, &step->source[0], &a_value);
    if (knows)
        place_bytes_value(r, &step->source[1], &b_value);
    u64 on = step->mask_mode == MASK_NONE ? ~0ull : rule_mask_value(step->mask, lanes);
    u64 undefined = step->mask_mode == MASK_NONE ? 0 : r->d->mask[step->mask];
    for (u32 at = 0; at < step->destination.size; at++) {
        u32 i = at / n;
        u8 off = zeros ? 0 : a.at[at];
        if (undefined >> i & 1)
            b.at[at] = knows ? b.at[at] | off | (b_value.at[at] ^ a_value.at[at]) : 0xff;
        else if (!(on >> i & 1))
            b.at[at] = off;
    }
    place_set_bytes(r, &step->destination, &b);
}

// ----------------------------------------------------------------- masked memory

static void masked_move(Running *r)
{
    const DefinednessStep *step = r->step;
    bool stores = step->destination.kind == PLACE_MEMORY;
    u32 n = step->lane;
    Bytes mask, mask_v, data, v = {0};
    place_bytes_value(r, &step->source[0], &mask);
    place_bytes_v(r, &step->source[0], &mask_v);
    place_bytes_v(r, &step->source[1], &data);
    if (stores)
        place_bytes_v(r, &step->destination, &v);
    for (u32 at = 0; at < step->destination.size; at += n) {
        u32 top = at + n - 1;
        if (mask_v.at[top] & 0x80)
            fill_bytes(v.at + at, n, 0xff);
        else if (mask.at[top] & 0x80)
            copy_bytes(v.at + at, data.at + at, n);
    }
    place_set_bytes(r, &step->destination, &v);
}

static void masked_store_at_di(Running *r)
{
    const DefinednessStep *step = r->step;
    u64 di = r->values->gpr[7];
    Bytes mask, mask_v, data;
    place_bytes_v(r, &step->source[0], &data);
    place_bytes_value(r, &step->source[1], &mask);
    place_bytes_v(r, &step->source[1], &mask_v);
    for (u32 i = 0; i < step->source[1].size; i++) {
        if (mask_v.at[i] & 0x80)
            place_set_hidden_v(di + i, 1, 0xff);
        else if (mask.at[i] & 0x80)
            place_set_hidden_v(di + i, 1, data.at[i]);
    }
}

// The lanes that are on, one behind the other. From the first of which that is undefined
// nothing is where it can be said to be.
static void compress(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *to = &step->destination;
    u32 n = step->lane, lanes = step->source[0].size / n, next = 0;
    u64 on = step->mask_mode == MASK_NONE ? ~0ull : rule_mask_value(step->mask, lanes);
    u64 undefined = step->mask_mode == MASK_NONE ? 0 : r->d->mask[step->mask];
    Bytes from, v = {0};
    place_bytes_v(r, &step->source[0], &from);
    if (step->mask_mode == MASK_MERGE)
        place_bytes_v(r, to, &v);
    for (u32 i = 0; i < lanes; i++) {
        if (undefined >> i & 1) {
            fill_bytes(v.at + next * n, (lanes - next) * n, 0xff);
            break;
        }
        if (on >> i & 1)
            copy_bytes(v.at + next++ * n, from.at + i * n, n);
    }
    place_set_bytes(r, to, &v);
}

static void expand(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, lanes = step->destination.size / n, next = 0;
    u64 on = step->mask_mode == MASK_NONE ? ~0ull : rule_mask_value(step->mask, lanes);
    u64 undefined = step->mask_mode == MASK_NONE ? 0 : r->d->mask[step->mask];
    bool lost = false;
    Bytes from, v = {0};
    place_bytes_v(r, &step->source[0], &from);
    if (step->mask_mode == MASK_MERGE)
        place_bytes_v(r, &step->destination, &v);
    for (u32 i = 0; i < lanes; i++) {
        bool unsure = undefined >> i & 1;
        lost = lost || unsure;
        if (unsure || (lost && on >> i & 1))
            fill_bytes(v.at + i * n, n, 0xff);
        else if (on >> i & 1)
            copy_bytes(v.at + i * n, from.at + next++ * n, n);
    }
    place_set_bytes(r, &step->destination, &v);
}

typedef struct Gather {
    Bytes index, mask, mask_v, v;
    u64 on, undefined; // by lanes, of AVX-512
    u64 base;
} Gather;

static GuestAddr gather_address(Running *r, const Gather *g, u32 i)
{
    const DefinednessStep *step = r->step;
    const u8 *at = g->index.at + i * step->lane_to;
    i64 index = step->lane_to == 4 ? (i32)*(const Any32 *)at : (i64)*(const Any64 *)at;
    return g->base + (u64)(index * step->size) + step->immediate;
}

// source 0: what the lanes were, 1: the mask of AVX2, 2: the index, 3: the base.
static void gather(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane;
    u32 lanes = step->destination.size / n, indices = step->source[2].size / step->lane_to;
    bool by_vector = step->source[1].kind == PLACE_VECTOR;
    Gather g = {0};
    if (lanes > indices)
        lanes = indices;
    place_bytes_v(r, &step->source[0], &g.v);
    place_bytes_value(r, &step->source[2], &g.index);
    if (by_vector) {
        place_bytes_value(r, &step->source[1], &g.mask);
        place_bytes_v(r, &step->source[1], &g.mask_v);
    } else {
        g.on = rule_mask_value(step->mask, lanes);
        g.undefined = r->d->mask[step->mask];
    }
    g.base = place_value(r, &step->source[3]);
    for (u32 i = 0; i < lanes; i++) {
        u32 top = (i + 1) * n - 1;
        bool undefined = by_vector ? g.mask_v.at[top] & 0x80 : g.undefined >> i & 1;
        bool on = by_vector ? g.mask.at[top] & 0x80 : g.on >> i & 1;
        u64 v = undefined ? ~0ull : place_hidden_v(gather_address(r, &g, i), n);
        for (u32 k = 0; k < n && (on || undefined); k++)
            g.v.at[i * n + k] = (u8)(v >> 8 * k);
    }
    for (u32 i = lanes * n; i < sizeof(g.v.at); i++)
        g.v.at[i] = 0;
    place_set_bytes(r, &step->destination, &g.v);
    if (by_vector)
        place_fill(r, &step->source[1], false);
    else
        r->d->mask[step->mask] = 0;
}

static void scatter(Running *r)
{
    const DefinednessStep *step = r->step;
    LaneAccess lanes[LANES_MAX];
    Bytes data;
    u32 count = definedness_lanes(step, r->values, lanes);
    u64 undefined = r->d->mask[step->mask];
    place_bytes_v(r, &step->source[0], &data);
    for (u32 i = 0; i < count; i++) {
        u64 v = undefined >> lanes[i].at / step->lane & 1
                    ? ~0ull
                    : step->lane == 4 ? *(const Any32 *)(data.at + lanes[i].at)
                                      : *(const Any64 *)(data.at + lanes[i].at);
        place_set_hidden_v(lanes[i].address, lanes[i].size, v);
    }
    r->d->mask[step->mask] = 0;
}

// ------------------------------------------------------------------- the others

static void zero_vectors(Running *r, u32 from)
{
    for (u32 i = 0; i < 16; i++)
        fill_bytes(r->d->vector[i] + from, 64 - from, 0);
}

static void top_bits(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *from = &step->source[step->source_count - 1];
    u32 n = step->lane;
    Bytes a;
    u64 v = 0;
    place_bytes_v(r, from, &a);
    for (u32 i = 0; i < from->size / n; i++)
        v |= (u64)(a.at[(i + 1) * n - 1] >> 7) << i;
    place_set_v(r, &step->destination, v);
}

static void spread_mask(Running *r)
{
    const DefinednessStep *step = r->step;
    u64 mask = place_v(r, &step->source[0]);
    Bytes v = {0};
    for (u32 i = 0; i < step->destination.size; i++)
        v.at[i] = mask >> i / step->lane & 1 ? 0xff : 0;
    place_set_bytes(r, &step->destination, &v);
}

void family_shuffle(Running *r)
{
    switch (r->step->rule) {
    case RULE_PERMUTE: permute(r); break;
    case RULE_WIDEN_SIGN: widen_signed(r); break;
    case RULE_PACK: pack(r); break;
    case RULE_SHUFFLE: shuffle_in_lanes(r); break;
    case RULE_SHUFFLE_ALL: shuffle_across(r); break;
    case RULE_SHUFFLE_TWO: shuffle_two(r); break;
    case RULE_BLENDV: blend_by_vector(r); break;
    case RULE_BLEND_MASK: blend_by_mask(r); break;
    case RULE_MASKMOV: masked_move(r); break;
    case RULE_MASKMOVDQU: masked_store_at_di(r); break;
    case RULE_COMPRESS: compress(r); break;
    case RULE_EXPAND: expand(r); break;
    case RULE_GATHER: gather(r); break;
    case RULE_SCATTER: scatter(r); break;
    case RULE_ZEROUPPER: zero_vectors(r, 16); break;
    case RULE_ZEROALL: zero_vectors(r, 0); break;
    case RULE_MOVEMASK: top_bits(r); break;
    case RULE_FROM_MASK: spread_mask(r); break;
    default: rule_coarse(r); break;
    }
}
