// SPDX-License-Identifier: MIT
//
// Bodies that have been read stay in memory, so that moving about in a recording does not
// decompress the same chunks again; the total is bounded, the longest unused go first. A body
// that somebody reads is pinned: a caller's function may ask for others meanwhile.
#include <stdlib.h>

#include "recording/reader.h"

#define CACHE_BYTES (128 * MiB)

static void unlink_body(Recording *recording, CachedBody *body)
{
    if (body->newer)
        body->newer->older = body->older;
    else
        recording->newest = body->older;
    if (body->older)
        body->older->newer = body->newer;
    else
        recording->oldest = body->newer;
}

static void link_newest(Recording *recording, CachedBody *body)
{
    body->newer = NULL;
    body->older = recording->newest;
    if (recording->newest)
        recording->newest->newer = body;
    else
        recording->oldest = body;
    recording->newest = body;
}

static void drop(Recording *recording, CachedBody *body)
{
    unlink_body(recording, body);
    map_remove(&recording->cached, body->offset);
    recording->cache_bytes -= body->size;
    free(body->data);
    free(body);
}

static void make_room(Recording *recording, u32 size)
{
    CachedBody *body = recording->oldest;

    while (body && recording->cache_bytes + size > CACHE_BYTES) {
        CachedBody *next = body->newer;
        if (!body->pins)
            drop(recording, body);
        body = next;
    }
}

CachedBody *reader_pin_body(Recording *recording, u64 offset)
{
    CachedBody *body;
    u64 found;
    u32 size;

    if (map_get(&recording->cached, offset, &found)) {
        body = (CachedBody *)(uintptr_t)found;
        unlink_body(recording, body);
        link_newest(recording, body);
        body->pins++;
        return body;
    }
    u8 *data = reader_load_body(recording, offset, &size);
    if (!data)
        return NULL;
    make_room(recording, size);
    body = malloc(sizeof(*body));
    if (!body || !map_put(&recording->cached, offset, (uintptr_t)body)) {
        free(data);
        free(body);
        return NULL;
    }
    *body = (CachedBody){ .offset = offset, .data = data, .size = size, .pins = 1 };
    link_newest(recording, body);
    recording->cache_bytes += size;
    return body;
}

void reader_unpin_body(CachedBody *body)
{
    body->pins--;
}

void reader_drop_cache(Recording *recording)
{
    while (recording->oldest)
        drop(recording, recording->oldest);
    map_free(&recording->cached);
}
