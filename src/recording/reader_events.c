// SPDX-License-Identifier: MIT
//
// Events one after the other.
#include <stdlib.h>

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
            reader_unpin_body(ret_reader->body);
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
    reader_unpin_body(reader->body);
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
