// SPDX-License-Identifier: MIT
//
// Copies, fills and comparisons of a few bytes, straight through: the first and the last word of
// a range, or two of each, are all of it. Most of what programs copy and compare has no more than
// 16 bytes (docs/design/string-functions.md), and then what surrounds the work is what costs.
#include "tools/memcheck/strings/quick.h"

#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/strings/access.h"
#include "tools/memcheck/strings/strings.h"

enum {
    RED_ZONE = 128,
    PAIR_MAX = 32,  // two words from the front, two from the back
    WORDS_MAX = 512, // beyond, the handler has better means
    PAGE_REACH = 4096 - 8,
};

#define ALWAYS static inline __attribute__((always_inline))
// What is not inlined saves its registers itself, so that the others save fewer.
#define APART __attribute__((noinline)) static TOOL_QUICK

// `width` is a constant wherever these are called.
ALWAYS bool load_width(u64 at, u32 width, u64 *ret_word)
{
    return width == 8   ? load_u64(at, ret_word)
           : width == 4 ? load_u32(at, ret_word)
           : width == 2 ? load_u16(at, ret_word)
                        : load_u8(at, ret_word);
}

ALWAYS bool or_width(u64 at, u32 width, u64 *any)
{
    return width == 8   ? or_u64(at, any)
           : width == 4 ? or_u32(at, any)
           : width == 2 ? or_u16(at, any)
                        : or_u8(at, any);
}

ALWAYS bool store_width(u64 at, u32 width, u64 word)
{
    return width == 8   ? store_u64(at, word)
           : width == 4 ? store_u32(at, word)
           : width == 2 ? store_u16(at, word)
                        : store_u8(at, word);
}

// Both are the client's; what follows CLIENT_END has no shadow that is clear.
ALWAYS bool in_client_both(u64 a, u64 b)
{
    _Static_assert((CLIENT_END & (CLIENT_END - 1)) == 0, "one comparison for both");
    return (a | b) < CLIENT_END;
}

// Whether bytes whose V bytes are not 0 may be stored to; false also if it is not that simple.
ALWAYS bool may_store(GuestAddr to, u64 size)
{
    const MemcheckThread *mt = thread_ctx.tool.thread;
    u64 bits;
    if (to < thread_ctx.gpr[RSP] - RED_ZONE && to + size > mt->stack_lo)
        return false; // K3, perhaps
    return load_u64((u64)u_bits_of(to), &bits) && !(bits >> (to & 7) & ((1ull << size) - 1));
}

// ------------------------------------------------------------------------- copies

// Adds the V bits of a range that is `pairs` words long at both ends.
ALWAYS bool or_v(GuestAddr at, u64 size, u32 width, u32 pairs, u64 *any)
{
    u64 shadow = SHADOW(at);
    for (u32 i = 0; i < pairs; i++) {
        if (!or_width(shadow + i * width, width, any) ||
            !or_width(shadow + size - (i + 1) * width, width, any))
            return false;
    }
    return true;
}

ALWAYS bool set_ends(u64 at, u64 size, u32 width, u32 pairs, u64 word)
{
    for (u32 i = 0; i < pairs; i++) {
        if (!store_width(at + i * width, width, word) ||
            !store_width(at + size - (i + 1) * width, width, word))
            return false;
    }
    return true;
}

// The ranges are apart.
ALWAYS bool copy_ends(u64 to, u64 from, u64 size, u32 width, u32 pairs)
{
    u64 first, last;
    for (u32 i = 0; i < pairs; i++) {
        u64 front = i * width, back = size - (i + 1) * width;
        if (!load_width(from + front, width, &first) || !load_width(from + back, width, &last) ||
            !store_width(to + front, width, first) || !store_width(to + back, width, last))
            return false;
    }
    return true;
}

// To undefined memory, which what it gets makes defined.
ALWAYS bool copy_defining(u64 to, u64 from, u64 size, u32 width, u32 pairs)
{
    u64 v = 0;
    return or_v(from, size, width, pairs, &v) && !v && may_store(to, size) &&
           copy_ends(to, from, size, width, pairs) && set_ends(SHADOW(to), size, width, pairs, 0);
}

APART quick_copy_defining(u64 to, u64 from, u64 size)
{
    bool ok = size > 16   ? copy_defining(to, from, size, 8, 2)
              : size >= 8 ? copy_defining(to, from, size, 8, 1)
              : size >= 4 ? copy_defining(to, from, size, 4, 1)
              : size >= 2 ? copy_defining(to, from, size, 2, 1)
                          : copy_defining(to, from, size, 1, 1);
    return ok ? to : TOOL_QUICK_NO;
}

// Of at most PAIR_MAX bytes.
ALWAYS u64 copy_short(u64 to, u64 from, u64 size, u32 width, u32 pairs)
{
    u64 v = 0;
    if (!or_v(from, size, width, pairs, &v) || !or_v(to, size, width, pairs, &v))
        return TOOL_QUICK_NO;
    if (UNLIKELY(v))
        return quick_copy_defining(to, from, size);
    return copy_ends(to, from, size, width, pairs) ? to : TOOL_QUICK_NO;
}

ALWAYS bool any_v_words(GuestAddr at, u64 size)
{
    u64 shadow = SHADOW(at), any = 0, word, i = 0;
    for (; i + 64 <= size; i += 64) {
        if (!load_any_64(shadow + i, &word))
            return true;
        any |= word;
    }
    for (; i + 8 < size; i += 8) {
        if (!load_u64(shadow + i, &word))
            return true;
        any |= word;
    }
    return !load_u64(shadow + size - 8, &word) || (any | word) != 0;
}

APART quick_copy_words(u64 to, u64 from, u64 size)
{
    u64 word;
    if (size > WORDS_MAX || any_v_words(from, size) || any_v_words(to, size))
        return TOOL_QUICK_NO;
    for (u64 i = 0; i + 8 < size; i += 8) {
        if (!load_u64(from + i, &word) || !store_u64(to + i, word))
            return TOOL_QUICK_NO;
    }
    if (!load_u64(from + size - 8, &word) || !store_u64(to + size - 8, word))
        return TOOL_QUICK_NO;
    return to;
}

TOOL_QUICK quick_copy(u64 to, u64 from, u64 size, u64 unused)
{
    (void)unused;
    // What overlaps could not be done again, and may be an error.
    if (!in_client_both(to, from) || to - from < size || from - to < size)
        return TOOL_QUICK_NO;
    if (size >= 8)
        return size <= 16         ? copy_short(to, from, size, 8, 1)
               : size <= PAIR_MAX ? copy_short(to, from, size, 8, 2)
                                  : quick_copy_words(to, from, size);
    return size >= 4   ? copy_short(to, from, size, 4, 1)
           : size >= 2 ? copy_short(to, from, size, 2, 1)
           : size == 1 ? copy_short(to, from, size, 1, 1)
                       : to;
}

TOOL_QUICK quick_copy_end(u64 to, u64 from, u64 size, u64 unused)
{
    return quick_copy(to, from, size, unused) == to ? to + size : TOOL_QUICK_NO;
}

TOOL_QUICK quick_copy_checked(u64 to, u64 from, u64 size, u64 room)
{
    return size <= room ? quick_copy(to, from, size, room) : TOOL_QUICK_NO;
}

// -------------------------------------------------------------------------- fills

ALWAYS u64 fill_short(u64 to, u64 word, u64 size, u32 width, u32 pairs)
{
    u64 v = 0;
    if (!or_v(to, size, width, pairs, &v) || (v && !may_store(to, size)) ||
        !set_ends(to, size, width, pairs, word))
        return TOOL_QUICK_NO;
    return !v || set_ends(SHADOW(to), size, width, pairs, 0) ? to : TOOL_QUICK_NO;
}

APART quick_fill_words(u64 to, u64 word, u64 size)
{
    if (size > WORDS_MAX || any_v_words(to, size))
        return TOOL_QUICK_NO;
    for (u64 i = 0; i + 8 < size; i += 8) {
        if (!store_u64(to + i, word))
            return TOOL_QUICK_NO;
    }
    return store_u64(to + size - 8, word) ? to : TOOL_QUICK_NO;
}

TOOL_QUICK quick_fill(u64 to, u64 value, u64 size, u64 unused)
{
    u64 word = (value & 0xff) * 0x0101010101010101ull;
    (void)unused;
    if (!in_client_both(to, to))
        return TOOL_QUICK_NO;
    if (size >= 8)
        return size <= 16         ? fill_short(to, word, size, 8, 1)
               : size <= PAIR_MAX ? fill_short(to, word, size, 8, 2)
                                  : quick_fill_words(to, word, size);
    return size >= 4   ? fill_short(to, word, size, 4, 1)
           : size >= 2 ? fill_short(to, word, size, 2, 1)
           : size == 1 ? fill_short(to, word, size, 1, 1)
                       : to;
}

TOOL_QUICK quick_fill_checked(u64 to, u64 value, u64 size, u64 room)
{
    return size <= room ? quick_fill(to, value, size, room) : TOOL_QUICK_NO;
}

// -------------------------------------------------------------------- comparisons

// The order of two words that differ: of their first different byte.
ALWAYS u64 order(u64 a, u64 b)
{
    u32 shift = (u32)__builtin_ctzll(a ^ b) & ~7u;
    return (u32)((i32)(a >> shift & 0xff) - (i32)(b >> shift & 0xff));
}

// A word of each, if all of both is defined.
ALWAYS bool load_both(u64 a, u64 b, u32 width, u64 *ret_a, u64 *ret_b)
{
    u64 v_a, v_b;
    return load_width(SHADOW(a), width, &v_a) && load_width(SHADOW(b), width, &v_b) &&
           !(v_a | v_b) && load_width(a, width, ret_a) && load_width(b, width, ret_b);
}

// Less than 8 bytes: the first and the last ones as one word, in which the first difference is
// theirs, since what is there twice is the same twice.
ALWAYS u64 compare_short(u64 a, u64 b, u64 size, u32 width)
{
    u64 a_first, a_last, b_first, b_last, back = size - width;
    if (!load_both(a, b, width, &a_first, &b_first) ||
        !load_both(a + back, b + back, width, &a_last, &b_last))
        return TOOL_QUICK_NO;
    a_first |= a_last << 8 * width;
    b_first |= b_last << 8 * width;
    return a_first == b_first ? 0 : order(a_first, b_first);
}

TOOL_QUICK quick_memcmp(u64 a, u64 b, u64 size, u64 unused)
{
    u64 word_a, word_b;
    (void)unused;
    if (!in_client_both(a, b) || size > WORDS_MAX)
        return TOOL_QUICK_NO;
    if (size < 8)
        return size >= 4   ? compare_short(a, b, size, 4)
               : size >= 2 ? compare_short(a, b, size, 2)
               : size == 1 ? compare_short(a, b, size, 1)
                           : 0;
    for (u64 i = 0;; i += 8) {
        i = i + 8 < size ? i : size - 8;
        if (!load_both(a + i, b + i, 8, &word_a, &word_b))
            return TOOL_QUICK_NO;
        if (word_a != word_b)
            return order(word_a, word_b);
        if (i + 8 == size)
            return 0;
    }
}

ALWAYS u64 compare_text(u64 a, u64 b, u64 limit)
{
    const Lanes lanes = lanes_of(1);
    u64 word_a, word_b, v_a, v_b;
    if (!in_client_both(a, b))
        return TOOL_QUICK_NO;
    for (; limit; limit -= min_u64(limit, 8), a += 8, b += 8) {
        // What lies behind the end is not the string's: never into another page for it.
        if ((a & 4095) > PAGE_REACH || (b & 4095) > PAGE_REACH)
            return TOOL_QUICK_NO;
        if (!load_u64(SHADOW(a), &v_a) || !load_u64(SHADOW(b), &v_b) || !load_u64(a, &word_a) ||
            !load_u64(b, &word_b))
            return TOOL_QUICK_NO;
        u64 mask = limit >= 8 ? ~0ull : (1ull << 8 * limit) - 1, v = (v_a | v_b) & mask;
        u64 ends = ((word_a ^ word_b) | zero_lanes(lanes, word_a)) & mask;
        if (!(ends | v))
            continue;
        // The lowest bit of both is right; the byte that it is in decides.
        if (!ends || v & (up_to(ends) | 0xffull << (__builtin_ctzll(ends) & ~7)))
            return TOOL_QUICK_NO;
        u32 shift = (u32)__builtin_ctzll(ends) & ~7u;
        return (u32)((i32)(word_a >> shift & 0xff) - (i32)(word_b >> shift & 0xff));
    }
    return 0;
}

TOOL_QUICK quick_strcmp(u64 a, u64 b, u64 unused, u64 unused_too)
{
    (void)unused, (void)unused_too;
    return compare_text(a, b, ~0ull);
}

TOOL_QUICK quick_strncmp(u64 a, u64 b, u64 limit, u64 unused)
{
    (void)unused;
    return compare_text(a, b, limit);
}
