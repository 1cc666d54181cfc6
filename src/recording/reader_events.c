// SPDX-License-Identifier: MIT
//
// Events one after the other, and the blocks that they tell of. A free tells everything about
// its block, so the dead need no memory of births; who is alive at the end is found by
// keeping, while reading, those that have not been freed.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "recording/reader.h"

bool event_reader_open(Recording *recording, const Node *leaf, EventReader *ret_reader)
{
    *ret_reader = (EventReader){ .leaf = leaf };
    if (!leaf->events_offset)
        return false;
    ret_reader->body = reader_pin_body(recording, leaf->events_offset);
    ret_reader->ring = recording->ring;
    recording->ring = NULL;
    if (!ret_reader->ring)
        ret_reader->ring = malloc(BACK_REFERENCES * sizeof(RingBlock));
    if (!ret_reader->body || !ret_reader->ring) {
        // Told once: from now on the slice is one without events.
        ((Node *)leaf)->events_offset = 0;
        ((Node *)leaf)->info.has_events = false;
        if (ret_reader->body)
            reader_unpin_body(recording, ret_reader->body);
        recording->ring = ret_reader->ring;
        return false;
    }
    decoder_init(&ret_reader->decoder, ret_reader->body->data, ret_reader->body->size,
                 recording->sites, (u32)recording->site_count, ret_reader->ring);
    return true;
}

void event_reader_close(Recording *recording, EventReader *reader)
{
    if (reader->decoder.failed) {
        reader_warn(recording, "%s: the events at offset %llu are broken; not all are used",
                    recording->path, (unsigned long long)reader->leaf->events_offset);
    }
    reader_unpin_body(recording, reader->body);
    free(recording->ring);
    recording->ring = reader->ring;
}

bool recording_each_event(Recording *recording, u64 from_ns, u64 to_ns, EventFn *fn, void *arg)
{
    bool go_on = true;

    for (size_t i = reader_position(recording, from_ns, true).leaf;
         go_on && i < recording->leaf_count; i++) {
        EventReader reader;
        HeapEvent event;

        if (reader_leaf(recording, i)->first_event_ns >= to_ns)
            break;
        if (!event_reader_open(recording, reader_leaf(recording, i), &reader))
            continue;
        while (go_on && decoder_next(&reader.decoder, &event)) {
            if (event.time.ns >= to_ns)
                break;
            if (event.time.ns >= from_ns)
                go_on = fn(arg, &event);
        }
        event_reader_close(recording, &reader);
    }
    return true;
}

// ---------------------------------------------------------------- blocks
typedef struct BlockWalk {
    u64 from_ns, to_ns;
    BlockFn *fn;
    void *arg;
    RecordedBlock *living; // in order of birth, with holes
    size_t count, capacity;
    Map by_address;        // to the index in living, with the space above it
    size_t dead;           // holes
    bool stopped, failed;
    const RecordedSite *sites;
} BlockWalk;

static u64 block_key(const BlockWalk *walk, const HeapEvent *event)
{
    // A mapping and a heap block may begin at one address.
    return event->address ^ (u64)walk->sites[event->site].space << 62;
}

// Takes the holes out.
static void squeeze(BlockWalk *walk)
{
    size_t kept = 0;

    for (size_t i = 0; i < walk->count; i++) {
        if (walk->living[i].died_ns)
            continue;
        walk->living[kept] = walk->living[i];
        u64 key = walk->living[kept].address ^
                  (u64)walk->sites[walk->living[kept].site].space << 62;
        map_put(&walk->by_address, key, kept);
        kept++;
    }
    walk->count = kept;
    walk->dead = 0;
}

static void block_born(BlockWalk *walk, const HeapEvent *event)
{
    if (walk->dead > 4096 && walk->dead > walk->count / 2)
        squeeze(walk);
    if (!array_reserve(&walk->living, &walk->capacity, walk->count + 1, sizeof(RecordedBlock)) ||
        !map_put(&walk->by_address, block_key(walk, event), walk->count)) {
        walk->failed = true;
        return;
    }
    walk->living[walk->count++] = (RecordedBlock){
        .site = event->site, .address = event->address, .size = event->size,
        .usable = event->usable, .born_ns = event->time.ns,
    };
}

static void block_died(BlockWalk *walk, const HeapEvent *event)
{
    u64 index;

    if (map_get(&walk->by_address, block_key(walk, event), &index)) {
        map_remove(&walk->by_address, block_key(walk, event));
        walk->living[index].died_ns = event->time.ns ? event->time.ns : 1;
        walk->dead++;
    }
    if (event->time.ns < walk->from_ns || event->born_ns >= walk->to_ns)
        return;
    RecordedBlock block = {
        .site = event->site, .freed_by = event->thread, .flags = event->flags,
        .address = event->address, .size = event->size, .usable = event->usable,
        .born_ns = event->born_ns, .died_ns = event->time.ns,
    };
    walk->stopped = !walk->fn(walk->arg, &block);
}

static bool walk_event(void *arg, const HeapEvent *event)
{
    BlockWalk *walk = arg;

    if (event->kind == EVENT_FREE)
        block_died(walk, event);
    else if (event->time.ns < walk->to_ns)
        block_born(walk, event);
    return !walk->stopped && !walk->failed;
}

bool recording_each_block(Recording *recording, u64 from_ns, u64 to_ns, BlockFn *fn, void *arg)
{
    BlockWalk walk = {
        .from_ns = from_ns, .to_ns = to_ns, .fn = fn, .arg = arg, .sites = recording->sites,
    };

    recording_each_event(recording, 0, UINT64_MAX, walk_event, &walk);
    for (size_t i = 0; i < walk.count && !walk.stopped && !walk.failed; i++)
        if (!walk.living[i].died_ns)
            walk.stopped = !fn(arg, &walk.living[i]);
    map_free(&walk.by_address);
    free(walk.living);
    return !walk.failed;
}
