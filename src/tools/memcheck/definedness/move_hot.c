// SPDX-License-Identifier: MIT
//
// Rules for what moves whole values: between registers, memory and the stack.
#include "tools/memcheck/definedness/step.h"

enum { RAX_NUMBER = 0, RDX_NUMBER = 2, RBX_NUMBER = 3, RSP_NUMBER = 4, RBP_NUMBER = 5,
       RSI_NUMBER = 6, RDI_NUMBER = 7 };

static void move(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *from = &step->source[0], *to = &step->destination;
    if (from->size <= 8 && to->size <= 8 && step->mask_mode == MASK_NONE) {
        place_set_v(r, to, place_v(r, from));
        return;
    }
    Bytes v, value;
    place_bytes_v(r, from, &v);
    if (step->mask_knows_values)
        place_bytes_value(r, from, &value);
    rule_finish_moved(r, &v, step->mask_knows_values ? &value : NULL);
}

static void exchange(Running *r)
{
    const Place *a = &r->step->source[0], *b = &r->step->source[1];
    u64 va = place_v(r, a), vb = place_v(r, b);
    place_set_v(r, a, vb);
    place_set_v(r, b, va);
}

static void swap_bytes(Running *r)
{
    const Place *from = &r->step->source[0], *to = &r->step->destination;
    u64 v = __builtin_bswap64(place_v(r, from)) >> (64 - from->size * 8);
    place_set_v(r, to, v);
}

// ----------------------------------------------------------------------- stack

static GuestAddr sp_of(const Running *r)
{
    return r->values->gpr[RSP_NUMBER];
}

static void push(Running *r, u64 v)
{
    u32 size = r->step->size;
    place_set_hidden_v(sp_of(r) - size, size, v);
}

// What is popped is undefined from now on: nothing else says so in a dirty block.
static u64 pop(Running *r)
{
    u32 size = r->step->size;
    u64 v = place_hidden_v(sp_of(r), size);
    place_set_hidden_v(sp_of(r), size, ~0ull);
    return v;
}

// ---------------------------------------------------------------------- strings

static void string(Running *r)
{
    const DefinednessStep *step = r->step;
    const u64 *gpr = r->values->gpr;
    u32 size = step->element;
    u64 width = step->string_flags & STRING_ADDRESS32 ? 0xffffffffull : ~0ull;
    GuestAddr si = gpr[RSI_NUMBER] & width, di = gpr[RDI_NUMBER] & width;
    u64 *ax = &r->d->gpr[RAX_NUMBER];
    u64 va = *ax & mask_of(size);
    switch (step->string) {
    case STRING_MOVE: place_set_hidden_v(di, size, place_hidden_v(si, size)); break;
    case STRING_STORE: place_set_hidden_v(di, size, va); break;
    case STRING_LOAD:
        va = place_hidden_v(si, size);
        *ax = size == 4 ? va : (*ax & ~mask_of(size)) | va;
        break;
    case STRING_COMPARE:
    case STRING_SCAN:
        if (step->string == STRING_COMPARE)
            va = place_hidden_v(si, size);
        r->d->flags = (r->d->flags & ~(u64)FLAGS_STATUS) |
                      (va | place_hidden_v(di, size) ? FLAGS_STATUS : 0);
        break;
    default: break;
    }
}

static void translate_byte(Running *r)
{
    const u64 *gpr = r->values->gpr;
    u64 *ax = &r->d->gpr[RAX_NUMBER];
    GuestAddr at = gpr[RBX_NUMBER] + (gpr[RAX_NUMBER] & 0xff);
    if (*ax & 0xff)
        r->events |= EVENT_ADDRESS;
    *ax = (*ax & ~0xffull) | (*ax & 0xff ? 0 : place_hidden_v(at, 1));
}

void family_move(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *to = &step->destination, *from = &step->source[0];
    Definedness *d = r->d;
    switch (step->rule) {
    case RULE_MOVE: move(r); break;
    case RULE_MOVE_SIGN: place_set_v(r, to, sign_extend(place_v(r, from), from->size)); break;
    case RULE_SIGN_FILL:
        place_set_v(r, to, all_if(place_v(r, from) >> (from->size * 8 - 1)));
        break;
    case RULE_XCHG: exchange(r); break;
    case RULE_BSWAP: swap_bytes(r); break;
    case RULE_PUSH: push(r, place_v(r, from)); break;
    case RULE_POP: place_set_v(r, to, pop(r)); break;
    case RULE_LEAVE: d->gpr[RBP_NUMBER] = place_hidden_v(r->values->gpr[RBP_NUMBER], 8); break;
    case RULE_ENTER:
        push(r, d->gpr[RBP_NUMBER]);
        d->gpr[RBP_NUMBER] = 0;
        break;
    case RULE_PUSHF: push(r, d->flags); break;
    case RULE_POPF: d->flags = pop(r) & (FLAGS_STATUS | DF); break;
    case RULE_STRING: string(r); break;
    case RULE_XLAT: translate_byte(r); break;
    default: rule_coarse(r); break;
    }
}
