// SPDX-License-Identifier: MIT
//
// See mapping_tree.h. All changes are made of two moves, taking a node out and
// putting one in, so the aggregates of a subtree are computed in one place.
#include "engine/aspace/mapping_tree.h"

#include <sys/mman.h>

#include "base/assert.h"
#include "engine/aspace/pool.h"

#define ALIAS_BUCKETS 256

static MapNode *tree_root;
static size_t tree_size;
static u64 tree_random = 0x9e3779b97f4a7c15ull;
static MapNode *alias_buckets[ALIAS_BUCKETS];

// ---------------------------------------------------------------- the treap

static u64 next_priority(void)
{
    tree_random ^= tree_random << 13;
    tree_random ^= tree_random >> 7;
    tree_random ^= tree_random << 17;
    return tree_random;
}

// Where the claim of a member begins: a growing stack owns the room below it.
static u64 claim_start(const MapNode *n)
{
    if (!(n->m.flags & MAP_GROWSDOWN))
        return n->m.start;
    return n->m.start > GROWSDOWN_ROOM ? n->m.start - GROWSDOWN_ROOM : 0;
}

static u64 hole(u64 low, u64 high)
{
    return high > low ? high - low : 0;
}

static void node_refresh(MapNode *n)
{
    n->low = claim_start(n);
    n->high = n->m.end;
    n->max_gap = 0;
    n->growing = (n->m.flags & MAP_GROWSDOWN) || (n->left && n->left->growing) ||
                 (n->right && n->right->growing);
    if (n->left) {
        n->max_gap = max_u64(n->left->max_gap, hole(n->left->high, n->low));
        n->low = min_u64(n->low, n->left->low);
    }
    if (n->right) {
        n->max_gap = max_u64(n->max_gap, n->right->max_gap);
        n->max_gap = max_u64(n->max_gap, hole(n->m.end, n->right->low));
        n->high = n->right->high;
    }
}

// Members that start below `key` go to *ret_low, the others to *ret_high.
static void treap_split(MapNode *n, GuestAddr key, MapNode **ret_low, MapNode **ret_high)
{
    if (!n) {
        *ret_low = *ret_high = NULL;
    } else if (n->m.start < key) {
        treap_split(n->right, key, &n->right, ret_high);
        *ret_low = n;
        node_refresh(n);
    } else {
        treap_split(n->left, key, ret_low, &n->left);
        *ret_high = n;
        node_refresh(n);
    }
}

static MapNode *treap_join(MapNode *low, MapNode *high)
{
    if (!low)
        return high;
    if (!high)
        return low;
    if (low->priority > high->priority) {
        low->right = treap_join(low->right, high);
        node_refresh(low);
        return low;
    }
    high->left = treap_join(low, high->left);
    node_refresh(high);
    return high;
}

static MapNode **alias_bucket(u64 dev, u64 inode)
{
    return &alias_buckets[(dev * 31 + inode * 0x9e3779b97f4a7c15ull) >> 56];
}

static bool has_aliases(const MapNode *n)
{
    return (n->m.flags & MAP_SHARED) && n->m.inode;
}

static void node_insert(MapNode *n)
{
    MapNode *low, *high;

    n->left = n->right = NULL;
    n->priority = next_priority();
    node_refresh(n);
    treap_split(tree_root, n->m.start, &low, &high);
    tree_root = treap_join(treap_join(low, n), high);
    tree_size++;
    if (has_aliases(n)) {
        n->alias_link = alias_bucket(n->m.dev, n->m.inode);
        n->alias_next = *n->alias_link;
        if (n->alias_next)
            n->alias_next->alias_link = &n->alias_next;
        *n->alias_link = n;
    }
}

static MapNode *treap_take(MapNode *n, MapNode *victim)
{
    ASSERT(n != NULL);
    if (n == victim)
        return treap_join(n->left, n->right);
    if (victim->m.start < n->m.start)
        n->left = treap_take(n->left, victim);
    else
        n->right = treap_take(n->right, victim);
    node_refresh(n);
    return n;
}

static void node_take(MapNode *n)
{
    tree_root = treap_take(tree_root, n);
    tree_size--;
    if (has_aliases(n)) {
        *n->alias_link = n->alias_next;
        if (n->alias_next)
            n->alias_next->alias_link = n->alias_link;
    }
}

static void node_delete(MapNode *n)
{
    node_take(n);
    name_release(n->m.name);
    pool_free(n, sizeof *n);
}

// Puts in a copy of `like`, whose name is interned already and gains a reference.
static MapNode *node_add_copy(const MapNode *like)
{
    MapNode *n = pool_alloc(sizeof *n);

    *n = *like;
    name_retain(n->m.name);
    node_insert(n);
    return n;
}

// ---------------------------------------------------------------- lookup

MapNode *tree_at_or_after(GuestAddr addr)
{
    MapNode *best = NULL;

    for (MapNode *n = tree_root; n;) {
        if (n->m.end > addr) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
}

MapNode *tree_find(GuestAddr addr)
{
    MapNode *n = tree_at_or_after(addr);

    return n && n->m.start <= addr ? n : NULL;
}

MapNode *tree_next(const MapNode *node)
{
    return tree_at_or_after(node ? node->m.end : 0);
}

static MapNode *first_growing(MapNode *n, GuestAddr addr)
{
    if (!n || !n->growing)
        return NULL;
    if (n->m.start < addr)
        return first_growing(n->right, addr);

    MapNode *found = first_growing(n->left, addr);
    if (found)
        return found;
    return n->m.flags & MAP_GROWSDOWN ? n : first_growing(n->right, addr);
}

MapNode *tree_next_growing(GuestAddr addr)
{
    return first_growing(tree_root, addr);
}

MapNode *tree_aliases(u64 dev, u64 inode)
{
    return *alias_bucket(dev, inode);
}

// ---------------------------------------------------------------- change

MapNode tree_piece(const MapNode *node, GuestAddr start, GuestAddr end)
{
    MapNode piece = *node;

    piece.m.start = max_u64(node->m.start, start);
    piece.m.end = min_u64(node->m.end, end);
    if (node->m.inode)
        piece.m.offset += piece.m.start - node->m.start;
    return piece;
}

static void split_at(GuestAddr addr)
{
    MapNode *n = tree_find(addr);
    if (!n || n->m.start == addr)
        return;

    MapNode low = tree_piece(n, 0, addr);
    MapNode high = tree_piece(n, addr, ~0ull);
    node_add_copy(&high); // while n still holds its name
    node_take(n);
    n->m.end = low.m.end;
    node_insert(n);
}

static bool can_join(const MapNode *a, const MapNode *b)
{
    if (a->m.end != b->m.start || a->m.prot != b->m.prot || a->m.flags != b->m.flags ||
        a->m.dev != b->m.dev || a->m.inode != b->m.inode || a->m.name != b->m.name)
        return false;
    if (a->pkey != b->pkey || a->foreign != b->foreign || a->dont_fork != b->dont_fork)
        return false;
    if (a->m.flags & MAP_GROWSDOWN)
        return false;
    return !a->m.inode || a->m.offset + (a->m.end - a->m.start) == b->m.offset;
}

// Joins every joinable pair whose border lies in [start, end].
static void join_around(GuestAddr start, GuestAddr end)
{
    MapNode *n = tree_at_or_after(start ? start - 1 : 0);

    while (n && n->m.start <= end) {
        MapNode *next = tree_next(n);
        if (!next)
            break;
        if (can_join(n, next)) {
            GuestAddr joined_end = next->m.end;
            node_delete(next);
            node_take(n);
            n->m.end = joined_end;
            node_insert(n);
        } else {
            n = next;
        }
    }
}

void (*aspace_unmapped_hook)(GuestAddr start, GuestAddr end);
void (*aspace_mapped_hook)(const Mapping *mapping);

void tree_remove(GuestAddr start, GuestAddr end)
{
    if (start >= end)
        return;
    if (aspace_unmapped_hook)
        aspace_unmapped_hook(start, end);
    split_at(start);
    split_at(end);
    for (;;) {
        MapNode *n = tree_at_or_after(start);
        if (!n || n->m.start >= end)
            return;
        node_delete(n);
    }
}

void tree_add(const MapNode *like)
{
    if (like->m.flags & MAP_GROWSDOWN)
        __atomic_store_n(&aspace_may_grow, true, __ATOMIC_RELAXED);
    if (aspace_mapped_hook && !like->foreign)
        aspace_mapped_hook(&like->m);
    MapNode *after = tree_at_or_after(like->m.start);
    ASSERT(!after || after->m.start >= like->m.end);

    MapNode copy = *like;
    copy.m.name = name_intern(like->m.name);
    node_add_copy(&copy);
    name_release(copy.m.name);
    join_around(like->m.start, like->m.end);
}

void tree_update(GuestAddr start, GuestAddr end, void (*change)(MapNode *, void *), void *arg)
{
    if (start >= end)
        return;
    split_at(start);
    split_at(end);
    GuestAddr at = start;
    for (;;) {
        MapNode *n = tree_at_or_after(at);
        if (!n || n->m.start >= end)
            break;
        at = n->m.end;
        node_take(n);
        change(n, arg);
        node_insert(n);
    }
    join_around(start, end);
}

// ---------------------------------------------------------------- room

typedef struct GapSearch {
    u64 low, high; // the window
    u64 len, align;
} GapSearch;

static GuestAddr fit_highest(const GapSearch *s, u64 low, u64 high)
{
    low = max_u64(low, s->low);
    high = min_u64(high, s->high);
    if (high <= low || high - low < s->len)
        return 0;

    GuestAddr at = (high - s->len) & ~(s->align - 1);
    return at >= low ? at : 0;
}

// Whether a subtree that lies in the hole-to-hole span [low, high) can hold a fit.
static bool worth_looking(const MapNode *n, const GapSearch *s, u64 low, u64 high)
{
    if (high <= s->low || low >= s->high)
        return false;
    if (!n)
        return true;
    u64 largest = max_u64(n->max_gap, max_u64(hole(low, n->low), hole(n->high, high)));
    return largest >= s->len;
}

static GuestAddr search_highest(const MapNode *n, const GapSearch *s, u64 low, u64 high)
{
    if (!worth_looking(n, s, low, high))
        return 0;
    if (!n)
        return fit_highest(s, low, high);

    GuestAddr at = search_highest(n->right, s, n->m.end, high);
    return at ? at : search_highest(n->left, s, low, claim_start(n));
}

GuestAddr tree_gap_highest(GuestAddr low, GuestAddr high, u64 len, u64 align)
{
    GapSearch s = {low, high, len, align};

    return search_highest(tree_root, &s, 0, ~0ull);
}

// ---------------------------------------------------------------- validity

static const char *subtree_breach(MapNode *n)
{
    if (!n)
        return NULL;
    if (n->left && n->left->high > n->m.start)
        return "the tree of mappings is not in order";
    if ((n->left && n->left->priority > n->priority) ||
        (n->right && n->right->priority > n->priority))
        return "a mapping stands above one of higher priority";
    MapNode as_it_was = *n;
    node_refresh(n);
    MapNode as_it_should_be = *n;
    *n = as_it_was;
    if (n->low != as_it_should_be.low || n->high != as_it_should_be.high ||
        n->max_gap != as_it_should_be.max_gap || n->growing != as_it_should_be.growing)
        return "what a subtree of mappings says of its members is wrong";
    const char *breach = subtree_breach(n->left);
    return breach ? breach : subtree_breach(n->right);
}

static const char *member_breach(const MapNode *n, const MapNode *next)
{
    if (n->m.start >= n->m.end || n->m.start % PAGE_SIZE || n->m.end % PAGE_SIZE)
        return "a mapping is empty, or does not begin and end with a page";
    if (next && next->m.start < n->m.end)
        return "two mappings overlap";
    if (next && can_join(n, next))
        return "two mappings that differ in nothing are not joined";
    if (has_aliases(n) && *n->alias_link != n)
        return "a shared mapping is not in the list of its file";
    return NULL;
}

const char *tree_breach(void)
{
    const char *breach = subtree_breach(tree_root);
    size_t count = 0, shared = 0, listed = 0;

    for (MapNode *n = tree_next(NULL), *next; n && !breach; n = next) {
        next = tree_next(n);
        breach = member_breach(n, next);
        count++;
        shared += has_aliases(n);
    }
    if (breach)
        return breach;
    for (unsigned i = 0; i < ALIAS_BUCKETS; i++) {
        for (const MapNode *n = alias_buckets[i]; n && listed <= shared; n = n->alias_next)
            listed++;
    }
    if (listed != shared)
        return "the lists of shared mappings have others than there are";
    return count == tree_size ? NULL : "the number of mappings is wrong";
}
