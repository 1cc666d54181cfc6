// SPDX-License-Identifier: MIT
//
// Rules for the x87: registers by their physical numbers, so that pushes and pops move
// nothing. A result is wholly undefined or not at all; moves of all 80 bits are exact. A
// register that is popped is empty, and counts as defined.
#include "tools/memcheck/definedness/step.h"

enum { REGISTER_BYTES = 10 };

static u8 *stack_register(Running *r, u32 i)
{
    return r->d->x87[(place_top() + i) & 7];
}

static bool any_of(const u8 *at)
{
    for (u32 i = 0; i < REGISTER_BYTES; i++) {
        if (at[i])
            return true;
    }
    return false;
}

static void fill(u8 *at, bool undefined)
{
    for (u32 i = 0; i < REGISTER_BYTES; i++)
        at[i] = undefined ? 0xff : 0;
}

static void copy(u8 *to, const u8 *from)
{
    for (u32 i = 0; i < REGISTER_BYTES; i++)
        to[i] = from[i];
}

static const Place memory = {.kind = PLACE_MEMORY};

// The operand beside st(0): memory, or a register.
static bool operand_any(Running *r)
{
    return r->step->memory_size ? place_any(r, &memory)
                                : any_of(stack_register(r, r->step->x87_number));
}

static void push(Running *r)
{
    const DefinednessStep *step = r->step;
    u8 *to = stack_register(r, 7); // one below the top
    if (step->rule == RULE_X87_CONSTANT) {
        fill(to, false);
    } else if (step->memory_size == REGISTER_BYTES && r->values->memory_v &&
               step->lane_to) { // fld m80
        copy(to, r->values->memory_v);
    } else if (step->memory_size) {
        fill(to, place_any(r, &memory));
    } else {
        copy(to, stack_register(r, step->x87_number));
    }
}

static void store(Running *r)
{
    const DefinednessStep *step = r->step;
    const u8 *from = stack_register(r, 0);
    if (!step->memory_size)
        copy(stack_register(r, step->x87_number), from);
    else if (step->memory_size == REGISTER_BYTES && r->values->memory_v && step->lane_to)
        copy(r->values->memory_v, from);
    else
        place_fill(r, &memory, any_of(from));
}

static void compare(Running *r, bool into_flags)
{
    bool undefined = any_of(stack_register(r, 0)) || operand_any(r);
    if (into_flags)
        r->d->flags = (r->d->flags & ~(u64)r->step->flags_written) |
                      (undefined ? (u64)(r->step->flags_written & ~r->step->flags_cleared) : 0);
    else
        r->d->x87_environment = all_if(undefined);
}

static void arithmetic(Running *r)
{
    bool undefined = any_of(stack_register(r, 0)) || operand_any(r);
    fill(stack_register(r, r->step->x87_to_number ? r->step->x87_number : 0), undefined);
}

static void exchange(Running *r)
{
    u8 saved[REGISTER_BYTES];
    u8 *a = stack_register(r, 0), *b = stack_register(r, r->step->x87_number);
    copy(saved, a);
    copy(a, b);
    copy(b, saved);
}

// fpatan, fyl2x: of both, into st(1), which is the top after it; fprem, fscale: into st(0).
// C2 tells whether an argument was too large, or a remainder is not complete.
static void both(Running *r, u32 to)
{
    bool undefined = any_of(stack_register(r, 0)) || any_of(stack_register(r, 1));
    fill(stack_register(r, to), undefined);
    r->d->x87_environment = all_if(undefined);
}

static void unary(Running *r)
{
    bool undefined = any_of(stack_register(r, 0));
    fill(stack_register(r, 0), undefined);
    r->d->x87_environment = all_if(undefined);
}

// fsincos, fptan, fxtract: st(0) becomes two.
static void split(Running *r)
{
    bool undefined = any_of(stack_register(r, 0));
    fill(stack_register(r, 0), undefined);
    fill(stack_register(r, 7), undefined);
    r->d->x87_environment = all_if(undefined);
}

static void conditional_move(Running *r)
{
    const u64 flags = r->d->flags & r->step->flags_tested;
    u8 *to = stack_register(r, 0), *from = stack_register(r, r->step->x87_number);
    bool differs = flags || any_of(to) || any_of(from);
    fill(to, differs);
}

// fnstenv: the tags tell what kind of a value each register has.
static void save_words(Running *r)
{
    enum { TAGS_AT_32 = 8, TAGS_AT_16 = 4, BYTES_32 = 28 };
    u8 *to = r->values->memory_v;
    bool undefined = false;
    place_fill(r, &memory, r->d->x87_environment);
    for (u32 i = 0; i < 8; i++)
        undefined |= any_of(r->d->x87[i]);
    u32 tags = r->step->memory_size == BYTES_32 ? TAGS_AT_32 : TAGS_AT_16;
    if (to && undefined)
        to[tags] = to[tags + 1] = 0xff;
}

static void clear_all(Running *r)
{
    for (u32 i = 0; i < 8; i++)
        fill(r->d->x87[i], false);
    r->d->x87_environment = 0;
}

static void pop(Running *r)
{
    for (u32 i = 0; i < r->step->lane; i++)
        fill(stack_register(r, i), false);
}

void family_x87(Running *r)
{
    u8 *top = stack_register(r, 0);
    switch (r->step->rule) {
    case RULE_X87_CONSTANT:
    case RULE_X87_PUSH: push(r); break;
    case RULE_X87_STORE: store(r); break;
    case RULE_X87_COMPARE: compare(r, false); break;
    case RULE_X87_COMPARE_FLAGS: compare(r, true); break;
    case RULE_X87_EXAMINE: r->d->x87_environment = all_if(any_of(top)); break;
    case RULE_X87_ARITHMETIC: arithmetic(r); break;
    case RULE_X87_UNARY: unary(r); break;
    case RULE_X87_SIGN: break; // fchs, fabs: a bit that is undefined stays so
    case RULE_X87_BOTH: both(r, 0); break;
    case RULE_X87_BOTH_POP: both(r, 1); break;
    case RULE_X87_SPLIT: split(r); break;
    case RULE_X87_EXCHANGE: exchange(r); break;
    case RULE_X87_MOVE_IF: conditional_move(r); break;
    case RULE_X87_STATUS: place_fill(r, &r->step->destination, r->d->x87_environment); break;
    case RULE_X87_SAVE_WORDS: save_words(r); break;
    case RULE_X87_LOAD_WORDS: r->d->x87_environment = all_if(place_any(r, &memory)); break;
    case RULE_X87_FREE: fill(stack_register(r, r->step->x87_number), false); break;
    case RULE_X87_CLEAR: clear_all(r); break;
    default: rule_coarse(r); break;
    }
    pop(r);
}
