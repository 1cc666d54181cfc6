// SPDX-License-Identifier: MIT
//
// Rules for shifts, rotations, counts of bits and bit fields. By a defined amount the V
// bits go where the bits go; an undefined amount makes all undefined that any amount could
// change.
#include "tools/memcheck/definedness/step.h"

static void set_flags(Running *r, u64 v)
{
    const DefinednessStep *step = r->step;
    r->d->flags = (r->d->flags & ~(u64)step->flags_written) |
                  (v & step->flags_written & ~(u64)step->flags_cleared);
}

static u64 result_flags(u64 value, u64 v, u32 bytes)
{
    u64 flags = 0;
    if (v && !(value & ~v & mask_of(bytes)))
        flags |= ZF;
    if (v >> (bytes * 8 - 1) & 1)
        flags |= SF;
    if (v & 0xff)
        flags |= PF;
    return flags;
}

static Known cut(Known k, u32 bytes)
{
    return (Known){k.value & mask_of(bytes), k.v & mask_of(bytes)};
}

// ---------------------------------------------------------------------- shifts

// Of value bits and V bits alike.
static u64 shifted(u32 rule, u64 x, u32 count, u32 bits)
{
    u64 mask = mask_of(bits / 8);
    if (rule == RULE_SAR)
        return (u64)((i64)(sign_extend(x, bits / 8)) >> (count > 63 ? 63 : count)) & mask;
    if (count >= bits)
        return 0;
    return rule == RULE_SHL ? x << count & mask : (x & mask) >> count;
}

static u64 rotated(u64 x, u32 count, u32 bits)
{
    count %= bits;
    return count ? (x << count | x >> (bits - count)) & mask_of(bits / 8) : x;
}

// The bit that the last step of a shift moves into CF.
static u64 bit_out(u32 rule, u64 x, u32 count, u32 bits)
{
    if (rule == RULE_SHL)
        return count <= bits ? x >> (bits - count) & 1 : 0;
    if (count <= bits)
        return x >> (count - 1) & 1;
    return rule == RULE_SAR ? x >> (bits - 1) & 1 : 0;
}

typedef struct Shift {
    Known operand, count;
    u32 bits, amount; // amount: of steps, as the hardware masks it
    u64 count_v;      // V bits of the count that matter
    bool flags;
} Shift;

static Shift take_shift(Running *r)
{
    const DefinednessStep *step = r->step;
    Shift s = {.bits = step->source[0].size * 8u, .flags = step->flags_written != 0};
    u64 count_mask = s.bits == 64 ? 63 : 31;
    s.operand = place_known(r, &step->source[0]);
    // The last operand; `shl r` by one has it as an immediate too.
    s.count = step->source_count > 1 ? place_known(r, &step->source[step->source_count - 1])
                                     : (Known){1, 0};
    s.count_v = s.count.v & count_mask;
    s.amount = (u32)(s.count.value & count_mask);
    return s;
}

static void shift(Running *r)
{
    const DefinednessStep *step = r->step;
    Shift s = take_shift(r);
    u32 rule = step->rule;
    if (s.count_v) {
        // A zero stays zero however far.
        bool zero = s.operand.value == 0 && s.operand.v == 0;
        place_set_v(r, &step->destination, all_if(!zero));
        if (s.flags)
            r->d->flags |= step->flags_written;
        return;
    }
    u64 value = shifted(rule, s.operand.value, s.amount, s.bits);
    u64 v = shifted(rule, s.operand.v, s.amount, s.bits);
    place_set_v(r, &step->destination, v);
    if (!s.flags || s.amount == 0)
        return;
    u64 flags = result_flags(value, v, s.bits / 8);
    if (bit_out(rule, s.operand.v, s.amount, s.bits))
        flags |= CF;
    // OF: of shl the top bit against CF, of shr the top bit that was; AF: not said.
    u64 top = s.operand.v >> (s.bits - 1) & 1;
    if (s.amount > 1 ? s.operand.v != 0
                     : rule == RULE_SHL ? (flags & (CF | SF)) != 0 : rule == RULE_SHR && top)
        flags |= OF;
    if (s.operand.v)
        flags |= AF;
    set_flags(r, flags);
}

static void rotate(Running *r)
{
    const DefinednessStep *step = r->step;
    Shift s = take_shift(r);
    if (s.count_v) {
        u64 same = s.operand.value == 0 || s.operand.value == mask_of(s.bits / 8);
        place_set_v(r, &step->destination, all_if(!(same && s.operand.v == 0)));
        if (s.flags)
            r->d->flags |= CF | OF;
        return;
    }
    u32 left = step->rule == RULE_ROL ? s.amount : s.bits - s.amount % s.bits;
    u64 v = rotated(s.operand.v, left, s.bits);
    place_set_v(r, &step->destination, v);
    if (!s.flags || s.amount == 0)
        return;
    // CF is the last bit moved round: the lowest of rol, the highest of ror.
    u64 top = v >> (s.bits - 1) & 1, below_top = v >> (s.bits - 2) & 1;
    bool carry = step->rule == RULE_ROL ? v & 1 : top;
    bool overflow = step->rule == RULE_ROL ? top || v & 1 : top || below_top;
    r->d->flags = (r->d->flags & ~(u64)(CF | OF)) | (carry ? CF : 0) | (overflow ? OF : 0);
}

// Through the carry: one bit more than the operand has, a step at a time.
static void rotate_carry(Running *r)
{
    const DefinednessStep *step = r->step;
    Shift s = take_shift(r);
    u64 mask = mask_of(s.bits / 8), v = s.operand.v, carry = r->d->flags & CF;
    if (s.count_v) {
        place_set_v(r, &step->destination, ~0ull);
        r->d->flags |= CF | OF;
        return;
    }
    if (s.amount == 0) {
        place_set_v(r, &step->destination, v);
        return;
    }
    u64 top_before = 0;
    for (u32 i = 0; i < s.amount; i++) {
        u64 out;
        top_before = v >> (s.bits - 1) & 1;
        if (step->rule == RULE_RCL) {
            out = top_before;
            v = (v << 1 | carry) & mask;
        } else {
            out = v & 1;
            v = v >> 1 | carry << (s.bits - 1);
        }
        carry = out;
    }
    u64 top = v >> (s.bits - 1) & 1;
    bool overflow = step->rule == RULE_RCL ? top || carry : top || v >> (s.bits - 2) & 1;
    place_set_v(r, &step->destination, v);
    r->d->flags = (r->d->flags & ~(u64)(CF | OF)) | (carry ? CF : 0) | (overflow ? OF : 0);
}

static unsigned __int128 two_shifted(u32 rule, u64 to, u64 from, u32 amount, u32 bits)
{
    unsigned __int128 both;
    if (rule == RULE_SHLD) {
        both = (unsigned __int128)to << bits | from;
        return both << amount >> bits;
    }
    both = (unsigned __int128)from << bits | to;
    return both >> amount;
}

static void shift_two(Running *r)
{
    const DefinednessStep *step = r->step;
    Shift s = take_shift(r);
    Known from = cut(place_known(r, &step->source[1]), s.bits / 8);
    if (s.count_v || s.amount > s.bits) {
        bool undefined = s.count_v || s.operand.v || from.v;
        place_set_v(r, &step->destination, all_if(undefined));
        if (undefined)
            r->d->flags |= step->flags_written;
        return;
    }
    u64 mask = mask_of(s.bits / 8);
    u64 v = (u64)two_shifted(step->rule, s.operand.v, from.v, s.amount, s.bits) & mask;
    u64 value = (u64)two_shifted(step->rule, s.operand.value, from.value, s.amount, s.bits) & mask;
    place_set_v(r, &step->destination, v);
    if (s.amount == 0)
        return;
    u64 flags = result_flags(value, v, s.bits / 8);
    u64 out = step->rule == RULE_SHLD ? s.operand.v >> (s.bits - s.amount)
                                      : s.operand.v >> (s.amount - 1);
    if (out & 1)
        flags |= CF;
    if (s.operand.v || from.v)
        flags |= OF | AF;
    set_flags(r, flags);
}

// ---------------------------------------------------------------------- counts

// The least and the greatest that a count can be.
typedef struct Range {
    u32 least, greatest;
} Range;

static u32 trailing(u64 x, u32 bits)
{
    return x ? (u32)__builtin_ctzll(x) : bits;
}

static u32 leading(u64 x, u32 bits)
{
    return x ? (u32)__builtin_clzll(x) - (64 - bits) : bits;
}

static u32 ones_in(u64 x)
{
    u32 n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static Range count_range(u32 rule, Known k, u32 bits)
{
    u64 ones = k.value & ~k.v, may = k.value | k.v;
    switch (rule) {
    case RULE_TZCNT:
    case RULE_BSF: return (Range){trailing(may, bits), trailing(ones, bits)};
    case RULE_LZCNT:
    case RULE_BSR: return (Range){leading(may, bits), leading(ones, bits)};
    default: return (Range){ones_in(ones), ones_in(may)};
    }
}

// Bits below the highest in which the two ends differ.
static u64 range_v(u32 a, u32 b)
{
    return a == b ? 0 : (2ull << (63 - __builtin_clzll(a ^ b))) - 1;
}

static void count(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 rule = step->rule, bytes = step->source[step->source_count - 1].size;
    Known k = cut(place_known(r, &step->source[step->source_count - 1]), bytes);
    Range range = count_range(rule, k, bytes * 8u);
    bool scans = rule == RULE_BSF || rule == RULE_BSR;
    bool may_be_zero = (k.value & ~k.v) == 0;
    u64 v = range_v(range.least, range.greatest), flags = v ? step->flags_written : 0;
    if (rule == RULE_BSR) // an index, not a count
        v = range_v(bytes * 8u - 1 - range.least, bytes * 8u - 1 - range.greatest);
    if (!scans) {
        place_set_v(r, &step->destination, v);
        if (range.least)
            flags &= ~(u64)ZF; // of the result
        if (!may_be_zero && rule != RULE_POPCNT)
            flags &= ~(u64)CF; // of the source
    } else if (!may_be_zero) {
        place_set_v(r, &step->destination, v);
        flags &= ~(u64)ZF;
    } else if (k.v) { // of zero they leave their destination, all of it
        place_set_v(r, &step->destination, ~0ull);
        if (step->destination.size == 4)
            r->d->gpr[step->destination.number] = ~0ull;
    }
    set_flags(r, flags);
}

// ------------------------------------------------------------------------ bits

static void bit_test(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *operand = &step->source[0], *index = &step->source[1];
    u32 bits = operand->size * 8u;
    Known at = place_known(r, index);
    u64 bit = at.value & (bits - 1);
    bool moved = operand->kind == PLACE_MEMORY && index->kind == PLACE_GPR;
    u64 v;
    GuestAddr address = 0;
    if (moved) { // the index reaches beyond the operand
        i64 offset = (i64)sign_extend(at.value, index->size) >> 3 & -(i64)operand->size;
        address = r->values->address + (u64)offset;
        v = place_hidden_v(address, operand->size);
        if (at.v) {
            r->events |= EVENT_ADDRESS;
            r->d->gpr[index->number] = 0;
            r->d->set &= ~MEMBER_GPR(index->number);
        }
    } else {
        v = place_v(r, operand);
    }
    bool unknown = !moved && at.v & (bits - 1);
    bool undefined = unknown || (v >> bit & 1);
    if (step->lane) {
        u64 after = unknown ? ~0ull : step->lane == 3 ? v : v & ~(1ull << bit);
        if (moved)
            place_set_hidden_v(address, operand->size, after);
        else
            place_set_v(r, operand, after);
    }
    r->d->flags = (r->d->flags & ~(u64)step->flags_written) | (undefined ? CF : 0);
}

// ------------------------------------------------------------------ bit fields

static void extract_field(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 bytes = step->source[0].size;
    Known x = place_known(r, &step->source[0]), control = place_known(r, &step->source[1]);
    u32 start = control.value & 0xff, length = control.value >> 8 & 0xff;
    bool unknown = control.v & 0xffff;
    u64 v = 0, value = 0;
    if (step->rule == RULE_BZHI) {
        unknown = control.v & 0xff;
        start = 0;
        length = control.value & 0xff;
    }
    if (start < 64) {
        u64 keep = length >= 64 ? ~0ull : (1ull << length) - 1;
        v = x.v >> start & keep;
        value = x.value >> start & keep;
    }
    if (unknown)
        v = mask_of(bytes);
    place_set_v(r, &step->destination, v);
    u64 flags = result_flags(value & mask_of(bytes), v & mask_of(bytes), bytes);
    if (unknown)
        flags = FLAGS_STATUS;
    set_flags(r, flags | (v ? AF | PF : 0));
}

// blsi, blsr, blsmsk: what is below the lowest one is settled, and so is what is above it.
static void lowest_one(Running *r)
{
    const DefinednessStep *step = r->step;
    u32 bytes = step->source[0].size;
    Known x = cut(place_known(r, &step->source[0]), bytes);
    u64 ones = x.value & ~x.v, v, value;
    // The lowest one is at or below the lowest defined one; no lower than the lowest undefined.
    u64 reach = ones ? ones ^ (ones - 1) : mask_of(bytes);
    u64 doubt = x.v & reach ? left_of_lowest(x.v & reach) & reach : 0;
    switch (step->rule) {
    case RULE_BLSI: v = doubt, value = x.value & (0 - x.value); break;
    case RULE_BLSMSK: v = doubt, value = x.value ^ (x.value - 1); break;
    default: v = doubt | x.v, value = x.value & (x.value - 1); break;
    }
    v &= mask_of(bytes);
    place_set_v(r, &step->destination, v);
    u64 flags = result_flags(value & mask_of(bytes), v, bytes);
    if (x.v)
        flags |= AF | PF | (ones ? 0 : CF);
    set_flags(r, flags);
}

static void gather_bits(Running *r)
{
    const DefinednessStep *step = r->step;
    Known x = place_known(r, &step->source[0]), mask = place_known(r, &step->source[1]);
    u64 v = 0;
    u32 k = 0;
    for (u64 left = mask.value; left && !mask.v; left &= left - 1, k++) {
        u32 bit = (u32)__builtin_ctzll(left);
        if (step->rule == RULE_PEXT)
            v |= (x.v >> bit & 1) << k;
        else
            v |= (x.v >> k & 1) << bit;
    }
    if (mask.v)
        v = step->rule == RULE_PEXT ? ~0ull : left_of_lowest(mask.v) | ~0ull;
    place_set_v(r, &step->destination, v);
}

void family_bits(Running *r)
{
    switch (r->step->rule) {
    case RULE_SHL:
    case RULE_SHR:
    case RULE_SAR: shift(r); break;
    case RULE_ROL:
    case RULE_ROR: rotate(r); break;
    case RULE_RCL:
    case RULE_RCR: rotate_carry(r); break;
    case RULE_SHLD:
    case RULE_SHRD: shift_two(r); break;
    case RULE_BSF:
    case RULE_BSR:
    case RULE_TZCNT:
    case RULE_LZCNT:
    case RULE_POPCNT: count(r); break;
    case RULE_BT: bit_test(r); break;
    case RULE_BEXTR:
    case RULE_BZHI: extract_field(r); break;
    case RULE_BLSI:
    case RULE_BLSR:
    case RULE_BLSMSK: lowest_one(r); break;
    case RULE_PDEP:
    case RULE_PEXT: gather_bits(r); break;
    default: rule_coarse(r); break;
    }
}
