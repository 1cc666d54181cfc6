// SPDX-License-Identifier: MIT
//
// /api/tree: flame graphs. The recording makes the tree of a selection; the difference of two
// is made here, of two trees, by what their nodes are called: also of two recordings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/http/tree.h"
#include "inspect/stack/stack.h"

// ------------------------------------------------------------------------- linking

static u64 magnitude(i64 value)
{
    return value < 0 ? -(u64)value : (u64)value;
}

static int compare_nodes(const void *left, const void *right, void *arg)
{
    const TreeNode *nodes = arg;
    u32 a = *(const u32 *)left, b = *(const u32 *)right;
    u64 x = magnitude(nodes[a].value), y = magnitude(nodes[b].value);

    return x != y ? (x > y ? -1 : 1) : a < b ? -1 : a > b;
}

bool tree_relink(TreeNode *nodes, u32 count)
{
    u32 *start = calloc(count + 2ull, sizeof(u32));
    u32 *order = calloc(count + 1ull, sizeof(u32));

    if (!start || !order) {
        free(start);
        free(order);
        return false;
    }
    // start[p + 1] is where the children of p begin, until they are put there.
    for (u32 i = 1; i < count; i++)
        start[nodes[i].parent + 2]++;
    for (u32 i = 2; i < count + 2; i++)
        start[i] += start[i - 1];
    for (u32 i = 1; i < count; i++)
        order[start[nodes[i].parent + 1]++] = i;
    for (u32 i = 0; i < count; i++) {
        u32 *children = order + start[i], n = start[i + 1] - start[i];
        nodes[i].first_child = 0;
        if (n == 0)
            continue;
        qsort_r(children, n, sizeof(u32), compare_nodes, nodes);
        nodes[i].first_child = children[0];
        for (u32 k = 0; k < n; k++)
            nodes[children[k]].next_sibling = k + 1 < n ? children[k + 1] : 0;
    }
    free(start);
    free(order);
    return true;
}

// --------------------------------------------------------------------------- words

typedef struct WordsOf {
    const ShownTree *tree;
    const Recording *recording, *base_recording;
} WordsOf;

static void node_words(void *arg, u32 index, NodeWords *ret_words)
{
    const WordsOf *of = arg;
    const TreeNode *node = &of->tree->nodes[index];
    bool is_bases = of->tree->is_bases && of->tree->is_bases[index];
    const Recording *recording = is_bases ? of->base_recording : of->recording;
    u32 frames = recording_frame_count(recording);
    RecordedFrame room;
    const RecordedFrame *frame =
        place_frame(recording, node->frame < frames ? node->frame : frames + node->context, &room);

    ret_words->object = frame->object;
    if (node->is_folded) {
        snprintf(ret_words->buffer, sizeof(ret_words->buffer), "[%s]",
                 path_last(frame->object ? frame->object : "???"));
        ret_words->name = ret_words->buffer;
        return;
    }
    ret_words->name = frame_shown_name(frame, ret_words->buffer);
    ret_words->file = frame->file;
    ret_words->line = node->any_line ? 0 : frame->line;
    ret_words->flags = (frame->inlined ? 1u : 0u) | (frame->function ? 0u : 2u);
}

// ---------------------------------------------------------------------- differences

// Equal for nodes that are called the same, below the same parent. Lines do not count
// between two recordings: an edit above a function moves all of it.
static u64 node_identity(const WordsOf *of, u32 index, u32 parent, bool with_line)
{
    NodeWords words = {0};
    u64 hash = HASH_SEED ^ parent;

    node_words((void *)of, index, &words);
    hash = hash_text(hash_text(hash * 1099511628211ull, words.name), words.file);
    return with_line ? (hash ^ words.line) * 1099511628211ull : hash;
}

typedef struct Merge {
    ShownTree *result;
    Map by_identity;
    bool with_line;
} Merge;

// The base's tree is laid over ours. Parents come before their children in both.
static bool merge_base(Merge *merge, const Tree *base, const WordsOf *own, const WordsOf *bases)
{
    ShownTree *result = merge->result;
    u32 *place = calloc(base->count, sizeof(u32));
    u64 known;

    if (!place)
        return false;
    for (u32 i = 1; i < result->count; i++) {
        u64 key = node_identity(own, i, result->nodes[i].parent, merge->with_line);
        if (!map_get(&merge->by_identity, key, &known))
            map_put(&merge->by_identity, key, i);
    }
    result->base[0] = base->nodes[0].value;
    for (u32 i = 1; i < base->count; i++) {
        const TreeNode *node = &base->nodes[i];
        u32 parent = place[node->parent];
        u64 key = node_identity(bases, i, parent, merge->with_line);
        if (!map_get(&merge->by_identity, key, &known)) {
            known = result->count++;
            result->nodes[known] = *node;
            result->nodes[known].parent = parent;
            result->nodes[known].value = result->nodes[known].self = 0;
            result->nodes[known].count = 0;
            result->is_bases[known] = 1;
            map_put(&merge->by_identity, key, known);
        }
        place[i] = (u32)known;
        saturate_grow_i64(&result->base[known], node->value);
        result->nodes[known].self = saturate_sub_i64(result->nodes[known].self, node->self);
    }
    for (u32 i = 0; i < result->count; i++)
        result->nodes[i].value = saturate_sub_i64(result->nodes[i].value, result->base[i]);
    free(place);
    return true;
}

static void free_shown(void *object)
{
    ShownTree *shown = object;

    free(shown->nodes);
    free(shown->base);
    free(shown->is_bases);
    free(shown);
}

static ShownTree *make_difference(Call *call, const Tree *own, const Tree *base)
{
    u64 room = (u64)own->count + base->count;
    ShownTree *shown = call_alloc(call, 1, sizeof(*shown));
    bool is_same = call->base_file == call->file;

    if (!shown)
        return NULL;
    *shown = (ShownTree){.nodes = call_alloc(call, room, sizeof(TreeNode)),
                         .base = call_alloc(call, room, sizeof(i64)),
                         .is_bases = call_alloc(call, room, 1),
                         .count = own->count};
    ShownTree base_shown = {.nodes = base->nodes, .count = base->count};
    WordsOf own_words = {shown, call->view->recording, call->base_view->recording};
    WordsOf base_words = {&base_shown, call->base_view->recording, NULL};
    Merge merge = {.result = shown, .with_line = is_same};
    bool good = shown->nodes && shown->base && shown->is_bases;
    if (good) {
        memcpy(shown->nodes, own->nodes, own->count * sizeof(TreeNode));
        good = merge_base(&merge, base, &own_words, &base_words) &&
               tree_relink(shown->nodes, shown->count);
    }
    map_free(&merge.by_identity);
    if (good)
        return shown;
    free_shown(shown);
    return NULL;
}

// ------------------------------------------------------------------------- building

static TreeOptions tree_options(Call *call)
{
    Request *request = call->request;

    return (TreeOptions){
        .bottom_up = request_flag(request, "bottom_up"),
        .collapse_recursion = request_flag(request, "collapse"),
        .by_function = request_flag(request, "by_function"),
        .fold_libraries = request_flag(request, "fold"),
        .only_code = request_text(request, "only"),
        .hide_allocators = !request_flag(request, "allocators"),
    };
}

static Tree *build(Call *call, const Chosen *chosen, Metric metric, const TreeOptions *options)
{
    const i64 *values = chosen_values(call, chosen, metric);
    const u64 *counts = values ? chosen_counts(call, chosen, metric) : NULL;
    Tree *tree =
        counts ? tree_build_counts(chosen->view->recording, values, counts, options) : NULL;

    if (counts && !tree)
        call_fail(call, 400, "bad-parameter", "the tree cannot be built: is `only` a pattern?");
    return tree;
}

static bool has_negative(const Tree *tree)
{
    for (u32 i = 0; i < tree->count; i++) {
        if (tree->nodes[i].value < 0)
            return true;
    }
    return false;
}

static ShownTree *make_shown(Call *call, const Chosen *chosen, const Chosen *base, Metric metric)
{
    TreeOptions options = tree_options(call);
    Tree *own = build(call, chosen, metric, &options);
    Tree *other = own && base ? build(call, base, metric, &options) : NULL;
    ShownTree *shown = NULL;

    if (own && base && other) {
        shown = make_difference(call, own, other);
    } else if (own && !base && (shown = call_alloc(call, 1, sizeof(*shown)))) {
        if (has_negative(own))
            tree_relink(own->nodes, own->count);
        *shown = (ShownTree){.nodes = own->nodes, .count = own->count};
        own->nodes = NULL;
    }
    tree_free(own);
    tree_free(other);
    return shown;
}

const ShownTree *call_tree(Call *call, const Chosen *chosen, const Chosen *base, Metric metric)
{
    TreeOptions options = tree_options(call);
    char key[2048];

    snprintf(key, sizeof(key), "tree %d %d%d%d%d%d %.200s|%s|%u %llu %s", metric,
             options.bottom_up, options.collapse_recursion, options.by_function,
             options.fold_libraries, options.hide_allocators,
             options.only_code ? options.only_code : "", chosen->key, base ? base->file->id : 0,
             base ? (unsigned long long)base->view->version : 0, base ? base->key : "");
    const ShownTree *known = memo_get(&chosen->view->memo, key);
    if (known || call_failed(call))
        return known;
    ShownTree *shown = make_shown(call, chosen, base, metric);
    if (!shown)
        return NULL;
    size_t bytes = shown->count * (sizeof(TreeNode) + (shown->base ? 9 : 0));
    return memo_put(&chosen->view->memo, key, shown, bytes, free_shown);
}

void answer_tree(Call *call)
{
    Chosen chosen, base;
    Metric metric = call_metric(call);
    TreeCut cut = call_tree_cut(call);
    bool has_base = call->base_file != NULL;
    Json *out = &call->out;

    if (!chosen_parse(call, false, &chosen) || (has_base && !chosen_parse(call, true, &base)))
        return;
    const ShownTree *tree = call_tree(call, &chosen, has_base ? &base : NULL, metric);
    if (!tree) {
        if (!call_failed(call))
            call_fail(call, 500, "internal", "no memory for this tree");
        return;
    }
    WordsOf words = {tree, call->view->recording, has_base ? call->base_view->recording : NULL};
    json_open(out, '{');
    json_key_text(out, "metric", metric_names[metric]);
    json_key_text(out, "unit", metric_in_bytes(metric) ? "bytes" : "count");
    json_key_i64(out, "total", tree->nodes[0].value);
    json_key_i64(out, "base_total", tree->base ? tree->base[0] : 0);
    json_tree(call, tree, &cut, node_words, &words, NULL);
    json_close(out, '}');
}
