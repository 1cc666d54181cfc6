// SPDX-License-Identifier: MIT
//
// A run as long as nobody waits for, with a simulated clock: what the model of the heap and the
// recording keep in memory does not follow how long it takes, nor how large the file gets.
//
// What they keep for an event goes to the file with its slice. Slices get longer with the run until
// they are full of events, so the buffers for one slice grow at first, and of a program that does
// little for days.
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit.h"
#include "monitor/heap/model.h"
#include "recording/events.h"

// What has been freed is to be free, or it looks like what is kept.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}

enum { CONTEXTS = 300, SLOTS = 500 };

typedef struct World {
    Options options;
    char folder[64];
    HeapModel *model;
    u64 random;
    HeapTime now;
    bool is_live[SLOTS];
    u64 first_kib; // resident when it began
} World;

static u64 world_random(World *world, u64 limit)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 8) % limit;
}

// Of this process alone.
static u64 resident_kib(void)
{
    unsigned long long size, resident, shared;
    FILE *file = fopen("/proc/self/statm", "r");

    CHECK(file && fscanf(file, "%llu %llu %llu", &size, &resident, &shared) == 3);
    fclose(file);
    return (resident - shared) * 4;
}

static u64 grown_kib(const World *world)
{
    u64 now = resident_kib();
    return now > world->first_kib ? now - world->first_kib : 0;
}

static void world_begin(World *world, u64 max_recording_bytes)
{
    static const char *const words[] = {"program"};

    *world = (World){.random = 1};
    strcpy(world->folder, "/tmp/muninn-long-XXXXXX");
    CHECK(mkdtemp(world->folder) != NULL);
    CHECK_EQ(chdir(world->folder), 0);
    options_init(&world->options);
    world->options.massif_out_file = "massif.out";
    world->options.recording_file = "recording";
    world->options.time_unit = TIME_UNIT_MS;
    if (max_recording_bytes)
        world->options.max_recording_bytes = max_recording_bytes;
    world->first_kib = resident_kib();
    world->model = heap_open(&(HeapConfig){
        .options = &world->options,
        .tool = "massif",
        .pid = 1,
        .os_pid = getpid(),
        .argc = 1,
        .argv = words,
        .option_words = words,
        .program = "/program",
        .symbols = symbols_new(&(SymbolsConfig){.pid = getpid()}),
    });
    CHECK(world->model != NULL);
    for (u32 i = 1; i <= CONTEXTS; i++)
        heap_context(world->model, i, i / 3, 0x1000 + i);
}

static void world_end(World *world)
{
    Symbols *symbols = world->model->config.symbols;

    heap_close(world->model, &(HeapEnd){0});
    heap_free_model(world->model);
    symbols_free(symbols);
    unlink("massif.out");
    unlink("recording");
    rmdir(world->folder);
}

static void one_event(World *world)
{
    u32 slot = (u32)world_random(world, SLOTS);
    u64 address = 0x10000 + slot * 4096ull;

    if (world->is_live[slot]) {
        heap_free(world->model, &world->now, 1, address);
    } else {
        u64 size = world_random(world, 4000);
        heap_alloc(world->model, &(HeapNew){.time = world->now, .thread = 1,
                                            .context = 1 + slot % CONTEXTS, .address = address,
                                            .size = size, .usable = size + 8});
    }
    world->is_live[slot] ^= true;
}

// So many events a second; and samples of RSS, as often as the monitor takes them.
static void pass(World *world, u64 seconds, u64 events_per_s)
{
    u64 end_ns = world->now.ns + seconds * 1000000000, step_ns = 1000000000 / events_per_s;
    u64 sample_ns = world->now.ns;

    while (world->now.ns < end_ns) {
        world->now.ns += 1 + world_random(world, 2 * step_ns);
        one_event(world);
        for (; sample_ns < world->now.ns; sample_ns += 100000000)
            recording_add_sample(world->model->writer, &(Sample){
                .ns = sample_ns, .rss_bytes = 1 << 20, .process_rss_bytes = 1 << 24});
    }
    CHECK_EQ(recording_writer_error(world->model->writer), 0);
}

TEST(a_million_seconds_take_a_few_megabytes)
{
    enum { MOST_KIB = 6 * 1024 };
    World world;

    world_begin(&world, 0);
    for (u32 i = 0; i < 10; i++) {
        pass(&world, 100000, 4);
        if (grown_kib(&world) > MOST_KIB)
            FAIL("%llu KiB after %u00000 s", (unsigned long long)grown_kib(&world), i + 1);
    }
    world_end(&world);
}

// The largest slices that are usual, which every run comes to.
TEST(full_slices_take_a_few_megabytes)
{
    enum { MOST_KIB = 6 * 1024 };
    World world;

    world_begin(&world, 0);
    pass(&world, 100000, 1); // they get long
    pass(&world, 500, 5000); // and full
    if (grown_kib(&world) > MOST_KIB)
        FAIL("%llu KiB", (unsigned long long)grown_kib(&world));
    world_end(&world);
}

// A column has room for the longest events, which few are. malloc() is told to do what it does
// after it has freed something large: to keep large blocks in its heap, where they are copied.
TEST(room_that_no_event_has_filled_takes_no_memory)
{
    enum { MOST_KIB = 256 };
    EventEncoder encoder;

    CHECK(mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1);
    u64 before_kib = resident_kib();
    CHECK(encoder_init(&encoder, &(RecordingInfo){.tool = "massif"}));
    while (encoder.capacity < 1 << 17)
        CHECK(encoder_make_room(&encoder));
    u64 after_kib = resident_kib();
    encoder_free(&encoder);
    if (after_kib > before_kib + MOST_KIB)
        FAIL("%llu KiB", (unsigned long long)(after_kib - before_kib));
}

// The file reaches its limit many times; chunks that have gone from it are forgotten.
TEST(a_recording_at_its_limit_takes_no_more_memory)
{
    enum { MORE_KIB = 512 };
    World world;

    world_begin(&world, 2 << 20);
    pass(&world, 2000, 1000);
    u64 before_kib = grown_kib(&world);
    for (u32 i = 0; i < 10; i++) {
        pass(&world, 500, 1000);
        if (grown_kib(&world) > before_kib + MORE_KIB)
            FAIL("%llu KiB, and %llu at first", (unsigned long long)grown_kib(&world),
                 (unsigned long long)before_kib);
    }
    world_end(&world);
}
