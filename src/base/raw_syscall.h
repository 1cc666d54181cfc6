// SPDX-License-Identifier: MIT
//
// System calls without libc: they touch neither errno nor thread-local state,
// are no cancellation points, and return -errno as the kernel does. For the
// engine's own needs; what the client asked for goes through gateway_syscall()
// when it may block.
#ifndef MUNINN_BASE_RAW_SYSCALL_H
#define MUNINN_BASE_RAW_SYSCALL_H

#include <sys/syscall.h>

#include "base/types.h"

static inline i64 raw_syscall6(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    register u64 r10 __asm__("r10") = a3;
    register u64 r8 __asm__("r8") = a4;
    register u64 r9 __asm__("r9") = a5;
    i64 result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline i64 raw_syscall4(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3)
{
    return raw_syscall6(nr, a0, a1, a2, a3, 0, 0);
}

static inline i64 raw_syscall3(u64 nr, u64 a0, u64 a1, u64 a2)
{
    return raw_syscall6(nr, a0, a1, a2, 0, 0, 0);
}

static inline i64 raw_syscall2(u64 nr, u64 a0, u64 a1)
{
    return raw_syscall6(nr, a0, a1, 0, 0, 0, 0);
}

static inline i64 raw_syscall1(u64 nr, u64 a0)
{
    return raw_syscall6(nr, a0, 0, 0, 0, 0, 0);
}

static inline i64 raw_syscall0(u64 nr)
{
    return raw_syscall6(nr, 0, 0, 0, 0, 0, 0);
}

// What mmap and the like return on failure: a small negative number.
static inline bool raw_failed(i64 result)
{
    return result < 0 && result >= -4095;
}

#endif
