// SPDX-License-Identifier: MIT
//
// The index of blocks that the heap does not own: treaps by start address, one for
// each kind of thing, because a pool's chunk may contain MALLOCLIKE blocks, even at its
// own start. Nodes never move. Everything here is under external_lock.
#ifndef MUNINN_TOOLS_HEAP_EXTERNAL_H
#define MUNINN_TOOLS_HEAP_EXTERNAL_H

#include "tools/heap/heap_internal.h"

typedef enum Tree {
    TREE_CUSTOM, // live MALLOCLIKE blocks
    TREE_CHUNK,  // live chunks of pools
    TREE_FREED,  // the last that were freed, of both sorts; they do not overlap live ones
    TREE_POOL,   // pools by anchor
    TREE_COUNT
} Tree;

typedef struct Node {
    GuestAddr start; // of a pool: the anchor
    u64 size;        // of a pool: 0
    struct Node *left;
    struct Node *right;
    struct Node *next;     // of a chunk: in its pool; of a freed one: the next younger
    struct Node *previous; // likewise, the other way
    struct Node *pool;     // of a chunk; of a pool: its first chunk
    GuestAddr pool_anchor; // of a freed chunk, whose pool may be gone
    u32 alloc_context;
    u32 free_context;
    u32 redzone;
    u16 thread;
    u8 kind;
    u8 flags;       // of a pool: HEAP_POOL_*
    bool is_zeroed; // of a pool
} Node;

// What counts as use alone (HeapCounts): chunks of pools, what was refused; and in place grown
// bytes, which are no use.
void external_count(u64 allocs, u64 frees, u64 bytes);

extern Node *external_roots[TREE_COUNT];

Node *external_node_new(void); // zeroed; NULL: no memory
void external_node_delete(Node *node);
void external_tree_insert(Tree tree, Node *node);
void external_tree_remove(Tree tree, Node *node);
Node *external_tree_at(Tree tree, GuestAddr start);        // exact
Node *external_tree_floor(Tree tree, GuestAddr address);   // the last that starts at or before
Node *external_tree_ceiling(Tree tree, GuestAddr address); // the first that starts at or after

void external_node_describe(Tree tree, const Node *node, HeapBlock *ret_block);

// A live node, already out of its tree, is remembered as freed.
void external_remember(Node *node, u32 context);
// Freed blocks that [start, +size) overlaps are forgotten.
void external_forget(GuestAddr start, u64 size);

#endif
