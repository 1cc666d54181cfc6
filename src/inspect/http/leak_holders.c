// SPDX-License-Identifier: MIT
//
// Leak records by who holds them. Who holds whom is a graph: a record may be held by several
// roots and records, and by itself. For a tree each record has one place, below the root that
// holds most of it or, if none does, below the first record through which it is reached; what it
// holds is there. Below its other holders it stands once more, with the bytes that they hold and
// nothing below. So every byte counts once, and the sum of all is what was lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/leak_tree.h"

typedef struct Placed {
    u32 node;   // 0: not yet
    u32 parent; // its node
} Placed;

typedef struct Holding {
    LeakTree *leaks;
    const Found *const *records;
    u32 count;
    Map by_number; // check and record → index
    Placed *placed;
    u32 *queue; // of those that have a place, in this order
    u32 queued, taken;
} Holding;

static u64 number_key(const Found *found, u64 record)
{
    return found->check << 32 ^ record;
}

// The record that is meant; U32_MAX: it is not in the report.
static u32 find_record(const Holding *holding, const Found *found, const FoundHolder *holder)
{
    u64 index;

    return map_get(&holding->by_number, number_key(found, holder->record), &index)
               ? (u32)index : UINT32_MAX;
}

static bool is_record(const FoundHolder *holder)
{
    return strcmp(holder->kind, "record") == 0;
}

static bool is_root(const FoundHolder *holder)
{
    return !is_record(holder) && strcmp(holder->kind, "others") != 0;
}

// ---------------------------------------------------------------------------- names

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash && slash[1] ? slash + 1 : path ? path : "?";
}

static void put_record_title(const FoundHolder *holder, char text[HOLDER_TITLE_MAX])
{
    Found found = {.kind = "", .stack = holder->stack};
    const FoundFrame *frame = finding_place(&found);

    if (frame && frame->function && frame->file)
        snprintf(text, HOLDER_TITLE_MAX, "blocks of %.300s (%.200s:%u)", frame->function,
                 frame->file, frame->line);
    else if (frame && frame->function)
        snprintf(text, HOLDER_TITLE_MAX, "blocks of %.500s", frame->function);
    else
        snprintf(text, HOLDER_TITLE_MAX, "blocks of loss record %llu",
                 (unsigned long long)holder->record);
}

void holder_put_title(const FoundHolder *holder, char text[HOLDER_TITLE_MAX])
{
    const char *object = last_part(holder->object), *name = holder->name ? holder->name : "?";
    unsigned long long thread = holder->thread, address = holder->address;

    if (is_record(holder))
        put_record_title(holder, text);
    else if (strcmp(holder->kind, "others") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "others");
    else if (strcmp(holder->kind, "global") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "variable %.300s (%.200s)", name, object);
    else if (strcmp(holder->kind, "data") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "data of %.300s", object);
    else if (strcmp(holder->kind, "tls") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "thread-local data of thread %llu", thread);
    else if (strcmp(holder->kind, "stack") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "stack of thread %llu", thread);
    else if (strcmp(holder->kind, "register") == 0)
        snprintf(text, HOLDER_TITLE_MAX, "register %.30s of thread %llu", name, thread);
    else if (holder->object)
        snprintf(text, HOLDER_TITLE_MAX, "mapping of %.300s", object);
    else
        snprintf(text, HOLDER_TITLE_MAX, "memory at 0x%llx", address);
}

// The tree's.
static const char *root_title(LeakTree *leaks, const FoundHolder *holder)
{
    char text[HOLDER_TITLE_MAX];

    holder_put_title(holder, text);
    char *kept = arena_alloc(&leaks->arena, strlen(text) + 1, 1);
    return kept ? strcpy(kept, text) : "?";
}

static u32 root_node(const Holding *holding, const FoundHolder *holder)
{
    return leak_child(holding->leaks, 0, NULL, root_title(holding->leaks, holder), 0);
}

// The node of a record below one of its holders.
static u32 record_node(const Holding *holding, u32 parent, u32 index)
{
    const Found *found = holding->records[index];
    const FoundFrame *frame = finding_place(found);

    return leak_child(holding->leaks, parent, frame, frame ? NULL : finding_title(found),
                      index + 1ull);
}

// ---------------------------------------------------------------------------- places

static void place(Holding *holding, u32 index, u32 parent)
{
    Placed *placed = &holding->placed[index];

    if (placed->node || holding->leaks->call->code)
        return;
    *placed = (Placed){record_node(holding, parent, index), parent};
    holding->queue[holding->queued++] = index;
}

// Those that something other than a block holds, and those that nothing does.
static void place_below_roots(Holding *holding)
{
    for (u32 i = 0; i < holding->count; i++) {
        const Found *found = holding->records[i];
        const FoundHolder *best = NULL;
        for (u32 k = 0; k < found->holder_count; k++) {
            const FoundHolder *holder = &found->holders[k];
            if (is_root(holder) && (!best || holder->bytes > best->bytes))
                best = holder;
        }
        if (best)
            place(holding, i, root_node(holding, best));
        else if (strcmp(found->kind, "leak-definite") == 0 || found->holder_count == 0)
            place(holding, i, leak_child(holding->leaks, 0, NULL, "nothing points to these", 0));
    }
}

// Those that are held by what has a place. `held` lists for each record whom it holds.
static void place_held(Holding *holding, const u32 *first, const u32 *held)
{
    while (holding->taken < holding->queued && !holding->leaks->call->code) {
        u32 holder = holding->queue[holding->taken++];
        for (u32 i = first[holder]; i < first[holder + 1]; i++)
            place(holding, held[i], holding->placed[holder].node);
    }
}

// Whom only records hold that have no place: those that the report leaves out, or rings.
static void place_left(Holding *holding, u32 index)
{
    const Found *found = holding->records[index];
    LeakTree *leaks = holding->leaks;

    for (u32 k = 0; k < found->holder_count; k++) {
        const FoundHolder *holder = &found->holders[k];
        if (!is_record(holder) || find_record(holding, found, holder) != UINT32_MAX)
            continue;
        Found hidden = {.kind = "", .stack = holder->stack};
        const FoundFrame *frame = finding_place(&hidden);
        u32 group = leak_child(leaks, 0, NULL, "records that the report leaves out", 0);
        place(holding, index,
              frame ? leak_child(leaks, group, frame, NULL, 0) : group);
        return;
    }
    place(holding, index, leak_child(leaks, 0, NULL, "blocks that point to each other", 0));
}

// For each record whom it holds, one after the other; held[first[i]…first[i + 1]).
static bool list_held(const Holding *holding, u32 *first, u32 **ret_held)
{
    u32 total = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < holding->count; i++) {
            const Found *found = holding->records[i];
            for (u32 k = 0; k < found->holder_count; k++) {
                u32 by = is_record(&found->holders[k])
                             ? find_record(holding, found, &found->holders[k]) : UINT32_MAX;
                if (by == UINT32_MAX)
                    continue;
                if (pass == 0)
                    first[by + 1]++;
                else
                    (*ret_held)[--first[by + 1]] = i;
            }
        }
        for (u32 i = 0; pass == 0 && i < holding->count; i++)
            first[i + 1] += first[i];
        total = pass == 0 ? first[holding->count] : total;
        if (pass == 0 && !(*ret_held = call_alloc(holding->leaks->call, total, sizeof(u32))))
            return false;
    }
    // The second pass has moved every end to its beginning.
    memmove(first, first + 1, holding->count * sizeof(u32));
    first[holding->count] = total;
    return true;
}

static void place_all(Holding *holding)
{
    u32 *first = call_alloc(holding->leaks->call, holding->count + 1u, sizeof(u32));
    u32 *held = NULL;

    if (first && list_held(holding, first, &held)) {
        place_below_roots(holding);
        place_held(holding, first, held);
        for (u32 i = 0; i < holding->count; i++) {
            if (holding->placed[i].node)
                continue;
            place_left(holding, i);
            place_held(holding, first, held);
        }
    }
    free(first);
    free(held);
}

// ----------------------------------------------------------------------------- bytes

static void add(const Holding *holding, u32 node, u64 bytes, u64 blocks, u64 id)
{
    TreeNode *at = &holding->leaks->tree.nodes[node];

    saturate_grow_i64(&at->self, saturate_to_i64(bytes));
    saturate_grow_u64(&at->count, blocks);
    holding->leaks->findings[node] = (i64)id;
}

static bool is_below(const LeakTree *leaks, u32 node, u32 above)
{
    while (node > above) // parents come before their children
        node = leaks->tree.nodes[node].parent;
    return node == above;
}

// What each holder has goes there; the rest to the record's own place, also what is held by what
// it holds.
static void share_out(const Holding *holding, u32 index)
{
    const Found *found = holding->records[index];
    const Placed *placed = &holding->placed[index];
    u64 bytes = found->own_bytes, blocks = found->leaked_blocks;

    for (u32 k = 0; k < found->holder_count && !holding->leaks->call->code; k++) {
        const FoundHolder *holder = &found->holders[k];
        u32 by = is_record(holder) ? find_record(holding, found, holder) : UINT32_MAX;
        u32 parent = is_root(holder)                     ? root_node(holding, holder)
                     : by == UINT32_MAX || by == index   ? placed->parent
                                                         : holding->placed[by].node;
        u64 its_bytes = min_u64(holder->bytes, bytes), its_blocks = min_u64(holder->blocks, blocks);
        if (parent == placed->parent || !parent || is_below(holding->leaks, parent, placed->node))
            continue;
        add(holding, record_node(holding, parent, index), its_bytes, its_blocks, found->id);
        bytes -= its_bytes;
        blocks -= its_blocks;
    }
    if (!holding->leaks->call->code)
        add(holding, placed->node, bytes, blocks, found->id);
}

void leak_tree_by_holder(LeakTree *leaks, const Found *const *records, u32 count)
{
    Holding holding = {.leaks = leaks, .records = records, .count = count};

    holding.placed = call_alloc(leaks->call, count, sizeof(Placed));
    holding.queue = call_alloc(leaks->call, count, sizeof(u32));
    for (u32 i = 0; i < count; i++)
        map_put(&holding.by_number, number_key(records[i], records[i]->record), i);
    if (!leaks->call->code)
        place_all(&holding);
    for (u32 i = 0; i < count && !leaks->call->code; i++)
        share_out(&holding, i);
    map_free(&holding.by_number);
    free(holding.placed);
    free(holding.queue);
}
