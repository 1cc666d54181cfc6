// SPDX-License-Identifier: MIT
//
// Trees of frames. Values are given by site; each is put where its stack ends, and a pass from
// the last node to the first adds children to parents, so the root is exactly the sum. From the
// top down a context's node follows from its parent's and is found once for all stacks
// through it; from the bottom up, in tree_up.c, every stack is walked.
#include <stdlib.h>
#include <string.h>

#include "recording/tree_builder.h"

// ---------------------------------------------------------------- nodes
static u32 hash_key(u32 parent, const FrameKey *key)
{
    u64 hash = (key->name ^ (u64)parent * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;

    hash = (hash ^ key->kind ^ hash >> 29) * 0xbf58476d1ce4e5b9ull;
    return (u32)(hash ^ hash >> 32);
}

static bool grow_slots(Builder *builder)
{
    size_t wanted = builder->slot_count ? builder->slot_count * 2 : 1024;
    u64 *slots = calloc(wanted, sizeof(u64));

    if (!slots)
        return false;
    for (size_t i = 0; i < builder->slot_count; i++) {
        if (!builder->slots[i])
            continue;
        size_t at = (builder->slots[i] >> 32) & (wanted - 1);
        while (slots[at])
            at = (at + 1) & (wanted - 1);
        slots[at] = builder->slots[i];
    }
    free(builder->slots);
    builder->slots = slots;
    builder->slot_count = wanted;
    return true;
}

u32 builder_append(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like)
{
    if (builder->count >= UINT32_MAX ||
        !array_reserve(&builder->nodes, &builder->node_capacity, builder->count + 1,
                       sizeof(TreeNode)) ||
        !array_reserve(&builder->keys, &builder->key_capacity, builder->count + 1,
                       sizeof(FrameKey))) {
        builder->failed = true;
        return parent;
    }
    builder->nodes[builder->count] = *like;
    builder->nodes[builder->count].parent = parent;
    builder->keys[builder->count] = *key;
    return (u32)builder->count++;
}

u32 builder_child(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like,
                  bool *ret_is_new)
{
    if (builder->count * 2 >= builder->slot_count && !grow_slots(builder)) {
        builder->failed = true;
        return parent;
    }
    u32 hash = hash_key(parent, key);
    size_t mask = builder->slot_count - 1, at = hash & mask;
    for (; builder->slots[at]; at = (at + 1) & mask) {
        u32 node = (u32)builder->slots[at];
        if (builder->slots[at] >> 32 == hash && builder->nodes[node].parent == parent &&
            same_key(&builder->keys[node], key))
            return node;
    }
    u32 node = builder_append(builder, parent, key, like);
    if (!builder->failed)
        builder->slots[at] = (u64)hash << 32 | node;
    if (ret_is_new)
        *ret_is_new = !builder->failed;
    return node;
}

// The node of a frame below `parent`, which may be one above it.
static u32 child_of(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like)
{
    if (like->is_folded && parent && same_key(&builder->keys[parent], key))
        return parent;
    if (builder->options->collapse_recursion)
        for (u32 node = parent; node; node = builder->nodes[node].parent)
            if (same_key(&builder->keys[node], key))
                return node;
    return builder_child(builder, parent, key, like, NULL);
}

// ---------------------------------------------------------------- frames
static bool frame_is_allocator(Builder *builder, u32 frame)
{
    u32 text = builder->recording->frame_texts[frame].function;

    if (text >= builder->recording->text_count)
        return false;
    if (!builder->allocator[text])
        builder->allocator[text] = is_allocator(builder->recording->texts[text]) ? 2 : 1;
    return builder->allocator[text] == 2;
}

static bool frame_is_wanted(Builder *builder, u32 frame)
{
    Recording *recording = builder->recording;

    if (!builder->code_objects.pattern.is_set)
        return true;
    bool matches = frame_pattern_matches(&builder->code_objects, recording, frame) ||
                   frame_pattern_matches(&builder->code_files, recording, frame);
    return matches != builder->code_objects.pattern.is_negated;
}

bool builder_frame(Builder *builder, u32 context, u32 frame, FrameKey *ret_key,
                   TreeNode *ret_like)
{
    const TreeOptions *options = builder->options;
    const FrameTexts *texts = &builder->recording->frame_texts[frame];
    const RecordedFrame *recorded = &builder->recording->frames[frame];

    if (!frame_is_wanted(builder, frame))
        return false;
    *ret_like = (TreeNode){ .frame = frame, .context = context };
    if (options->fold_libraries && texts->object && texts->object != builder->executable) {
        ret_like->is_folded = true;
        *ret_key = (FrameKey){ texts->object, (u64)KEY_FOLDED << 56 };
    } else if (!recorded->function) {
        *ret_key = (FrameKey){ recorded->pc, (u64)KEY_UNKNOWN << 56 | texts->object };
    } else if (options->by_function) {
        ret_like->any_line = true;
        *ret_key = (FrameKey){ (u64)texts->function << 32 | texts->object,
                               (u64)KEY_FUNCTION << 56 };
    } else {
        *ret_key = (FrameKey){ (u64)texts->function << 32 | texts->file,
                               (u64)KEY_FUNCTION << 56 | recorded->line };
    }
    return true;
}

bool builder_bare(Builder *builder, u32 context, FrameKey *ret_key, TreeNode *ret_like)
{
    if (builder->code_objects.pattern.is_set &&
        frame_pattern_matches_bare(&builder->code_objects, builder->recording, context) ==
            builder->code_objects.pattern.is_negated)
        return false;
    *ret_like = (TreeNode){ .frame = UINT32_MAX, .context = context };
    *ret_key = (FrameKey){ builder->recording->contexts[context].pc, (u64)KEY_BARE << 56 };
    return true;
}

// The frames of a context from its outermost to number `skip`, below `parent`.
static u32 add_context_down(Builder *builder, u32 parent, u32 context, u32 skip)
{
    const RecordedContext *recorded = &builder->recording->contexts[context];
    FrameKey key;
    TreeNode like;

    if (recorded->frame_count == 0 && builder_bare(builder, context, &key, &like))
        return child_of(builder, parent, &key, &like);
    for (u32 i = recorded->frame_count; i-- > skip;)
        if (builder_frame(builder, context, recorded->first_frame + i, &key, &like))
            parent = child_of(builder, parent, &key, &like);
    return parent;
}

u32 builder_skip_allocators(Builder *builder, u32 context, u32 *ret_skip)
{
    u32 at = context;

    *ret_skip = 0;
    if (!builder->options->hide_allocators && !builder->options->bottom_up)
        return context;
    for (; at; at = builder->recording->contexts[at].parent) {
        const RecordedContext *recorded = &builder->recording->contexts[at];
        u32 skip = 0;
        while (skip < recorded->frame_count &&
               frame_is_allocator(builder, recorded->first_frame + skip))
            skip++;
        if (recorded->frame_count == 0 || skip < recorded->frame_count) {
            *ret_skip = skip;
            return at;
        }
    }
    return context;
}

// ---------------------------------------------------------------- values
static ContextValue *sum_contexts(const Recording *recording, const i64 *values, const u64 *counts)
{
    ContextValue *sums = calloc(recording->context_count, sizeof(*sums));

    for (size_t i = 0; sums && i < recording->site_count; i++) {
        ContextValue *sum = &sums[recording->sites[i].context];
        sum->value = saturate_add_i64(sum->value, values[i]);
        sum->count += counts && values[i] ? counts[i] : 0;
    }
    return sums;
}

void builder_add_value(Builder *builder, u32 node, const ContextValue *value)
{
    builder->nodes[node].self = saturate_add_i64(builder->nodes[node].self, value->value);
    builder->nodes[node].value = saturate_add_i64(builder->nodes[node].value, value->value);
    builder->nodes[node].count += value->count;
}

// Contexts through which a stack with a value passes get U32_MAX - 1.
static void mark_needed(Builder *builder, u32 context)
{
    for (; context && builder->node_of[context] == UINT32_MAX;
         context = builder->recording->contexts[context].parent)
        builder->node_of[context] = UINT32_MAX - 1;
}

static void build_down(Builder *builder, const ContextValue *values)
{
    Recording *recording = builder->recording;

    builder->node_of = malloc(recording->context_count * sizeof(u32));
    if (!builder->node_of) {
        builder->failed = true;
        return;
    }
    memset(builder->node_of, 0xff, recording->context_count * sizeof(u32));
    builder->node_of[0] = 0;
    for (u32 i = 1; i < recording->context_count; i++) {
        u32 skip;
        if (values[i].value == 0 && values[i].count == 0)
            continue;
        u32 context = builder_skip_allocators(builder, i, &skip);
        mark_needed(builder, skip ? recording->contexts[context].parent : context);
    }
    for (u32 i = 1; i < recording->context_count && !builder->failed; i++)
        if (builder->node_of[i] == UINT32_MAX - 1)
            builder->node_of[i] = add_context_down(
                builder, builder->node_of[recording->contexts[i].parent], i, 0);
    for (u32 i = 0; i < recording->context_count && !builder->failed; i++) {
        u32 skip;
        if (values[i].value == 0 && values[i].count == 0)
            continue;
        u32 context = builder_skip_allocators(builder, i, &skip);
        u32 node = skip ? add_context_down(builder,
                                           builder->node_of[recording->contexts[context].parent],
                                           context, skip)
                        : builder->node_of[context];
        builder_add_value(builder, node, &values[i]);
    }
}

// ---------------------------------------------------------------- order
static int compare_children(const void *a, const void *b, void *arg)
{
    const TreeNode *nodes = arg;
    u32 x = *(const u32 *)a, y = *(const u32 *)b;

    if (nodes[x].value != nodes[y].value)
        return nodes[x].value > nodes[y].value ? -1 : 1;
    return x < y ? -1 : 1;
}

// Children are linked by value. They are gathered by parent first, so each sort is small.
static void link_children(Builder *builder)
{
    TreeNode *nodes = builder->nodes;
    u32 count = (u32)builder->count;
    u32 *start = calloc(count + 2ull, sizeof(u32)), *order = malloc(count * sizeof(u32));

    if (!start || !order) {
        builder->failed = true;
        free(start);
        free(order);
        return;
    }
    for (u32 i = 1; i < count; i++)
        start[nodes[i].parent + 2]++;
    for (u32 i = 2; i <= count; i++)
        start[i] += start[i - 1];
    for (u32 i = 1; i < count; i++)
        order[start[nodes[i].parent + 1]++] = i;
    for (u32 i = 0; i < count; i++) {
        u32 *children = order + start[i], n = start[i + 1] - start[i];
        if (n == 0)
            continue;
        if (n > 1)
            qsort_r(children, n, sizeof(u32), compare_children, nodes);
        nodes[i].first_child = children[0];
        for (u32 k = 0; k + 1 < n; k++)
            nodes[children[k]].next_sibling = children[k + 1];
    }
    free(start);
    free(order);
}

static void finish(Builder *builder)
{
    for (size_t i = builder->count; i-- > 1;) {
        TreeNode *node = &builder->nodes[i], *parent = &builder->nodes[node->parent];
        parent->value = saturate_add_i64(parent->value, node->value);
        parent->count += node->count;
    }
    link_children(builder);
}

static u32 executable_text(const Recording *recording)
{
    for (size_t i = 1; recording->info.executable && i < recording->text_count; i++)
        if (recording->texts[i] && strcmp(recording->texts[i], recording->info.executable) == 0)
            return (u32)i;
    return 0;
}

static bool builder_init(Builder *builder, Recording *recording, const TreeOptions *options)
{
    static const FrameKey no_key;
    char *error = NULL;

    *builder = (Builder){
        .recording = recording, .options = options, .executable = executable_text(recording),
        .allocator = calloc(recording->text_count + 1, 1),
    };
    bool ok = builder->allocator &&
              frame_pattern_init(&builder->code_objects, recording, PART_OBJECT,
                                 options->only_code, &error) &&
              frame_pattern_init(&builder->code_files, recording, PART_FILE, options->only_code,
                                 &error);
    free(error);
    if (ok)
        builder_append(builder, 0, &no_key, &(TreeNode){ .frame = UINT32_MAX });
    return ok && !builder->failed;
}

static void builder_free(Builder *builder)
{
    frame_pattern_free(&builder->code_objects);
    frame_pattern_free(&builder->code_files);
    free(builder->allocator);
    free(builder->slots);
    free(builder->keys);
    free(builder->node_of);
    free(builder->nodes);
}

Tree *tree_build_counts(Recording *recording, const i64 *values, const u64 *counts,
                        const TreeOptions *options)
{
    ContextValue *sums = sum_contexts(recording, values, counts);
    Tree *tree = malloc(sizeof(*tree));
    Builder builder;

    bool ok = builder_init(&builder, recording, options) && sums && tree;
    if (ok) {
        if (options->bottom_up)
            builder_build_up(&builder, sums);
        else
            build_down(&builder, sums);
        if (!builder.failed)
            finish(&builder);
    }
    free(sums);
    if (!ok || builder.failed) {
        builder_free(&builder);
        free(tree);
        return NULL;
    }
    *tree = (Tree){ .nodes = builder.nodes, .count = (u32)builder.count };
    builder.nodes = NULL;
    builder_free(&builder);
    return tree;
}

Tree *tree_build(Recording *recording, const i64 *values, const TreeOptions *options)
{
    return tree_build_counts(recording, values, NULL, options);
}

void tree_free(Tree *tree)
{
    if (tree)
        free(tree->nodes);
    free(tree);
}
