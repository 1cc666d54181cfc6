// SPDX-License-Identifier: MIT
//
// See blocks.h. A free tells all of its block, also when it was born: so the blocks of a moment
// are those that are freed after it, and those that live to the end, if the recording has these
// written down. Else they are followed from the start.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/http/parts.h"

typedef struct Walk {
    Call *call;
    LiveBlock *blocks;
    u32 count, capacity;
    u32 free; // list of unused entries through `site`; U32_MAX: none
    u32 live;
    Map by_address; // space << 56 ^ address: index
    const Recording *recording;
    u64 seen, expected;
    bool failed;
} Walk;

static u64 block_key(const Walk *walk, const HeapEvent *event)
{
    return event->address ^ (u64)recording_site(walk->recording, event->site)->space << 60;
}

static u32 take_entry(Walk *walk)
{
    if (walk->free != UINT32_MAX) {
        u32 entry = walk->free;
        walk->free = walk->blocks[entry].site;
        return entry;
    }
    if (walk->count == walk->capacity) {
        u32 capacity = walk->capacity ? 2 * walk->capacity : 4096;
        LiveBlock *blocks =
            capacity <= LIVE_BLOCKS_MAX ? realloc(walk->blocks, capacity * sizeof(*blocks)) : NULL;
        if (!blocks) {
            call_fail(walk->call, 413, "too-large",
                      "more than %d million blocks are live at this moment",
                      LIVE_BLOCKS_MAX / 1000000);
            return UINT32_MAX;
        }
        walk->blocks = blocks;
        walk->capacity = capacity;
    }
    return walk->count++;
}

static void drop_block(Walk *walk, u64 key)
{
    u64 entry;

    if (!map_get(&walk->by_address, key, &entry))
        return;
    map_remove(&walk->by_address, key);
    walk->blocks[entry] = (LiveBlock){.site = walk->free};
    walk->free = (u32)entry;
    walk->live--;
}

static bool take_event(void *arg, const HeapEvent *event)
{
    Walk *walk = arg;
    u64 key = block_key(walk, event);

    if (++walk->seen % 65536 == 0 &&
        !call_goes_on(walk->call, (double)walk->seen / (double)(walk->expected + 1)))
        return false;
    drop_block(walk, key);
    if (event->kind == EVENT_FREE)
        return true;
    u32 entry = take_entry(walk);
    if (entry == UINT32_MAX || !map_put(&walk->by_address, key, entry))
        return false;
    walk->blocks[entry] = (LiveBlock){event->address, event->size,
                                      max_u64(event->usable, event->size), event->time.ns,
                                      event->site};
    walk->live++;
    return true;
}

static int compare_blocks(const void *left, const void *right)
{
    const LiveBlock *a = left, *b = right;

    return a->address != b->address ? (a->address < b->address ? -1 : 1)
                                    : a->site < b->site ? -1 : a->site > b->site;
}

// Unused entries go, the others are put in order.
static void pack(Walk *walk)
{
    size_t cursor = 0;
    u64 key, entry;
    u8 *used = calloc(walk->count + 1u, 1);
    u32 kept = 0;

    if (!used) {
        call_fail(walk->call, 500, "internal", "no memory");
        return;
    }
    while (map_next(&walk->by_address, &cursor, &key, &entry))
        used[entry] = 1;
    for (u32 i = 0; i < walk->count; i++) {
        if (used[i])
            walk->blocks[kept++] = walk->blocks[i];
    }
    walk->count = kept;
    free(used);
    if (walk->count)
        qsort(walk->blocks, walk->count, sizeof(LiveBlock), compare_blocks);
}

static u64 events_until(const Recording *recording, u64 ns)
{
    u64 events = 0;

    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        if (slice->start.ns > ns)
            break;
        events += slice->events;
    }
    return events;
}

static void free_blocks(void *object)
{
    LiveBlocks *blocks = object;

    free(blocks->blocks);
    free(blocks);
}

// The moment that is meant: a range means its end.
static u64 chosen_moment(const Chosen *chosen)
{
    Chosen moment = *chosen;
    u64 from, to;

    if (!chosen->selection.to_ns && !chosen->selection.from_ns)
        moment.selection.at_peak = true;
    chosen_range(&moment, &from, &to);
    return to;
}

// ------------------------------------------------------------------- from the moment on

typedef struct Later {
    Walk walk;
    u64 at_ns;
    u32 spaces;
    u64 wanted; // blocks: when all are found nothing more needs to be read
} Later;

static void add_block(Walk *walk, const LiveBlock *block)
{
    u32 entry = take_entry(walk);

    if (entry != UINT32_MAX)
        walk->blocks[entry] = *block;
}

static bool take_living(void *arg, const RecordedBlock *block)
{
    Later *later = arg;

    add_block(&later->walk, &(LiveBlock){block->address, block->size,
                                         max_u64(block->usable, block->size), block->born_ns,
                                         block->site});
    return !later->walk.call->code;
}

static bool take_known(void *arg, const LiveBlock *block)
{
    Later *later = arg;

    add_block(&later->walk, block);
    return !later->walk.call->code;
}

static bool take_later_free(void *arg, const HeapEvent *event)
{
    Later *later = arg;
    Walk *walk = &later->walk;

    if (++walk->seen % 65536 == 0 &&
        !call_goes_on(walk->call, (double)walk->seen / (double)(walk->expected + 1)))
        return false;
    if (event->kind != EVENT_FREE || event->born_ns >= later->at_ns ||
        !(later->spaces & 1u << recording_site(walk->recording, event->site)->space))
        return true;
    add_block(walk, &(LiveBlock){event->address, event->size,
                                 max_u64(event->usable, event->size), event->born_ns,
                                 event->site});
    return !walk->call->code && walk->count < later->wanted;
}

// How many there are is known from the sums.
static bool count_wanted(Later *later, View *view)
{
    Chosen moment = {.view = view, .selection = {.to_ns = later->at_ns, .spaces = later->spaces}};

    chosen_make_key(&moment);
    const SiteSums *sums = chosen_sums(later->walk.call, &moment);
    for (u32 i = 0; sums && i < recording_site_count(view->recording); i++)
        later->wanted += sums[i].live_blocks;
    return sums != NULL;
}

static void walk_later(Later *later, View *view)
{
    Recording *recording = view->recording;
    Walk *walk = &later->walk;
    u64 events = recording_event_count(recording);

    if (!count_wanted(later, view))
        return;
    walk->expected = events - min_u64(walk->expected, events);
    // Who lived at a moment after it that is near, or at the end, and who died in between.
    u64 until = later->spaces == 1u << SPACE_HEAP
                    ? parts_each_living(view->parts, later->at_ns, take_known, later)
                    : 0;
    if (!until)
        recording_each_living(recording, later->spaces, later->at_ns, take_living, later);
    if (!walk->call->code && walk->count < later->wanted)
        recording_each_event(recording, later->at_ns, until ? until : UINT64_MAX, take_later_free,
                             later);
    if (!walk->call->code && walk->count)
        qsort(walk->blocks, walk->count, sizeof(LiveBlock), compare_blocks);
}

static void walk_earlier(Walk *walk, Recording *recording, u64 at)
{
    recording_each_event(recording, 0, at, take_event, walk);
    if (!walk->call->code)
        pack(walk);
    map_free(&walk->by_address);
}

static LiveBlocks *walk_blocks(Call *call, View *view, u64 at, u32 spaces)
{
    Recording *recording = view->recording;
    Later later = {.walk = {.call = call, .free = UINT32_MAX, .recording = recording,
                            .expected = events_until(recording, at)},
                   .at_ns = at, .spaces = spaces};
    LiveBlocks *blocks = call_alloc(call, 1, sizeof(*blocks));
    bool knows_living = recording_knows_living(recording, spaces);
    u64 since = recording_events_kept_since_ns(recording);

    if (knows_living ? since > at : since > 0)
        call_fail(call, 409, "no-events",
                  "the events of this time were not kept: single blocks are not known");
    else if (blocks && knows_living)
        walk_later(&later, view);
    else if (blocks)
        walk_earlier(&later.walk, recording, at);
    if (!blocks || call->code) {
        free(later.walk.blocks);
        free(blocks);
        return NULL;
    }
    *blocks = (LiveBlocks){later.walk.blocks, later.walk.count, at};
    return blocks;
}

static const LiveBlocks *blocks_at(Call *call, View *view, u64 at, u32 spaces)
{
    char key[64];

    snprintf(key, sizeof(key), "blocks %u %llu", spaces, (unsigned long long)at);
    const LiveBlocks *known = memo_get(&view->memo, key);
    if (known)
        return known;
    LiveBlocks *blocks = walk_blocks(call, view, at, spaces);
    if (!blocks)
        return NULL;
    return memo_put(&view->memo, key, blocks, blocks->count * sizeof(LiveBlock), free_blocks);
}

const LiveBlocks *chosen_blocks(Call *call, const Chosen *chosen)
{
    const char *word = request_text(call->request, "at");
    u64 at = chosen_moment(chosen);

    // `at=end` is a moment too, and no time at all is the peak.
    if (word && strcmp(word, "end") == 0)
        at = recording_last(chosen->view->recording).ns + 1;
    return blocks_at(call, chosen->view, at, chosen->selection.spaces);
}

u8 *chosen_sites(Call *call, const Chosen *chosen, const LiveBlocks *blocks)
{
    Chosen moment = *chosen;
    u32 count = recording_site_count(chosen->view->recording);

    moment.selection = (Selection){
        .to_ns = blocks->at_ns, .spaces = chosen->selection.spaces,
        .function = chosen->selection.function, .file = chosen->selection.file,
        .object = chosen->selection.object, .thread = chosen->selection.thread,
    };
    chosen_make_key(&moment);
    const SiteSums *sums = chosen_sums(call, &moment);
    u8 *sites = sums ? call_alloc(call, count, 1) : NULL;
    for (u32 i = 0; sites && i < count; i++)
        sites[i] = sums[i].allocations || sums[i].live_blocks || sums[i].live_bytes;
    return sites;
}
