// SPDX-License-Identifier: MIT
//
// Asks for a line of memory that will be needed soon. Not __builtin_prefetch(): gcc 12 finds that a
// function which does nothing else does nothing, and leaves out its calls.
#ifndef MUNINN_BASE_PREFETCH_H
#define MUNINN_BASE_PREFETCH_H

static inline void prefetch_line(const void *address)
{
    __asm__ volatile("prefetcht0 (%0)" : : "r"(address));
}

// The same of one that will be written, which another core may have. Old processors ignore it.
static inline void prefetch_line_to_write(const void *address)
{
    __asm__ volatile("prefetchw (%0)" : : "r"(address));
}

#endif
