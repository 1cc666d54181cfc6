// SPDX-License-Identifier: MIT
//
// A world for the tests of recordings: random events go to a writer and to a plain list, and
// what a reader says of the file is compared with what follows from the list.
#ifndef MUNINN_TESTS_RECORDING_WORLD_H
#define MUNINN_TESTS_RECORDING_WORLD_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "recording/query.h"
#include "recording/recording.h"

typedef struct World {
    char path[64];
    RecordingWriter *writer;
    u64 random;
    HeapEvent *events;
    size_t count, capacity;
    RecordedBlock *live; // where the next free comes from
    size_t live_count, live_capacity;
    u64 freed[64];       // addresses to use again
    u32 freed_count;
    u32 site_count;
    RecordedSite *sites;
    Moment now;
    u32 ns_step;         // the most between two events; some come at one instant
    char warnings[4096];
    u32 warning_count;
} World;

static u64 world_random(World *world, u64 limit)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 8) % limit;
}

static void world_warn(void *arg, const char *line)
{
    World *world = arg;
    size_t length = strlen(world->warnings);

    snprintf(world->warnings + length, sizeof(world->warnings) - length, "%s\n", line);
    world->warning_count++;
}

static bool world_counts_instructions = true;

static void world_begin(World *world, u64 seed, u32 site_count, u64 max_bytes)
{
    int error = 0;

    *world = (World){ .random = seed * 0x9e3779b97f4a7c15ull + 1, .ns_step = 200 };
    snprintf(world->path, sizeof(world->path), "/tmp/muninn-recording-%d-%llu", (int)getpid(),
             (unsigned long long)seed);
    world->writer = recording_create(
        &(WriterConfig){ .path = world->path, .max_bytes = max_bytes },
        &(RecordingInfo){ .tool = "massif", .command = "prog 'a b'", .options = NULL,
                          .executable = "/bin/prog", .pid = -7, .start_unix_ns = 12345,
                          .counts_instructions = world_counts_instructions, .has_stacks = true,
                          .heap_admin_bytes = 8, .time_unit = 1, .depth = 30,
                          .threshold_ppm = 10000 }, &error);
    if (!world->writer)
        FAIL("%s: %s", world->path, strerror(error));
    world->sites = calloc(site_count, sizeof(RecordedSite));
    world->site_count = site_count;
    recording_add_module(world->writer, &(RecordedModule){ .path = "/bin/prog", .size = 99 });
    for (u32 i = 0; i < site_count; i++) {
        u32 context = recording_add_context(world->writer, (u32)world_random(world, i + 1), 1,
                                            0x1000 + i, i & 1);
        world->sites[i] = (RecordedSite){ (Space)world_random(world, SPACE_COUNT), context,
                                          1 + (u32)world_random(world, 3),
                                          (PagesKind)world_random(world, PAGES_KINDS) };
        CHECK_EQ(recording_add_site(world->writer, &world->sites[i]), i);
    }
}

static void world_list(World *world, const HeapEvent *event)
{
    if (world->count == world->capacity) {
        world->capacity = world->capacity ? world->capacity * 2 : 1024;
        world->events = realloc(world->events, world->capacity * sizeof(HeapEvent));
    }
    world->events[world->count++] = *event;
}

static void world_keep(World *world, const HeapEvent *event)
{
    world_list(world, event);
    recording_add_event(world->writer, event);
}

static void world_alloc(World *world)
{
    RecordedBlock block = { .site = (u32)world_random(world, world->site_count),
                            .born_ns = world->now.ns };

    block.size = world_random(world, world_random(world, 8) ? 500 : 1ull << 34);
    block.usable = block.size + world_random(world, 40);
    // No two live blocks have one address, but addresses come again.
    block.address = 0x10000 + world->count * 16 + world_random(world, 2) * 8;
    if (world->freed_count && world_random(world, 3))
        block.address = world->freed[--world->freed_count];
    world->now.allocated_bytes += world_random(world, 9) ? block.size : 1;
    if (world->live_count == world->live_capacity) {
        world->live_capacity = world->live_capacity ? world->live_capacity * 2 : 1024;
        world->live = realloc(world->live, world->live_capacity * sizeof(RecordedBlock));
    }
    world->live[world->live_count++] = block;
    world_keep(world, &(HeapEvent){
        .kind = EVENT_ALLOC, .flags = world_random(world, 9) ? 0 : EVENT_BY_REALLOC,
        .site = block.site, .thread = world->sites[block.site].thread, .time = world->now,
        .address = block.address, .size = block.size, .usable = block.usable,
        .born_ns = world->now.ns });
}

static void world_free_block(World *world)
{
    size_t at = world_random(world, 2) ? world->live_count - 1
                                       : world_random(world, world->live_count);
    RecordedBlock block = world->live[at];

    world->live[at] = world->live[--world->live_count];
    if (world->freed_count < 64)
        world->freed[world->freed_count++] = block.address;
    world->now.allocated_bytes += block.size;
    world_keep(world, &(HeapEvent){
        .kind = EVENT_FREE, .flags = (u32)world_random(world, 4), .site = block.site,
        .thread = 1 + (u32)world_random(world, 3), .time = world->now, .address = block.address,
        .size = block.size, .usable = block.usable, .born_ns = block.born_ns });
}

// A block that comes and goes many times; the writer is told once, the list has them all.
__attribute__((unused)) static void world_repeat(World *world, u32 count)
{
    u32 site = (u32)world_random(world, world->site_count);
    u64 step = 1 + world_random(world, world->ns_step), lived = world_random(world, step);
    HeapEvent event = { .site = site, .thread = world->sites[site].thread, .address = 0x7000,
                        .size = world_random(world, 300), .usable = 320 };
    u64 clock = world->sites[site].space == SPACE_HEAP ? event.size : 0;

    for (u32 i = 0; i <= count; i++, world->now.ns += step) {
        event.kind = EVENT_ALLOC;
        event.flags = 0;
        event.born_ns = world->now.ns;
        event.time = world->now;
        event.time.allocated_bytes += clock;
        (i ? world_list : world_keep)(world, &event);
        event.kind = EVENT_FREE;
        event.flags = EVENT_TEMPORARY;
        event.time.ns += lived;
        event.time.allocated_bytes += clock;
        world->now.allocated_bytes = event.time.allocated_bytes;
        (i ? world_list : world_keep)(world, &event);
    }
    recording_repeat_pair(world->writer, count, step);
}

static void world_events(World *world, size_t count, size_t live_wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (world_random(world, 5))
            world->now.ns += world_random(world, world->ns_step);
        world->now.instructions += world_random(world, 1000);
        if (world->live_count && (world->live_count > live_wanted || world_random(world, 2)))
            world_free_block(world);
        else
            world_alloc(world);
    }
}

static void world_close(World *world)
{
    world->now.ns += 10;
    CHECK_EQ(recording_close(world->writer, &world->now,
                             &(RecordingEnd){ .known = true, .status = 3, .signal = 0 }), 0);
    world->writer = NULL;
}

static Recording *world_open(World *world)
{
    char *error = NULL;
    Recording *recording = recording_open(world->path, world_warn, world, &error);

    if (!recording)
        FAIL("%s", error);
    return recording;
}

static void world_end(World *world)
{
    unlink(world->path);
    free(world->events);
    free(world->live);
    free(world->sites);
}

// ---------------------------------------------------------------- what must come out
static void model_range(const World *world, u64 from_ns, u64 to_ns, SiteSums *sums)
{
    bool inside = false;

    memset(sums, 0, world->site_count * sizeof(SiteSums));
    for (size_t i = 0; i <= world->count; i++) {
        const HeapEvent *event = &world->events[i];
        bool is_end = i == world->count || event->time.ns >= to_ns;
        if (!inside && (is_end || event->time.ns >= from_ns)) {
            inside = true;
            for (u32 k = 0; k < world->site_count; k++)
                sums[k].peak_bytes = sums[k].live_bytes;
        }
        if (is_end)
            break;
        SiteSums *sum = &sums[event->site];
        u64 sign = event->kind == EVENT_ALLOC ? 1 : UINT64_MAX;
        sum->live_bytes += sign * event->size;
        sum->live_blocks += sign;
        sum->live_usable += sign * event->usable;
        if (!inside)
            continue;
        sum->peak_bytes = max_u64(sum->peak_bytes, sum->live_bytes);
        if (event->kind == EVENT_ALLOC) {
            sum->first_ns = sum->allocations ? sum->first_ns : event->time.ns;
            sum->last_ns = event->time.ns;
            sum->allocated_bytes += event->size;
            sum->allocations++;
            sum->reallocations += event->flags & EVENT_BY_REALLOC ? 1 : 0;
        } else {
            sum->freed_bytes += event->size;
            sum->frees++;
            sum->temporary += event->flags & EVENT_TEMPORARY ? 1 : 0;
        }
    }
}

__attribute__((unused)) static void
check_range(World *world, Recording *recording, u64 from_ns, u64 to_ns)
{
    SiteSums *wanted = calloc(world->site_count, sizeof(SiteSums));
    SiteSums *got = calloc(world->site_count, sizeof(SiteSums));

    CHECK_EQ(recording_site_count(recording), world->site_count);
    model_range(world, from_ns, to_ns, wanted);
    CHECK(recording_range(recording, from_ns, to_ns, got));
    for (u32 i = 0; i < world->site_count; i++)
        if (memcmp(&wanted[i], &got[i], sizeof(SiteSums)) != 0)
            FAIL("site %u in [%llu,%llu): live %llu/%llu allocated %llu/%llu frees %llu/%llu "
                 "peak %llu/%llu first %llu/%llu last %llu/%llu", i, (unsigned long long)from_ns,
                 (unsigned long long)to_ns, (unsigned long long)got[i].live_bytes,
                 (unsigned long long)wanted[i].live_bytes,
                 (unsigned long long)got[i].allocated_bytes,
                 (unsigned long long)wanted[i].allocated_bytes,
                 (unsigned long long)got[i].frees, (unsigned long long)wanted[i].frees,
                 (unsigned long long)got[i].peak_bytes, (unsigned long long)wanted[i].peak_bytes,
                 (unsigned long long)got[i].first_ns, (unsigned long long)wanted[i].first_ns,
                 (unsigned long long)got[i].last_ns, (unsigned long long)wanted[i].last_ns);
    free(wanted);
    free(got);
}

#endif
