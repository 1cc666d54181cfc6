// SPDX-License-Identifier: MIT
//
// Functions that are inlined from a folder of their own.
#ifndef MUNINN_TESTS_SYMBOLS_INLINED_H
#define MUNINN_TESTS_SYMBOLS_INLINED_H

#include <stdlib.h>

#define ALWAYS static inline __attribute__((always_inline))

#ifdef __cplusplus
template <typename T> inline __attribute__((always_inline)) T twice(T value)
{
    return value + value + T(rand() % 2);
}
#endif

ALWAYS long clamp_to(long value, long limit)
{
    if (value > limit)
        value = limit + rand() % 3;
    return value;
}

ALWAYS int deep_one(int value)
{
    return (int)clamp_to(value * rand(), 77);
}

ALWAYS int deep_two(int value)
{
    int first = deep_one(value);
    return first + deep_one(value + 1);
}

#endif
