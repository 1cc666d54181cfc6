// SPDX-License-Identifier: MIT
//
// Filling and copying a few bytes, or many, with general registers. Most ranges are short and of
// any length, so that what costs is not the stores but the branches that go wrong. Some processors
// begin string instructions in a few cycles, and these have no branches; on
// others, words are stored up to FILL_WORDS_MAX bytes.
#ifndef MUNINN_BASE_FILL_H
#define MUNINN_BASE_FILL_H

#include "base/types.h"

enum {
    // One instruction for as many bytes takes 1.5 ns, for one byte more 10 (Zen 4): so up to
    // FILL_PIECES_MAX there are some of them.
    FILL_PIECE = 127,
    FILL_PIECES_MAX = 512,
    FILL_WORDS_MAX = 384,
};

// `rep stosb` and `rep movsb` begin quickly. False until fill_init().
extern bool fill_string_is_quick, copy_string_is_quick;
void fill_init(void);

typedef u64 FillWord __attribute__((aligned(1), may_alias));
typedef u32 FillHalf __attribute__((aligned(1), may_alias));

static inline void fill_by_string(u8 *at, u8 value, u64 size)
{
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
}

// Stores are volatile, not to become a call of memset.
static inline void fill_word(u8 *at, u64 word)
{
    *(volatile FillWord *)at = word;
}

static inline void fill_four_words(u8 *at, u64 word)
{
    fill_word(at, word);
    fill_word(at + 8, word);
    fill_word(at + 16, word);
    fill_word(at + 24, word);
}

// The last words may overlap those before them: that takes fewer branches.
static inline void fill_by_words(u8 *at, u8 value, u64 size)
{
    u64 word = value * 0x0101010101010101ull;
    u8 *end = at + size;
    if (size > 32) {
        for (; end - at > 32; at += 32)
            fill_four_words(at, word);
        fill_four_words(end - 32, word);
    } else if (size >= 8) {
        u64 second = size >= 16 ? 8 : 0;
        fill_word(at, word);
        fill_word(at + second, word);
        fill_word(end - 8 - second, word);
        fill_word(end - 8, word);
    } else if (size >= 4) {
        *(volatile FillHalf *)at = (u32)word;
        *(volatile FillHalf *)(end - 4) = (u32)word;
    } else {
        while (at < end)
            *(volatile u8 *)at++ = value;
    }
}

static inline void fill_bytes(u8 *at, u8 value, u64 size)
{
    if (!fill_string_is_quick && size <= FILL_WORDS_MAX) {
        fill_by_words(at, value, size);
        return;
    }
    if (size <= FILL_PIECES_MAX) {
        for (; size > FILL_PIECE; size -= FILL_PIECE, at += FILL_PIECE)
            fill_by_string(at, value, FILL_PIECE);
    }
    fill_by_string(at, value, size);
}

static inline void copy_by_string(u8 *to, const u8 *from, u64 size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// The ranges are apart.
static inline void copy_bytes(u8 *to, const u8 *from, u64 size)
{
    if (!copy_string_is_quick && size <= FILL_WORDS_MAX) {
        for (; size >= 8; size -= 8, to += 8, from += 8)
            *(volatile FillWord *)to = *(const volatile FillWord *)from;
    } else if (size <= FILL_PIECES_MAX) {
        for (; size > FILL_PIECE; size -= FILL_PIECE, to += FILL_PIECE, from += FILL_PIECE)
            copy_by_string(to, from, FILL_PIECE);
    }
    copy_by_string(to, from, size);
}

#endif
