// SPDX-License-Identifier: MIT
//
// The register of memory protection keys: which keys' pages this thread's loads and stores may
// touch. It is the client's all the time, so that the engine's accesses and system calls for it
// meet what its own would. The kernel closes all keys but 0 when it enters a handler, and a client
// may have code that it cannot read: where the engine has to read all the same, it opens them.
#ifndef MUNINN_BASE_PKRU_X64_H
#define MUNINN_BASE_PKRU_X64_H

#include "base/types.h"

#define PKRU_INIT 0x55555554u // as the kernel gives it to a process and to each handler

extern bool pkru_is_there;
void pkru_init(void);

static inline u32 pkru_read(void)
{
    u32 value = 0, high;
    if (pkru_is_there)
        __asm__ volatile("rdpkru" : "=a"(value), "=d"(high) : "c"(0));
    return value;
}

static inline void pkru_write(u32 value)
{
    if (pkru_is_there)
        __asm__ volatile("wrpkru" : : "a"(value), "c"(0), "d"(0) : "memory");
}

// All keys may be used until the value that it returns is written again.
static inline u32 pkru_open(void)
{
    u32 before = pkru_read();
    if (before)
        pkru_write(0);
    return before;
}

#endif
