// SPDX-License-Identifier: MIT
//
// The difference of two moments of a recording, as a tree with signs. A hundred percent is what
// was live at the first of them, or at the second if that was nothing. Stacks whose changes
// cancel out are shown if each is above the threshold.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/ms_print/moments.h"
#include "inspect/ms_print/page.h"
#include "recording/massif_out.h"
#include "recording/query.h"

enum { LABEL_BYTES = 600 };

typedef struct Change {
    Recording *recording;
    const Tree *tree;
    MassifNode *nodes;
    u64 *weights;
    bool *is_main;
    u32 count;
} Change;

static char *label_of(const Change *change, const TreeNode *node, bool is_root)
{
    char text[LABEL_BYTES], *label = NULL;
    Recording *recording = change->recording;

    if (is_root)
        return strdup(recording_info(recording)->pages_as_heap
                          ? "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc."
                          : "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
    tree_node_label(recording, node, text, sizeof(text));
    if (node->frame == UINT32_MAX)
        return strdup(text);
    if (asprintf(&label, "0x%llX: %s",
                 (unsigned long long)recording_frame(recording, node->frame)->pc, text) < 0)
        return NULL;
    return label;
}

static bool is_main(const Change *change, u32 frame)
{
    const char *function =
        frame == UINT32_MAX ? NULL : recording_frame(change->recording, frame)->function;

    return function && strcmp(function, "main") == 0;
}

// The tree in the order of the page: a node, then all below it. Returns false without memory.
static bool flatten(Change *change)
{
    const TreeNode *nodes = change->tree->nodes;
    u32 depth = 0, at = 0;
    u32 *place_of = calloc(change->tree->count, sizeof(*place_of));

    while (place_of) {
        u32 place = change->count++;
        place_of[at] = place;
        change->nodes[place] = (MassifNode){
            .bytes = (u64)nodes[at].value, .label = label_of(change, &nodes[at], at == 0),
            .depth = depth};
        change->weights[place] = (u64)llabs(nodes[at].self);
        change->is_main[place] = is_main(change, nodes[at].frame);
        if (!change->nodes[place].label)
            break;
        if (nodes[at].first_child) {
            at = nodes[at].first_child;
            depth++;
            continue;
        }
        // A leaf: its subtree ends here, and so do those that it is the last of.
        for (;;) {
            change->nodes[place_of[at]].end = change->count;
            if (at == 0 || nodes[at].next_sibling)
                break;
            at = nodes[at].parent;
            depth--;
        }
        if (at == 0) {
            free(place_of);
            return true;
        }
        at = nodes[at].next_sibling;
    }
    free(place_of);
    return false;
}

// Weights so far are of the stacks that end at each node.
static void sum_weights(Change *change)
{
    for (u32 i = change->count; i-- > 0;) {
        for (u32 c = i + 1; c < change->nodes[i].end; c = change->nodes[c].end)
            saturate_grow_u64(&change->weights[i], change->weights[c]);
    }
}

// What called main is the same for all: it is left out, as in massif.out.
static void cut_below_main(Change *change)
{
    u32 *kept_before = calloc((size_t)change->count + 1, sizeof(*kept_before));
    u32 kept = 0, skip_until = 0;

    if (!kept_before)
        return; // the page is longer than it need be
    for (u32 i = 0; i < change->count; i++) {
        kept_before[i] = kept;
        if (i >= skip_until) {
            kept++;
            skip_until = change->is_main[i] ? change->nodes[i].end : 0;
        }
    }
    kept_before[change->count] = kept;
    for (u32 i = 0; i < change->count; i++) {
        u32 to = kept_before[i];
        if (kept_before[i + 1] == to) {
            free((char *)change->nodes[i].label);
            continue;
        }
        change->nodes[to] = change->nodes[i];
        change->nodes[to].end = kept_before[change->nodes[i].end];
        change->weights[to] = change->weights[i];
    }
    change->count = kept;
    free(kept_before);
}

static u64 row_of(Recording *recording, const RecordedMoment *at, u64 number,
                  MassifFileSnapshot *ret_row)
{
    const RecordingInfo *info = recording_info(recording);
    Space space = info->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP;
    MassifFileSnapshot row = {.number = number,
                              .time = massif_out_time(moment_unit(recording), &at->moment)};

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        const SiteSums *live = &at->live[i];
        Space own = recording_site(recording, i)->space;
        if (own == space)
            saturate_grow_u64(&row.heap_bytes, live->live_bytes);
        if (own == SPACE_HEAP && space == SPACE_HEAP)
            saturate_grow_u64(&row.extra_bytes,
                              saturate_add_u64(live->live_usable > live->live_bytes
                                                   ? live->live_usable - live->live_bytes
                                                   : 0,
                                               saturate_mul_u64(live->live_blocks,
                                                                info->heap_admin_bytes)));
        if (own == SPACE_STACK && info->has_stacks)
            saturate_grow_u64(&row.stacks_bytes, live->live_bytes);
    }
    *ret_row = row;
    return snapshot_total(&row);
}

static Tree *build_tree(Recording *recording, const RecordedMoment *from, const RecordedMoment *to)
{
    static const TreeOptions options = {.bottom_up = true, .hide_allocators = true};
    Space space = recording_info(recording)->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP;
    u32 count = recording_site_count(recording);
    i64 *values = calloc((size_t)count + 1, sizeof(*values));

    for (u32 i = 0; values && i < count; i++) {
        if (recording_site(recording, i)->space == space)
            values[i] = saturate_sub_i64((i64)to->live[i].live_bytes,
                                         (i64)from->live[i].live_bytes);
    }
    Tree *tree = values ? tree_build(recording, values, &options) : NULL;
    free(values);
    return tree;
}

static bool print_tree(const PageOptions *options, Recording *recording, const Tree *tree,
                       u64 total_bytes)
{
    Change change = {.recording = recording, .tree = tree,
                     .nodes = calloc(tree->count, sizeof(MassifNode)),
                     .weights = calloc(tree->count, sizeof(u64)),
                     .is_main = calloc(tree->count, sizeof(bool))};
    bool is_made = change.nodes && change.weights && change.is_main && flatten(&change);

    if (is_made) {
        sum_weights(&change);
        cut_below_main(&change);
        PageTree page = {.nodes = change.nodes, .total_bytes = (double)total_bytes,
                         .weights = change.weights};
        page_print_tree(options, &page);
    }
    for (u32 i = 0; i < change.count; i++)
        free((char *)change.nodes[i].label);
    free(change.nodes);
    free(change.weights);
    free(change.is_main);
    return is_made;
}

static bool find_both(Recording *recording, const char *times, RecordedMoment *from,
                      RecordedMoment *to, char **ret_error)
{
    size_t length = strcspn(times, ",");
    char *first = strndup(times, length);
    bool is_found = false;

    if (!times[length] || !first)
        *ret_error = strdup("--diff has two times: --diff=1s,peak");
    else if (moment_find(recording, first, from, ret_error))
        is_found = moment_find(recording, times + length + 1, to, ret_error);
    free(first);
    return is_found;
}

int recorded_print_change(const PageOptions *options, Recording *recording, const char *times,
                          char **ret_error)
{
    const RecordingInfo *info = recording_info(recording);
    RecordedMoment from = {.live = NULL}, to = {.live = NULL};
    MassifFileSnapshot rows[2];
    Tree *tree = NULL;
    bool is_printed = false;

    if (find_both(recording, times, &from, &to, ret_error)) {
        u64 before = row_of(recording, &from, 0, &rows[0]);
        u64 after = row_of(recording, &to, 1, &rows[1]);
        tree = build_tree(recording, &from, &to);
        page_print_preamble(options, info->command ? info->command : "",
                            info->options && *info->options ? info->options : "(none)");
        puts("\n");
        page_print_columns(moment_unit(recording));
        page_print_row(&rows[0]);
        page_print_row(&rows[1]);
        is_printed = tree && print_tree(options, recording, tree, before ? before : after);
    }
    if (!is_printed && !*ret_error)
        *ret_error = strdup("there is not enough memory");
    tree_free(tree);
    moment_free(&from);
    moment_free(&to);
    return is_printed ? 0 : 1;
}
