// SPDX-License-Identifier: MIT
//
// /api/leaks: the leak records of a report as a tree of their stacks, or of who holds them.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/leak_tree.h"

static u64 child_key(u32 parent, const FoundFrame *frame, const char *title, u64 record)
{
    u64 hash = HASH_SEED ^ parent * 0x9e3779b97f4a7c15ull ^ record * 0xd6e8feb86659fd93ull;

    hash = hash_text(hash, title);
    if (!frame)
        return hash;
    hash = hash_text(hash_text(hash, frame->function), frame->file);
    hash = (hash ^ frame->line) * 1099511628211ull;
    return frame->function ? hash : (hash ^ frame->pc) * 1099511628211ull;
}

static bool grow(LeakTree *leaks)
{
    u32 capacity = leaks->capacity ? 2 * leaks->capacity : 256;
    TreeNode *nodes = realloc(leaks->tree.nodes, capacity * sizeof(*nodes));
    const FoundFrame **frames = realloc(leaks->frames, capacity * sizeof(*frames));
    const char **titles = realloc(leaks->titles, capacity * sizeof(*titles));
    i64 *findings = realloc(leaks->findings, capacity * sizeof(*findings));

    leaks->tree.nodes = nodes ? nodes : leaks->tree.nodes;
    leaks->frames = frames ? frames : leaks->frames;
    leaks->titles = titles ? titles : leaks->titles;
    leaks->findings = findings ? findings : leaks->findings;
    if (!nodes || !frames || !titles || !findings) {
        call_fail(leaks->call, 500, "internal", "no memory for this tree");
        return false;
    }
    leaks->capacity = capacity;
    return true;
}

u32 leak_child(LeakTree *leaks, u32 parent, const FoundFrame *frame, const char *title,
               u64 record)
{
    u64 key = child_key(parent, frame, title, record), known;
    u32 node = leaks->tree.count;

    if (node > 0 && map_get(&leaks->children, key, &known))
        return (u32)known;
    if (node == leaks->capacity && !grow(leaks))
        return parent;
    leaks->tree.nodes[node] = (TreeNode){.parent = parent, .frame = UINT32_MAX};
    leaks->frames[node] = frame;
    leaks->titles[node] = title;
    leaks->findings[node] = -1;
    if (node > 0)
        map_put(&leaks->children, key, node);
    leaks->tree.count++;
    return node;
}

static void add_record(LeakTree *leaks, const Found *found, u32 node, bool bottom_up)
{
    const FoundStack *stack = &found->stack;

    for (u32 i = 0; i < stack->count && !leaks->call->code; i++) {
        u32 at = bottom_up ? i : stack->count - 1 - i;
        node = leak_child(leaks, node, &stack->frames[at], NULL, 0);
    }
    if (leaks->call->code)
        return;
    saturate_grow_i64(&leaks->tree.nodes[node].self, saturate_to_i64(found->own_bytes));
    leaks->findings[node] = leaks->tree.nodes[node].count ? -1 : (i64)found->id;
    saturate_grow_u64(&leaks->tree.nodes[node].count, found->leaked_blocks);
}

// Children come after their parents: from the last to the first all is added up.
static void add_up(LeakTree *leaks)
{
    TreeNode *nodes = leaks->tree.nodes;

    for (u32 i = 0; i < leaks->tree.count; i++)
        nodes[i].value = nodes[i].self;
    for (u32 i = leaks->tree.count - 1; i > 0; i--) {
        saturate_grow_i64(&nodes[nodes[i].parent].value, nodes[i].value);
        saturate_grow_u64(&nodes[nodes[i].parent].count, nodes[i].count);
    }
}

static void node_words(void *arg, u32 node, NodeWords *ret_words)
{
    const LeakTree *leaks = arg;
    const FoundFrame *frame = leaks->frames[node];

    if (!frame) {
        ret_words->name = leaks->titles[node];
        return;
    }
    RecordedFrame as_recorded = {.function = frame->function, .pc = frame->pc};
    ret_words->name = frame_shown_name(&as_recorded, ret_words->buffer);
    ret_words->file = frame->file;
    ret_words->object = frame->object;
    ret_words->line = frame->line;
    ret_words->flags = (frame->inlined ? 1u : 0u) | (frame->function ? 0u : 2u);
}

// Those that are wanted, to be freed.
static const Found **choose_records(Call *call, u32 *ret_count)
{
    const Findings *findings = call->file->findings;
    FindingFilter filter = finding_filter(call);
    const Found **records = call_alloc(call, findings->count, sizeof(*records));

    *ret_count = 0;
    for (u32 i = 0; records && i < findings->count; i++) {
        const Found *found = &findings->found[i];
        if (finding_is_leak(found) && finding_is_wanted(&filter, found))
            records[(*ret_count)++] = found;
    }
    return records;
}

static bool know_holders(const Found **records, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (records[i]->holder_count)
            return true;
    }
    return false;
}

static void fill_tree(LeakTree *leaks, const Found **records, u32 count)
{
    static const char *const ways[] = {"caller", "holder"};
    bool by_holder = request_choice(leaks->call->request, "by", ways, 2, 0) == 1;
    bool bottom_up = request_flag(leaks->call->request, "bottom_up");

    leak_child(leaks, 0, NULL, "(all)", 0);
    if (by_holder && know_holders(records, count)) {
        leak_tree_by_holder(leaks, records, count);
        return;
    }
    for (u32 i = 0; i < count && !leaks->call->code; i++) {
        const char *title = by_holder ? finding_title(records[i]) : NULL;
        u32 node = title ? leak_child(leaks, 0, NULL, title, 0) : 0;
        add_record(leaks, records[i], node, bottom_up);
    }
}

void answer_leaks(Call *call)
{
    TreeCut cut = call_tree_cut(call);
    LeakTree leaks = {.call = call};
    Json *out = &call->out;
    u32 count;
    const Found **records = choose_records(call, &count);

    if (records)
        fill_tree(&leaks, records, count);
    if (!call->code) {
        TreeColumn column = {"finding", leaks.findings};
        add_up(&leaks);
        tree_relink(leaks.tree.nodes, leaks.tree.count);
        json_open(out, '{');
        json_key_text(out, "metric", "leaked");
        json_key_text(out, "unit", "bytes");
        json_key_i64(out, "total", leaks.tree.nodes[0].value);
        json_key_u64(out, "base_total", 0);
        json_tree(call, &leaks.tree, &cut, node_words, &leaks, &column);
        json_close(out, '}');
    }
    map_free(&leaks.children);
    arena_free(&leaks.arena);
    free(records);
    free(leaks.tree.nodes);
    free(leaks.frames);
    free(leaks.titles);
    free(leaks.findings);
}
