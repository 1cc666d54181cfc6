// SPDX-License-Identifier: MIT
//
// Bodies that have been read stay in memory, so that moving about in a recording does not
// decompress the same chunks again; the total is bounded, the longest unused go first.
#include <stdlib.h>

#include "recording/reader.h"

#define CACHE_BYTES (128 * MiB)

static void drop(Recording *recording, CachedBody *body)
{
    recording->cache_bytes -= body->size;
    free(body->data);
    *body = (CachedBody){ 0 };
}

// The slot for a new body of this size; others may have to go.
static CachedBody *make_room(Recording *recording, u32 size)
{
    for (;;) {
        CachedBody *empty = NULL, *oldest = NULL;

        for (u32 i = 0; i < CACHE_SLOTS; i++) {
            CachedBody *body = &recording->cache[i];
            if (!body->offset)
                empty = body;
            else if (!body->pins && (!oldest || body->used < oldest->used))
                oldest = body;
        }
        if (empty && (recording->cache_bytes + size <= CACHE_BYTES || !oldest))
            return empty;
        if (!oldest)
            return NULL; // all are being read: more callers in each other than can be
        drop(recording, oldest);
    }
}

CachedBody *reader_pin_body(Recording *recording, u64 offset)
{
    u32 size;

    for (u32 i = 0; i < CACHE_SLOTS; i++) {
        CachedBody *body = &recording->cache[i];
        if (body->offset == offset) {
            body->used = ++recording->cache_clock;
            body->pins++;
            return body;
        }
    }
    u8 *data = reader_load_body(recording, offset, &size);
    if (!data)
        return NULL;
    CachedBody *body = make_room(recording, size);
    if (!body) {
        free(data);
        return NULL;
    }
    *body = (CachedBody){
        .offset = offset, .data = data, .size = size, .used = ++recording->cache_clock, .pins = 1,
    };
    recording->cache_bytes += size;
    return body;
}

void reader_unpin_body(Recording *recording, CachedBody *body)
{
    (void)recording;
    body->pins--;
}

void reader_drop_cache(Recording *recording)
{
    for (u32 i = 0; i < CACHE_SLOTS; i++)
        if (recording->cache[i].offset)
            drop(recording, &recording->cache[i]);
}
