// SPDX-License-Identifier: MIT
//
// A set of function names, approximately: what it does not have is not there.
// An entry that needs a function that is nowhere on the stack is ruled out by it
// in a few instructions.
#ifndef MUNINN_MONITOR_SUPPRESS_FILTER_H
#define MUNINN_MONITOR_SUPPRESS_FILTER_H

#include "base/types.h"

#define FILTER_BITS 2048

typedef struct NameFilter {
    u64 words[FILTER_BITS / 64];
} NameFilter;

static inline u16 filter_bit(const char *name, size_t size)
{
    u64 hash = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (u8)name[i]) * 0x100000001b3ull;
    return (u16)((hash ^ hash >> 32) % FILTER_BITS);
}

static inline void filter_add(NameFilter *filter, u16 bit)
{
    filter->words[bit / 64] |= 1ull << bit % 64;
}

static inline bool filter_has(const NameFilter *filter, u16 bit)
{
    return filter->words[bit / 64] >> bit % 64 & 1;
}

#endif
