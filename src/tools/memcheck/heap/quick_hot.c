// SPDX-License-Identifier: MIT
//
// Allocating and freeing without a record of the call, and with few registers; see quick.h.
// What is rare stands apart, so that the fast path saves the registers that it uses itself and no
// more.
#include "tools/memcheck/heap/quick.h"

#include "base/fill.h"
#include "engine/calltags/calltags.h"
#include "tools/heap/heap_quick.h"
#include "tools/memcheck/heap/count.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

#define ALWAYS static inline __attribute__((always_inline))
#define APART __attribute__((noinline)) static TOOL_QUICK

static bool is_off;

void heap_quick_init(void)
{
    const Options *o = memcheck_options;
    u32 keep = o->keep_stacktraces;
    is_off = keep == KEEP_STACKS_ALLOC || keep == KEEP_STACKS_FREE ||
             keep == KEEP_STACKS_NONE || o->malloc_fill >= 0 ||
             o->free_fill >= 0 || !o->undef_value_errors || heap_alignment != 16 ||
             heap_is_counted();
}

APART find_context(GuestAddr entry)
{
    return calltags_call_context(entry, thread_ctx.gpr[RSP], thread_ctx.calltags.contexts);
}

ALWAYS u32 context_at(GuestAddr entry)
{
    u32 context = calltags_call_again(thread_ctx.calltags.contexts, entry, thread_ctx.gpr[RSP]);
    return LIKELY(context) ? context : (u32)find_context(entry);
}

ALWAYS HeapThread *own_heap(void)
{
    const MemcheckThread *mt = thread_ctx.tool.thread;
    return mt->heap;
}

// The U bits of a block that was nobody's: up to its end all are set, and its last byte's
// neighbours stay so.
ALWAYS void clear_u_bits(GuestAddr start, u64 size)
{
    if (UNLIKELY(size == 0))
        return;
    u8 *at = u_bits_of(start);
    u64 last = (size - 1) / 8;
    fill_bytes(at, 0, last);
    at[last] = (u8)(0xfe << ((size - 1) & 7));
}

// A block that is allocated; the next of its size will be at `next`.
ALWAYS void mark_allocated(GuestAddr start, u64 size, GuestAddr next)
{
    __builtin_prefetch((void *)next, 1);
    __builtin_prefetch(shadow_of(next), 1);
    __builtin_prefetch(u_bits_of(next), 1);
    origins_forget(start, size);
    clear_u_bits(start, size);
}

// What is behind the block up to the next 8 bytes is nobody's too.
ALWAYS void mark_freed(GuestAddr start, u64 size)
{
    fill_bytes(shadow_of(start), 0xff, size);
    fill_bytes(u_bits_of(start), 0xff, (size + 7) / 8);
}

ALWAYS u64 allocate(u64 size, u32 kind, GuestAddr entry)
{
    if (UNLIKELY(is_off))
        return TOOL_QUICK_NO;
    GuestAddr next;
    u64 start = heap_quick_alloc(own_heap(), size, kind, context_at(entry), &next);
    if (UNLIKELY(!start))
        return TOOL_QUICK_NO;
    mark_allocated(start, size, next);
    if (kind & HEAP_ZEROED)
        fill_bytes(shadow_of(start), 0, size);
    return start;
}

// A size that a caller tells is that of the block.
#define NO_SIZE (~0ull) // none is told
ALWAYS bool is_as_told(const SlotRef *ref, HeapKind kind, u64 told)
{
    if (kind != HEAP_NEW && kind != HEAP_NEW_ARRAY)
        return true;
    return heap_quick_has_size(ref, told == NO_SIZE ? ref->meta->size : told);
}

ALWAYS u64 release(GuestAddr start, HeapKind kind, u64 told, GuestAddr entry)
{
    if (UNLIKELY(start == 0))
        return 0;
    if (UNLIKELY(is_off))
        return TOOL_QUICK_NO;
    SlotRef ref;
    if (UNLIKELY(!heap_quick_find(start, &ref)))
        return TOOL_QUICK_NO;
    u32 context = context_at(entry);
    if (UNLIKELY(!is_as_told(&ref, kind, told)))
        return TOOL_QUICK_NO;
    u64 size = heap_quick_free(own_heap(), start, &ref, kind, context);
    if (UNLIKELY(size == ~0ull))
        return TOOL_QUICK_NO;
    mark_freed(start, size);
    return 0;
}

APART copy_block(GuestAddr from, GuestAddr to, u64 size)
{
    heap_mark_copied(from, to, size);
    return 0;
}

ALWAYS u64 reallocate(GuestAddr old, u64 size, GuestAddr entry)
{
    if (UNLIKELY(is_off || size == 0))
        return TOOL_QUICK_NO;
    SlotRef ref;
    GuestAddr next;
    if (UNLIKELY(!heap_quick_find(old, &ref)))
        return TOOL_QUICK_NO;
    u32 context = context_at(entry);
    u64 start = heap_quick_realloc(own_heap(), old, &ref, size, context, &next);
    if (UNLIKELY(!start))
        return TOOL_QUICK_NO;
    u64 old_size = ref.meta->size;
    mark_allocated(start, size, next);
    copy_block(old, start, min_u64(size, old_size));
    heap_quick_free(own_heap(), old, &ref, HEAP_MALLOC, context);
    mark_freed(old, old_size);
    return start;
}

#define UNUSED (void)b, (void)c, (void)d, (void)e, (void)f

TOOL_QUICK quick_malloc(u64 size, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return allocate(size, HEAP_MALLOC, entry);
}

TOOL_QUICK quick_calloc(u64 count, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    u64 size;
    UNUSED;
    if (UNLIKELY(__builtin_mul_overflow(count, b, &size)))
        return TOOL_QUICK_NO;
    return allocate(size, HEAP_MALLOC | HEAP_ZEROED, entry);
}

TOOL_QUICK quick_realloc(u64 old, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    u64 size = b;
    UNUSED;
    // As some programs allocate everything.
    return old ? reallocate(old, size, entry) : allocate(size, HEAP_MALLOC, entry);
}

TOOL_QUICK quick_new(u64 size, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return allocate(size, HEAP_NEW, entry);
}

TOOL_QUICK quick_new_array(u64 size, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return allocate(size, HEAP_NEW_ARRAY, entry);
}

TOOL_QUICK quick_free(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return release(start, HEAP_MALLOC, NO_SIZE, entry);
}

TOOL_QUICK quick_delete(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return release(start, HEAP_NEW, NO_SIZE, entry);
}

TOOL_QUICK quick_delete_array(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return release(start, HEAP_NEW_ARRAY, NO_SIZE, entry);
}

TOOL_QUICK quick_delete_sized(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    u64 size = b;
    UNUSED;
    return release(start, HEAP_NEW, size, entry);
}

TOOL_QUICK quick_delete_array_sized(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    u64 size = b;
    UNUSED;
    return release(start, HEAP_NEW_ARRAY, size, entry);
}

// Of functions with the names of several.

TOOL_QUICK quick_any_new(u64 size, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return allocate(size, HEAP_ANY_NEW, entry);
}

TOOL_QUICK quick_any(u64 size, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return allocate(size, HEAP_ANY, entry);
}

TOOL_QUICK quick_any_delete(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return release(start, HEAP_ANY_NEW, NO_SIZE, entry);
}

TOOL_QUICK quick_any_free(u64 start, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry)
{
    UNUSED;
    return release(start, HEAP_ANY, NO_SIZE, entry);
}
