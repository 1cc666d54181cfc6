// SPDX-License-Identifier: MIT
//
// The calling-context tree, as the rest of this folder sees it.
#ifndef MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H
#define MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H

#include "base/futex_lock.h"
#include "base/types.h"
#include "engine/callstack/callstack.h"

Lock *context_tree_lock(void);

typedef struct ContextNode {
    GuestAddr pc;
    u32 parent;
    u32 depth; // how many frames it has
} ContextNode;
extern ContextNode *context_nodes;
extern u32 context_node_count;

// Frames that were new together have numbers one after the other: a context's only child, and the
// first of several, is mostly the next one. Looking there touches little memory.
static inline bool context_next_is_child(u32 parent, GuestAddr pc)
{
    u32 next = parent + 1;
    return next < __atomic_load_n(&context_node_count, __ATOMIC_ACQUIRE) &&
           context_nodes[next].pc == pc && context_nodes[next].parent == parent;
}

#endif
