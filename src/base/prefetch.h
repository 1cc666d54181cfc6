// SPDX-License-Identifier: MIT
//
// Asks for a line of memory that will be read soon. Not __builtin_prefetch(): gcc 12 finds that a
// function which does nothing else does nothing, and leaves out its calls.
#ifndef MUNINN_BASE_PREFETCH_H
#define MUNINN_BASE_PREFETCH_H

static inline void prefetch_line(const void *address)
{
    __asm__ volatile("prefetcht0 (%0)" : : "r"(address));
}

#endif
