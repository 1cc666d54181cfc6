// SPDX-License-Identifier: MIT
//
// Spans of time. The leaves are the finest spans that the file has, one after the other; the
// nodes of higher levels cover 16 of the level below, so that a long span is a few nodes.
#include <stdlib.h>

#include "recording/reader.h"

bool reader_add_node(Recording *recording, const Node *node)
{
    if (recording->node_count >= UINT32_MAX ||
        !array_reserve(&recording->nodes, &recording->node_capacity, recording->node_count + 1,
                       sizeof(*node)))
        return false;
    recording->nodes[recording->node_count++] = *node;
    return true;
}

void reader_add_events(Recording *recording, u64 slice, u64 offset)
{
    Node *node = recording->node_count ? &recording->nodes[recording->node_count - 1] : NULL;

    if (!node || node->level != 0 || node->first != slice)
        return;
    node->events_offset = offset;
    node->info.has_events = true;
}

const Node *reader_leaf(const Recording *recording, size_t leaf)
{
    return &recording->nodes[recording->leaves[leaf]];
}

static int compare_nodes(const void *a, const void *b, void *nodes)
{
    const Node *x = &((const Node *)nodes)[*(const u32 *)a];
    const Node *y = &((const Node *)nodes)[*(const u32 *)b];

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

// The index in by_level of the first node at or after a slice.
static size_t level_search(const Recording *recording, u32 level, u64 slice)
{
    size_t low = 0, high = recording->level_count[level];

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (recording->nodes[recording->by_level[level][middle]].first < slice)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const Node *level_node(const Recording *recording, u32 level, u64 slice)
{
    size_t at = level_search(recording, level, slice);

    if (at == recording->level_count[level])
        return NULL;
    const Node *node = &recording->nodes[recording->by_level[level][at]];
    return node->first == slice ? node : NULL;
}

static bool sort_levels(Recording *recording)
{
    for (u32 level = 0; level < LEVELS; level++)
        recording->level_count[level] = 0;
    for (size_t i = 0; i < recording->node_count; i++) {
        u32 level = recording->nodes[i].level;
        size_t *count = &recording->level_count[level];
        if (!array_reserve(&recording->by_level[level], &recording->level_capacity[level],
                           *count + 1, sizeof(u32)))
            return false;
        recording->by_level[level][(*count)++] = (u32)i;
    }
    for (u32 level = 0; level < LEVELS; level++)
        if (recording->level_count[level])
            qsort_r(recording->by_level[level], recording->level_count[level], sizeof(u32),
                    compare_nodes, recording->nodes);
    return true;
}

// The first slice at or after `slice` of which there is something, or UINT64_MAX.
static u64 next_slice(const Recording *recording, u64 slice)
{
    u64 next = UINT64_MAX;

    for (u32 level = 0; level < LEVELS; level++) {
        size_t at = level_search(recording, level, slice);
        if (at < recording->level_count[level])
            next = min_u64(next, recording->nodes[recording->by_level[level][at]].first);
    }
    return next;
}

// A slice is written before its events. Where the file ends between them it ends before both, so
// that sums, blocks and peaks are of one moment.
static void forget_half_written(Recording *recording)
{
    size_t count = recording->leaf_count;

    if (recording->is_whole || count < 2)
        return;
    const Node *last = reader_leaf(recording, count - 1);
    const Node *before = reader_leaf(recording, count - 2);
    if (!last->info.events || last->events_offset || !before->events_offset)
        return;
    recording->leaf_count--;
    if (recording->last.ns == last->info.end.ns)
        recording->last = before->info.end;
}

bool reader_build_leaves(Recording *recording)
{
    u64 slice = 0;

    if (!sort_levels(recording))
        return false;
    recording->leaf_count = 0;
    while ((slice = next_slice(recording, slice)) != UINT64_MAX) {
        const Node *node = NULL;
        for (u32 level = 0; level < LEVELS && !node; level++)
            node = level_node(recording, level, slice);
        if (!array_reserve(&recording->leaves, &recording->leaf_capacity,
                           recording->leaf_count + 1, sizeof(u32)))
            return false;
        recording->leaves[recording->leaf_count++] = (u32)(node - recording->nodes);
        slice = node->first + node->count;
    }
    forget_half_written(recording);
    return true;
}

// The first leaf with events at or after a moment, or the end.
static size_t leaf_at(const Recording *recording, u64 ns)
{
    size_t low = 0, high = recording->leaf_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (reader_leaf(recording, middle)->last_event_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_nearer_to_end(const Node *leaf, u64 ns)
{
    return ns - leaf->first_event_ns >= leaf->last_event_ns - ns;
}

Position reader_position(const Recording *recording, u64 ns, bool exact)
{
    Position position = { .leaf = leaf_at(recording, ns) };

    if (position.leaf == recording->leaf_count)
        return position;
    const Node *leaf = reader_leaf(recording, position.leaf);
    if (leaf->first_event_ns >= ns)
        return position;
    if (leaf->events_offset && exact)
        position.is_inside = true;
    else if (is_nearer_to_end(leaf, ns))
        position.leaf++;
    return position;
}

u64 recording_nearest_ns(const Recording *recording, u64 ns)
{
    size_t at = leaf_at(recording, ns);
    const Node *leaf = at < recording->leaf_count ? reader_leaf(recording, at) : NULL;

    if (!leaf || leaf->first_event_ns >= ns || leaf->events_offset)
        return ns;
    return is_nearer_to_end(leaf, ns) ? leaf->last_event_ns + 1 : leaf->first_event_ns;
}

// The leaf that begins with this slice or a later one.
static size_t leaf_of_slice(const Recording *recording, u64 slice)
{
    size_t low = 0, high = recording->leaf_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (reader_leaf(recording, middle)->first < slice)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const Node *reader_widest(const Recording *recording, size_t leaf, size_t end, size_t *ret_next)
{
    const Node *first = reader_leaf(recording, leaf);
    u64 end_slice = end < recording->leaf_count ? reader_leaf(recording, end)->first : UINT64_MAX;

    for (u32 level = LEVELS; level-- > first->level + 1;) {
        const Node *node = level_node(recording, level, first->first);
        if (node && node->first + node->count <= end_slice) {
            size_t next = leaf_of_slice(recording, node->first + node->count);
            if (next > leaf) {
                *ret_next = next;
                return node;
            }
        }
    }
    *ret_next = leaf + 1;
    return first;
}
