// SPDX-License-Identifier: MIT
//
// Pools of the client (CREATE_MEMPOOL and its kin): a set of chunks under an anchor
// address. Chunks are external blocks; each is in the list of its pool too, so a pool
// can be emptied without a walk over all others. Counters do not see chunks, because the
// incumbent's totals do not.
#include "tools/heap/external.h"

static void mark_freed(GuestAddr start, u64 size)
{
    if (heap.options.hooks.freed && size)
        heap.options.hooks.freed(start, size);
}

static void mark_redzone(GuestAddr start, u64 size)
{
    if (heap.options.hooks.fresh && size)
        heap.options.hooks.fresh(start, size);
}

static void chunk_link(Node *pool, Node *chunk)
{
    chunk->pool = pool;
    chunk->pool_anchor = pool->start;
    chunk->previous = NULL;
    chunk->next = pool->pool;
    if (pool->pool)
        pool->pool->previous = chunk;
    pool->pool = chunk;
}

static void chunk_unlink(Node *chunk)
{
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        chunk->pool->pool = chunk->next;
    if (chunk->next)
        chunk->next->previous = chunk->previous;
}

// Under the lock: out of pool and tree, remembered as freed.
static void chunk_free(Node *chunk, u32 context)
{
    chunk_unlink(chunk);
    external_tree_remove(TREE_CHUNK, chunk);
    external_remember(chunk, context);
}

static Node *chunk_of(GuestAddr pool, GuestAddr start)
{
    Node *chunk = external_tree_at(TREE_CHUNK, start);

    return chunk && chunk->pool->start == pool ? chunk : NULL;
}

HeapResult heap_pool_create(GuestAddr anchor, u32 redzone, bool is_zeroed, u32 flags)
{
    HeapResult result = HEAP_OK;

    lock_acquire(&external_lock);
    Node *pool = NULL;
    if (external_tree_at(TREE_POOL, anchor))
        result = HEAP_MISMATCHED;
    else if (!(pool = external_node_new()))
        result = HEAP_NO_MEMORY;
    if (pool) {
        pool->start = anchor;
        pool->redzone = redzone;
        pool->is_zeroed = is_zeroed;
        pool->flags = (u8)flags;
        external_tree_insert(TREE_POOL, pool);
    }
    lock_release(&external_lock);
    return result;
}

// The MALLOCLIKE blocks inside a chunk of an auto-free pool end with it.
static void free_inside(HeapThread *thread, GuestAddr start, u64 size, u32 context)
{
    for (;;) {
        lock_acquire(&external_lock);
        const Node *node = external_tree_ceiling(TREE_CUSTOM, start);
        GuestAddr inner = node && node->start - start < size ? node->start : 0;
        lock_release(&external_lock);
        if (!inner || heap_freelike(thread, inner, context, NULL) != HEAP_OK)
            return;
    }
}

static bool is_auto_free(const Node *pool)
{
    return (pool->flags & HEAP_POOL_AUTO_FREE) && (pool->flags & HEAP_POOL_META);
}

HeapResult heap_pool_destroy(HeapThread *thread, GuestAddr anchor, u32 context)
{
    lock_acquire(&external_lock);
    Node *pool = external_tree_at(TREE_POOL, anchor);
    if (!pool) {
        lock_release(&external_lock);
        return HEAP_NOT_A_BLOCK;
    }
    bool auto_free = is_auto_free(pool);
    for (Node *chunk; (chunk = pool->pool);) {
        GuestAddr start = chunk->start;
        u64 size = chunk->size;
        chunk_free(chunk, context);
        lock_release(&external_lock);
        if (auto_free)
            free_inside(thread, start, size, context);
        mark_freed(start, size);
        lock_acquire(&external_lock);
        pool = external_tree_at(TREE_POOL, anchor); // another thread may have been as rude
        if (!pool)
            break;
    }
    if (pool) {
        external_tree_remove(TREE_POOL, pool);
        external_node_delete(pool);
    }
    lock_release(&external_lock);
    return HEAP_OK;
}

// Under the lock. A live chunk at the same start is replaced: it was never freed.
static HeapResult chunk_add(HeapThread *thread, Node *pool, GuestAddr start, u64 size, u32 context)
{
    Node *stale = external_tree_at(TREE_CHUNK, start);

    if (stale)
        chunk_free(stale, context);
    Node *chunk = external_node_new();
    if (!chunk)
        return HEAP_NO_MEMORY;
    chunk->start = start;
    chunk->size = size;
    chunk->redzone = pool->redzone;
    chunk->alloc_context = context;
    chunk->thread = thread->index;
    chunk->kind = HEAP_POOL;
    chunk_link(pool, chunk);
    external_forget(start, max_u64(size, 1));
    external_tree_insert(TREE_CHUNK, chunk);
    external_count(1, 0, size);
    return HEAP_OK;
}

HeapResult heap_pool_alloc(HeapThread *thread, GuestAddr anchor, GuestAddr start, u64 size,
                           u32 context)
{
    HeapResult result = HEAP_NOT_A_BLOCK;
    bool is_zeroed = false;
    u64 redzone = 0;

    lock_acquire(&external_lock);
    Node *pool = external_tree_at(TREE_POOL, anchor);
    if (pool && size <= HEAP_SIZE_MAX && start + size >= start) {
        is_zeroed = pool->is_zeroed;
        redzone = pool->redzone;
        result = chunk_add(thread, pool, start, size, context);
    }
    lock_release(&external_lock);
    if (result == HEAP_OK) {
        mark_redzone(start - min_u64(start, redzone), min_u64(start, redzone));
        mark_redzone(start + size, min_u64(redzone, ~(start + size)));
        if (heap.options.hooks.adopted)
            heap.options.hooks.adopted(start, size, is_zeroed, context);
        else if (heap.options.hooks.allocated)
            heap.options.hooks.allocated(start, size, is_zeroed, context);
    }
    return result;
}

HeapResult heap_pool_free(HeapThread *thread, GuestAddr anchor, GuestAddr start, u32 context,
                          HeapBlock *ret_block)
{
    HeapBlock block = {0};
    bool auto_free = false;

    lock_acquire(&external_lock);
    Node *chunk = chunk_of(anchor, start);
    Node *freed = chunk ? NULL : external_tree_at(TREE_FREED, start);
    bool is_double = freed && freed->pool_anchor == anchor;
    if (chunk) {
        auto_free = is_auto_free(chunk->pool);
        external_node_describe(TREE_CHUNK, chunk, &block);
        chunk_free(chunk, context);
    } else if (is_double) {
        external_node_describe(TREE_FREED, freed, &block);
    }
    lock_release(&external_lock);
    if ((chunk || is_double) && ret_block)
        *ret_block = block;
    if (!chunk)
        return is_double ? HEAP_DOUBLE_FREE : HEAP_NOT_A_BLOCK;
    if (auto_free)
        free_inside(thread, start, block.size_bytes, context);
    mark_freed(start, block.size_bytes);
    return HEAP_OK;
}

// Under the lock: what of the chunk lies outside [low, high) ends. The node of a chunk
// that shrinks at the front gets a new key; false if another had it and was ended.
static bool chunk_trim(Node *chunk, GuestAddr low, GuestAddr high, u32 context)
{
    GuestAddr start = chunk->start, end = start + chunk->size;
    Node *stale = NULL;

    if (end <= low || start >= high) {
        chunk_free(chunk, context);
        mark_freed(start, end - start);
        return true;
    }
    GuestAddr new_start = max_u64(start, low), new_end = min_u64(end, high);
    if (new_start != start) {
        external_tree_remove(TREE_CHUNK, chunk);
        chunk->start = new_start;
        stale = external_tree_at(TREE_CHUNK, new_start);
        if (stale)
            chunk_free(stale, context);
        external_tree_insert(TREE_CHUNK, chunk);
        mark_freed(start, new_start - start);
    }
    chunk->size = new_end - new_start;
    mark_freed(new_end, end - new_end);
    return !stale;
}

HeapResult heap_pool_trim(HeapThread *thread, GuestAddr anchor, GuestAddr start, u64 size,
                          u32 context)
{
    (void)thread;
    if (start + size < start)
        return HEAP_NOT_A_BLOCK;
    lock_acquire(&external_lock);
    Node *pool = external_tree_at(TREE_POOL, anchor);
    // A chunk may end its neighbour only if the two overlap; then the walk starts again, and
    // ends, because there is one chunk fewer.
    for (Node *chunk = pool ? pool->pool : NULL, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->start >= start && chunk->start + chunk->size <= start + size)
            continue;
        if (!chunk_trim(chunk, start, start + size, context))
            next = pool->pool;
    }
    lock_release(&external_lock);
    return pool ? HEAP_OK : HEAP_NOT_A_BLOCK;
}

HeapResult heap_pool_move(GuestAddr from, GuestAddr to)
{
    HeapResult result = HEAP_OK;

    lock_acquire(&external_lock);
    Node *pool = external_tree_at(TREE_POOL, from);
    if (!pool) {
        result = HEAP_NOT_A_BLOCK;
    } else if (external_tree_at(TREE_POOL, to)) {
        result = HEAP_MISMATCHED;
    } else {
        external_tree_remove(TREE_POOL, pool);
        pool->start = to;
        external_tree_insert(TREE_POOL, pool);
        for (Node *chunk = pool->pool; chunk; chunk = chunk->next)
            chunk->pool_anchor = to;
    }
    lock_release(&external_lock);
    return result;
}

HeapResult heap_pool_change(GuestAddr anchor, GuestAddr from, GuestAddr to, u64 size, u32 context)
{
    if (size > HEAP_SIZE_MAX || to + size < to)
        return HEAP_NOT_A_BLOCK;
    lock_acquire(&external_lock);
    Node *chunk = chunk_of(anchor, from);
    if (chunk) {
        external_tree_remove(TREE_CHUNK, chunk);
        chunk->start = to;
        chunk->size = size;
        chunk->alloc_context = context;
        Node *stale = external_tree_at(TREE_CHUNK, to);
        if (stale)
            chunk_free(stale, context);
        external_forget(to, max_u64(size, 1));
        external_tree_insert(TREE_CHUNK, chunk);
    }
    lock_release(&external_lock);
    return chunk ? HEAP_OK : HEAP_NOT_A_BLOCK;
}

bool heap_pool_exists(GuestAddr anchor)
{
    lock_acquire(&external_lock);
    bool exists = external_tree_at(TREE_POOL, anchor) != NULL;
    lock_release(&external_lock);
    return exists;
}
