// SPDX-License-Identifier: MIT
//
// Streams of events, which are nearly all that comes: straight from the wire's records into the
// model, without a call for each.
#include "monitor/heap/model_event.h"

enum { FETCHED_AHEAD = 8 }; // records

// The next record of a stream; its block is fetched into the cache until it is its turn.
static inline const u64 *fetch_ahead(const HeapModel *model, const u64 *at, const u64 *end)
{
    if (at >= end)
        return at;
    blocks_prefetch(&model->blocks, heap_place_address(at[2]));
    return at + ((u8)at[0] == RECORD_HEAP_FREE ? WIRE_STREAM_FREE : WIRE_STREAM_ALLOC);
}

size_t heap_take_stream(HeapDecoder *decoder, u32 ring, const u64 *words, size_t count)
{
    HeapModel *model = decoder->model;
    const u64 *end = words + count, *ahead = words;
    u32 thread = decoder->thread_of_ring[ring];
    size_t records = 0;

    for (int i = 0; i < FETCHED_AHEAD; i++)
        ahead = fetch_ahead(model, ahead, end);
    for (const u64 *at = words; at < end; records++) {
        HeapTime time = heap_decoder_now(decoder, at[1]);
        ahead = fetch_ahead(model, ahead, end);
        if ((u8)at[0] == RECORD_HEAP_FREE) {
            model_free(model, &time, thread, at[2]);
            at += WIRE_STREAM_FREE;
            continue;
        }
        if (LIKELY(at[3] >> HEAP_PLACE_BITS == 0))
            model_alloc(model, &(HeapNew){
                .time = time,
                .thread = thread,
                .context = (u32)(at[0] >> 32),
                .address = heap_place_address(at[2]),
                .size = at[3],
                .usable = at[3] + heap_place_extra(at[2]),
            });
        at += WIRE_STREAM_ALLOC;
    }
    return records;
}
