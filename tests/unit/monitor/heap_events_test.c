// SPDX-License-Identifier: MIT
//
// Events of the heap from the ring to the model: what is held back, peeked at and counted
// comes out as what was put in, whenever the consumer looks.
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "monitor/heap/heap.h"
#include "wire/heap_events.h"

#include "../unit.h"

// ------------------------------------------------------------------ a model that counts

enum { SLOTS = 64 }; // addresses are 16 * (1 + slot)

struct HeapModel {
    u64 allocs, frees, temporaries, reallocs, contexts, maps;
    u64 bytes_allocated;
    bool live[SLOTS];
    u64 errors; // a live one allocated, a dead one freed
    u64 last_ns;
};

static bool *live_at(HeapModel *model, u64 address)
{
    static bool nowhere;
    u64 slot = address / 16 - 1;
    return slot < SLOTS ? &model->live[slot] : &nowhere;
}

static void note_time(HeapModel *model, const HeapTime *time)
{
    model->errors += time->ns < model->last_ns;
    model->last_ns = time->ns;
}

void heap_prefetch(const HeapModel *model, u64 address)
{
    (void)model, (void)address;
}

void heap_context(HeapModel *model, u32 id, u32 parent, u64 pc)
{
    (void)id, (void)parent, (void)pc;
    model->contexts++;
}

void heap_alloc(HeapModel *model, const HeapNew *block)
{
    note_time(model, &block->time);
    bool *live = live_at(model, block->address);
    model->errors += *live || block->usable < block->size;
    *live = true;
    model->allocs++;
    model->bytes_allocated += block->size;
}

void heap_free(HeapModel *model, const HeapTime *time, u32 thread, u64 address)
{
    (void)thread;
    note_time(model, time);
    bool *live = live_at(model, address);
    model->errors += !*live;
    *live = false;
    model->frees++;
}

void heap_realloc(HeapModel *model, const HeapNew *block, u64 old_address)
{
    *live_at(model, old_address) = false;
    *live_at(model, block->address) = true;
    model->reallocs++;
}

void heap_temporary(HeapModel *model, const HeapNew *block, u64 count, const HeapTime *first,
                    u64 lived_ns)
{
    (void)lived_ns;
    note_time(model, &block->time);
    model->errors += *live_at(model, block->address) || count == 0 || first->ns > block->time.ns;
    model->temporaries += count;
    model->allocs += count;
    model->frees += count;
    model->bytes_allocated += count * block->size;
}

void heap_map(HeapModel *model, const HeapNew *pages, HeapMapKind kind)
{
    (void)pages, (void)kind;
    model->maps++;
}

void heap_unmap(HeapModel *model, const HeapTime *time, u32 thread, u64 address, u64 size)
{
    (void)model, (void)time, (void)thread, (void)address, (void)size;
}

void heap_remap(HeapModel *model, const HeapNew *pages, u64 old_address, u64 old_size)
{
    (void)model, (void)pages, (void)old_address, (void)old_size;
}

void heap_stack(HeapModel *model, const HeapTime *time, u32 thread, u32 context, u64 bytes,
                u64 deepest)
{
    (void)model, (void)time, (void)thread, (void)context, (void)bytes, (void)deepest;
}

void heap_thread_start(HeapModel *model, const HeapTime *time, u32 thread, i32 tid)
{
    (void)model, (void)time, (void)thread, (void)tid;
}

void heap_thread_end(HeapModel *model, const HeapTime *time, u32 thread)
{
    (void)model, (void)time, (void)thread;
}

// ------------------------------------------------------------------ the world

enum { RINGS = 3 };

typedef struct World {
    int fd, life[2];
    WireShared *shared;
    WireConsumer *consumer;
    WireProducer producers[RINGS];
    HeapDecoder decoder;
    HeapModel model;
} World;

static World world;

static void open_world(u32 rings)
{
    world = (World){.fd = wire_create()};
    world.shared = wire_map(world.fd);
    CHECK(world.shared != NULL);
    world.shared->header.start_stamp = wire_stamp();
    world.consumer = wire_consumer_new(world.shared);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, world.life) == 0);
    for (u32 i = 0; i < rings; i++)
        CHECK(wire_producer_open(&world.producers[i], world.shared, &world.life[0]));
    heap_decoder_init(&world.decoder, &world.model, world.shared);
}

static void close_world(void)
{
    wire_consumer_free(world.consumer);
    wire_unmap(world.shared);
    close(world.fd);
    close(world.life[0]);
    close(world.life[1]);
}

static void take(void *arg, const WireRecord *record)
{
    (void)arg;
    CHECK(heap_take(&world.decoder, record));
}

static void drain(bool final)
{
    wire_drain(world.consumer, final, take, NULL);
}

static void put_alloc(u32 ring, u64 slot, u64 size)
{
    wire_heap_alloc(&world.producers[ring],
                    &(WireAlloc){.context = 5, .address = 16 * (1 + slot), .size = size,
                                 .usable = size + 8});
}

// As by the only thread there is: pairs are pairs however long they take.
static void put_alone(u64 slot, u64 size)
{
    wire_heap_alloc(&world.producers[0],
                    &(WireAlloc){.context = 5, .address = 16 * (1 + slot), .size = size,
                                 .usable = size + 8, .site = 1});
}

static void put_free(u32 ring, u64 slot)
{
    wire_heap_free(&world.producers[ring], 16 * (1 + slot), false);
}

// ------------------------------------------------------------------ tests

TEST(pairs_are_one_run)
{
    open_world(1);
    for (int i = 0; i < 3; i++) {
        put_alone(1, 40);
        put_free(0, 1);
    }
    drain(true);
    CHECK(world.model.temporaries == 3 && world.model.allocs == 3 && world.model.frees == 3);
    CHECK(world.model.bytes_allocated == 120 && world.model.errors == 0);
    close_world();
}

TEST(what_is_held_back_is_seen_when_the_producer_dies)
{
    open_world(1);
    put_alloc(0, 1, 40);
    drain(true);
    CHECK(world.model.allocs == 1 && world.model.live[1]);
    close_world();
}

TEST(what_was_peeked_at_counts_once)
{
    open_world(1);
    put_alloc(0, 1, 40);
    drain(false);
    CHECK(world.model.allocs == 1 && world.model.live[1]);
    drain(false);
    CHECK(world.model.allocs == 1);
    put_free(0, 1);
    drain(false);
    CHECK(world.model.frees == 1 && !world.model.live[1]);
    put_alloc(0, 1, 40);
    put_alloc(0, 2, 16);
    drain(true);
    CHECK(world.model.allocs == 3 && world.model.frees == 1 && world.model.errors == 0);
    CHECK(world.model.live[1] && world.model.live[2]);
    close_world();
}

TEST(a_second_free_of_what_has_ended_is_nothing)
{
    open_world(1);
    put_alone(1, 40);
    put_free(0, 1);
    put_free(0, 1); // delete, and the free in it
    drain(true);
    CHECK(world.model.allocs == 1 && world.model.frees == 1 && world.model.errors == 0);
    close_world();
}

TEST(other_records_come_behind_what_is_held_back)
{
    open_world(1);
    put_alloc(0, 1, 40);
    wire_put_heap_map(&world.producers[0], &(Wire_heap_map){0, 4096, 4096, HEAP_MAP_BRK});
    CHECK(world.shared->rings[0].held.repeat.state == 0);
    drain(true);
    CHECK(world.model.allocs == 1 && world.model.maps == 1);
    close_world();
}

static void wait_ticks(u64 ticks)
{
    for (u64 start = wire_stamp(); wire_stamp() - start < ticks;)
        ;
}

// Any number of threads, and a consumer that looks at any moment.
static void run_random(u32 rings, u32 seed, u32 steps)
{
    bool live[SLOTS] = {0};
    u64 allocs = 0, frees = 0, bytes = 0;
    open_world(rings);
    srand(seed);
    for (u32 i = 0; i < steps; i++) {
        u32 ring = (u32)rand() % rings;
        if (rings > 1)
            wait_ticks(2000); // for the address to get from one thread to another
        u64 slot = (u64)rand() % (rand() % 4 ? 3 : SLOTS), size = 16 + (u64)rand() % 2 * 16;
        if (live[slot]) {
            put_free(ring, slot);
            frees++;
        } else {
            put_alloc(ring, slot, size);
            allocs++;
            bytes += size;
        }
        live[slot] = !live[slot];
        if (rand() % 8 == 0)
            drain(false);
    }
    drain(true);
    CHECK(world.model.allocs == allocs && world.model.frees == frees);
    CHECK(world.model.bytes_allocated == bytes && world.model.errors == 0);
    CHECK(memcmp(world.model.live, live, sizeof(live)) == 0);
    close_world();
}

TEST(random_events_come_out_as_they_went_in)
{
    for (u32 seed = 1; seed <= 40; seed++)
        run_random(1 + seed % RINGS, seed, 3000);
}

// What emitted code does (translate/lean_again_x64.c and lean_free_x64.c).
static void begin_series(WireRing *ring, u64 word)
{
    WireHeld *held = &ring->held;
    u64 *pair = wire_heap_record(ring), *at = pair + HEAP_ALLOC_BYTES / 8;
    u64 head = pair[0];
    pair[0] = (head & ~(u64)WIRE_STREAM_MASK) |
              WIRE_STREAM_HEAD(RECORD_HEAP_PAIR, WIRE_STREAM_ALLOC);
    pair[3] = held->repeat.size | held->lived << HEAP_PAIR_SIZE_BITS;
    pair[1] = held->stamp;
    ring->write += HEAP_ALLOC_BYTES;
    held->repeat.state = 0;
    held->run++;
    at[0] = RECORD_HEAP_PAIRS | (u64)((held->run / 2 + 1) & 0xff) << 8 | head >> 32 << 32;
    at[1] = ring->begun;
    at[HEAP_PAIRS_HEAD] = word;
    held->next = (u64)((u8 *)(at + HEAP_PAIRS_HEAD + 1) - (u8 *)&held->repeat);
    held->pairs_end = (u32)WIRE_PAIRS + 2 * world.producers[0].stamps_left;
    held->repeat.result = heap_word_address(word);
    held->repeat.state = WIRE_PAIRS + 1;
    held->run++;
}

static void series_alloc(u64 slot, u64 size)
{
    WireProducer *producer = &world.producers[0];
    WireHeld *held = &producer->ring->held;
    u64 state = held->repeat.state, word = (1 + slot) << HEAP_WORD_BITS |
                                           size << HEAP_WORD_EXTRA_BITS | 8;
    if (wire_is_series(state) && state % 2 == 0 && (u32)state < held->pairs_end) {
        *(u64 *)((u8 *)&held->repeat + held->next) = word;
        held->next += 8;
        held->repeat.result = heap_word_address(word);
        __atomic_store_n(&held->repeat.state, state + 1, __ATOMIC_RELEASE);
    } else if (state == 2 && producer->stamps_left && held->repeat.size != size &&
               producer->shared->header.tick == producer->tick_seen &&
               wire_heap_fits(producer, HEAP_ALLOC_BYTES + HEAP_PAIRS_BYTES)) {
        begin_series(producer->ring, word);
    } else {
        put_alone(slot, size);
    }
}

static void series_free(u64 slot)
{
    WireHeld *held = &world.producers[0].ring->held;
    u64 state = held->repeat.state;
    if (wire_is_series(state) && held->repeat.result == 16 * (1 + slot) && held->pairs_end)
        __atomic_store_n(&held->repeat.state, state + state % 2, __ATOMIC_RELEASE);
    else
        wire_heap_free(&world.producers[0], 16 * (1 + slot), true);
}

// One thread whose blocks mostly die at once; `looks`: in 100 events.
static u64 run_series(u32 seed, u32 steps, u32 looks)
{
    bool live[SLOTS] = {0};
    u64 allocs = 0, frees = 0, bytes = 0, in_series = 0, slot = 0;
    open_world(1);
    srand(seed);
    for (u32 i = 0; i < steps; i++) {
        if (!live[slot] || rand() % 40 == 0)
            slot = (u64)rand() % (rand() % 9 ? 3 : SLOTS);
        if (live[slot]) {
            series_free(slot);
            frees++;
        } else {
            u64 size = 16 + (u64)rand() % 20 * 16;
            series_alloc(slot, size);
            allocs++;
            bytes += size;
        }
        live[slot] = !live[slot];
        in_series += wire_is_series(world.producers[0].ring->held.repeat.state);
        if ((u32)rand() % 100 < looks)
            drain(false);
        if (rand() % 200 == 0)
            wire_heap_new_stamp(&world.producers[0]);
        if (rand() % 300 == 0)
            wire_put_heap_map(&world.producers[0], &(Wire_heap_map){0, 4096, 4096, HEAP_MAP_BRK});
        if (world.producers[0].ring->write - world.shared->rings[0].read > WIRE_RING_BYTES / 2)
            drain(false);
    }
    drain(true);
    CHECK(world.model.allocs == allocs && world.model.frees == frees);
    CHECK(world.model.bytes_allocated == bytes && world.model.errors == 0);
    CHECK(memcmp(world.model.live, live, sizeof(live)) == 0);
    close_world();
    return in_series;
}

TEST(a_series_of_pairs_comes_out_as_it_went_in_whenever_it_is_looked_at)
{
    u64 in_series = 0;
    for (u32 seed = 1; seed <= 20; seed++)
        in_series += run_series(seed, 5000, seed % 4 * 3);
    CHECK(in_series > 5000);
}

TEST(what_a_series_has_is_seen_when_the_producer_dies)
{
    open_world(1);
    drain(false); // so that stamps are shared
    for (u64 i = 0; i < 40; i++) {
        series_alloc(i % 3, 16 + i % 3 * 16);
        if (i < 39)
            series_free(i % 3);
    }
    drain(true);
    CHECK(world.model.allocs == 40 && world.model.frees == 39 && world.model.live[39 % 3]);
    CHECK_EQ(world.model.errors, 0);
    close_world();
}

TEST(a_pause_ends_a_series)
{
    open_world(1);
    drain(false);
    for (u64 i = 0; i < 40; i++) {
        series_alloc(1, 16 + i % 2 * 16);
        series_free(1);
    }
    series_alloc(1, 64);
    WireHeld *held = &world.shared->rings[0].held;
    if (wire_is_series(held->repeat.state)) { // unless this thread lost its core for long
        CHECK(held->pairs_end != 0);
        drain(false);
        CHECK_EQ(held->pairs_end, 0);
        series_free(1);
        CHECK_EQ(held->repeat.state, 0); // the free has a stamp of its own, so it is a record
    }
    drain(true);
    CHECK(world.model.frees >= 40 && world.model.errors == 0);
    close_world();
}

TEST(hostile_records_are_refused)
{
    open_world(1);
    srand(1);
    for (int i = 0; i < 200000; i++) {
        u64 words[8];
        for (int k = 0; k < 8; k++)
            words[k] = (u64)rand() << 40 ^ (u64)rand() << 20 ^ (u64)rand() >> rand() % 31;
        WireRecord record = {
            .type = (WireRecordType)(rand() % (RECORD_TYPES + 3)),
            .ring = (u32)rand() % (WIRE_RINGS + 2),
            .payload = (u32)rand(),
            .was_peeked = rand() % 2,
            .is_peek = rand() % 2,
            .stamp = (u64)rand() << rand() % 33,
            .words = words,
            .count = (size_t)rand() % 9,
        };
        heap_take(&world.decoder, &record);
    }
    close_world();
}

TEST(an_event_takes_a_few_nanoseconds)
{
    enum { BATCH = 2000, BATCHES = 500 };
    u64 ticks = 0;
    open_world(1);
    for (int k = 0; k < BATCHES; k++) {
        for (u64 i = 0; i < BATCH; i++) {
            put_alloc(0, i % 8, 24 + i % 2);
            put_free(0, (i + 4) % 8);
        }
        u64 start = wire_stamp();
        drain(false);
        ticks += wire_stamp() - start;
    }
    u64 each = ticks / (2 * BATCH * BATCHES);
    printf("# %lu ticks an event\n", (unsigned long)each);
    CHECK(each < 2000); // machines are busy
    close_world();
}
