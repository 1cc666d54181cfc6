// SPDX-License-Identifier: MIT
//
// Chunks double up to a limit, so a small arena costs one page-sized system call
// and a large one few. What a reset leaves in the kept chunk is dirty; it is
// zeroed at the reset, up to what was used, so that alloc need not care.
#include "base/arena.h"

#include <string.h>

#include "base/assert.h"
#include "base/pages.h"

#define CHUNK_MIN (64 * KiB)
#define CHUNK_MAX (4 * MiB)

struct ArenaChunk {
    ArenaChunk *older;
    u64 size_bytes;
};

static u8 *align_up(u8 *p, size_t align)
{
    return (u8 *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
}

static bool add_chunk(Arena *arena, size_t needed_bytes)
{
    u64 size = arena->newest ? min_u64(arena->newest->size_bytes * 2, CHUNK_MAX) : CHUNK_MIN;
    size = PAGE_UP(max_u64(size, needed_bytes + sizeof(ArenaChunk)));

    ArenaChunk *chunk = pages_map(size);
    if (!chunk)
        return false;
    chunk->older = arena->newest;
    chunk->size_bytes = size;
    arena->newest = chunk;
    arena->next = (u8 *)(chunk + 1);
    arena->end = (u8 *)chunk + size;
    arena->mapped_bytes += size;
    return true;
}

void *arena_alloc(Arena *arena, size_t size_bytes, size_t align)
{
    ASSERT(align != 0 && (align & (align - 1)) == 0 && align <= PAGE_SIZE);
    if (size_bytes > GiB * 1024)
        return NULL;

    u8 *start = align_up(arena->next, align);
    if (!arena->newest || start > arena->end || (size_t)(arena->end - start) < size_bytes) {
        if (!add_chunk(arena, size_bytes + align))
            return NULL;
        start = align_up(arena->next, align);
    }
    arena->next = start + size_bytes;
    return start;
}

static void unmap_older(Arena *arena, ArenaChunk *chunk)
{
    while (chunk) {
        ArenaChunk *older = chunk->older;
        arena->mapped_bytes -= chunk->size_bytes;
        pages_unmap(chunk, chunk->size_bytes);
        chunk = older;
    }
}

void arena_reset(Arena *arena)
{
    ArenaChunk *chunk = arena->newest;

    if (!chunk)
        return;
    unmap_older(arena, chunk->older);
    chunk->older = NULL;
    memset(chunk + 1, 0, (size_t)(arena->next - (u8 *)(chunk + 1)));
    arena->next = (u8 *)(chunk + 1);
}

void arena_free(Arena *arena)
{
    unmap_older(arena, arena->newest);
    *arena = (Arena){ 0 };
}
