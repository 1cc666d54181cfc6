// SPDX-License-Identifier: MIT
//
// Instructions that only move bytes, by a pattern that the instruction itself tells: made
// into a permutation when it is taken apart. A is the first source (the destination, in
// legacy encodings), B the second or only one.
#include "tools/memcheck/definedness/step.h"

typedef struct Shape {
    u8 *to;      // the permutation
    u32 total;   // bytes of the destination
    u32 lane;    // what the instruction repeats itself by: 16, or 8 of MMX
    u32 n;       // bytes of an element
    u32 b_size;  // bytes of the second source
    u8 imm;
} Shape;

enum { A = 0, B = 64 };

static void take(Shape *s, u32 to, u32 from, u32 count)
{
    for (u32 i = 0; i < count && to + i < PERMUTATION_BYTES; i++)
        s->to[to + i] = (u8)(from + i);
}

static void zero(Shape *s, u32 to, u32 count)
{
    for (u32 i = 0; i < count && to + i < PERMUTATION_BYTES; i++)
        s->to[to + i] = PERMUTE_ZERO;
}

static void keep_a(Shape *s)
{
    take(s, 0, A, s->total);
}

static void unpack(Shape *s, u32 half)
{
    for (u32 base = 0; base < s->total; base += s->lane) {
        for (u32 k = 0; k < s->lane / 2 / s->n; k++) {
            u32 from = base + half * s->lane / 2 + k * s->n;
            take(s, base + 2 * k * s->n, A + from, s->n);
            take(s, base + (2 * k + 1) * s->n, B + from, s->n);
        }
    }
}

static void duplicate(Shape *s, u32 odd)
{
    for (u32 k = 0; k < s->total / s->n; k++)
        take(s, k * s->n, B + ((k & ~1u) | odd) * s->n, s->n);
}

// Four elements of each lane, from `first` on, by two bits each.
static void shuffle_by_pairs(Shape *s, u32 first)
{
    take(s, 0, B, s->total);
    for (u32 base = 0; base < s->total; base += s->lane) {
        for (u32 k = 0; k < 4; k++) {
            u32 from = first + (s->imm >> 2 * k & 3);
            take(s, base + (first + k) * s->n, B + base + from * s->n, s->n);
        }
    }
}

static void shufps(Shape *s)
{
    for (u32 base = 0; base < s->total; base += 16) {
        for (u32 k = 0; k < 4; k++)
            take(s, base + 4 * k, (k < 2 ? A : B) + base + (s->imm >> 2 * k & 3) * 4, 4);
    }
}

static void shufpd(Shape *s, bool both_from_b)
{
    for (u32 k = 0; k < s->total / 8; k++) {
        u32 source = k & 1 || both_from_b ? B : A;
        take(s, 8 * k, source + (k & ~1u) * 8 + (s->imm >> k & 1) * 8, 8);
    }
}

// A above B, shifted right by bytes.
static void align(Shape *s, u32 lane, u32 amount)
{
    for (u32 base = 0; base < s->total; base += lane) {
        for (u32 i = 0; i < lane; i++) {
            u32 from = i + amount;
            if (from < lane)
                take(s, base + i, B + base + from, 1);
            else if (from < 2 * lane)
                take(s, base + i, A + base + from - lane, 1);
            else
                zero(s, base + i, 1);
        }
    }
}

static void shift_bytes(Shape *s, bool left)
{
    u32 amount = s->imm > 16 ? 16 : s->imm;
    for (u32 base = 0; base < s->total; base += 16) {
        zero(s, base, 16);
        if (left)
            take(s, base + amount, B + base, 16 - amount);
        else
            take(s, base, B + base + amount, 16 - amount);
    }
}

static void insertps(Shape *s, bool from_memory)
{
    u32 from = from_memory ? 0 : s->imm >> 6;
    keep_a(s);
    take(s, (s->imm >> 4 & 3) * 4, B + from * 4, 4);
    for (u32 k = 0; k < 4; k++) {
        if (s->imm >> k & 1)
            zero(s, k * 4, 4);
    }
}

static void perm128(Shape *s)
{
    for (u32 k = 0; k < 2; k++) {
        u32 control = s->imm >> 4 * k & 15;
        if (control & 8)
            zero(s, 16 * k, 16);
        else
            take(s, 16 * k, (control & 2 ? B : A) + (control & 1) * 16, 16);
    }
}

static void shuf128(Shape *s)
{
    u32 count = s->total / 16, bits = count == 4 ? 2 : 1;
    for (u32 k = 0; k < count; k++) {
        u32 source = k < count / 2 ? A : B;
        take(s, 16 * k, source + (s->imm >> bits * k & (count - 1)) * 16, 16);
    }
}

// vpermq, vpermpd: four quarters of each 256 bits.
static void permute_quarters(Shape *s)
{
    for (u32 base = 0; base < s->total; base += 32) {
        for (u32 k = 0; k < 4; k++)
            take(s, base + 8 * k, B + base + (s->imm >> 2 * k & 3) * 8, 8);
    }
}

static void blend(Shape *s)
{
    keep_a(s);
    for (u32 k = 0; k < s->total / s->n; k++) {
        u32 bit = s->n == 2 ? k & 7 : k;
        if (s->imm >> bit & 1)
            take(s, k * s->n, B + k * s->n, s->n);
    }
}

static void resize(Shape *s, u32 from, u32 to)
{
    zero(s, 0, PERMUTATION_BYTES);
    for (u32 k = 0; (k + 1) * to <= PERMUTATION_BYTES && (k + 1) * from <= PERMUTATION_BYTES; k++) {
        if ((k + 1) * from <= s->b_size)
            take(s, k * to, B + k * from, from < to ? from : to);
    }
}

static void broadcast(Shape *s)
{
    for (u32 k = 0; k < s->total / s->n; k++)
        take(s, k * s->n, B, s->n);
}

static void extract(Shape *s)
{
    u32 count = s->b_size / s->n;
    zero(s, 0, PERMUTATION_BYTES);
    take(s, 0, B + (s->imm & (count - 1)) * s->n, s->n);
}

static void insert(Shape *s)
{
    u32 count = s->total / s->n;
    keep_a(s);
    take(s, (s->imm & (count - 1)) * s->n, B, s->n);
}

// movss and its like: a load clears the rest, a move between registers keeps that of A.
static void move_low(Shape *s, bool keeps)
{
    if (keeps)
        keep_a(s);
    take(s, 0, B, s->n);
}

static bool fill(Shape *s, u32 pattern, bool b_in_memory, bool to_memory)
{
    zero(s, 0, PERMUTATION_BYTES);
    switch (pattern) {
    case PATTERN_COPY: take(s, 0, B, s->n); break;
    case PATTERN_MOVE_LOW: move_low(s, !b_in_memory && !to_memory); break;
    case PATTERN_SET_LOW: move_low(s, !to_memory); break;
    case PATTERN_SET_HIGH:
        if (to_memory) {
            take(s, 0, B + 8, 8);
        } else {
            take(s, 0, A, 8);
            take(s, 8, B, 8);
        }
        break;
    case PATTERN_HIGH_TO_LOW: keep_a(s); take(s, 0, B + 8, 8); break;
    case PATTERN_LOW_TO_HIGH: keep_a(s); take(s, 8, B, 8); break;
    case PATTERN_EVEN: duplicate(s, 0); break;
    case PATTERN_ODD: duplicate(s, 1); break;
    case PATTERN_UNPACK_LOW: unpack(s, 0); break;
    case PATTERN_UNPACK_HIGH: unpack(s, 1); break;
    case PATTERN_SHUFPS: shufps(s); break;
    case PATTERN_SHUFPD: shufpd(s, false); break;
    case PATTERN_PERMIL_PD: shufpd(s, true); break;
    case PATTERN_SHUFFLE:
    case PATTERN_SHUFFLE_LOW: shuffle_by_pairs(s, 0); break;
    case PATTERN_SHUFFLE_HIGH: shuffle_by_pairs(s, 4); break;
    case PATTERN_ALIGN: align(s, s->lane, s->imm); break;
    case PATTERN_ALIGN_ALL: align(s, s->total, (s->imm & (s->total / s->n - 1)) * s->n); break;
    case PATTERN_BYTES_LEFT: shift_bytes(s, true); break;
    case PATTERN_BYTES_RIGHT: shift_bytes(s, false); break;
    case PATTERN_INSERT: insert(s); break;
    case PATTERN_EXTRACT: extract(s); break;
    case PATTERN_INSERTPS: insertps(s, b_in_memory); break;
    case PATTERN_BROADCAST: broadcast(s); break;
    case PATTERN_PERM128: perm128(s); break;
    case PATTERN_PERM_QUARTERS: permute_quarters(s); break;
    case PATTERN_SHUF128: shuf128(s); break;
    case PATTERN_BLEND: blend(s); break;
    case PATTERN_WIDEN:
    case PATTERN_TRUNCATE: resize(s, s->n >> 4, s->n & 15); break;
    default: return false;
    }
    return true;
}

// The first and the last of the operands that are registers or memory, masks aside.
static u32 find_sources(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                        const ZydisDecodedOperand *ret[2])
{
    const ZydisDecodedOperand *found[4] = {0};
    u32 count = 0;
    for (u32 i = 0; i < z->operand_count_visible && count < ARRAY_LEN(found); i++) {
        const ZydisDecodedOperand *op = &operands[i];
        bool mask = op->encoding == ZYDIS_OPERAND_ENCODING_MASK;
        if (!mask && (op->type == ZYDIS_OPERAND_TYPE_REGISTER ||
                      op->type == ZYDIS_OPERAND_TYPE_MEMORY))
            found[count++] = op;
    }
    if (count >= 2) {
        ret[0] = found[count == 3 ? 1 : 0];
        ret[1] = found[count - 1];
    }
    return count;
}

// psrldq xmm, 1 and pslldq have one operand that is both.
static bool is_shift(u32 pattern)
{
    return pattern == PATTERN_BYTES_LEFT || pattern == PATTERN_BYTES_RIGHT;
}

bool definedness_permutation(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                             DefinednessStep *step)
{
    const ZydisDecodedOperand *sources[2] = {&operands[0], &operands[0]};
    u32 count = find_sources(z, operands, sources);
    if (count > 3 || (count < 2 && !is_shift(step->lane)))
        return false;
    Place a = definedness_place(z, sources[0]), b = definedness_place(z, sources[1]);
    bool mmx = step->destination.kind == PLACE_MMX;
    Shape s = {
        .to = step->permutation,
        .total = step->destination.size,
        .lane = mmx ? 8 : 16,
        .n = step->lane_to,
        .b_size = b.size,
        .imm = (u8)step->immediate,
    };
    if (!fill(&s, step->lane, b.kind == PLACE_MEMORY, step->destination.kind == PLACE_MEMORY))
        return false;
    bool uses_a = false;
    for (u32 i = 0; i < s.total; i++)
        uses_a |= step->permutation[i] < B;
    step->source_count = 2;
    step->source[0] = uses_a ? a : (Place){0};
    step->source[1] = b;
    if (uses_a)
        step->reads |= definedness_member(&a);
    return true;
}
