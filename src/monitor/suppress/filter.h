// SPDX-License-Identifier: MIT
//
// What texts a stack has, approximately: names of functions as a whole, and of all
// names and paths every four characters in a row. What the filter does not have
// is not there. An entry that needs a name, or a piece of a pattern, that is nowhere
// on the stack is ruled out by it in a few instructions.
#ifndef MUNINN_MONITOR_SUPPRESS_FILTER_H
#define MUNINN_MONITOR_SUPPRESS_FILTER_H

#include <string.h>

#include "base/types.h"

#define FILTER_BITS       32768
#define FILTER_PIECE_SIZE 4

typedef struct StackFilter {
    u64 words[FILTER_BITS / 64];
} StackFilter;

static inline u16 filter_name_bit(const char *name, size_t size)
{
    u64 hash = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (u8)name[i]) * 0x100000001b3ull;
    return (u16)((hash ^ hash >> 32) % FILTER_BITS);
}

static inline u16 filter_piece_bit(const char *piece)
{
    u32 word;

    memcpy(&word, piece, FILTER_PIECE_SIZE);
    return (u16)(word * 0x9e3779b1u >> 17);
}

static inline void filter_add(StackFilter *filter, u16 bit)
{
    filter->words[bit / 64] |= 1ull << bit % 64;
}

static inline bool filter_has(const StackFilter *filter, u16 bit)
{
    return filter->words[bit / 64] >> bit % 64 & 1;
}

#endif
