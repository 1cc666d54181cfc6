// SPDX-License-Identifier: MIT
//
// Rules for sums, logic and products of integers. A number with undefined bits lies
// between the one with zeros there and the one with ones; where the sums of the least and of
// the greatest differ, or an operand is undefined, so is the sum. That is exact.
#include "tools/memcheck/definedness/step.h"

enum { RAX_NUMBER = 0, RCX_NUMBER = 1, RDX_NUMBER = 2, RBX_NUMBER = 3 };

// A result, and the V bits of the flags that come with it.
typedef struct Result {
    Known known;
    u64 flags;
} Result;

static Known cut(Known k, u32 bytes)
{
    return (Known){k.value & mask_of(bytes), k.v & mask_of(bytes)};
}

static u64 least(Known k)
{
    return k.value & ~k.v;
}

static u64 greatest(Known k)
{
    return k.value | k.v;
}

// The flags that are functions of the result alone.
static u64 result_flags(Known k, u32 bytes)
{
    u64 flags = 0;
    if (k.v && !least(k))
        flags |= ZF;
    if (k.v >> (bytes * 8 - 1) & 1)
        flags |= SF;
    if (k.v & 0xff)
        flags |= PF;
    return flags;
}

static void set_flags(Running *r, u64 v)
{
    const DefinednessStep *step = r->step;
    r->d->flags = (r->d->flags & ~(u64)step->flags_written) |
                  (v & step->flags_written & ~(u64)step->flags_cleared);
}

// ------------------------------------------------------------------------ sums

// With the sign bit undefined, the least is negative.
static __int128 least_signed(Known k, u32 bytes)
{
    u64 sign = 1ull << (bytes * 8 - 1);
    return (i64)sign_extend(least(k) | (k.v & sign), bytes);
}

static __int128 greatest_signed(Known k, u32 bytes)
{
    u64 sign = 1ull << (bytes * 8 - 1);
    return (i64)sign_extend(greatest(k) & ~(k.v & sign), bytes);
}

static int overflow_of(__int128 sum, u32 bytes)
{
    __int128 top = (__int128)1 << (bytes * 8 - 1);
    return sum >= top ? 1 : sum < -top ? -1 : 0;
}

// OF is a function of three signs.
static bool signs_are_undefined(Known a, Known b, Known result, u32 bytes)
{
    return (a.v | b.v | result.v) >> (bytes * 8 - 1) & 1;
}

static bool carry_of(u64 a, u64 b, u64 c, u32 bits)
{
    u64 sum;
    if (bits < 64)
        return (a + b + c) >> bits & 1;
    bool carry = __builtin_add_overflow(a, b, &sum);
    return carry | __builtin_add_overflow(sum, c, &sum);
}

static Result add(Known a, Known b, Known c, u32 bytes)
{
    u32 bits = bytes * 8;
    u64 low = least(a) + least(b) + least(c), high = greatest(a) + greatest(b) + greatest(c);
    Known k = cut((Known){low, a.v | b.v | c.v | (low ^ high)}, bytes);
    u64 flags = result_flags(k, bytes);
    if (carry_of(least(a), least(b), least(c), bits) !=
        carry_of(greatest(a), greatest(b), greatest(c), bits))
        flags |= CF;
    if (carry_of(least(a) & 15, least(b) & 15, least(c), 4) !=
        carry_of(greatest(a) & 15, greatest(b) & 15, greatest(c), 4))
        flags |= AF;
    if (signs_are_undefined(a, b, k, bytes) &&
        overflow_of(least_signed(a, bytes) + least_signed(b, bytes) + (i64)least(c), bytes) !=
        overflow_of(greatest_signed(a, bytes) + greatest_signed(b, bytes) + (i64)greatest(c),
                    bytes))
        flags |= OF;
    return (Result){k, flags};
}

// A number and itself: every bit goes up by one place, and none meets another.
static Result add_to_itself(Known a, Known c, u32 bytes)
{
    u32 top = bytes * 8 - 1;
    Known k = cut((Known){least(a) << 1 | least(c), a.v << 1 | c.v}, bytes);
    u64 flags = result_flags(k, bytes);
    if (a.v >> top & 1)
        flags |= CF | OF;
    if (a.v >> (top - 1) & 1)
        flags |= OF;
    if (a.v >> 3 & 1)
        flags |= AF;
    return (Result){k, flags};
}

static bool borrow_of(u64 a, u64 b, u64 c)
{
    return a < b || (c && a == b);
}

static Result subtract(Known a, Known b, Known c, u32 bytes)
{
    u64 low = least(a) - greatest(b) - greatest(c), high = greatest(a) - least(b) - least(c);
    Known k = cut((Known){low, a.v | b.v | c.v | (low ^ high)}, bytes);
    u64 flags = result_flags(k, bytes) & ~(u64)ZF;
    // Equal or not: a defined bit that differs settles it.
    bool unequal = c.v == 0 && c.value == 0 && ((a.value ^ b.value) & ~a.v & ~b.v) != 0;
    if (k.v && !least(k) && !unequal)
        flags |= ZF;
    if (borrow_of(least(a), greatest(b), greatest(c)) !=
        borrow_of(greatest(a), least(b), least(c)))
        flags |= CF;
    if (borrow_of(least(a) & 15, greatest(b) & 15, greatest(c)) !=
        borrow_of(greatest(a) & 15, least(b) & 15, least(c)))
        flags |= AF;
    if (signs_are_undefined(a, b, k, bytes) &&
        overflow_of(least_signed(a, bytes) - greatest_signed(b, bytes) - (i64)greatest(c), bytes) !=
        overflow_of(greatest_signed(a, bytes) - least_signed(b, bytes) - (i64)least(c), bytes))
        flags |= OF;
    return (Result){k, flags};
}

static Known flag_known(const Running *r, u32 flag)
{
    return (Known){(r->values->eflags & flag) != 0, (r->d->flags & flag) != 0};
}

// ----------------------------------------------------------------------- logic

static Known and(Known a, Known b)
{
    return (Known){least(a) & least(b), greatest(a) & greatest(b) & (a.v | b.v)};
}

static Known or(Known a, Known b)
{
    return (Known){least(a) | least(b), ~(least(a) | least(b)) & (a.v | b.v)};
}

static Known xor(Known a, Known b)
{
    return (Known){a.value ^ b.value, a.v | b.v};
}

static Result logic(Known k, u32 bytes)
{
    Known c = cut(k, bytes);
    return (Result){c, result_flags(c, bytes)};
}

static bool same_register(const Place *a, const Place *b)
{
    return a->kind == PLACE_GPR && b->kind == PLACE_GPR && a->number == b->number &&
           a->shift == b->shift && a->size == b->size;
}

// xor r, r and sub r, r have one result; that of sbb r, r depends on the carry alone; add r, r is
// a shift.
static bool is_idiom(Running *r, Result *ret)
{
    const DefinednessStep *step = r->step;
    u32 bytes = step->source[0].size;
    if (!same_register(&step->source[0], &step->source[1]))
        return false;
    switch (step->rule) {
    case RULE_ADD:
    case RULE_ADC: {
        Known carry = step->rule == RULE_ADC ? flag_known(r, CF) : (Known){0, 0};
        *ret = add_to_itself(cut(place_known(r, &step->source[0]), bytes), carry, bytes);
        return true;
    }
    case RULE_XOR:
    case RULE_SUB:
    case RULE_CMP: *ret = (Result){0}; return true;
    case RULE_SBB: {
        bool carry = r->d->flags & CF;
        u64 mask = mask_of(bytes);
        *ret = (Result){{all_if(r->values->eflags & CF) & mask, all_if(carry) & mask},
                        carry ? CF | ZF | SF | PF | AF : 0};
        if (carry)
            ret->flags &= ~(u64)PF; // 0 and all ones have the same parity
        return true;
    }
    default: return false;
    }
}

static Result binary(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 bytes = step->source[0].size;
    Result result;
    if (UNLIKELY(is_idiom(r, &result)))
        return result;
    const Known none = {0, 0}, one = {1, 0}, all = {~0ull, 0};
    Known a = cut(place_known(r, &step->source[0]), bytes);
    Known b = step->source_count > 1 ? cut(place_known(r, &step->source[1]), bytes) : none;
    switch (step->rule) {
    case RULE_ADD: return add(a, b, none, bytes);
    case RULE_SUB:
    case RULE_CMP: return subtract(a, b, none, bytes);
    case RULE_ADC: return add(a, b, flag_known(r, CF), bytes);
    case RULE_SBB: return subtract(a, b, flag_known(r, CF), bytes);
    case RULE_INC: return add(a, one, none, bytes);
    case RULE_DEC: return subtract(a, one, none, bytes);
    case RULE_NEG: return subtract(none, a, none, bytes);
    case RULE_AND:
    case RULE_TEST: return logic(and(a, b), bytes);
    case RULE_OR: return logic(or(a, b), bytes);
    case RULE_XOR: return logic(xor(a, b), bytes);
    case RULE_ANDN: return logic(and(xor(a, all), b), bytes);
    case RULE_ADCX: result = add(a, b, flag_known(r, step->flags_tested), bytes); break;
    default: return (Result){{a.value, a.v}, 0};
    }
    // The carry comes out in the flag that it came from.
    result.flags = result.flags & CF ? step->flags_written : 0;
    return result;
}

// ------------------------------------------------------------------- addresses

static void lea(Running *r)
{
    const DefinednessStep *step = r->step;
    const Known none = {0, 0};
    u32 scale = step->lane ? (u32)__builtin_ctz(step->lane) : 0;
    Known base = place_known(r, &step->source[0]), index = place_known(r, &step->source[1]);
    index = (Known){index.value << scale, index.v << scale};
    Known k = none;
    if (!scale && same_register(&step->source[0], &step->source[1]))
        k = add_to_itself(base, none, 8).known;
    else if (index.v || base.v)
        k = add(base, index, none, 8).known;
    if (k.v)
        k = add(k, (Known){step->immediate, 0}, none, 8).known;
    place_set_v(r, &step->destination, k.v & mask_of(step->size));
}

// --------------------------------------------------------------------- exchange

static void exchange_add(Running *r)
{
    const DefinednessStep *step = r->step;
    Result result = add(place_known(r, &step->source[0]), place_known(r, &step->source[1]),
                        (Known){0, 0}, step->source[0].size);
    place_set_v(r, &step->source[1], place_v(r, &step->source[0]));
    place_set_v(r, &step->source[0], result.known.v);
    set_flags(r, result.flags);
}

// Where it is not known which of two a value becomes: those bits in which they differ.
static u64 either(Known a, Known b)
{
    return a.v | b.v | (a.value ^ b.value);
}

// Whether a 32-bit register is written, and so its upper half cleared, is not known.
static void doubt_upper(Running *r, const Place *place)
{
    if (place->kind == PLACE_GPR && place->size == 4)
        r->d->gpr[place->number] |= ~0ull << 32;
}

static void compare_exchange(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *to = &step->destination;
    Place ax = {.kind = PLACE_GPR, .number = RAX_NUMBER, .size = to->size};
    const Place *from = &step->source[1];
    Known old = place_known(r, to), new = place_known(r, from), wanted = place_known(r, &ax);
    Result compared = subtract(wanted, old, (Known){0, 0}, to->size);
    if (compared.flags & ZF) {
        place_set_v(r, &ax, either(wanted, old));
        place_set_v(r, to, either(old, new));
        doubt_upper(r, &ax);
        doubt_upper(r, to);
    } else if (wanted.value == old.value) {
        place_set_v(r, to, new.v);
    } else {
        place_set_v(r, &ax, old.v);
    }
    set_flags(r, compared.flags);
}

static void compare_exchange_two(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 half = step->lane;
    u64 *gpr = r->d->gpr, mask = mask_of(half);
    const u64 *value = r->values->gpr;
    Place memory = {.kind = PLACE_MEMORY, .size = (u8)(2 * half), .written_upper = (u8)(2 * half)};
    _Alignas(8) Bytes old, old_v, new = {0};
    place_bytes_value(r, &memory, &old);
    place_bytes_v(r, &memory, &old_v);
    u64 low = *(Any64 *)old.at & mask, high = *(Any64 *)(old.at + half) & mask;
    u64 low_v = *(Any64 *)old_v.at & mask, high_v = *(Any64 *)(old_v.at + half) & mask;
    u64 v = ((gpr[RAX_NUMBER] | gpr[RDX_NUMBER]) & mask) | low_v | high_v;
    u64 differ = ((value[RAX_NUMBER] ^ low) & ~gpr[RAX_NUMBER] & ~low_v & mask) |
                 ((value[RDX_NUMBER] ^ high) & ~gpr[RDX_NUMBER] & ~high_v & mask);
    if (v && !differ) {
        rule_coarse(r);
        if (half == 4)
            gpr[RAX_NUMBER] = gpr[RDX_NUMBER] = ~0ull; // written, or left with its upper half
        return;
    }
    r->d->flags &= ~(u64)step->flags_written;
    if (differ) {
        gpr[RAX_NUMBER] = low_v;
        gpr[RDX_NUMBER] = high_v;
        return;
    }
    *(Any64 *)new.at = gpr[RBX_NUMBER];
    for (u32 i = 0; i < half; i++)
        new.at[half + i] = (u8)(gpr[RCX_NUMBER] >> 8 * i);
    place_set_bytes(r, &memory, &new);
}

// --------------------------------------------------------------------- products

static u32 trailing_zeros(u64 x)
{
    return x ? (u32)__builtin_ctzll(x) : 64;
}

// A product changes from the lowest bit on that an undefined bit can reach.
static u64 product_v(Known a, Known b)
{
    if (!(a.v | b.v))
        return 0;
    if (!b.v && b.value && !(b.value & (b.value - 1)))
        return a.v << trailing_zeros(b.value);
    u32 from_a = trailing_zeros(a.v) + trailing_zeros(greatest(b));
    u32 from_b = trailing_zeros(b.v) + trailing_zeros(greatest(a));
    u32 lowest = from_a < from_b ? from_a : from_b;
    return lowest >= 64 ? 0 : ~0ull << lowest;
}

static void multiply(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 bytes = step->source[0].size;
    u32 second = step->source_count > 2 && step->rule == RULE_IMUL && !step->place_count ? 2 : 1;
    Known a = cut(place_known(r, &step->source[second - 1]), bytes);
    Known b = cut(place_known(r, &step->source[second]), bytes);
    u64 v = product_v(a, b), upper = all_if(a.v | b.v);
    if (step->rule == RULE_MULX) {
        place_set_v(r, &step->other[0], v);
        place_set_v(r, &step->destination, upper);
        return;
    }
    bool wide = step->place_count > 0;
    if (step->destination.size > bytes) // ax = al * r/m8
        v = (v & 0xff) | (upper & 0xff00);
    place_set_v(r, &step->destination, v);
    if (wide)
        place_set_v(r, &step->other[0], upper);
    set_flags(r, upper);
}

// Then no value matters.
static bool operands_are_defined(Running *r)
{
    const DefinednessStep *step = r->step;
    return !place_v(r, &step->source[0]) &&
           !(step->source_count > 1 && place_v(r, &step->source[1])) &&
           !(step->flags_tested & r->d->flags);
}

void family_integer(Running *r)
{
    const DefinednessStep *step = r->step;
    switch (step->rule) {
    case RULE_LEA: lea(r); return;
    case RULE_XADD: exchange_add(r); return;
    case RULE_CMPXCHG: compare_exchange(r); return;
    case RULE_CMPXCHG2: compare_exchange_two(r); return;
    case RULE_IMUL:
    case RULE_MUL:
    case RULE_MULX: multiply(r); return;
    case RULE_NOT: place_set_v(r, &step->destination, place_v(r, &step->source[0])); return;
    default: break;
    }
    if (operands_are_defined(r)) {
        if (step->rule != RULE_CMP && step->rule != RULE_TEST)
            place_set_v(r, &step->destination, 0);
        r->d->flags &= ~(u64)step->flags_written;
        return;
    }
    Result result = binary(r);
    if (step->rule != RULE_CMP && step->rule != RULE_TEST)
        place_set_v(r, &step->destination, result.known.v);
    set_flags(r, result.flags);
}
