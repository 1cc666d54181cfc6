// SPDX-License-Identifier: MIT
//
// Writes a tree in columns. A node is written if it is at least as large as a share of what is
// asked for; its smaller siblings become one node that says how many they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/http/tree.h"

enum {
    MIN_PPM_DEFAULT = 500,
    MAX_NODES_DEFAULT = 20000,
    MAX_NODES_MOST = 200000,
    MAX_DEPTH_DEFAULT = 512,
};

typedef struct Written {
    u32 node;   // U32_MAX: the sum of small ones
    u32 parent; // index in the list
    u32 more, first;
    i64 value, base;
    u64 count;
} Written;

typedef struct Writing {
    Call *call;
    const ShownTree *tree;
    const TreeCut *cut;
    Written *list;
    u32 count, capacity;
    u64 least; // magnitude
} Writing;

TreeCut call_tree_cut(Call *call)
{
    Request *request = call->request;

    return (TreeCut){
        .root = (u32)request_u64(request, "root", 0, UINT32_MAX - 1),
        .first = (u32)request_u64(request, "first", 0, UINT32_MAX - 1),
        .min_ppm = (u32)request_u64(request, "min_ppm", MIN_PPM_DEFAULT, 1000000),
        .max_nodes = (u32)request_u64(request, "max_nodes", MAX_NODES_DEFAULT, MAX_NODES_MOST),
        .max_depth = (u32)request_u64(request, "max_depth", MAX_DEPTH_DEFAULT, 4096),
    };
}

static u64 magnitude(i64 value)
{
    return value < 0 ? -(u64)value : (u64)value;
}

// A difference can be small though both sides are large: such a node is not.
static u64 node_size(const ShownTree *tree, u32 node)
{
    u64 base = tree->base ? magnitude(tree->base[node]) / 64 : 0;

    return max_u64(magnitude(tree->nodes[node].value), base);
}

// ------------------------------------------------------------------ choosing nodes

static bool add_written(Writing *writing, Written written)
{
    if (writing->count == writing->capacity) {
        u32 capacity = writing->capacity ? 2 * writing->capacity : 1024;
        Written *list = realloc(writing->list, capacity * sizeof(*list));
        if (!list) {
            call_fail(writing->call, 500, "internal", "no memory for this tree");
            return false;
        }
        writing->list = list;
        writing->capacity = capacity;
    }
    writing->list[writing->count++] = written;
    return true;
}

static Written written_node(const ShownTree *tree, u32 node, u32 parent)
{
    const TreeNode *at = &tree->nodes[node];

    return (Written){.node = node, .parent = parent, .value = at->value, .count = at->count,
                     .base = tree->base ? tree->base[node] : 0};
}

// Appends the children of a written node: the large ones, then the sum of the others.
static bool add_children(Writing *writing, u32 parent, bool shows_any)
{
    const ShownTree *tree = writing->tree;
    u32 node = writing->list[parent].node;
    u32 skip = parent == 0 ? writing->cut->first : 0, index = 0;
    Written rest = {.node = UINT32_MAX, .parent = parent};

    for (u32 child = tree->nodes[node].first_child; child;
         child = tree->nodes[child].next_sibling, index++) {
        if (index < skip)
            continue;
        if (shows_any && rest.more == 0 && node_size(tree, child) >= writing->least) {
            if (!add_written(writing, written_node(tree, child, parent)))
                return false;
            continue;
        }
        if (rest.more++ == 0)
            rest.first = index;
        saturate_grow_i64(&rest.value, tree->nodes[child].value);
        saturate_grow_i64(&rest.base, tree->base ? tree->base[child] : 0);
        saturate_grow_u64(&rest.count, tree->nodes[child].count);
    }
    return rest.more == 0 || add_written(writing, rest);
}

// Level by level, so that what is deep gives way if there is too much.
static bool choose_nodes(Writing *writing)
{
    u32 level_end = 1, depth = 0;

    writing->count = 0;
    if (!add_written(writing, written_node(writing->tree, writing->cut->root, 0)))
        return false;
    for (u32 i = 0; i < writing->count; i++) {
        if (i == level_end) {
            level_end = writing->count;
            depth++;
        }
        bool shows_any =
            depth < writing->cut->max_depth && writing->count < writing->cut->max_nodes;
        if (writing->list[i].node != UINT32_MAX && !add_children(writing, i, shows_any))
            return false;
    }
    return true;
}

// With `first` the root stands for what is left of its children.
static void trim_root(Writing *writing)
{
    Written *root = &writing->list[0];

    if (writing->cut->first == 0)
        return;
    root->value = root->base = 0;
    root->count = 0;
    for (u32 i = 1; i < writing->count && writing->list[i].parent == 0; i++) {
        saturate_grow_i64(&root->value, writing->list[i].value);
        saturate_grow_i64(&root->base, writing->list[i].base);
        saturate_grow_u64(&root->count, writing->list[i].count);
    }
}

static u64 size_of_children(const Writing *writing)
{
    const ShownTree *tree = writing->tree;
    u64 size = 0;
    u32 index = 0;

    for (u32 child = tree->nodes[writing->cut->root].first_child; child;
         child = tree->nodes[child].next_sibling) {
        if (index++ >= writing->cut->first)
            size += magnitude(tree->nodes[child].value);
    }
    return size;
}

// ------------------------------------------------------------------------- strings

typedef struct Strings {
    Map index_of;
    Json list;
    u32 count;
} Strings;

static u32 string_index(Strings *strings, const char *text)
{
    u64 hash = 14695981039346656037ull, known;

    for (const char *c = text; *c; c++)
        hash = (hash ^ (u8)*c) * 1099511628211ull;
    if (map_get(&strings->index_of, hash, &known))
        return (u32)known;
    map_put(&strings->index_of, hash, strings->count);
    json_text(&strings->list, text);
    return strings->count++;
}

static void put_strings(Json *out, const char *name, Strings *strings)
{
    json_key_open(out, name, '[');
    json_raw(out, strings->list.data, strings->list.size);
    json_close(out, ']');
    out->failed |= strings->list.failed;
    json_free(&strings->list);
    map_free(&strings->index_of);
}

// ------------------------------------------------------------------------- columns

enum { COLUMN_NAME, COLUMN_FILE, COLUMN_LINE, COLUMN_OBJECT, COLUMN_FLAGS, WORD_COLUMNS };

// The words of each node, as numbers.
static bool put_words(Writing *writing, NodeWordsFn *fn, void *arg)
{
    static const char *const names[WORD_COLUMNS] = {"name", "file", "line", "object", "flags"};
    u32(*words)[WORD_COLUMNS] = call_alloc(writing->call, writing->count, sizeof(*words));
    Strings functions = {0}, files = {0}, objects = {0};
    Json *out = &writing->call->out;

    if (!words)
        return false;
    string_index(&functions, "(all)");
    string_index(&files, "");
    string_index(&objects, "");
    for (u32 i = 0; i < writing->count; i++) {
        NodeWords node = {0};
        if (writing->list[i].node == UINT32_MAX || writing->list[i].node == 0)
            continue;
        fn(arg, writing->list[i].node, &node);
        words[i][COLUMN_NAME] = string_index(&functions, node.name ? node.name : "???");
        words[i][COLUMN_FILE] = string_index(&files, node.file ? node.file : "");
        words[i][COLUMN_OBJECT] = string_index(&objects, node.object ? node.object : "");
        words[i][COLUMN_LINE] = node.line;
        words[i][COLUMN_FLAGS] = node.flags;
    }
    put_strings(out, "names", &functions);
    put_strings(out, "files", &files);
    put_strings(out, "objects", &objects);
    for (int column = 0; column < WORD_COLUMNS; column++) {
        json_key_open(out, names[column], '[');
        for (u32 i = 0; i < writing->count; i++)
            json_u64(out, words[i][column]);
        json_close(out, ']');
    }
    free(words);
    return true;
}

typedef i64 ColumnFn(const Writing *writing, const Written *written);

static i64 column_id(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->node == UINT32_MAX ? -1 : (i64)written->node;
}

static i64 column_parent(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->parent;
}

static i64 column_value(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->value;
}

static i64 column_self(const Writing *writing, const Written *written)
{
    return written->node == UINT32_MAX ? 0 : writing->tree->nodes[written->node].self;
}

static i64 column_count(const Writing *writing, const Written *written)
{
    (void)writing;
    return (i64)written->count;
}

static i64 column_more(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->more;
}

static i64 column_first(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->first;
}

static i64 column_context(const Writing *writing, const Written *written)
{
    return written->node == UINT32_MAX ? 0 : writing->tree->nodes[written->node].context;
}

static i64 column_base(const Writing *writing, const Written *written)
{
    (void)writing;
    return written->base;
}

static const struct {
    const char *name;
    ColumnFn *value;
} columns[] = {
    {"id", column_id},       {"parent", column_parent}, {"value", column_value},
    {"self", column_self},   {"count", column_count},   {"more", column_more},
    {"first", column_first}, {"context", column_context},
};

static void put_column(const Writing *writing, const char *name, ColumnFn *value)
{
    Json *out = &writing->call->out;

    json_key_open(out, name, '[');
    for (u32 i = 0; i < writing->count; i++)
        json_i64(out, value(writing, &writing->list[i]));
    json_close(out, ']');
}

static void put_extra(const Writing *writing, const TreeColumn *extra)
{
    Json *out = &writing->call->out;

    json_key_open(out, extra->name, '[');
    for (u32 i = 0; i < writing->count; i++) {
        u32 node = writing->list[i].node;
        json_i64(out, node == UINT32_MAX ? -1 : extra->values[node]);
    }
    json_close(out, ']');
}

void json_tree(Call *call, const ShownTree *tree, const TreeCut *cut, NodeWordsFn *fn, void *arg,
               const TreeColumn *extra)
{
    Writing writing = {.call = call, .tree = tree, .cut = cut};
    Json *out = &call->out;

    if (cut->root >= tree->count) {
        call_fail(call, 404, "not-found", "root: there is no such node");
        return;
    }
    u64 size = size_of_children(&writing);
    writing.least = max_u64(1, (u64)((double)size * cut->min_ppm / 1e6));
    if (choose_nodes(&writing)) {
        trim_root(&writing);
        json_key_u64(out, "root", cut->root);
        json_key_u64(out, "nodes", writing.count);
        json_key_u64(out, "all_nodes", tree->count);
        put_words(&writing, fn, arg);
        for (size_t i = 0; i < ARRAY_LEN(columns); i++)
            put_column(&writing, columns[i].name, columns[i].value);
        if (extra)
            put_extra(&writing, extra);
        if (tree->base)
            put_column(&writing, "base", column_base);
        else
            json_key_u64s(out, "base", NULL, 0);
    }
    free(writing.list);
}
