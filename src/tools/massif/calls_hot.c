// SPDX-License-Identifier: MIT
//
// A call of an allocation function, when it has returned; one that frees, before it does.
#include "engine/aspace/aspace.h"
#include "tools/massif/massif.h"

static u64 size_of_call(const ToolThread *thread, u64 data)
{
    u64 size = thread->lean.args[CALL_SIZE(data)];
    return CALL_FACTOR(data) == CALL_NO_FACTOR ? size : size * thread->lean.args[CALL_FACTOR(data)];
}

// glibc keeps the size of a chunk before its block; three bits are flags, of which one is
// set for a block that has a mapping of its own, whose length before the chunk it has there too.
// Whoever calls glibc's malloc may return something else.
enum { CHUNK_FLAGS = 7, CHUNK_IS_MAPPED = 2 };
typedef struct Chunk {
    u64 before, size;
} Chunk;

static inline bool has_chunk(const ToolFunction *inner)
{
    return inner && CALL_IS_GLIBC(inner->data);
}

static inline const ToolFunction *inner_function(const ToolThread *thread,
                                                 const ToolFunction *function)
{
    return thread->lean.inner == thread->lean.hook ? function : tool_lean_inner(thread);
}

static inline u64 usable_of(u64 chunk, u64 size)
{
    u64 usable = (chunk & ~(u64)CHUNK_FLAGS) - (chunk & CHUNK_IS_MAPPED ? 16 : 8);
    return usable >= size && usable - size <= HEAP_EXTRA_MAX ? usable : size;
}

// Whether it is one: the chunk behind knows that this is in use; a mapping has whole pages.
static bool is_chunk(const Chunk *chunk, u64 address)
{
    enum { NEXT_KNOWS = 1, NO_FLAG = 8, CHUNK_MIN = 32 };
    u64 bytes = chunk->size & ~(u64)CHUNK_FLAGS, next;
    if (chunk->size & CHUNK_IS_MAPPED)
        return (chunk->before + bytes) % PAGE_SIZE == 0;
    return !(bytes & NO_FLAG) && guest_read(address - 8 + bytes, &next, sizeof(next)) &&
           (next & NEXT_KNOWS) && !(next & NO_FLAG) && next >= CHUNK_MIN;
}

// The first of a page may be somebody's mapping, with nothing before it, or something strange.
static u64 chunk_size_of_page(u64 address, u64 size)
{
    Chunk chunk;
    if (!guest_read(address - sizeof(chunk), &chunk, sizeof(chunk)) || !is_chunk(&chunk, address))
        return size;
    return usable_of(chunk.size, size);
}

static inline u64 chunk_size(u64 address, u64 size)
{
    if (UNLIKELY(address % PAGE_SIZE == 0))
        return chunk_size_of_page(address, size);
    return usable_of(*(const u64 *)(address - 8), size);
}

static inline u64 usable_size(const ToolThread *thread, const ToolFunction *function,
                              u64 address, u64 size)
{
    return has_chunk(inner_function(thread, function)) ? chunk_size(address, size) : size;
}

static void resized(ToolThread *thread, const ToolFunction *function, GuestAddr pc, u64 address,
                    u64 size)
{
    u64 data = function->data;
    u64 old = thread->lean.args[CALL_OLD(data)];
    if (CALL_FORM(data) == FORM_IN_PLACE) {
        size = address;
        address = old;
    }
    if (address == 0) {
        if (old && size == 0)
            event_free(thread, NULL, old);
        return;
    }
    u64 usable = usable_size(thread, function, address, size);
    if (old)
        event_resize(thread, pc, old, address, size, usable);
    else
        event_alloc(thread, pc, address, size, usable);
}

u32 call_ends(ToolThread *thread, const ToolFunction *function, GuestAddr pc)
{
    u64 data = function->data;
    u64 address = thread->gpr[RAX];
    if (CALL_FORM(data) == FORM_STORED)
        address = address ? 0 : *(const u64 *)thread->lean.args[0];
    u64 size = size_of_call(thread, data);
    if (CALL_KIND(data) == CALL_RESIZE)
        resized(thread, function, pc, address, size);
    else if (address)
        event_alloc(thread, pc, address, size, usable_size(thread, function, address, size));
    return 0;
}

// malloc and those like it.
u32 call_allocates(ToolThread *thread, const ToolFunction *function, GuestAddr pc)
{
    u64 address = thread->gpr[RAX], size = thread->lean.size;
    if (!address)
        return 0;
    if (LIKELY(has_chunk(inner_function(thread, function))))
        event_alloc_again(thread, pc, address, size, chunk_size(address, size));
    else
        event_alloc(thread, pc, address, size, size);
    return 0;
}

u32 call_frees(ToolThread *thread, const ToolFunction *function, GuestAddr pc)
{
    (void)pc;
    if (thread->gpr[RDI])
        event_free(thread, function, thread->gpr[RDI]);
    return 0;
}
