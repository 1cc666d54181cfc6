// SPDX-License-Identifier: MIT
//
// Rules for vector instructions that move bytes about, and the end of all vector rules:
// the mask of AVX-512 and the store.
#include "tools/memcheck/definedness_step.h"

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

static void apply_mask(Running *r, Bytes *v)
{
    const DefinednessStep *step = r->step;
    u32 lane = step->mask_lane, lanes = step->destination.size / lane;
    u64 undefined = r->d->mask[step->mask], on = rule_mask_value(step->mask, lanes);
    Bytes old;
    place_bytes_v(r, &step->destination, &old);
    for (u32 i = 0; i < lanes; i++) {
        for (u32 k = i * lane; k < (i + 1) * lane; k++) {
            if (undefined >> i & 1)
                v->at[k] = 0xff;
            else if (!(on >> i & 1))
                v->at[k] = step->mask_mode == MASK_MERGE ? old.at[k] : 0;
        }
    }
}

void rule_finish(Running *r, Bytes *v)
{
    if (r->step->mask_mode != MASK_NONE)
        apply_mask(r, v);
    place_set_bytes(r, &r->step->destination, v);
}

static void permute(Running *r)
{
    const DefinednessStep *step = r->step;
    _Alignas(8) Bytes from[2], v;
    place_bytes_v(r, &step->source[0], &from[0]);
    place_bytes_v(r, &step->source[1], &from[1]);
    const u8 *all = from[0].at;
    for (u32 i = 0; i < sizeof(v.at); i++)
        v.at[i] = step->permutation[i] == PERMUTE_ZERO ? 0 : all[step->permutation[i]];
    rule_finish(r, &v);
}

void family_shuffle(Running *r)
{
    switch (r->step->rule) {
    case RULE_PERMUTE: permute(r); break;
    default: rule_coarse(r); break;
    }
}
