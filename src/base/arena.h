// SPDX-License-Identifier: MIT
//
// A bump allocator for things that die together. Memory is zeroed and comes
// from the kernel in chunks; nothing is freed one by one. A zeroed Arena is a
// valid empty one. Not thread-safe: the owner brings its lock.
#ifndef MUNINN_BASE_ARENA_H
#define MUNINN_BASE_ARENA_H

#include "base/types.h"

typedef struct ArenaChunk ArenaChunk;

typedef struct Arena {
    ArenaChunk *newest; // chunks are a list from newest to oldest
    u8 *next;           // first free byte of the newest chunk
    u8 *end;
    u64 mapped_bytes;
} Arena;

// Zeroed memory, or NULL when the kernel has none. `align` is a power of two,
// at most a page.
void *arena_alloc(Arena *arena, size_t size_bytes, size_t align);

// Forgets everything and keeps one chunk, so that a loop of alloc and reset makes no system call
// as long as it fits that chunk.
void arena_reset(Arena *arena);

// Gives everything back; the arena is then empty and may be used again.
void arena_free(Arena *arena);

#endif
