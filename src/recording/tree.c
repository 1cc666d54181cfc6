// SPDX-License-Identifier: MIT
//
// Trees of frames. Values are given by site; each is put where its stack ends, and a pass from
// the last node to the first adds children to parents, so the root is exactly the sum. From the
// top down a context's node follows from its parent's and is found once for all stacks
// through it; from the bottom up every stack is walked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    u32 *slots;           // by parent and key: node; 0: none
    size_t slot_count;
    u32 *node_of;         // of contexts, from the top down; U32_MAX: not known
    bool failed;
} Builder;

// ---------------------------------------------------------------- nodes
static size_t hash_key(u32 parent, const FrameKey *key)
{
    u64 hash = (key->name ^ (u64)parent * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;

    hash = (hash ^ key->kind ^ hash >> 29) * 0xbf58476d1ce4e5b9ull;
    return (size_t)(hash ^ hash >> 32);
}

static bool grow_slots(Builder *builder)
{
    size_t wanted = builder->slot_count ? builder->slot_count * 2 : 1024;
    u32 *slots = calloc(wanted, sizeof(u32));

    if (!slots)
        return false;
    for (size_t i = 1; i < builder->count; i++) {
        size_t at = hash_key(builder->nodes[i].parent, &builder->keys[i]) & (wanted - 1);
        while (slots[at])
            at = (at + 1) & (wanted - 1);
        slots[at] = (u32)i;
    }
    free(builder->slots);
    builder->slots = slots;
    builder->slot_count = wanted;
    return true;
}

static u32 new_node(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *node)
{
    if (builder->count >= UINT32_MAX ||
        !array_reserve(&builder->nodes, &builder->node_capacity, builder->count + 1,
                       sizeof(TreeNode)) ||
        !array_reserve(&builder->keys, &builder->key_capacity, builder->count + 1,
                       sizeof(FrameKey))) {
        builder->failed = true;
        return parent;
    }
    builder->nodes[builder->count] = *node;
    builder->nodes[builder->count].parent = parent;
    builder->keys[builder->count] = *key;
    return (u32)builder->count++;
}

static bool same_key(const FrameKey *a, const FrameKey *b)
{
    return a->name == b->name && a->kind == b->kind;
}

// The node of a frame below `parent`.
static u32 child_of(Builder *builder, u32 parent, const FrameKey *key, const TreeNode *like)
{
    if (like->is_folded && parent && same_key(&builder->keys[parent], key))
        return parent;
    if (builder->options->collapse_recursion)
        for (u32 node = parent; node; node = builder->nodes[node].parent)
            if (same_key(&builder->keys[node], key))
                return node;
    if (builder->count * 2 >= builder->slot_count && !grow_slots(builder)) {
        builder->failed = true;
        return parent;
    }
    size_t mask = builder->slot_count - 1, at = hash_key(parent, key) & mask;
    for (; builder->slots[at]; at = (at + 1) & mask) {
        u32 node = builder->slots[at];
        if (builder->nodes[node].parent == parent && same_key(&builder->keys[node], key))
            return node;
    }
    u32 node = new_node(builder, parent, key, like);
    if (!builder->failed)
        builder->slots[at] = node;
    return node;
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

// The node below `parent` for a frame of a context; `parent` itself when it is left out.
static u32 add_frame(Builder *builder, u32 parent, u32 context, u32 frame)
{
    const TreeOptions *options = builder->options;
    const FrameTexts *texts = &builder->recording->frame_texts[frame];
    const RecordedFrame *recorded = &builder->recording->frames[frame];
    TreeNode like = { .frame = frame, .context = context };
    FrameKey key;

    if (!frame_is_wanted(builder, frame))
        return parent;
    if (options->fold_libraries && texts->object && texts->object != builder->executable) {
        like.is_folded = true;
        key = (FrameKey){ texts->object, (u64)KEY_FOLDED << 56 };
    } else if (!recorded->function) {
        key = (FrameKey){ recorded->pc, (u64)KEY_UNKNOWN << 56 | texts->object };
    } else if (options->by_function) {
        like.any_line = true;
        key = (FrameKey){ (u64)texts->function << 32 | texts->object, (u64)KEY_FUNCTION << 56 };
    } else {
        key = (FrameKey){ (u64)texts->function << 32 | texts->file,
                          (u64)KEY_FUNCTION << 56 | recorded->line };
    }
    return child_of(builder, parent, &key, &like);
}

static u32 add_bare(Builder *builder, u32 parent, u32 context)
{
    TreeNode like = { .frame = UINT32_MAX, .context = context };
    FrameKey key = { builder->recording->contexts[context].pc, (u64)KEY_BARE << 56 };

    if (builder->code_objects.pattern.is_set &&
        frame_pattern_matches_bare(&builder->code_objects, builder->recording, context) ==
            builder->code_objects.pattern.is_negated)
        return parent;
    return child_of(builder, parent, &key, &like);
}

// The frames of a context from its outermost to number `skip`, below `parent`.
static u32 add_context_down(Builder *builder, u32 parent, u32 context, u32 skip)
{
    const RecordedContext *recorded = &builder->recording->contexts[context];

    if (recorded->frame_count == 0)
        return add_bare(builder, parent, context);
    for (u32 i = recorded->frame_count; i-- > skip;)
        parent = add_frame(builder, parent, context, recorded->first_frame + i);
    return parent;
}

static u32 add_stack_up(Builder *builder, u32 context, u32 skip)
{
    u32 node = 0;

    for (; context; context = builder->recording->contexts[context].parent, skip = 0) {
        const RecordedContext *recorded = &builder->recording->contexts[context];
        if (recorded->frame_count == 0)
            node = add_bare(builder, node, context);
        for (u32 i = skip; i < recorded->frame_count; i++)
            node = add_frame(builder, node, context, recorded->first_frame + i);
    }
    return node;
}

// Where a stack ends when the allocators at its innermost end are left out; a stack of
// nothing else stays as it is.
static u32 skip_allocators(Builder *builder, u32 context, u32 *ret_skip)
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
// Values of a broken file may be anything: they wrap.
static i64 add(i64 a, i64 b)
{
    return (i64)((u64)a + (u64)b);
}

typedef struct ContextValue {
    i64 value;
    u64 count;
} ContextValue;

static ContextValue *sum_contexts(const Recording *recording, const i64 *values, const u64 *counts)
{
    ContextValue *sums = calloc(recording->context_count, sizeof(*sums));

    for (size_t i = 0; sums && i < recording->site_count; i++) {
        ContextValue *sum = &sums[recording->sites[i].context];
        sum->value = add(sum->value, values[i]);
        sum->count += counts && values[i] ? counts[i] : 0;
    }
    return sums;
}

static void add_value(Builder *builder, u32 node, const ContextValue *value)
{
    builder->nodes[node].self = add(builder->nodes[node].self, value->value);
    builder->nodes[node].value = add(builder->nodes[node].value, value->value);
    builder->nodes[node].count += value->count;
}

static void build_up(Builder *builder, const ContextValue *values)
{
    for (u32 i = 0; i < builder->recording->context_count && !builder->failed; i++) {
        u32 skip;
        if (values[i].value == 0 && values[i].count == 0)
            continue;
        u32 context = skip_allocators(builder, i, &skip);
        add_value(builder, add_stack_up(builder, context, skip), &values[i]);
    }
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
        u32 context = skip_allocators(builder, i, &skip);
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
        u32 context = skip_allocators(builder, i, &skip);
        u32 node = skip ? add_context_down(builder,
                                           builder->node_of[recording->contexts[context].parent],
                                           context, skip)
                        : builder->node_of[context];
        add_value(builder, node, &values[i]);
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
        parent->value = add(parent->value, node->value);
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
        new_node(builder, 0, &no_key, &(TreeNode){ .frame = UINT32_MAX });
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
            build_up(&builder, sums);
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

// ---------------------------------------------------------------- labels
// Takes back the part of a character that did not fit.
static void cut_at_character(char *text)
{
    size_t length = strlen(text), start = length;

    while (start && ((u8)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0 || (u8)text[start - 1] < 0xc0)
        return;
    u8 lead = (u8)text[start - 1];
    size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (length - (start - 1) < wanted)
        text[start - 1] = '\0';
}

static int write_label(Recording *recording, const TreeNode *node, char *text, size_t size)
{
    const RecordedFrame *frame = recording_frame(recording, node->frame);
    const RecordedContext *context = recording_context(recording, node->context);

    if (!frame) {
        if (!context || node->context == 0)
            return snprintf(text, size, "all");
        const RecordedModule *module = recording_module(recording, context->module);
        const char *path = module && module->path ? module->path : "???";
        return snprintf(text, size, "0x%llx: ??? (in %s)", (unsigned long long)context->pc, path);
    }
    const char *object = frame->object ? frame->object : "???";
    if (node->is_folded) {
        const char *slash = strrchr(object, '/');
        return snprintf(text, size, "[%s]", slash ? slash + 1 : object);
    }
    if (!frame->function)
        return snprintf(text, size, "0x%llx: ??? (in %s)", (unsigned long long)frame->pc, object);
    if (!frame->file)
        return snprintf(text, size, "%s (in %s)", frame->function, object);
    if (node->any_line || !frame->line)
        return snprintf(text, size, "%s (%s)", frame->function, frame->file);
    return snprintf(text, size, "%s (%s:%u)", frame->function, frame->file, frame->line);
}

void tree_node_label(Recording *recording, const TreeNode *node, char *text, size_t size)
{
    if (size && write_label(recording, node, text, size) >= (int)size)
        cut_at_character(text);
}
