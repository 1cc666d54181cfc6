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
    return at + (at[0] >> 16 & 0xffff); // which of the two kinds cannot be predicted
}

static inline void take_pair(HeapDecoder *decoder, const HeapNew *new, u64 lived)
{
    u64 lived_ns = (u64)((unsigned __int128)lived * decoder->ns_per_tick_q32 >> 32);
    HeapTime first = new->time;

    first.ns -= min_u64(first.ns, lived_ns);
    model_pair(decoder->model, new, &first, lived_ns);
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
        bool is_pair = (u8)at[0] == RECORD_HEAP_PAIR;
        u64 size = is_pair ? heap_pair_size(at[3]) : at[3];
        HeapNew new = {
            .time = time,
            .thread = thread,
            .context = (u32)(at[0] >> 32),
            .address = heap_place_address(at[2]),
            .size = size,
            .usable = size + heap_place_extra(at[2]),
        };
        if (is_pair)
            take_pair(decoder, &new, heap_pair_lived(at[3]));
        else if (LIKELY(size >> HEAP_PLACE_BITS == 0))
            model_alloc(model, &new);
        at += WIRE_STREAM_ALLOC;
    }
    return records;
}
