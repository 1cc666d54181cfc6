// SPDX-License-Identifier: MIT
//
// Trees from the bottom up: the innermost frames are the roots. Stacks soon differ, and most of
// a stack's outer frames are in it alone; so a node keeps the rest of a stack that nobody
// shares as a tail, and takes a frame from it only when a second stack comes the same way. What
// is still a tail at the end becomes nodes without anything being looked up.
#include <stdlib.h>

#include "recording/tree_builder.h"

// A place in a stack: the next frame, going outwards.
typedef struct StackCursor {
    u32 context; // 0: the end
    u32 frame;   // of it
} StackCursor;

typedef struct Tail {
    StackCursor rest;
    bool is_set;
    ContextValue value;
} Tail;

typedef struct UpBuilder {
    Builder *builder;
    Tail *tails; // of every node
    size_t capacity;
} UpBuilder;

// The next frame that is wanted. False: there is none.
static bool next_frame(Builder *builder, StackCursor *at, FrameKey *ret_key, TreeNode *ret_like)
{
    while (at->context) {
        u32 context = at->context;
        const RecordedContext *recorded = &builder->recording->contexts[context];
        bool is_wanted = false;

        if (recorded->frame_count == 0)
            is_wanted = builder_bare(builder, context, ret_key, ret_like);
        else if (at->frame < recorded->frame_count)
            is_wanted = builder_frame(builder, context, recorded->first_frame + at->frame, ret_key,
                                      ret_like);
        if (++at->frame >= recorded->frame_count)
            *at = (StackCursor){ recorded->parent, 0 };
        if (is_wanted)
            return true;
    }
    return false;
}

static bool is_same_library(const Builder *builder, u32 node, const FrameKey *key,
                            const TreeNode *like)
{
    return like->is_folded && node && same_key(&builder->keys[node], key);
}

// Puts the stack behind `at` below `node`, which nobody else has gone through, as its tail.
static void set_tail(UpBuilder *up, u32 node, StackCursor at, const ContextValue *value)
{
    if (!array_reserve(&up->tails, &up->capacity, node + 1ull, sizeof(Tail))) {
        up->builder->failed = true;
        return;
    }
    up->tails[node] = (Tail){ .rest = at, .is_set = true, .value = *value };
}

static bool has_tail(const UpBuilder *up, u32 node)
{
    return node < up->capacity && up->tails[node].is_set;
}

static void add_stack(UpBuilder *up, u32 node, StackCursor at, const ContextValue *value)
{
    Builder *builder = up->builder;
    FrameKey key;
    TreeNode like;

    while (!builder->failed) {
        if (has_tail(up, node)) {
            Tail tail = up->tails[node];
            up->tails[node].is_set = false;
            // One step: the child that it goes to is new and gets the rest.
            add_stack(up, node, tail.rest, &tail.value);
        }
        if (!next_frame(builder, &at, &key, &like)) {
            builder_add_value(builder, node, value);
            return;
        }
        if (is_same_library(builder, node, &key, &like))
            continue;
        bool is_new = false;
        node = builder_child(builder, node, &key, &like, &is_new);
        if (is_new) {
            set_tail(up, node, at, value);
            return;
        }
    }
}

static void spread_tail(Builder *builder, u32 node, StackCursor at, const ContextValue *value)
{
    FrameKey key;
    TreeNode like;

    while (!builder->failed && next_frame(builder, &at, &key, &like))
        if (!is_same_library(builder, node, &key, &like))
            node = builder_append(builder, node, &key, &like);
    builder_add_value(builder, node, value);
}

// With recursion collapsed a stack goes back to nodes above, so nothing of it is its own.
static void add_collapsed(Builder *builder, StackCursor at, const ContextValue *value)
{
    FrameKey key;
    TreeNode like;
    u32 node = 0;

    while (!builder->failed && next_frame(builder, &at, &key, &like)) {
        u32 above = node;
        while (above && !same_key(&builder->keys[above], &key))
            above = builder->nodes[above].parent;
        node = above ? above : builder_child(builder, node, &key, &like, NULL);
    }
    builder_add_value(builder, node, value);
}

static void add_any(UpBuilder *up, StackCursor at, const ContextValue *value)
{
    if (value->value == 0 && value->count == 0)
        return;
    if (up->builder->options->collapse_recursion)
        add_collapsed(up->builder, at, value);
    else
        add_stack(up, 0, at, value);
}

void builder_build_up(Builder *builder, const ContextValue *values)
{
    UpBuilder up = { .builder = builder };
    u32 count = (u32)builder->recording->context_count;
    // Stacks that are the same without their allocators are walked once.
    ContextValue *joined = calloc(count, sizeof(*joined));

    builder->failed |= !joined;
    for (u32 i = 0; i < count && !builder->failed; i++) {
        StackCursor at;
        at.context = builder_skip_allocators(builder, i, &at.frame);
        if (at.frame) {
            add_any(&up, at, &values[i]);
            continue;
        }
        ContextValue *join = &joined[at.context];
        join->value = saturate_add_i64(join->value, values[i].value);
        join->count += values[i].count;
    }
    for (u32 i = 0; i < count && !builder->failed; i++)
        add_any(&up, (StackCursor){ i, 0 }, &joined[i]);
    free(joined);
    u32 shared = (u32)builder->count;
    for (u32 i = 1; i < shared && !builder->failed; i++)
        if (has_tail(&up, i))
            spread_tail(builder, i, up.tails[i].rest, &up.tails[i].value);
    free(up.tails);
}
