// SPDX-License-Identifier: MIT
//
// Leak records as a tree: by their stacks, or by who holds them.
#ifndef MUNINN_INSPECT_HTTP_LEAK_TREE_H
#define MUNINN_INSPECT_HTTP_LEAK_TREE_H

#include "base/map.h"
#include "inspect/http/findings_filter.h"
#include "inspect/http/tree.h"

typedef struct LeakTree {
    Call *call;
    ShownTree tree;
    u32 capacity;
    const FoundFrame **frames; // of each node; NULL: `titles` has its name
    const char **titles;
    i64 *findings; // of each node: the id of the record that ends there; -1: none, or several
    Map children;  // hash of parent and name → node
    Arena arena;   // titles
} LeakTree;

// The child that is called so, made if it is not there; parents come before children. `record`
// is 0, or tells nodes apart that are called the same. Without memory the call has failed.
u32 leak_child(LeakTree *leaks, u32 parent, const FoundFrame *frame, const char *title,
               u64 record);

// "variable table (app)", "stack of thread 1", "blocks of make_node (list.c:12)".
enum { HOLDER_TITLE_MAX = 640 };
void holder_put_title(const FoundHolder *holder, char text[HOLDER_TITLE_MAX]);

// The records of one report, each below one that holds it. leak_holders.c
void leak_tree_by_holder(LeakTree *leaks, const Found *const *records, u32 count);

#endif
