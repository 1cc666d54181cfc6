// SPDX-License-Identifier: MIT
//
// Size classes: steps of 16 up to 256 bytes, then eight classes to each doubling, so
// that at most an eighth of a slot is unused. The largest is 32 KiB.
#ifndef MUNINN_TOOLS_HEAP_SIZE_CLASS_H
#define MUNINN_TOOLS_HEAP_SIZE_CLASS_H

#include "base/types.h"

#define CLASS_COUNT 72
#define SMALL_MAX   (32 * KiB)

// The smallest class with room for `size` bytes, at most SMALL_MAX.
static inline u32 class_of_size(u64 size)
{
    if (LIKELY(size <= 256))
        return size == 0 ? 0 : (u32)((size - 1) / 16);
    u32 top = 63 - (u32)__builtin_clzll(size - 1);
    return 16 + (top - 8) * 8 + (u32)((size - 1) >> (top - 3)) - 8;
}

static inline u32 class_capacity(u32 class_index)
{
    if (class_index < 16)
        return (class_index + 1) * 16;
    u32 step = class_index - 16;
    return (step % 8 + 9) << (5 + step / 8);
}

#endif
