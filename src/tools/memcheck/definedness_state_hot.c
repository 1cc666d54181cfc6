// SPDX-License-Identifier: MIT
//
// xsave and its like: the V bits of xmm0 … ymm15 go to the shadow of where their values go, and
// come back from there; a lazily bound call saves its arguments so. Both formats have these
// registers at the same places. The rest of what is saved counts as defined.
//
// A block without undefined registers saves without a step, so the shadow may be stale: what a
// step has written is known by a seal where the control words of the x87 are.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/definedness_step.h"

enum {
    XMM_AT = 160, LEGACY_BYTES = 512, HEADER_AT = 512, YMM_AT = 576, YMM_END = 832,
    COMPONENT_SSE = 2, COMPONENT_AVX = 4, RAX_NUMBER = 0,
};

#define SEAL 0x00ff00ff00ff00ffull

static void copy(u8 *to, const u8 *from)
{
    for (u32 i = 0; i < 16; i++)
        to[i] = from ? from[i] : 0;
}

static u32 components(const Running *r)
{
    return r->step->lane ? (u32)r->values->gpr[RAX_NUMBER] : COMPONENT_SSE;
}

static u32 area_bytes(const Running *r)
{
    return !r->step->lane ? LEGACY_BYTES : components(r) & COMPONENT_AVX ? YMM_END : YMM_AT;
}

static void save(Running *r)
{
    u8 *shadow = place_hidden(r->values->address, area_bytes(r));
    u32 which = components(r);
    if (!shadow)
        return;
    for (u32 i = 0; i < area_bytes(r); i++)
        shadow[i] = 0;
    for (u32 i = 0; i < 16; i++) {
        if (which & COMPONENT_SSE)
            copy(shadow + XMM_AT + 16 * i, r->d->vector[i]);
        if (which & COMPONENT_AVX)
            copy(shadow + YMM_AT + 16 * i, r->d->vector[i] + 16);
    }
    *(Any64 *)shadow = SEAL;
}

static void restore(Running *r)
{
    const u8 *shadow = place_hidden(r->values->address, area_bytes(r));
    u32 which = components(r);
    u64 saved = COMPONENT_SSE; // components that are not in their initial state
    if (shadow && *(const Any64 *)shadow != SEAL)
        shadow = NULL;
    if (r->step->lane && !guest_read(r->values->address + HEADER_AT, &saved, sizeof(saved)))
        saved = 0;
    for (u32 i = 0; i < 16; i++) {
        const u8 *low = shadow && saved & COMPONENT_SSE ? shadow + XMM_AT + 16 * i : NULL;
        const u8 *high = shadow && saved & COMPONENT_AVX ? shadow + YMM_AT + 16 * i : NULL;
        if (which & COMPONENT_SSE)
            copy(r->d->vector[i], low);
        if (which & COMPONENT_AVX)
            copy(r->d->vector[i] + 16, high);
    }
}

void family_state(Running *r)
{
    if (r->step->rule == RULE_STATE_SAVE)
        save(r);
    else
        restore(r);
}
