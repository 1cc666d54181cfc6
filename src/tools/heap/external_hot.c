// SPDX-License-Identifier: MIT
//
// Blocks that the client announces with MALLOCLIKE_BLOCK, and the lookup of external
// blocks of both sorts. The lock is not held while the tool's hooks run, except
// where a hook cannot call back.
#include "tools/heap/external.h"

void external_node_describe(Tree tree, const Node *node, HeapBlock *ret_block)
{
    *ret_block = (HeapBlock){
        .start = node->start,
        .size_bytes = node->size,
        .alloc_context = node->alloc_context,
        .free_context = node->free_context,
        .thread = node->thread,
        .kind = node->kind,
        .state = tree == TREE_FREED ? HEAP_QUARANTINED : HEAP_LIVE,
        .relation = HEAP_INSIDE,
        .is_external = true,
        .pool = node->pool ? node->pool->start : node->pool_anchor,
    };
}

static bool is_empty(void)
{
    return !__atomic_load_n(&external_roots[TREE_CUSTOM], __ATOMIC_RELAXED) &&
           !__atomic_load_n(&external_roots[TREE_CHUNK], __ATOMIC_RELAXED) &&
           !__atomic_load_n(&external_roots[TREE_FREED], __ATOMIC_RELAXED);
}

// The innermost block that contains the address; live before freed.
static bool find_inside(GuestAddr address, HeapBlock *ret_block)
{
    for (Tree tree = TREE_CUSTOM; tree <= TREE_FREED; tree++) {
        const Node *node = external_tree_floor(tree, address);
        if (node && address - node->start < node->size) {
            external_node_describe(tree, node, ret_block);
            ret_block->distance_bytes = address - node->start;
            return true;
        }
    }
    return false;
}

// The nearest block in whose own redzone the address is, or which is less than `reach` away.
static bool find_near(GuestAddr address, u64 reach, HeapBlock *ret_block)
{
    u64 best = ~0ull;

    for (Tree tree = TREE_CUSTOM; tree <= TREE_FREED; tree++) {
        const Node *below = external_tree_floor(tree, address);
        const Node *above = external_tree_ceiling(tree, address);
        u64 after = below ? address - below->start - below->size : 0;
        u64 zone = below ? max_u64(max_u64(below->redzone, reach), below->size == 0) : 0;
        if (after < zone && after < best) {
            best = after;
            external_node_describe(tree, below, ret_block);
            ret_block->relation = HEAP_AFTER;
            ret_block->distance_bytes = after;
        }
        if (above && above->start != address &&
            above->start - address <= max_u64(above->redzone, reach) &&
            above->start - address < best) {
            best = above->start - address;
            external_node_describe(tree, above, ret_block);
            ret_block->relation = HEAP_BEFORE;
            ret_block->distance_bytes = best;
        }
    }
    return best != ~0ull;
}

bool external_find(GuestAddr address, HeapBlock *ret_block)
{
    if (is_empty())
        return false;
    lock_acquire(&external_lock);
    bool found = find_inside(address, ret_block) || find_near(address, 0, ret_block);
    lock_release(&external_lock);
    return found;
}

bool external_find_near(GuestAddr address, HeapBlock *ret_block)
{
    enum { REACH = 64 }; // pools without redzones are common
    if (is_empty())
        return false;
    lock_acquire(&external_lock);
    bool found = find_near(address, REACH, ret_block);
    lock_release(&external_lock);
    return found;
}

bool external_live_at(GuestAddr start, HeapBlock *ret_block)
{
    if (is_empty())
        return false;
    lock_acquire(&external_lock);
    Tree tree = TREE_CUSTOM;
    const Node *node = external_tree_at(tree, start);
    if (!node)
        node = external_tree_at(tree = TREE_CHUNK, start);
    if (node)
        external_node_describe(tree, node, ret_block);
    lock_release(&external_lock);
    return node != NULL;
}

bool external_next(GuestAddr from, HeapBlock *ret_block)
{
    const Node *custom = external_tree_ceiling(TREE_CUSTOM, from);
    const Node *chunk = external_tree_ceiling(TREE_CHUNK, from);

    if (!custom && !chunk)
        return false;
    // At equal starts the chunk contains the other.
    bool takes_custom = custom && (!chunk || custom->start < chunk->start);
    external_node_describe(takes_custom ? TREE_CUSTOM : TREE_CHUNK, takes_custom ? custom : chunk,
                           ret_block);
    return true;
}

bool external_next_behind(const HeapBlock *last, HeapBlock *ret_block)
{
    const Node *custom = NULL;

    if (last->kind == HEAP_POOL)
        custom = external_tree_at(TREE_CUSTOM, last->start);
    if (!custom)
        return last->start + 1 != 0 && external_next(last->start + 1, ret_block);
    external_node_describe(TREE_CUSTOM, custom, ret_block);
    return true;
}

static bool is_sane(GuestAddr start, u64 size)
{
    return size <= HEAP_SIZE_MAX && start + size >= start;
}

HeapResult heap_malloclike(HeapThread *thread, GuestAddr start, u64 size, u32 redzone,
                           bool is_zeroed, u32 context)
{
    HeapResult result = HEAP_OK;

    if (!is_sane(start, size))
        return HEAP_NOT_A_BLOCK;
    lock_acquire(&external_lock);
    Node *node = NULL;
    if (external_tree_at(TREE_CUSTOM, start))
        result = HEAP_MISMATCHED;
    else if (!(node = external_node_new()))
        result = HEAP_NO_MEMORY;
    if (node) {
        node->start = start;
        node->size = size;
        node->redzone = redzone;
        node->alloc_context = context;
        node->thread = thread->index;
        node->kind = HEAP_CUSTOM;
        external_forget(start, max_u64(size, 1));
        external_tree_insert(TREE_CUSTOM, node);
    }
    lock_release(&external_lock);
    if (result == HEAP_OK) {
        thread->tally->allocs++;
        thread->tally->allocated_bytes += size;
        if (heap.options.hooks.adopted)
            heap.options.hooks.adopted(start, size, is_zeroed, context);
        else if (heap.options.hooks.allocated)
            heap.options.hooks.allocated(start, size, is_zeroed, context);
    }
    return result;
}

HeapResult heap_freelike(HeapThread *thread, GuestAddr start, u32 context, HeapBlock *ret_block)
{
    HeapBlock block = {0};
    HeapResult result = HEAP_OK;

    lock_acquire(&external_lock);
    Node *node = external_tree_at(TREE_CUSTOM, start);
    if (node) {
        external_node_describe(TREE_CUSTOM, node, &block);
        external_tree_remove(TREE_CUSTOM, node);
        external_remember(node, context);
    } else if ((node = external_tree_at(TREE_FREED, start))) {
        external_node_describe(TREE_FREED, node, &block);
        result = HEAP_DOUBLE_FREE;
    } else {
        result = HEAP_NOT_A_BLOCK;
    }
    lock_release(&external_lock);
    if (result != HEAP_NOT_A_BLOCK && ret_block)
        *ret_block = block;
    if (result == HEAP_OK) {
        thread->tally->frees++;
        thread->tally->freed_bytes += block.size_bytes;
        if (heap.options.hooks.freed)
            heap.options.hooks.freed(start, block.size_bytes);
    }
    return result;
}

void external_count(u64 allocs, u64 frees, u64 bytes)
{
    HeapCounts *counts = heap.ended;
    __atomic_add_fetch(&counts->more_allocs, allocs, __ATOMIC_RELAXED);
    __atomic_add_fetch(&counts->more_frees, frees, __ATOMIC_RELAXED);
    __atomic_add_fetch(&counts->more_bytes, bytes, __ATOMIC_RELAXED);
}

void heap_count_refused_free(void)
{
    external_count(0, 1, 0);
}

void heap_count_refused_realloc(u64 size)
{
    external_count(1, 1, size);
}

HeapResult heap_resize_inplace(HeapThread *thread, GuestAddr start, u64 new_size, u32 context,
                               HeapBlock *ret_old)
{
    if (!is_sane(start, new_size))
        return HEAP_NOT_A_BLOCK;
    lock_acquire(&external_lock);
    Node *node = external_tree_at(TREE_CUSTOM, start);
    u64 old_size = node ? node->size : 0;
    if (node) {
        if (ret_old)
            external_node_describe(TREE_CUSTOM, node, ret_old);
        node->size = new_size;
        external_forget(start, max_u64(new_size, 1));
    }
    lock_release(&external_lock);
    if (!node)
        return HEAP_NOT_A_BLOCK;
    const HeapHooks *hooks = &heap.options.hooks;
    if (new_size > old_size) {
        thread->tally->allocated_bytes += new_size - old_size;
        external_count(0, 0, old_size - new_size);
        if (hooks->allocated)
            hooks->allocated(start + old_size, new_size - old_size, false, context);
    } else {
        thread->tally->freed_bytes += old_size - new_size;
        if (hooks->freed && new_size < old_size)
            hooks->freed(start + new_size, old_size - new_size);
    }
    return HEAP_OK;
}
