// SPDX-License-Identifier: MIT
//
// Streams of events take a short way through the model. Beside it, the same records go one by one
// by the long way: all figures, and every event of both recordings, must be the same.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "monitor/heap/model.h"
#include "recording/encode.h"
#include "recording/reader.h"

enum { CONTEXTS = 30, ADDRESSES = 400, WORDS_MAX = 1 << 20, BATCH_WORDS = 1024 };

typedef struct World {
    Options options;
    char folder[64];
    HeapModel *model;
    HeapDecoder *decoder;
} World;

static u64 words[WORDS_MAX + WIRE_STREAM_ALLOC];
static u64 random_state;

static u64 random_below(u64 limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 8) % limit;
}

static void world_begin(World *world, u32 time_unit, bool has_recording)
{
    static const char *const argv[] = {"program"};
    *world = (World){0};
    strcpy(world->folder, "/tmp/muninn-stream-XXXXXX");
    CHECK(mkdtemp(world->folder) != NULL);
    CHECK_EQ(chdir(world->folder), 0);
    options_init(&world->options);
    world->options.massif_out_file = "massif.out";
    world->options.recording_file = "recording";
    world->options.recording = has_recording;
    world->options.time_unit = time_unit;
    world->model = heap_open(&(HeapConfig){
        .options = &world->options,
        .tool = "massif",
        .pid = 1,
        .os_pid = getpid(),
        .argc = 1,
        .argv = argv,
        .option_words = argv,
        .program = "/program",
        .symbols = symbols_new(&(SymbolsConfig){.pid = getpid()}),
    });
    CHECK(world->model != NULL);
    world->decoder = heap_decoder(world->model);
    *world->decoder = (HeapDecoder){
        .model = world->model,
        .ns_per_tick_q32 = (1ull << 32) / 3,
        .thread_of_ring = {1, 2},
    };
    for (u32 i = 1; i <= CONTEXTS; i++)
        heap_context(world->model, i, i / 3, 0x1000 + i);
}

static void world_end(World *world)
{
    char command[128];
    Symbols *symbols = world->model->config.symbols;
    heap_close(world->model, &(HeapEnd){.is_known = true});
    heap_free_model(world->model);
    symbols_free(symbols);
    snprintf(command, sizeof(command), "rm -r %s", world->folder);
    CHECK_EQ(system(command), 0);
}

// ------------------------------------------------------------------ records

static u64 put(u64 at, u32 type, u32 payload, u64 stamp, u32 count, const u64 *body)
{
    words[at] = type | (u64)(count + 2) << 16 | (u64)payload << 32;
    words[at + 1] = stamp;
    memcpy(words + at + 2, body, count * sizeof(u64));
    return at + 2 + count;
}

static u64 random_place(u64 size)
{
    u64 address = 0x10000 + 16 * random_below(ADDRESSES) + (random_below(9) == 0) * 8;
    return heap_place(address, size, size + 8 * random_below(3));
}

static u64 random_size(void)
{
    return random_below(3) ? random_below(200) : random_below(1u << random_below(20));
}

// A series of pairs: most blocks are where the last one of their size was. The last one may live.
static u64 put_series(u64 at, u32 context, u64 stamp, u32 blocks, u64 last_place, bool is_live)
{
    u64 body[1 + STAMPS_SHARED_MAX];
    body[0] = 2 * blocks - is_live;
    for (u32 i = 1; i <= blocks; i++) {
        u64 size = random_below(50) ? random_below(250) : random_below(HEAP_WORD_SIZE_MAX);
        u64 extra = guess_usable(size) - size + (random_below(20) == 0);
        u64 address = last_place + pair_class(size + extra) * 16;
        address += random_below(30) ? 0 : 16 * random_below(40);
        body[i] = address / 16 << HEAP_WORD_BITS | size << HEAP_WORD_EXTRA_BITS |
                  (extra <= HEAP_WORD_EXTRA_MAX ? extra : 0);
    }
    return put(at, RECORD_HEAP_PAIRS, context, stamp, 1 + blocks, body);
}

// Returns the number of words.
static u64 make_records(u64 seed, u64 count, bool has_pairs)
{
    u64 at = 0, stamp = 1000;
    random_state = seed * 7919 + 1;
    for (u64 i = 0; i < count; i++) {
        u64 size = random_size(), kind = random_below(100), place = random_place(size);
        u32 context = (u32)random_below(CONTEXTS + 2); // one of them is unknown
        stamp += random_below(4) ? 0 : random_below(random_below(50) ? 300 : 30000000);
        if (kind < 40)
            at = put(at, RECORD_HEAP_ALLOC, context, stamp, 2, (u64[]){place, size});
        else if (kind < 80)
            at = put(at, RECORD_HEAP_FREE, 0, stamp, 1, (u64[]){heap_place_address(place)});
        else if (kind < 93 && has_pairs)
            at = put(at, RECORD_HEAP_PAIR, context, stamp, 2,
                     (u64[]){place, size | random_below(500) << HEAP_PAIR_SIZE_BITS});
        else if (kind < 94 && has_pairs)
            at = put_series(at, context, stamp, 1 + (u32)random_below(STAMPS_SHARED_MAX), 0x10000,
                            random_below(4) == 0);
        else if (kind < 96)
            at = put(at, RECORD_HEAP_REALLOC, context, stamp, 3,
                     (u64[]){place, size, heap_place_address(random_place(0))});
        else if (kind < 99)
            at = put(at, RECORD_HEAP_RUN, context, stamp, 5,
                     (u64[]){place, size, 1 + random_below(40), stamp - random_below(900), 77});
        else
            at = put(at, RECORD_CONTEXT, 0, stamp, 3,
                     (u64[]){context ? context : 1, context / 3, 0x1000 + context});
    }
    return at;
}

// A live block becomes another size, where it is or at another place. Returns which.
static u64 put_orderly_realloc(u64 *at, u32 context, u64 stamp, u64 index, const bool *is_live)
{
    u64 to = index, size = 1 + random_below(200);
    while (to == index ? random_below(2) : is_live[to])
        to = random_below(ADDRESSES);
    u64 place = heap_place(0x10000 + 16 * to, size, size + size % 16);
    *at = put(*at, RECORD_HEAP_REALLOC, context, stamp, 3,
              (u64[]){place, size, 0x10000 + 16 * index});
    return to;
}

// What a program does that is in order: blocks come where there are none, those that are there
// are freed or become another size, and pairs come in runs of one stack. With `has_late` a pair in
// 50 is where a block is, as if its free were late: then hardly anything takes the short way. With
// `are_alike` few blocks of one size are live: they are as many as ever again and again.
static u64 make_orderly_records(u64 seed, u64 count, bool has_late, bool are_alike)
{
    static bool is_live[ADDRESSES];
    u64 at = 0, stamp = 1000, run = 0, addresses = are_alike ? 5 : ADDRESSES;
    random_state = seed * 7919 + 1;
    memset(is_live, 0, sizeof(is_live));
    for (u64 i = 0; i < count; i++) {
        u64 index = random_below(addresses), size = are_alike ? 100 : 1 + random_below(200);
        u32 context = 1 + (u32)(i / 64 % CONTEXTS);
        stamp += random_below(12) ? 0 : random_below(300);
        run = run ? run - 1 : random_below(40) ? 0 : random_below(60);
        while (run && is_live[index] && !(has_late && random_below(50) == 0))
            index = (index + 1) % ADDRESSES;
        u64 address = 0x10000 + 16 * index, place = heap_place(address, size, size + size % 16);
        if (run % 16 == 5 && !are_alike)
            at = put_series(at, context, stamp, 1 + (u32)random_below(STAMPS_SHARED_MAX), 0x90000,
                            has_late && random_below(4) == 0);
        else if (run)
            at = put(at, RECORD_HEAP_PAIR, context, stamp, 2,
                     (u64[]){place, size | (random_below(9) == 0) * 7ull << HEAP_PAIR_SIZE_BITS});
        else if (is_live[index] && !are_alike && random_below(4) == 0)
            is_live[put_orderly_realloc(&at, context, stamp, index, is_live)] ^= true;
        else if (is_live[index])
            at = put(at, RECORD_HEAP_FREE, 0, stamp, 1, (u64[]){address});
        else
            at = put(at, RECORD_HEAP_ALLOC, context, stamp, 2, (u64[]){place, size});
        is_live[index] ^= !run;
    }
    return at;
}

static void take_one_by_one(World *world, u64 from, u64 end)
{
    for (u64 at = from; at < end; at += words[at] >> 16 & 0xffff)
        heap_take(world->decoder, &(WireRecord){
            .type = (u8)words[at],
            .payload = (u32)(words[at] >> 32),
            .stamp = words[at + 1],
            .words = words + at + 2,
            .count = (words[at] >> 16 & 0xffff) - 2,
        });
}

static u64 take_as_stream(World *world, u64 from, u64 end)
{
    u64 copy[BATCH_WORDS + WIRE_STREAM_ALLOC] = {0};
    u64 count = min_u64(end - from, BATCH_WORDS);
    memcpy(copy, words + from, count * sizeof(u64));
    WireStream stream = {.words = copy, .count = count, .limit = UINT64_MAX};
    CHECK(heap_take_stream(world->decoder, &stream) > 0);
    CHECK(stream.taken > 0 && stream.taken <= count);
    return from + stream.taken;
}

// ------------------------------------------------------------------ what must be the same

static void compare_models(const HeapModel *a, const HeapModel *b)
{
    CHECK_EQ(a->allocations, b->allocations);
    CHECK_EQ(a->frees, b->frees);
    CHECK_EQ(a->temporary, b->temporary);
    CHECK_EQ(a->reallocations, b->reallocations);
    CHECK_EQ(a->events, b->events);
    CHECK_EQ(a->allocated_bytes, b->allocated_bytes);
    CHECK_EQ(a->blocks.count, b->blocks.count);
    CHECK_EQ(a->site_count, b->site_count);
    CHECK_EQ(memcmp(&a->totals, &b->totals, sizeof(a->totals)), 0);
    CHECK_EQ(memcmp(&a->oddities, &b->oddities, sizeof(a->oddities)), 0);
    CHECK_EQ(memcmp(a->peaks, b->peaks, sizeof(a->peaks)), 0);
    for (u32 i = 0; i < a->site_count; i++) {
        const Site *one = &a->sites[i], *other = &b->sites[i];
        Live x = site_at_peak(a, one, PEAK_HEAP), y = site_at_peak(b, other, PEAK_HEAP);
        CHECK_EQ(memcmp(&one->live, &other->live, sizeof(one->live)), 0);
        CHECK_EQ(memcmp(&x, &y, sizeof(x)), 0);
        CHECK_EQ(one->allocations, other->allocations);
        CHECK_EQ(one->frees, other->frees);
        CHECK_EQ(one->temporary, other->temporary);
        CHECK_EQ(one->reallocations, other->reallocations);
        SiteHistogram one_has, other_has;
        site_histogram(one, &one_has);
        site_histogram(other, &other_has);
        CHECK_EQ(memcmp(&one_has, &other_has, sizeof(one_has)), 0);
    }
}

// Of what has been written: chunks of events and sums, byte by byte.
static void compare_recordings(World *a, World *b)
{
    char command[256];
    recording_flush(a->model->writer);
    recording_flush(b->model->writer);
    // What differs is the moment of the start, in the first chunk.
    snprintf(command, sizeof(command), "cmp -i 512 %s/recording %s/recording", a->folder,
             b->folder);
    CHECK_EQ(system(command), 0);
}

typedef struct Events {
    HeapEvent *list;
    u64 count, capacity;
} Events;

static bool keep_event(void *arg, const HeapEvent *event)
{
    Events *events = arg;
    if (events->count == events->capacity) {
        events->capacity = events->capacity ? 2 * events->capacity : 1024;
        events->list = realloc(events->list, events->capacity * sizeof(HeapEvent));
        CHECK(events->list != NULL);
    }
    events->list[events->count++] = *event;
    return true;
}

static Events events_of(const World *world)
{
    char path[128];
    Events events = {0};
    snprintf(path, sizeof(path), "%s/recording", world->folder);
    Recording *recording = recording_open(path, NULL, NULL, NULL);
    CHECK(recording != NULL);
    recording_each_event(recording, 0, UINT64_MAX, keep_event, &events);
    recording_free(recording);
    return events;
}

// A pair of its own begins where the model's clock stands, one of a stream at the last event: but
// for that they are the same.
static void compare_events(World *a, World *b)
{
    recording_flush(a->model->writer);
    recording_flush(b->model->writer);
    Events one = events_of(a), other = events_of(b);
    CHECK_EQ(one.count, other.count);
    for (u64 i = 0; i < one.count && i < other.count; i++) {
        const HeapEvent *x = &one.list[i], *y = &other.list[i];
        if (x->kind != y->kind || x->flags != y->flags || x->site != y->site ||
            x->thread != y->thread || x->address != y->address || x->size != y->size ||
            x->usable != y->usable || x->time.allocated_bytes != y->time.allocated_bytes) {
            FAIL("event %llu is not the same", (unsigned long long)i);
            break;
        }
    }
    free(one.list);
    free(other.list);
}

typedef enum Compared { MODELS, EVENTS, RECORDINGS } Compared;

static void run_beside(u64 end, u32 time_unit, Compared compared)
{
    World one, other;
    u64 at = 0;

    world_begin(&one, time_unit, compared != MODELS);
    world_begin(&other, time_unit, compared != MODELS);
    while (at < end) {
        u64 next = take_as_stream(&other, at, end);
        take_one_by_one(&one, at, next);
        at = next;
    }
    compare_models(one.model, other.model);
    if (compared == EVENTS)
        compare_events(&one, &other);
    else if (compared == RECORDINGS)
        compare_recordings(&one, &other);
    world_end(&one);
    world_end(&other);
}

TEST(a_stream_is_what_its_records_are_one_by_one)
{
    for (u64 seed = 1; seed <= 8; seed++)
        run_beside(make_records(seed, 20000, seed % 2), seed % 3 ? TIME_UNIT_MS : TIME_UNIT_BYTES,
                   seed % 2 ? EVENTS : RECORDINGS);
}

TEST(a_stream_without_a_recording_is_what_its_records_are_one_by_one)
{
    for (u64 seed = 1; seed <= 6; seed++) {
        u64 end = seed % 2 ? make_records(seed, 20000, true)
                           : make_orderly_records(seed, 20000, seed == 6, false);
        run_beside(end, seed % 3 ? TIME_UNIT_MS : TIME_UNIT_BYTES, MODELS);
    }
}

TEST(a_stream_in_order_with_runs_of_pairs_is_what_its_records_are_one_by_one)
{
    for (u64 seed = 1; seed <= 8; seed++)
        run_beside(make_orderly_records(seed, 20000, seed % 4 == 0, false),
                   seed % 3 ? TIME_UNIT_MS : TIME_UNIT_BYTES, EVENTS);
}

TEST(a_stream_that_is_at_its_peak_again_and_again_is_what_its_records_are_one_by_one)
{
    for (u64 seed = 1; seed <= 6; seed++)
        run_beside(make_orderly_records(seed, 20000, false, true),
                   seed % 3 ? TIME_UNIT_MS : TIME_UNIT_BYTES, EVENTS);
}

TEST(a_stream_ends_at_the_limit_and_before_what_is_none)
{
    World world;
    u64 at = 0;
    world_begin(&world, TIME_UNIT_MS, true);
    at = put(at, RECORD_HEAP_ALLOC, 1, 100, 2, (u64[]){0x1000, 8});
    at = put(at, RECORD_HEAP_ALLOC, 1, 200, 2, (u64[]){0x2000, 8});
    u64 two = at;
    at = put(at, RECORD_HEAP_CLOCK, 0, 200, 1, (u64[]){7});
    WireStream stream = {.words = words, .count = at, .limit = 150};
    CHECK_EQ(heap_take_stream(world.decoder, &stream), 1);
    CHECK_EQ(stream.last, 100);
    stream = (WireStream){.words = words, .count = at, .limit = 300};
    CHECK_EQ(heap_take_stream(world.decoder, &stream), 2);
    CHECK_EQ(stream.taken, two);
    stream = (WireStream){.words = words, .count = 3, .limit = 300}; // the record is not whole
    CHECK_EQ(heap_take_stream(world.decoder, &stream), 0);
    world_end(&world);
}

TEST(fuzz_streams_of_nonsense_do_no_harm)
{
    World world;
    world_begin(&world, TIME_UNIT_MS, true);
    random_state = 99;
    for (int turn = 0; turn < 3000; turn++) {
        u64 count = make_records((u64)turn, 60, true);
        for (u64 i = 0; i < 1 + random_below(8); i++)
            words[random_below(count)] ^= 1ull << random_below(64);
        WireStream stream = {.ring = 1, .words = words, .count = count, .limit = UINT64_MAX};
        heap_take_stream(world.decoder, &stream);
        CHECK(stream.taken <= count);
    }
    world_end(&world);
}
