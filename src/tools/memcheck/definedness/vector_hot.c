// SPDX-License-Identifier: MIT
//
// Rules for vectors whose lanes are worked on side by side, for floats, and for the mask
// registers of AVX-512.
#include "tools/memcheck/definedness/step.h"

enum { WORDS = 8 };

// The operands of a rule: V bits and, where it needs them, values.
typedef struct Operands {
    Bytes v[3], value[3];
    u32 count; // immediates aside
    u32 total; // bytes of the result
} Operands;

static Any64 *words(Bytes *bytes)
{
    return (Any64 *)bytes->at;
}

static u64 lane_get(const Bytes *bytes, u32 i, u32 n)
{
    const u8 *at = bytes->at + i * n;
    switch (n) {
    case 1: return *at;
    case 2: return *(const Any16 *)at;
    case 4: return *(const Any32 *)at;
    case 8: return *(const Any64 *)at;
    default: return *(const Any64 *)at | *(const Any64 *)(at + 8);
    }
}

static void lane_set(Bytes *bytes, u32 i, u32 n, u64 v)
{
    u8 *at = bytes->at + i * n;
    switch (n) {
    case 1: *at = (u8)v; break;
    case 2: *(Any16 *)at = (u16)v; break;
    case 4: *(Any32 *)at = (u32)v; break;
    case 8: *(Any64 *)at = v; break;
    default: *(Any64 *)at = *(Any64 *)(at + 8) = v; break;
    }
}

static void load_operands(Running *r, bool with_values, Operands *ret)
{
    const DefinednessStep *step = r->step;
    ret->count = 0;
    ret->total = step->destination.size;
    for (u32 i = 0; i < step->source_count && ret->count < ARRAY_LEN(ret->v); i++) {
        const Place *place = &step->source[i];
        if (place->kind == PLACE_IMMEDIATE)
            continue;
        place_bytes_v(r, place, &ret->v[ret->count]);
        if (with_values)
            place_bytes_value(r, place, &ret->value[ret->count]);
        ret->count++;
    }
}

static Known lane_known(const Operands *o, u32 operand, u32 i, u32 n)
{
    return (Known){lane_get(&o->value[operand], i, n), lane_get(&o->v[operand], i, n)};
}

static bool same_vector(const DefinednessStep *step)
{
    const Place *a = &step->source[0], *b = &step->source[1];
    return step->source_count > 1 && a->kind == b->kind && a->number == b->number &&
           (a->kind == PLACE_VECTOR || a->kind == PLACE_MMX || a->kind == PLACE_MASK);
}

// ----------------------------------------------------------------------- logic

static u64 and_v(u64 a, u64 va, u64 b, u64 vb)
{
    return (a | va) & (b | vb) & (va | vb);
}

static u64 ternary_v(u8 table, const u64 x[3], const u64 v[3])
{
    u64 can[2] = {0, 0};
    for (u32 combination = 0; combination < 8; combination++) {
        u64 feasible = ~0ull;
        for (u32 k = 0; k < 3; k++)
            feasible &= combination >> (2 - k) & 1 ? x[k] | v[k] : ~x[k] | v[k];
        can[table >> combination & 1] |= feasible;
    }
    return can[0] & can[1];
}

static u64 logic_word(const DefinednessStep *step, Operands *o, u32 i)
{
    u64 x[3], v[3];
    for (u32 k = 0; k < 3; k++) {
        x[k] = words(&o->value[k])[i];
        v[k] = words(&o->v[k])[i];
    }
    switch (step->rule) {
    case RULE_VAND: return and_v(x[0], v[0], x[1], v[1]);
    case RULE_VANDN: return and_v(~x[0], v[0], x[1], v[1]);
    case RULE_VOR: return and_v(~x[0], v[0], ~x[1], v[1]);
    default: return ternary_v((u8)step->immediate, x, v);
    }
}

static void logic(Running *r)
{
    const DefinednessStep *step = r->step;
    Operands o;
    Bytes v;
    load_operands(r, true, &o);
    for (u32 i = 0; i < WORDS; i++)
        words(&v)[i] = 8 * i < o.total ? logic_word(step, &o, i) : 0;
    rule_finish(r, &v);
}

// Bitwise, whatever the values are.
static void union_of_all(Running *r)
{
    Operands o;
    Bytes v = {0};
    load_operands(r, false, &o);
    for (u32 i = 0; i < WORDS; i++) {
        for (u32 k = 0; k < o.count; k++)
            words(&v)[i] |= words(&o.v[k])[i];
    }
    if (r->step->rule == RULE_VXOR && same_vector(r->step) && o.count == 2)
        v = (Bytes){0};
    rule_finish(r, &v);
}

// ----------------------------------------------------------------------- lanes

static i64 signed_of(u64 value, u32 n)
{
    return (i64)sign_extend(value, n);
}

// a > b, signed: possible, but not in any case.
static bool greater_is_undefined(Known a, Known b, u32 n)
{
    u64 sign = 1ull << (n * 8 - 1);
    i64 a_least = signed_of((a.value & ~a.v) | (a.v & sign), n);
    i64 b_least = signed_of((b.value & ~b.v) | (b.v & sign), n);
    i64 a_greatest = signed_of((a.value | a.v) & ~(a.v & sign), n);
    i64 b_greatest = signed_of((b.value | b.v) & ~(b.v & sign), n);
    return a_greatest > b_least && !(a_least > b_greatest);
}

static u64 shift_v(u32 rule, u64 v, u64 count, u32 n)
{
    u32 bits = n * 8;
    switch (rule) {
    case RULE_VSHL:
    case RULE_VSHLV: return count < bits ? v << count : 0;
    case RULE_VSHR:
    case RULE_VSHRV: return count < bits ? v >> count : 0;
    default: return (u64)(signed_of(v, n) >> (count < bits ? count : bits - 1));
    }
}

static u64 lane_v(u32 rule, Known a, Known b, u32 n)
{
    u64 low, high;
    switch (rule) {
    case RULE_VADD:
        low = (a.value & ~a.v) + (b.value & ~b.v);
        high = (a.value | a.v) + (b.value | b.v);
        return a.v | b.v | (low ^ high);
    case RULE_VSUB:
        low = (a.value & ~a.v) - (b.value | b.v);
        high = (a.value | a.v) - (b.value & ~b.v);
        return a.v | b.v | (low ^ high);
    case RULE_VEQUAL: return all_if((a.v | b.v) && !((a.value ^ b.value) & ~a.v & ~b.v));
    // One that is defined and beyond what the other can be is the result.
    case RULE_VMIN:
        return all_if((a.v | b.v) && (a.v || a.value > (b.value & ~b.v)) &&
                      (b.v || b.value > (a.value & ~a.v)));
    case RULE_VMAX:
        return all_if((a.v | b.v) && (a.v || a.value < (b.value | b.v)) &&
                      (b.v || b.value < (a.value | a.v)));
    case RULE_VGREATER: return all_if(greater_is_undefined(a, b, n));
    default: // shifts by lanes
        return b.v ? all_if(a.v || a.value) : shift_v(rule, a.v, b.value, n);
    }
}

static void known_lanes(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, rule = step->rule;
    Operands o;
    Bytes v = {0};
    bool is_same = same_vector(step);
    bool idiom = is_same &&
                 (rule == RULE_VSUB || rule == RULE_VEQUAL || rule == RULE_VGREATER);
    load_operands(r, true, &o);
    for (u32 i = 0; i < o.total / n && !idiom; i++)
        lane_set(&v, i, n, is_same && rule == RULE_VADD
                               ? lane_known(&o, 0, i, n).v << 1
                               : lane_v(rule, lane_known(&o, 0, i, n), lane_known(&o, 1, i, n), n));
    rule_finish(r, &v);
}

static u64 any_v(const Operands *o, u32 i, u32 n)
{
    u64 v = 0;
    for (u32 k = 0; k < o->count; k++)
        v |= lane_get(&o->v[k], i, n);
    return v;
}

static void any_lanes(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane;
    Operands o;
    Bytes v = {0};
    load_operands(r, false, &o);
    for (u32 i = 0; i < o.total / n; i++) {
        u64 any = any_v(&o, i, n);
        if (step->rule == RULE_LOWMUL)
            lane_set(&v, i, n, left_of_lowest(any));
        else if (step->rule == RULE_EVENMUL)
            lane_set(&v, i, n, all_if((u32)any));
        else
            lane_set(&v, i, n, all_if(any));
    }
    rule_finish(r, &v);
}

// A lane has a bit for each of those below it that is the same.
static void conflicts(Running *r)
{
    u32 n = r->step->lane;
    Operands o;
    Bytes v = {0};
    load_operands(r, true, &o);
    for (u32 i = 0; i < o.total / n; i++) {
        u64 lane = 0;
        for (u32 k = 0; k < i; k++) {
            u64 one = lane_v(RULE_VEQUAL, lane_known(&o, 0, i, n), lane_known(&o, 0, k, n), n);
            lane |= (one & 1) << k;
        }
        lane_set(&v, i, n, lane);
    }
    rule_finish(r, &v);
}

static void horizontal(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, lane = step->destination.kind == PLACE_MMX ? 8 : 16, half = lane / n / 2;
    Operands o;
    Bytes v = {0};
    load_operands(r, false, &o);
    for (u32 base = 0; base < o.total; base += lane) {
        for (u32 k = 0; k < lane / n; k++) {
            const Bytes *from = &o.v[k < half ? 0 : 1];
            u32 first = base / n + (k % half) * 2;
            u64 any = lane_get(from, first, n) | lane_get(from, first + 1, n);
            lane_set(&v, base / n + k, n, all_if(any));
        }
    }
    rule_finish(r, &v);
}

// All lanes by one count: an immediate, or the lowest 64 bits of an operand.
static void shift_by_one_count(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *last = &step->source[step->source_count - 1];
    u32 n = step->lane, total = step->destination.size;
    Bytes a, v = {0};
    place_bytes_v(r, &step->source[0], &a);
    bool blind = step->rule == RULE_ANY_BY_COUNT;
    u64 count_v = last->kind == PLACE_IMMEDIATE ? 0 : place_v(r, last);
    u64 count = blind ? 0 : place_value(r, last);
    if (last->kind == PLACE_IMMEDIATE)
        count &= 0xff;
    for (u32 i = 0; i < total / n; i++) {
        u64 lane = lane_get(&a, i, n);
        lane = count_v ? ~0ull : blind ? all_if(lane) : shift_v(step->rule, lane, count, n);
        lane_set(&v, i, n, lane);
    }
    rule_finish(r, &v);
}

static void rotate(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 n = step->lane, bits = n * 8, count = step->immediate % bits;
    Bytes a, v = {0};
    place_bytes_v(r, &step->source[0], &a);
    if (step->rule == RULE_VROR)
        count = (bits - count) % bits;
    for (u32 i = 0; i < step->destination.size / n; i++) {
        u64 lane = lane_get(&a, i, n);
        lane_set(&v, i, n, count ? lane << count | lane >> (bits - count) : lane);
    }
    rule_finish(r, &v);
}

static void convert(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 from = step->lane, to = step->lane_to;
    Operands o;
    Bytes v = {0};
    load_operands(r, false, &o);
    if (!o.count)
        return;
    if (step->rule == RULE_CONVERT_LOW)
        place_bytes_v(r, &step->destination, &v);
    const Bytes *source = &o.v[o.count - 1];
    u32 lanes = step->rule == RULE_CONVERT_LOW ? 2 : o.total / to;
    for (u32 i = 0; i < lanes && (i + 1) * from <= sizeof(source->at); i++)
        lane_set(&v, i, to, all_if(lane_get(source, i, from)));
    rule_finish(r, &v);
}

// The lanes above come from the first source, which legacy encodings have as the destination.
static void scalar(Running *r)
{
    const DefinednessStep *step = r->step;
    Operands o;
    Bytes v;
    u64 any = 0;
    load_operands(r, false, &o);
    if (!o.count)
        return;
    for (u32 k = step->rule == RULE_SCALAR ? 0 : o.count - 1; k < o.count; k++)
        any |= lane_get(&o.v[k], 0, step->lane_to);
    bool legacy = step->destination.written_upper == step->destination.size;
    if (legacy)
        place_bytes_v(r, &step->destination, &v);
    else
        v = o.v[0];
    lane_set(&v, 0, step->lane, all_if(any));
    rule_finish(r, &v);
}

// ----------------------------------------------------------------------- flags

static void set_flags(Running *r, u64 v)
{
    r->d->flags = (r->d->flags & ~(u64)r->step->flags_written) |
                  (v & r->step->flags_written & ~(u64)r->step->flags_cleared);
}

// ZF: a & b is zero; CF: ~a & b is. A defined one among their bits settles it.
static void test_vectors(Running *r)
{
    const DefinednessStep *step = r->step;
    Operands o;
    u64 mask = step->rule == RULE_PTEST ? ~0ull
               : step->lane == 4        ? 0x8000000080000000ull
                                        : 0x8000000000000000ull;
    u64 both_v = 0, both_one = 0, rest_v = 0, rest_one = 0;
    load_operands(r, true, &o);
    for (u32 i = 0; i < step->source[0].size / 8u; i++) {
        u64 a = words(&o.value[0])[i] & mask, va = words(&o.v[0])[i] & mask;
        u64 b = words(&o.value[1])[i] & mask, vb = words(&o.v[1])[i] & mask;
        both_v |= and_v(a, va, b, vb);
        both_one |= a & ~va & b & ~vb;
        rest_v |= and_v(~a & mask, va, b, vb);
        rest_one |= ~a & ~va & b & ~vb;
    }
    set_flags(r, (both_v && !both_one ? ZF : 0) | (rest_v && !rest_one ? CF : 0));
}

// Whether all of a string is defined: up to its first zero, or as far as its length says.
static bool string_is_defined(const Bytes *value, const Bytes *v, u32 n, u32 length)
{
    for (u32 i = 0; i < 16 / n && i < length; i++) {
        if (lane_get(v, i, n))
            return false;
        if (length > 16 && lane_get(value, i, n) == 0)
            return true;
    }
    return true;
}

// Of a length, as the instruction takes it: its absolute value, at most all elements.
static bool string_length(Running *r, u32 gpr, u32 *ret)
{
    u32 bytes = r->step->size == 8 ? 8 : 4;
    i64 length = signed_of(r->values->gpr[gpr] & mask_of(bytes), bytes);
    length = length < 0 ? -length : length;
    *ret = length < 0 || length > 16 ? 16 : (u32)length;
    return !(r->d->gpr[gpr] & mask_of(bytes));
}

static void compare_strings(Running *r)
{
    enum { RAX_NUMBER = 0, RDX_NUMBER = 2, IMPLICIT = 17 };
    const DefinednessStep *step = r->step;
    u32 n = step->immediate & 1 ? 2 : 1, lengths[2] = {IMPLICIT, IMPLICIT};
    Operands o;
    load_operands(r, true, &o);
    bool is_defined = !step->lane || (string_length(r, RAX_NUMBER, &lengths[0]) &
                                      string_length(r, RDX_NUMBER, &lengths[1]));
    for (u32 i = 0; i < 2; i++)
        is_defined = is_defined && string_is_defined(&o.value[i], &o.v[i], n, lengths[i]);
    if (!is_defined) {
        rule_coarse(r);
        return;
    }
    place_fill(r, &step->destination, false);
    set_flags(r, 0);
}

static void float_flags(Running *r)
{
    const DefinednessStep *step = r->step;
    u64 mask = mask_of(step->lane);
    u64 v = (place_v(r, &step->source[0]) | place_v(r, &step->source[1])) & mask;
    set_flags(r, all_if(v));
}

// ----------------------------------------------------------------------- masks

// What a comparison may come to, over all values of what is undefined.
typedef struct Outcome {
    bool may_be_true, may_be_false;
} Outcome;

static Outcome outcome_by_order(Known a, Known b, u32 predicate)
{
    u64 a_least = a.value & ~a.v, a_greatest = a.value | a.v;
    u64 b_least = b.value & ~b.v, b_greatest = b.value | b.v;
    Outcome out = {false, true};
    switch (predicate & ~PREDICATE_NOT) {
    case PREDICATE_EQUAL:
        out = (Outcome){!((a.value ^ b.value) & ~a.v & ~b.v), a.v || b.v || a.value != b.value};
        break;
    case PREDICATE_LESS: out = (Outcome){a_least < b_greatest, a_greatest >= b_least}; break;
    case PREDICATE_LESS_EQUAL: out = (Outcome){a_least <= b_greatest, a_greatest > b_least}; break;
    default: break;
    }
    return predicate & PREDICATE_NOT ? (Outcome){out.may_be_false, out.may_be_true} : out;
}

static Outcome outcome_by_bits(Known a, Known b, bool wants_one)
{
    bool one = (a.value | a.v) & (b.value | b.v), none = !(a.value & ~a.v & b.value & ~b.v);
    return wants_one ? (Outcome){one, none} : (Outcome){none, one};
}

static Outcome outcome_of_lane(const DefinednessStep *step, Known a, Known b)
{
    u64 sign = 1ull << (step->lane * 8 - 1);
    switch (step->lane_to) {
    case COMPARE_ANY_ONE:
    case COMPARE_NO_ONE: return outcome_by_bits(a, b, step->lane_to == COMPARE_ANY_ONE);
    case COMPARE_SIGNED:
        a.value ^= sign;
        b.value ^= sign;
        break;
    default: break;
    }
    if (same_vector(step))
        a.v = b.v = 0;
    return outcome_by_order(a, b, (u32)step->immediate & 7);
}

// A lane that is off gives a zero, and one that gives a zero anyway need not be known to be on.
static void compare_into_mask(Running *r)
{
    const DefinednessStep *step = r->step;
    bool by_value = step->rule == RULE_VCOMPARE;
    u32 n = step->lane, lanes = step->mask_scalar ? 1 : step->size / n;
    u64 all = lanes == 64 ? ~0ull : (1ull << lanes) - 1, may_be_true = 0, may_be_false = 0;
    Operands o;
    load_operands(r, by_value, &o);
    for (u32 i = 0; i < lanes; i++) {
        Outcome out = {true, false}; // whichever it is
        if (by_value)
            out = outcome_of_lane(step, lane_known(&o, 0, i, n), lane_known(&o, 1, i, n));
        else if (any_v(&o, i, n))
            out.may_be_false = true;
        may_be_true |= (u64)out.may_be_true << i;
        may_be_false |= (u64)out.may_be_false << i;
    }
    if (step->mask_mode != MASK_NONE) {
        u64 on = rule_mask_value(step->mask, lanes), undefined = r->d->mask[step->mask];
        may_be_true &= on | undefined;
        may_be_false |= ~on | undefined;
    }
    place_set_v(r, &step->destination, may_be_true & may_be_false & all);
}

static void test_masks(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 bits = step->lane * 8u;
    u64 all = mask_of(step->lane);
    u64 va = place_v(r, &step->source[0]) & all, vb = place_v(r, &step->source[1]) & all;
    u64 a = rule_mask_value(step->source[0].number, bits) & all;
    u64 b = rule_mask_value(step->source[1].number, bits) & all;
    if (step->lane_to) { // ktest: a & b, ~a & b
        u64 both = and_v(a, va, b, vb), rest = and_v(~a, va, b, vb) & all;
        set_flags(r, (both && !(a & ~va & b & ~vb) ? ZF : 0) |
                         (rest && !(~a & ~va & b & ~vb & all) ? CF : 0));
        return;
    }
    u64 one = (a & ~va) | (b & ~vb), zero = ~a & ~va & ~b & ~vb & all, v = (va | vb) & ~one;
    set_flags(r, (v && !one ? ZF : 0) | (v && !zero ? CF : 0));
}

// Where a defined bit of one operand settles it, the other's matters not.
static u64 mask_logic(const DefinednessStep *step, u64 va, u64 vb)
{
    u32 bits = step->lane * 8u;
    u64 a = rule_mask_value(step->source[0].number, bits);
    u64 b = rule_mask_value(step->source[1].number, bits);
    switch (step->rule) {
    case RULE_KAND: return and_v(a, va, b, vb);
    case RULE_KANDN: return and_v(~a, va, b, vb);
    default: return and_v(~a, va, ~b, vb);
    }
}

static void mask_rule(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *to = &step->destination;
    u64 all = mask_of(step->lane), a = place_v(r, &step->source[0]) & all;
    u64 b = step->source_count > 1 ? place_v(r, &step->source[1]) & all : 0;
    u32 count = step->immediate & 0xff, bits = step->lane * 8u;
    switch (step->rule) {
    case RULE_KMOVE: place_set_v(r, to, a); break;
    case RULE_KLOGIC: // a register and itself: all zeros or all ones
        place_set_v(r, to, step->lane_to && same_vector(step) ? 0 : a | b);
        break;
    case RULE_KAND:
    case RULE_KANDN:
    case RULE_KOR: place_set_v(r, to, mask_logic(step, a, b)); break;
    case RULE_KADD: place_set_v(r, to, left_of_lowest(a | b) & all); break;
    case RULE_KSHIFT_LEFT: place_set_v(r, to, count < bits ? a << count & all : 0); break;
    case RULE_KSHIFT_RIGHT: place_set_v(r, to, count < bits ? a >> count : 0); break;
    default: place_set_v(r, to, a << bits | b); break; // KUNPACK
    }
}

static void broadcast_mask(Running *r)
{
    const DefinednessStep *step = r->step;
    u64 mask = place_v(r, &step->source[0]) & mask_of(step->lane_to);
    Bytes v = {0};
    for (u32 i = 0; i < step->destination.size / step->lane; i++)
        lane_set(&v, i, step->lane, mask);
    place_set_bytes(r, &step->destination, &v);
}

static void float_to_gpr(Running *r)
{
    u64 v = place_v(r, &r->step->source[0]) & mask_of(r->step->lane);
    place_set_v(r, &r->step->destination, all_if(v));
}

void family_vector(Running *r)
{
    switch (r->step->rule) {
    case RULE_VAND:
    case RULE_VANDN:
    case RULE_VOR:
    case RULE_VTERNLOG: logic(r); break;
    case RULE_VXOR:
    case RULE_VUNION: union_of_all(r); break;
    case RULE_VADD:
    case RULE_VSUB:
    case RULE_VEQUAL:
    case RULE_VGREATER:
    case RULE_VMIN:
    case RULE_VMAX:
    case RULE_VSHLV:
    case RULE_VSHRV:
    case RULE_VSARV: known_lanes(r); break;
    case RULE_ANY:
    case RULE_LOWMUL:
    case RULE_EVENMUL: any_lanes(r); break;
    case RULE_CONFLICT: conflicts(r); break;
    case RULE_HORIZONTAL: horizontal(r); break;
    case RULE_VSHL:
    case RULE_VSHR:
    case RULE_VSAR:
    case RULE_ANY_BY_COUNT: shift_by_one_count(r); break;
    case RULE_VROL:
    case RULE_VROR: rotate(r); break;
    case RULE_CONVERT:
    case RULE_CONVERT_LOW: convert(r); break;
    case RULE_SCALAR:
    case RULE_SCALAR_UNARY: scalar(r); break;
    case RULE_PTEST:
    case RULE_VTEST: test_vectors(r); break;
    case RULE_STRINGS: compare_strings(r); break;
    case RULE_FLOAT_FLAGS: float_flags(r); break;
    case RULE_COMPARE_MASK:
    case RULE_VCOMPARE: compare_into_mask(r); break;
    case RULE_KORTEST: test_masks(r); break;
    case RULE_BROADCAST_MASK: broadcast_mask(r); break;
    case RULE_FLOAT_TO_GPR: float_to_gpr(r); break;
    case RULE_KMOVE:
    case RULE_KLOGIC:
    case RULE_KAND:
    case RULE_KANDN:
    case RULE_KOR:
    case RULE_KADD:
    case RULE_KSHIFT_LEFT:
    case RULE_KSHIFT_RIGHT:
    case RULE_KUNPACK: mask_rule(r); break;
    default: rule_coarse(r); break;
    }
}
