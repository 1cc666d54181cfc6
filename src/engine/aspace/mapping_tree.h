// SPDX-License-Identifier: MIT
//
// The ordered set of the client's mappings: a treap keyed by start address
// whose nodes also know the largest hole inside their subtree, so that lookup,
// change and the search for room all take logarithmic time.
//
// Private to aspace/. Every function needs the engine lock. Members never
// overlap. Members that differ in nothing but their place are joined, as the
// kernel joins them, so a Mapping pointer is valid only until the next change.
#ifndef MUNINN_ENGINE_ASPACE_MAPPING_TREE_H
#define MUNINN_ENGINE_ASPACE_MAPPING_TREE_H

#include "engine/aspace/aspace.h"

typedef struct MapNode MapNode;
struct MapNode {
    Mapping m; // first member: a `const Mapping *` from the tree is its node
    u32 pkey;
    bool foreign;   // engine memory inside the client's range: occupied, never shown
    bool has_code;  // blocks were made from this file, see aspace_file_written()
    bool dont_fork; // MADV_DONTFORK: absent in a forked child

    MapNode *left, *right;
    u64 priority;
    u64 low;      // lowest address that the subtree claims
    u64 high;     // its highest end
    u64 max_gap;  // its largest hole between two members
    bool growing; // it has a MAP_GROWSDOWN member

    MapNode *alias_next; // the next shared mapping of the same file, see tree_aliases()
    MapNode **alias_link;
};

// A growing stack keeps this much room below it free of other mappings.
#define GROWSDOWN_ROOM (8 * MiB + 1 * MiB)

// The node with the lowest start whose end is above `addr`, or NULL.
MapNode *tree_at_or_after(GuestAddr addr);
// The node that holds `addr`, or NULL.
MapNode *tree_find(GuestAddr addr);
MapNode *tree_next(const MapNode *node);
// The first member at or above `addr` that grows downwards, or NULL.
MapNode *tree_next_growing(GuestAddr addr);

// Forgets [start, end); members on the edges are split.
void tree_remove(GuestAddr start, GuestAddr end);
// Adds a copy of `like`, which must not overlap, and joins neighbours. Its links are
// ignored and its name is interned.
void tree_add(const MapNode *like);
// Calls change() on every member of [start, end), edges split, then joins what
// became equal. change() may move a border into free room, not past a neighbour.
void tree_update(GuestAddr start, GuestAddr end, void (*change)(MapNode *, void *), void *arg);

// The part of `node` in [start, end), as a value with its offset adjusted.
MapNode tree_piece(const MapNode *node, GuestAddr start, GuestAddr end);

// Room for `len` bytes inside [low, high): the highest place, or 0.
GuestAddr tree_gap_highest(GuestAddr low, GuestAddr high, u64 len, u64 align);

// First of the chain (alias_next) of MAP_SHARED members that may map the same
// file; the chain is hashed, so the caller compares dev and inode.
MapNode *tree_aliases(u64 dev, u64 inode);

// NULL if order, sums, joins and the lists of aliases are as they must be, else a sentence.
const char *tree_breach(void);

#endif
