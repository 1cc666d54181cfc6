// SPDX-License-Identifier: MIT
//
// Sums of numbers that came out of a file. Whoever wrote the file may have put any numbers there,
// so a sum that does not fit stays at the largest (or smallest) number there is: a reader then
// shows a number that cannot be true, and neither wraps to a small one nor overflows.
#ifndef MUNINN_BASE_SATURATE_H
#define MUNINN_BASE_SATURATE_H

#include "base/types.h"

static inline i64 saturate_add_i64(i64 a, i64 b)
{
    i64 sum;

    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline i64 saturate_sub_i64(i64 a, i64 b)
{
    i64 difference;

    return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}

static inline u64 saturate_add_u64(u64 a, u64 b)
{
    u64 sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline u64 saturate_mul_u64(u64 a, u64 b)
{
    u64 product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline i64 saturate_to_i64(u64 value)
{
    return value > INT64_MAX ? INT64_MAX : (i64)value;
}

// In place.
static inline void saturate_grow_i64(i64 *sum, i64 by)
{
    *sum = saturate_add_i64(*sum, by);
}

static inline void saturate_grow_u64(u64 *sum, u64 by)
{
    *sum = saturate_add_u64(*sum, by);
}

#endif
