// SPDX-License-Identifier: MIT
//
// Copying and setting ranges, with their V bits. Where the shadow of all that is touched is
// clear, which one pass over it tells, there is nothing to do but the copy itself.
#include "tools/memcheck/strings/call.h"

#include "tools/memcheck/shadow/shadow.h"

// From here on the instruction is faster than a loop of words, also where it is slow to start.
enum { STRING_INSTRUCTION_MIN = 512 };

// The bits of a whole range, or'ed. False: some of it can not be read.
static bool any_bits(u64 at, u64 size, u64 *ret_any)
{
    u64 any = 0, word, last;
    if (size >= 8) {
        u64 i = 0;
        for (; i + 64 <= size; i += 64) {
            if (!load_any_64(at + i, &word))
                return false;
            any |= word;
        }
        for (; i + 8 < size; i += 8) {
            if (!load_u64(at + i, &word))
                return false;
            any |= word;
        }
        if (!load_u64(at + size - 8, &word))
            return false;
        *ret_any = any | word;
        return true;
    }
    bool ok = size >= 4   ? load_u32(at, &word) && load_u32(at + size - 4, &last)
              : size >= 2 ? load_u16(at, &word) && load_u16(at + size - 2, &last)
                          : load_u8(at, &word) && load_u8(at, &last);
    if (!ok)
        return false;
    *ret_any = word | last;
    return true;
}

// ------------------------------------------------------------------------ data

// Up to 16 bytes: all is loaded before the first store, so the ranges may overlap.
static bool copy_small(u64 to, u64 from, u64 size)
{
    u64 first, last;
    if (size >= 8)
        return load_u64(from, &first) && load_u64(from + size - 8, &last) &&
               store_u64(to, first) && store_u64(to + size - 8, last);
    if (size >= 4)
        return load_u32(from, &first) && load_u32(from + size - 4, &last) &&
               store_u32(to, first) && store_u32(to + size - 4, last);
    if (size >= 2)
        return load_u16(from, &first) && load_u16(from + size - 2, &last) &&
               store_u16(to, first) && store_u16(to + size - 2, last);
    return load_u8(from, &first) && store_u8(to, first);
}

// More than 8 bytes. The last 8 are loaded first: they may be overwritten on the way.
static bool copy_up(u64 to, u64 from, u64 size)
{
    u64 word, last;
    if (size >= STRING_INSTRUCTION_MIN)
        return copy_string_up(to, from, size);
    if (!load_u64(from + size - 8, &last))
        return false;
    for (u64 i = 0; i + 8 < size; i += 8) {
        if (!load_u64(from + i, &word) || !store_u64(to + i, word))
            return false;
    }
    return store_u64(to + size - 8, last);
}

static bool copy_down(u64 to, u64 from, u64 size)
{
    u64 word, first;
    if (!load_u64(from, &first))
        return false;
    for (u64 i = size; i > 8; i -= 8) {
        if (!load_u64(from + i - 8, &word) || !store_u64(to + i - 8, word))
            return false;
    }
    return store_u64(to, first);
}

// N1: what overlaps is changed by a copy that is not finished, so it must not fail in it.
static bool can_store(u64 to, u64 size)
{
    for (u64 at = to; at < to + size; at = PAGE_DOWN(at) + PAGE_SIZE) {
        if (!probe_store(at))
            return false;
    }
    return true;
}

static bool copy_bytes(u64 to, u64 from, u64 size)
{
    bool overlap = to - from < size || from - to < size;
    if (size <= 16 && !(overlap && PAGE_DOWN(to) != PAGE_DOWN(to + size - 1)))
        return copy_small(to, from, size);
    if (UNLIKELY(overlap) && !can_store(to, size))
        return false;
    if (size <= 16)
        return copy_small(to, from, size);
    return to - from < size ? copy_down(to, from, size) : copy_up(to, from, size);
}

static bool set_bytes(u64 to, u64 word, u64 size)
{
    if (size >= 8) {
        if (size >= STRING_INSTRUCTION_MIN && (u32)(word >> 32) == (u32)word &&
            (word & 0xff) * 0x0101010101010101ull == word)
            return fill_string(to, word & 0xff, size);
        for (u64 i = 0; i + 8 <= size; i += 8) {
            if (!store_u64(to + i, word))
                return false;
        }
        to += size & ~7ull;
        size &= 7;
    }
    if (size >= 4) {
        if (!store_u32(to, word))
            return false;
        to += 4;
        size -= 4;
    }
    for (; size; size--) {
        if (!store_u8(to++, word))
            return false;
    }
    return true;
}

// --------------------------------------------------------------------- V bits

static bool is_bad(const StringCall *s, GuestAddr at)
{
    return *shadow_of(at) >= V_FORBIDDEN && string_first_bad(s, at, 1) == at;
}

// A byte that may not be touched keeps its V byte (K1); what was read from such a one counts
// as defined, since that has been told of.
static void move_v_with_bad(const StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    bool down = to - from < size;
    for (u64 i = 0; i < size; i++) {
        u64 k = down ? size - 1 - i : i;
        if (!is_bad(s, to + k))
            *shadow_of(to + k) = is_bad(s, from + k) ? 0 : *shadow_of(from + k);
    }
}

// Tells of the first byte of each that may not be touched. True: there is none.
static bool check(StringCall *s, GuestAddr at, u64 size, bool is_write)
{
    GuestAddr bad = string_first_bad(s, at, size);
    if (bad == at + size)
        return true;
    // Of a wide element, its beginning.
    while (bad - at < size && !string_tell_access(s, bad - (bad - at) % s->element, is_write))
        bad = string_first_bad(s, bad + 1, size - (bad + 1 - at));
    return false;
}

// All that the fast path does not do. Data first: if that faults the original does both.
static bool move_slow(StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    bool reads_ok = check(s, from, size, false), writes_ok = check(s, to, size, true);
    u64 any;
    if (!in_client(to, size) || !in_client(from, size) || !any_bits(SHADOW(to), size, &any) ||
        !any_bits(SHADOW(from), size, &any) || !copy_bytes(to, from, size))
        return false;
    if (any)
        string_note_origins(s, to, from, size);
    if (any && (to - from) & 7)
        shadow_drop_tags(from, size); // they would be none at another place in a word
    if (reads_ok && writes_ok)
        return copy_bytes(SHADOW(to), SHADOW(from), size);
    move_v_with_bad(s, to, from, size);
    return true;
}

bool string_move(StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    u64 v_from, v_to;
    if (size == 0)
        return true;
    if (LIKELY(in_client(to, size) && in_client(from, size)) &&
        LIKELY(any_bits(SHADOW(from), size, &v_from) && any_bits(SHADOW(to), size, &v_to)) &&
        LIKELY(!(v_from | v_to)))
        return copy_bytes(to, from, size);
    return move_slow(s, to, from, size);
}

bool string_set(StringCall *s, GuestAddr to, u64 value, u64 v, u64 size)
{
    u64 mask = s->element == 1 ? 0xff : 0xffffffff, ones = lanes_of(s->element).ones, v_to;
    u64 word = (value & mask) * ones, v_word = (v & mask) * ones;
    if (size == 0)
        return true;
    if (LIKELY(in_client(to, size)) && LIKELY(any_bits(SHADOW(to), size, &v_to)) &&
        LIKELY(!(v_to | v_word)))
        return set_bytes(to, word, size);
    bool ok = check(s, to, size, true);
    if (!in_client(to, size) || !any_bits(SHADOW(to), size, &v_to) || !set_bytes(to, word, size))
        return false;
    if (ok)
        return set_bytes(SHADOW(to), v_word, size);
    for (u64 i = 0; i < size; i++) {
        if (!is_bad(s, to + i))
            *shadow_of(to + i) = (u8)(v_word >> i % 8 * 8);
    }
    return true;
}
