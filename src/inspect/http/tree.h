// SPDX-License-Identifier: MIT
//
// A tree as it is shown: of one selection, or the difference of two. Written out in columns,
// with what is too small to be seen summed up.
#ifndef MUNINN_INSPECT_HTTP_TREE_H
#define MUNINN_INSPECT_HTTP_TREE_H

#include "inspect/http/viewer.h"

typedef struct ShownTree {
    TreeNode *nodes;
    u32 count;
    i64 *base;    // of each node; NULL: there is no base
    u8 *is_bases; // its frame and context are the base's recording's
} ShownTree;

// Of the parameters of the call; the memo's.
const ShownTree *call_tree(Call *call, const Chosen *chosen, const Chosen *base, Metric metric);

// Links children by magnitude, largest first; parents must come before their children.
bool tree_relink(TreeNode *nodes, u32 count);

// What a node is called.
typedef struct NodeWords {
    const char *name, *file, *object; // NULL: none
    u32 line;
    u32 flags; // of the interface: 1 inlined, 2 no name known
    char buffer[300];
} NodeWords;
typedef void NodeWordsFn(void *arg, u32 node, NodeWords *ret_words);

typedef struct TreeCut {
    u32 root, first;     // the subtree; only the root's children from the first-th on
    u32 min_ppm, max_nodes, max_depth;
} TreeCut;
TreeCut call_tree_cut(Call *call);

// A column beyond those of every tree, or NULL.
typedef struct TreeColumn {
    const char *name;
    const i64 *values; // of each node
} TreeColumn;

// The members from "root" on.
void json_tree(Call *call, const ShownTree *tree, const TreeCut *cut, NodeWordsFn *fn, void *arg,
               const TreeColumn *extra);

#endif
