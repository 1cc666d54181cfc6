// SPDX-License-Identifier: MIT
//
// A small world for the heap's tests: mappings from the kernel, and a shadow that says of
// each byte of the heap whether it is inside a live block, so that H1 of heap.h is
// checked at every announcement.
#ifndef MUNINN_TESTS_HEAP_WORLD_H
#define MUNINN_TESTS_HEAP_WORLD_H

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "tools/heap/heap.h"

#include "unit.h"

static u64 world_mapped_bytes;
static u64 world_map_limit = ~0ull;
static u64 world_discarded_bytes;

static inline GuestAddr world_map(u64 size, u64 alignment)
{
    size = PAGE_UP(size);
    if (__atomic_load_n(&world_mapped_bytes, __ATOMIC_RELAXED) + size > world_map_limit)
        return 0;
    u64 total = size + alignment;
    u8 *raw = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (raw == MAP_FAILED)
        return 0;
    u64 start = ((u64)raw + alignment - 1) & ~(alignment - 1);
    if (start != (u64)raw)
        munmap(raw, start - (u64)raw);
    if (start + size != (u64)raw + total)
        munmap((void *)(start + size), (u64)raw + total - start - size);
    __atomic_fetch_add(&world_mapped_bytes, size, __ATOMIC_RELAXED);
    return start;
}

static inline void world_unmap(GuestAddr start, u64 size)
{
    munmap((void *)start, PAGE_UP(size));
    __atomic_fetch_sub(&world_mapped_bytes, PAGE_UP(size), __ATOMIC_RELAXED);
}

static inline void world_discard(GuestAddr start, u64 size)
{
    madvise((void *)start, size, MADV_DONTNEED);
    __atomic_fetch_add(&world_discarded_bytes, size, __ATOMIC_RELAXED);
}

static inline void world_options(HeapOptions *options)
{
    heap_defaults(options);
    options->hooks.map = world_map;
    options->hooks.unmap = world_unmap;
    options->hooks.discard = world_discard;
    world_map_limit = ~0ull;
}

// What a tool does: the light path first, then the full one.
static inline GuestAddr world_alloc(HeapThread *t, u64 size, u64 alignment, u32 kind, u32 context)
{
    GuestAddr start = heap_alloc(t, size, alignment, kind, context);

    return start ? start : heap_alloc_full(t, size, alignment, kind, context);
}

static inline double world_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Of this thread: what others do on the machine counts little.
static inline double world_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline u64 world_random(u64 *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dull;
}

#endif
