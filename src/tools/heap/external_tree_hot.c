// SPDX-License-Identifier: MIT
//
// The treaps of external.h. Priorities are hashes of the start address, so the shape
// does not depend on the order of insertion; no operation recurses.
#include "base/pages.h"
#include "tools/heap/external.h"

#define NODE_POOL_BYTES (64 * KiB)
#define REMEMBERED_MAX  4096 // freed external blocks

Lock external_lock;
Node *external_roots[TREE_COUNT];

static Node *unused;
static Node *node_pools;   // whole mappings, linked through their first node
static Node *freed_oldest; // the nodes of TREE_FREED by age
static Node *freed_newest;
static u32 freed_count;

static u64 priority(const Node *node)
{
    u64 x = (node->start ^ (u64)&heap) * 0x9e3779b97f4a7c15ull;

    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

Node *external_node_new(void)
{
    if (!unused) {
        Node *nodes = pages_map(NODE_POOL_BYTES);
        if (!nodes)
            return NULL;
        nodes[0].next = node_pools;
        node_pools = nodes;
        for (u32 i = 1; i < NODE_POOL_BYTES / sizeof(Node); i++) {
            nodes[i].next = unused;
            unused = &nodes[i];
        }
    }
    Node *node = unused;
    unused = node->next;
    *node = (Node){0};
    return node;
}

void external_node_delete(Node *node)
{
    node->next = unused;
    unused = node;
}

void external_tree_insert(Tree tree, Node *node)
{
    Node **link = &external_roots[tree];
    u64 mine = priority(node);

    while (*link && priority(*link) >= mine)
        link = node->start < (*link)->start ? &(*link)->left : &(*link)->right;
    // What was below is split into what is left and right of the node.
    Node **left = &node->left, **right = &node->right;
    for (Node *rest = *link; rest;) {
        if (rest->start < node->start) {
            *left = rest;
            left = &rest->right;
            rest = rest->right;
        } else {
            *right = rest;
            right = &rest->left;
            rest = rest->left;
        }
    }
    *left = *right = NULL;
    *link = node;
}

void external_tree_remove(Tree tree, Node *node)
{
    Node **link = &external_roots[tree];

    while (*link != node) {
        ASSERT(*link);
        link = node->start < (*link)->start ? &(*link)->left : &(*link)->right;
    }
    Node *left = node->left, *right = node->right;
    while (left && right) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
    node->left = node->right = NULL;
}

Node *external_tree_floor(Tree tree, GuestAddr address)
{
    Node *best = NULL;

    for (Node *node = external_roots[tree]; node;) {
        if (node->start <= address) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

Node *external_tree_ceiling(Tree tree, GuestAddr address)
{
    Node *best = NULL;

    for (Node *node = external_roots[tree]; node;) {
        if (node->start >= address) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

Node *external_tree_at(Tree tree, GuestAddr start)
{
    Node *node = external_tree_floor(tree, start);

    return node && node->start == start ? node : NULL;
}

static void forget(Node *node)
{
    if (node->previous)
        node->previous->next = node->next;
    else
        freed_oldest = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        freed_newest = node->previous;
    freed_count--;
    external_tree_remove(TREE_FREED, node);
    external_node_delete(node);
}

void external_remember(Node *node, u32 context)
{
    external_forget(node->start, max_u64(node->size, 1));
    node->free_context = context;
    node->next = NULL;
    node->previous = freed_newest;
    node->pool = NULL;
    external_tree_insert(TREE_FREED, node);
    if (freed_newest)
        freed_newest->next = node;
    else
        freed_oldest = node;
    freed_newest = node;
    if (++freed_count > REMEMBERED_MAX)
        forget(freed_oldest);
}

void external_forget(GuestAddr start, u64 size)
{
    Node *node = external_tree_floor(TREE_FREED, start);

    if (node && node->start + max_u64(node->size, 1) > start)
        forget(node);
    while ((node = external_tree_ceiling(TREE_FREED, start)) && node->start - start < size)
        forget(node);
}

void external_destroy(void)
{
    for (Node *pool = node_pools, *next; pool; pool = next) {
        next = pool->next;
        pages_unmap(pool, NODE_POOL_BYTES);
    }
    unused = node_pools = freed_oldest = freed_newest = NULL;
    freed_count = 0;
    for (u32 i = 0; i < TREE_COUNT; i++)
        external_roots[i] = NULL;
}

// Nodes are met in ascending order and never below a node of lower priority.
static void validate_tree(const Node *node, GuestAddr low, GuestAddr high)
{
    if (!node)
        return;
    ASSERT(node->start >= low && node->start <= high);
    ASSERT(!node->left || priority(node->left) <= priority(node));
    ASSERT(!node->right || priority(node->right) <= priority(node));
    if (node->left)
        validate_tree(node->left, low, node->start - 1);
    if (node->right)
        validate_tree(node->right, node->start + 1, high);
}

void external_validate(void)
{
    u32 count = 0;

    for (u32 i = 0; i < TREE_COUNT; i++)
        validate_tree(external_roots[i], 0, ~0ull);
    for (const Node *node = freed_oldest; node; node = node->next)
        count++;
    ASSERT(count == freed_count);
    for (Node *pool = external_tree_ceiling(TREE_POOL, 0); pool;
         pool = external_tree_ceiling(TREE_POOL, pool->start + 1)) {
        for (Node *chunk = pool->pool; chunk; chunk = chunk->next) {
            ASSERT(chunk->pool == pool && external_tree_at(TREE_CHUNK, chunk->start) == chunk);
            ASSERT(!chunk->next || chunk->next->previous == chunk);
        }
        if (pool->start == ~0ull)
            break;
    }
}
