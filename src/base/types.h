// SPDX-License-Identifier: MIT
//
// The vocabulary of sizes and addresses that every other file speaks.
//
// A GuestAddr is an address as the client sees it: an integer, never
// dereferenced directly by engine code that handles hostile input (see
// guest_read() in engine/aspace/aspace.h). A CodePtr points into the code
// cache. Mixing the two is the classic bug of binary translators, so they are
// types that do not convert into each other.
#ifndef MUNINN_BASE_TYPES_H
#define MUNINN_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

typedef u64 GuestAddr;
typedef u8 *CodePtr;

#define PAGE_SIZE 4096ull
#define PAGE_DOWN(x) ((x) & ~(PAGE_SIZE - 1))
#define PAGE_UP(x) PAGE_DOWN((x) + PAGE_SIZE - 1)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define KiB (1ull << 10)
#define MiB (1ull << 20)
#define GiB (1ull << 30)
#define TiB (1ull << 40)

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline u64 min_u64(u64 a, u64 b)
{
    return a < b ? a : b;
}

static inline u64 max_u64(u64 a, u64 b)
{
    return a > b ? a : b;
}

#endif
