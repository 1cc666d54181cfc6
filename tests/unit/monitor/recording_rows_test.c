// SPDX-License-Identifier: MIT
//
// Rows of pairs in the body of a chunk of events: the decoder gives what the encoder was given, and
// bodies that are nonsense do no harm.
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "recording/encode.h"

enum { SITES = 5, PAIRS = 20000 };

static const RecordedSite sites[SITES] = {{.thread = 1}, {.thread = 2}, {.thread = 1}};
static RingBlock ring[BACK_REFERENCES];
static u64 random_state = 88172645463325252ull;

static u64 random_below(u64 limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 8) % limit;
}

typedef struct Pair {
    u32 site;
    u64 ns, address, size, usable;
} Pair;

static Pair pairs[PAIRS];

// The next pair: at another site or moment, or somewhere else, once in a while.
static Pair next_pair(const Pair *before, u64 places[PAIR_CLASSES])
{
    Pair pair = *before;
    pair.site = random_below(20) ? pair.site : (u32)random_below(3);
    pair.ns += random_below(20) ? 0 : random_below(500);
    pair.size = random_below(70) ? random_below(300) : random_below(60000);
    pair.usable = guess_usable(pair.size) + (random_below(30) == 0) * 8;
    u64 *place = &places[pair_class(pair.usable)];
    if (*place == 0 || random_below(40) == 0)
        *place = 0x1000 + 16 * random_below(100000);
    pair.address = *place;
    return pair;
}

static void encode_one(EventEncoder *encoder, const Pair *pair, u64 *clock)
{
    HeapEvent event = {
        .kind = EVENT_ALLOC, .site = pair->site, .thread = sites[pair->site].thread,
        .time = {.ns = pair->ns, .allocated_bytes = *clock + pair->size},
        .address = pair->address, .size = pair->size, .usable = pair->usable,
    };
    encode_usual_pair(encoder, &event, pair->ns, event.thread);
}

// As the heap model does it. Returns how many pairs were in rows.
static u32 encode_all(EventEncoder *encoder)
{
    u64 clock = 0;
    u32 in_rows = 0;
    for (u32 i = 0; i < PAIRS;) {
        if (encoder->capacity - encoder->count < 200)
            CHECK(encoder_make_room(encoder));
        encoder->count++;
        encode_one(encoder, &pairs[i], &clock);
        clock += 2 * pairs[i].size;
        u8 *end = encoder->at[COLUMN_SIZE];
        u32 count = 0;
        u64 bytes = 0;
        for (i++; i < PAIRS && count < 63 && pairs[i].ns == pairs[i - 1].ns &&
                  pairs[i].site == pairs[i - 1].site &&
                  fits_row(encoder, pairs[i].address, pairs[i].size, pairs[i].usable);
             i++, count++) {
            end = encode_in_row(end, pairs[i].size);
            bytes += pairs[i].size;
        }
        if (count)
            encode_row(encoder, end, count, bytes);
        encoder->count += count;
        clock += 2 * bytes;
        in_rows += count;
    }
    return in_rows;
}

static Bytes make_body(u32 *ret_in_rows)
{
    EventEncoder encoder;
    Bytes body = {0};
    u64 places[PAIR_CLASSES] = {0};
    CHECK(encoder_init(&encoder, &(RecordingInfo){0}));
    for (u32 i = 0; i < PAIRS; i++)
        pairs[i] = next_pair(i ? &pairs[i - 1] : &(Pair){0}, places);
    *ret_in_rows = encode_all(&encoder);
    encoder_finish(&encoder, &body);
    encoder_free(&encoder);
    return body;
}

TEST(rows_of_pairs_come_back_as_they_were)
{
    EventDecoder decoder;
    HeapEvent event;
    u32 in_rows;
    u64 clock = 0;
    Bytes body = make_body(&in_rows);
    CHECK(in_rows > PAIRS / 4);
    CHECK(decoder_init(&decoder, body.data, body.count, sites, SITES, ring));
    for (u32 i = 0; i < 2 * PAIRS; i++) {
        const Pair *pair = &pairs[i / 2];
        clock += pair->size;
        if (!decoder_next(&decoder, &event) || event.kind != i % 2 || event.site != pair->site ||
            event.thread != sites[pair->site].thread || event.time.ns != pair->ns ||
            event.time.allocated_bytes != clock || event.address != pair->address ||
            event.size != pair->size || event.usable != pair->usable ||
            event.born_ns != pair->ns || event.flags != (i % 2 ? EVENT_TEMPORARY : 0)) {
            FAIL("event %u is not what it was", i);
            break;
        }
    }
    CHECK(!decoder_next(&decoder, &event) && !decoder.failed);
    free(body.data);
}

TEST(fuzz_rows_that_are_nonsense_do_no_harm)
{
    u32 in_rows;
    u64 events = 0;
    Bytes body = make_body(&in_rows);
    for (int turn = 0; turn < 300; turn++) {
        size_t size = body.count - (random_below(3) ? 0 : random_below(body.count));
        u8 *copy = malloc(size ? size : 1);
        EventDecoder decoder;
        HeapEvent event;
        memcpy(copy, body.data, size);
        for (u64 i = 0; size && i < random_below(20); i++)
            copy[random_below(random_below(2) ? size : min_u64(size, 4000))] =
                random_below(2) ? HEAD_ROW : (u8)random_below(256);
        if (decoder_init(&decoder, copy, size, sites, SITES, ring)) {
            while (decoder_next(&decoder, &event))
                events++;
        }
        free(copy);
    }
    CHECK(events > 0);
    free(body.data);
}
