// SPDX-License-Identifier: MIT
//
// Blocks. A free tells everything about its block, so the dead need no memory of births. Who
// is alive at the end is found by reading all events once and keeping those that have not
// been freed; the result is kept, so that only the first question of the kind takes long.
//
// Most blocks die in the chunk in which they were born, by a reference to their birth: only
// those that outlive it enter the map of addresses.
#include <stdlib.h>

#include "recording/reader.h"

enum {
    LIVING_MAX = 4 << 20, // that are kept for the next question
    SQUEEZE_FROM = 4096,
};

typedef struct LateFree {
    u64 key, born_ns;
    size_t end; // the block is before this one in `living`
} LateFree;

typedef struct BlockWalk {
    const RecordedSite *sites;
    LivingBlock *living; // in order of birth, with holes
    size_t count, capacity, holes;
    size_t chunk_start;  // those from here were born in this chunk, and are not in the map
    Map by_address;      // to the index in living
    LateFree *late;      // of this chunk, of blocks not in the map
    size_t late_count, late_capacity;
    bool failed;
} BlockWalk;

// A mapping and a heap block may begin at one address.
static u64 block_key(const BlockWalk *walk, u64 address, u32 site)
{
    return address ^ (u64)walk->sites[site].space << 62;
}

static void bury(BlockWalk *walk, size_t index)
{
    if (walk->living[index].is_dead)
        return;
    walk->living[index].is_dead = true;
    walk->holes++;
}

// Takes the holes out of [from, count) and puts what is left where it is found by address.
static void squeeze(BlockWalk *walk, size_t from)
{
    size_t kept = from;

    for (size_t i = from; i < walk->count; i++) {
        const LivingBlock *block = &walk->living[i];
        if (block->is_dead) {
            walk->holes--;
            continue;
        }
        walk->failed |= !map_put(&walk->by_address,
                                 block_key(walk, block->address, block->site), kept);
        walk->living[kept++] = *block;
    }
    walk->count = kept;
}

// Those born in this chunk can be found by address from now on. Where an address came again,
// the one before has died.
static void enter_born(BlockWalk *walk)
{
    for (size_t i = walk->chunk_start; i < walk->count; i++) {
        const LivingBlock *block = &walk->living[i];
        u64 before, key = block_key(walk, block->address, block->site);
        if (block->is_dead)
            continue;
        if (map_get(&walk->by_address, key, &before))
            bury(walk, before);
        walk->failed |= !map_put(&walk->by_address, key, i);
    }
}

static void chunk_ended(BlockWalk *walk)
{
    enter_born(walk);
    for (size_t i = 0; i < walk->late_count; i++) {
        const LateFree *late = &walk->late[i];
        u64 index;
        if (map_get(&walk->by_address, late->key, &index) && index < late->end &&
            walk->living[index].born_ns == late->born_ns) {
            map_remove(&walk->by_address, late->key);
            bury(walk, index);
        }
    }
    walk->late_count = 0;
    squeeze(walk, walk->chunk_start);
    if (walk->holes > SQUEEZE_FROM && walk->holes > walk->count / 2)
        squeeze(walk, 0);
    walk->chunk_start = walk->count;
}

static void block_born(BlockWalk *walk, const HeapEvent *event)
{
    if (!array_reserve(&walk->living, &walk->capacity, walk->count + 1, sizeof(LivingBlock))) {
        walk->failed = true;
        return;
    }
    walk->living[walk->count++] = (LivingBlock){
        .address = event->address, .born_ns = event->time.ns, .size = event->size,
        .usable = event->usable, .site = event->site,
    };
}

static void block_died(BlockWalk *walk, const HeapEvent *event, u32 block)
{
    u64 index, key = block_key(walk, event->address, event->site);

    if (block != BLOCK_ELSEWHERE) {
        if (walk->chunk_start + block - 1 < walk->count)
            bury(walk, walk->chunk_start + block - 1);
        return;
    }
    if (map_get(&walk->by_address, key, &index)) {
        map_remove(&walk->by_address, key);
        bury(walk, index);
        return;
    }
    if (!array_reserve(&walk->late, &walk->late_capacity, walk->late_count + 1,
                       sizeof(LateFree))) {
        walk->failed = true;
        return;
    }
    walk->late[walk->late_count++] = (LateFree){ key, event->born_ns, walk->count };
}

typedef struct DeadFilter {
    u64 from_ns, to_ns;
    BlockFn *fn; // NULL: nobody asks
    void *arg;
    bool stopped;
} DeadFilter;

static void tell_dead(DeadFilter *dead, const HeapEvent *event)
{
    if (!dead->fn || event->time.ns < dead->from_ns || event->born_ns >= dead->to_ns)
        return;
    RecordedBlock block = {
        .site = event->site, .freed_by = event->thread, .flags = event->flags,
        .address = event->address, .size = event->size, .usable = event->usable,
        .born_ns = event->born_ns, .died_ns = event->time.ns,
    };
    dead->stopped = !dead->fn(dead->arg, &block);
}

static void walk_leaf(Recording *recording, size_t leaf, BlockWalk *walk, DeadFilter *dead)
{
    EventReader reader;
    HeapEvent event;

    if (!event_reader_open(recording, reader_leaf(recording, leaf), &reader))
        return;
    while (!dead->stopped && !walk->failed && decoder_next(&reader.decoder, &event)) {
        u32 block = reader.decoder.block;
        if (event.kind == EVENT_FREE)
            tell_dead(dead, &event);
        if (block == BLOCK_REPEATED)
            continue;
        if (event.kind == EVENT_FREE)
            block_died(walk, &event, block);
        else
            block_born(walk, &event);
    }
    event_reader_close(recording, &reader);
    chunk_ended(walk);
}

// Reads all events; the dead are told on the way. False: no memory.
static bool walk_all(Recording *recording, BlockWalk *walk, DeadFilter *dead)
{
    *walk = (BlockWalk){ .sites = recording->sites };
    for (size_t i = 0; i < recording->leaf_count && !dead->stopped && !walk->failed; i++)
        walk_leaf(recording, i, walk, dead);
    squeeze(walk, 0);
    map_free(&walk->by_address);
    free(walk->late);
    if (!walk->failed && !dead->stopped && walk->count <= LIVING_MAX) {
        recording->living = walk->living;
        recording->living_count = walk->count;
        recording->knows_living = true;
    }
    return !walk->failed;
}

static bool tell_event(void *arg, const HeapEvent *event)
{
    DeadFilter *dead = arg;

    if (event->kind == EVENT_FREE)
        tell_dead(dead, event);
    return !dead->stopped;
}

static void tell_living(const LivingBlock *living, size_t count, u64 to_ns, BlockFn *fn, void *arg)
{
    for (size_t i = 0; i < count && living[i].born_ns < to_ns; i++) {
        RecordedBlock block = {
            .site = living[i].site, .address = living[i].address, .size = living[i].size,
            .usable = living[i].usable, .born_ns = living[i].born_ns,
        };
        if (!fn(arg, &block))
            return;
    }
}

void reader_forget_living(Recording *recording)
{
    free(recording->living);
    recording->living = NULL;
    recording->living_count = 0;
    recording->knows_living = false;
}

// `fn` is told of the living, and by `dead` of the dead before them.
static bool each_block(Recording *recording, DeadFilter *dead, u64 to_ns, BlockFn *fn, void *arg)
{
    BlockWalk walk;

    if (recording->knows_living) {
        if (dead->fn)
            recording_each_event(recording, dead->from_ns, UINT64_MAX, tell_event, dead);
        if (!dead->stopped)
            tell_living(recording->living, recording->living_count, to_ns, fn, arg);
        return true;
    }
    bool ok = walk_all(recording, &walk, dead);
    if (ok && !dead->stopped)
        tell_living(walk.living, walk.count, to_ns, fn, arg);
    if (!recording->knows_living)
        free(walk.living);
    return ok;
}

bool recording_each_block(Recording *recording, u64 from_ns, u64 to_ns, BlockFn *fn, void *arg)
{
    DeadFilter dead = { .from_ns = from_ns, .to_ns = to_ns, .fn = fn, .arg = arg };

    return each_block(recording, &dead, to_ns, fn, arg);
}

// ---------------------------------------------------------------- the writer's own list
bool recording_lists_living(const Recording *recording)
{
    size_t leaves = recording->leaf_count;

    if (recording->has_living_list)
        return true;
    // No list is written of nothing.
    return recording->end.known && leaves &&
           reader_leaf(recording, leaves - 1)->info.totals.blocks[SPACE_HEAP] == 0;
}

bool recording_knows_living(const Recording *recording, u32 spaces)
{
    return (recording_lists_living(recording) && spaces == 1u << SPACE_HEAP) ||
           recording_events_kept_since_ns(recording) == 0;
}

// False: the chunk is broken, or fn had enough.
static bool tell_listed(Recording *recording, u64 offset, u64 to_ns, BlockFn *fn, void *arg)
{
    CachedBody *body = reader_pin_body(recording, offset);
    RecordedBlock block = { 0 };
    bool go_on = body != NULL;

    if (!body)
        return false;
    Cursor cursor = cursor_of(body->data, body->size);
    while (go_on && cursor.at < cursor.end) {
        block.site = (u32)cursor_varint(&cursor);
        block.address += (u64)cursor_signed(&cursor);
        block.size = cursor_varint(&cursor);
        block.usable = block.size + (u64)cursor_signed(&cursor);
        block.born_ns += (u64)cursor_signed(&cursor);
        if (cursor.failed || block.site >= recording->site_count) {
            reader_warn(recording, "%s: the blocks at offset %llu are broken; not all are used",
                        recording->path, (unsigned long long)offset);
            break;
        }
        if (block.born_ns < to_ns)
            go_on = fn(arg, &block);
    }
    reader_unpin_body(body);
    return go_on;
}

typedef struct SpaceFilter {
    const Recording *recording;
    u32 spaces;
    BlockFn *fn;
    void *arg;
} SpaceFilter;

static bool tell_if_in_space(void *arg, const RecordedBlock *block)
{
    const SpaceFilter *filter = arg;

    return !(filter->spaces >> filter->recording->sites[block->site].space & 1) ||
           filter->fn(filter->arg, block);
}

bool recording_each_living(Recording *recording, u32 spaces, u64 to_ns, BlockFn *fn, void *arg)
{
    SpaceFilter filter = { recording, spaces, fn, arg };
    DeadFilter nobody = { 0 };

    if (!recording_lists_living(recording) || spaces != 1u << SPACE_HEAP)
        return each_block(recording, &nobody, to_ns, tell_if_in_space, &filter);
    for (size_t i = 0; i < recording->living_chunk_count; i++)
        if (!tell_listed(recording, recording->living_chunks[i], to_ns, fn, arg))
            break;
    return true;
}
