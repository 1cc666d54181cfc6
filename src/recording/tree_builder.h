// SPDX-License-Identifier: MIT
//
// A tree that is being built; shared by tree.c, which makes one from the top down, and
// tree_up.c.
#ifndef MUNINN_RECORDING_TREE_BUILDER_H
#define MUNINN_RECORDING_TREE_BUILDER_H

#include "base/saturate.h"
#include "recording/query.h"
#include "recording/stacks.h"

// Frames that are one node have the same key.
typedef struct FrameKey {
    u64 name; // texts, or an address
    u64 kind; // KeyKind << 56 | line or object
} FrameKey;

typedef enum KeyKind { KEY_FUNCTION = 1, KEY_UNKNOWN, KEY_BARE, KEY_FOLDED } KeyKind;

typedef struct Builder {
    Recording *recording;
    const TreeOptions *options;
    FramePattern code_objects, code_files; // of only_code
    u8 *allocator;        // of every text: 0 not asked, 1 no, 2 yes
    u32 executable;       // text; its frames are not folded
    TreeNode *nodes;
    FrameKey *keys;
    size_t count, node_capacity, key_capacity;
    u64 *slots;           // by parent and key: hash << 32 | node; 0: none
    size_t slot_count;
    u32 *node_of;         // of contexts, from the top down; U32_MAX: not known
    bool failed;
} Builder;

// The value of stacks that are one context's.
typedef struct ContextValue {
    i64 value;
    u64 count;
} ContextValue;

static inline bool same_key(const FrameKey *a, const FrameKey *b)
{
    return a->name == b->name && a->kind == b->kind;
}

// A new node, wherever else one like it may be.
u32 builder_append(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like);
// The child with this key, made if there is none. *ret_is_new may be NULL.
u32 builder_child(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like,
                  bool *ret_is_new);
// The key of a frame, or of a context without frames. False: it is left out.
bool builder_frame(Builder *builder, u32 context, u32 frame, FrameKey *ret_key,
                   TreeNode *ret_like);
bool builder_bare(Builder *builder, u32 context, FrameKey *ret_key, TreeNode *ret_like);
// Where a stack ends when the allocators at its innermost end are left out; a stack of
// nothing else stays as it is.
u32 builder_skip_allocators(Builder *builder, u32 context, u32 *ret_skip);
void builder_add_value(Builder *builder, u32 node, const ContextValue *value);

// tree_up.c
void builder_build_up(Builder *builder, const ContextValue *values);

#endif
