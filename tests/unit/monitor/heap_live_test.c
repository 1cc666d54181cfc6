// SPDX-License-Identifier: MIT
//
// The heap model beside a plain one, which copies all its figures whenever there is a new
// maximum: what is live, and what was live at each peak, must be the same for every site.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "monitor/heap/model.h"

enum { CONTEXTS = 40, THREADS = 3, ADDRESSES = 300, PAGES = 64 };

typedef struct PlainBlock {
    u64 size, usable;
    u32 context, thread;
    bool is_live;
} PlainBlock;

typedef struct PlainFigures {
    u64 bytes[CONTEXTS + 1][THREADS + 1];
    u64 usable[CONTEXTS + 1][THREADS + 1];
    u64 blocks[CONTEXTS + 1][THREADS + 1];
} PlainFigures;

typedef struct World {
    Options options;
    char folder[64];
    HeapModel *model;
    u64 random;
    HeapTime now;
    PlainBlock blocks[ADDRESSES];
    PlainFigures live, at_peak;
    u64 total, peak;
    u64 useful, useful_at_peak;
    u64 peak_ns;
    u64 events;
    bool is_alike; // blocks take the same room, few are live: totals are equal again and again
} World;

static u64 world_random(World *world, u64 limit)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 8) % limit;
}

static void world_begin(World *world, u64 seed)
{
    static const char *const words[] = {"program"};
    *world = (World){.random = seed * 7919 + 1};
    strcpy(world->folder, "/tmp/muninn-heap-XXXXXX");
    CHECK(mkdtemp(world->folder) != NULL);
    CHECK_EQ(chdir(world->folder), 0);
    options_init(&world->options);
    world->options.massif_out_file = "massif.out";
    world->options.recording_file = "recording";
    world->options.time_unit = TIME_UNIT_MS;
    HeapConfig config = {
        .options = &world->options,
        .tool = "massif",
        .pid = getpid(),
        .os_pid = getpid(),
        .argc = 1,
        .argv = words,
        .option_words = words,
        .program = "/program",
        .symbols = symbols_new(&(SymbolsConfig){.pid = getpid()}),
    };
    world->model = heap_open(&config);
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

static u64 address_of(u32 slot)
{
    return 0x10000 + slot * 16ull;
}

static void plain_change(World *world, const PlainBlock *block, i64 sign)
{
    world->live.bytes[block->context][block->thread] += (u64)sign * block->size;
    world->live.usable[block->context][block->thread] += (u64)sign * block->usable;
    world->live.blocks[block->context][block->thread] += (u64)sign;
    world->total += (u64)sign * (block->usable + world->options.heap_admin_bytes);
    world->useful += (u64)sign * block->size;
    bool is_equal = world->total == world->peak && sign > 0;
    if (world->total > world->peak || (is_equal && world->useful >= world->useful_at_peak)) {
        world->peak = world->total;
        world->useful_at_peak = world->useful;
        world->at_peak = world->live;
        world->peak_ns = world->now.ns;
    }
}

static HeapNew random_block(World *world, u32 slot, PlainBlock *ret_plain)
{
    u64 size = world_random(world, 5) ? world_random(world, 200) : world_random(world, 100000);
    u64 usable = size + world_random(world, 24);
    if (world->is_alike) {
        size = 4 * world_random(world, 8);
        usable = 32;
    }
    *ret_plain = (PlainBlock){
        .size = size,
        .usable = usable,
        .context = (u32)world_random(world, CONTEXTS + 1),
        .thread = 1 + (u32)world_random(world, THREADS),
        .is_live = true,
    };
    return (HeapNew){
        .time = world->now,
        .thread = ret_plain->thread,
        .context = ret_plain->context,
        .address = address_of(slot),
        .size = size,
        .usable = ret_plain->usable,
    };
}

static void one_event(World *world)
{
    u32 slots = world->is_alike ? 6 : ADDRESSES;
    u32 slot = (u32)world_random(world, slots), other = (u32)world_random(world, slots);
    PlainBlock *block = &world->blocks[slot], fresh;

    // Twice a free may be a late one, which is another matter.
    world->now.ns += 1 + world_random(world, 3 * HEAP_LATE_NS);
    world->now.instructions += 7;
    if (!block->is_live && world_random(world, 5) == 0) {
        // Told when it is over: it may have begun long ago.
        HeapNew new = random_block(world, slot, &fresh);
        u64 count = 1 + world_random(world, 300), span = world_random(world, 20000);
        HeapTime first = {world->now.ns > span ? world->now.ns - span : 0, 0};
        heap_temporary(world->model, &new, count, &first,
                       world_random(world, world->now.ns - first.ns + 1));
        // At the time at which the model has it: the first of them may be a peak.
        plain_change(world, &fresh, 1);
        plain_change(world, &fresh, -1);
        world->events += 2 * count;
    } else if (!block->is_live) {
        world->events++;
        HeapNew new = random_block(world, slot, &fresh);
        heap_alloc(world->model, &new);
        *block = fresh;
        plain_change(world, block, 1);
    } else if (world_random(world, 4) == 0 && (slot == other || !world->blocks[other].is_live)) {
        HeapNew new = random_block(world, other, &fresh);
        world->events += 2;
        heap_realloc(world->model, &new, address_of(slot));
        plain_change(world, block, -1);
        block->is_live = false;
        world->blocks[other] = fresh;
        plain_change(world, &fresh, 1);
    } else {
        world->events++;
        heap_free(world->model, &world->now, 1 + (u32)world_random(world, THREADS),
                  address_of(slot));
        plain_change(world, block, -1);
        block->is_live = false;
    }
}

static bool sites_agree(const World *world, const PlainFigures *plain, bool at_peak)
{
    const HeapModel *model = world->model;
    PlainFigures found = {0};

    for (u32 i = 0; i < model->site_count; i++) {
        const Site *site = &model->sites[i];
        Live live = at_peak ? site_at_peak(model, site, PEAK_HEAP) : site->live;
        if (site->space != SPACE_HEAP)
            continue;
        found.bytes[site->context][site->thread] += live.bytes;
        found.usable[site->context][site->thread] += live.usable;
        found.blocks[site->context][site->thread] += live.blocks;
    }
    return memcmp(&found, plain, sizeof(found)) == 0;
}

TEST(every_site_is_exact_now_and_at_the_peak)
{
    for (u64 seed = 1; seed <= 6; seed++) {
        World world;
        world_begin(&world, seed);
        world.is_alike = seed % 2 == 0;
        for (u32 i = 0; i < 20000; i++) {
            one_event(&world);
            if (i % 501 == 0 || (world.is_alike && i % 7 == 0)) {
                CHECK(sites_agree(&world, &world.live, false));
                CHECK(sites_agree(&world, &world.at_peak, true));
                CHECK_EQ(world.model->peaks[PEAK_HEAP].bytes, world.peak);
                CHECK(world.model->peaks[PEAK_HEAP].moment.ns <= world.peak_ns);
            }
        }
        CHECK_EQ(world.model->total[PEAK_HEAP], world.total);
        world_end(&world);
    }
}

// ------------------------------------------------------------------- the recording

static void count_warning(void *count, const char *line)
{
    printf("%s\n", line);
    (*(u32 *)count)++;
}

static bool count_any(void *count, const HeapEvent *event)
{
    (void)event;
    (*(u64 *)count)++;
    return true;
}

TEST(the_recording_has_the_peak_and_the_end)
{
    World world;
    char *error = NULL;

    world_begin(&world, 77);
    for (u32 i = 0; i < 5000; i++)
        one_event(&world);
    u64 live = world.model->totals.bytes[SPACE_HEAP], site_count = world.model->site_count;
    u64 peak = 0;
    for (u32 c = 0; c <= CONTEXTS; c++) {
        for (u32 t = 0; t <= THREADS; t++)
            peak += world.at_peak.bytes[c][t];
    }
    Symbols *symbols = world.model->config.symbols;
    heap_close(world.model, &(HeapEnd){.is_known = true, .signal = 9});
    heap_free_model(world.model);
    symbols_free(symbols);
    u32 warnings = 0;
    Recording *recording = recording_open("recording", count_warning, &warnings, &error);
    CHECK(recording != NULL);
    CHECK_EQ(recording_site_count(recording), site_count);
    CHECK_EQ(recording_event_count(recording), world.events);
    u64 events = 0;
    recording_each_event(recording, 0, UINT64_MAX, count_any, &events);
    CHECK_EQ(events, world.events);
    CHECK_EQ(warnings, 0);
    size_t at = recording_find_state(recording, STATE_PEAK);
    CHECK(at != SIZE_MAX);
    CHECK_EQ(recording_state_info(recording, at)->totals.bytes[SPACE_HEAP], peak);
    CHECK(recording_state_info(recording, at)->moment.ns <= world.peak_ns);
    at = recording_find_state(recording, STATE_END);
    CHECK(at != SIZE_MAX);
    CHECK_EQ(recording_state_info(recording, at)->totals.bytes[SPACE_HEAP], live);
    CHECK_EQ(recording_end(recording)->signal, 9);
    CHECK_EQ(recording_context_count(recording), CONTEXTS + 1);
    recording_free(recording);
    unlink("massif.out");
    unlink("recording");
    rmdir(world.folder);
}

TEST(runs_of_temporary_blocks_count_as_if_told_one_by_one)
{
    World one, many;
    HeapTime first = {1000, 0}, last = {101000, 0};
    HeapNew block = {.thread = 1, .context = 5, .address = 0x5000, .size = 100, .usable = 104};

    world_begin(&one, 1);
    for (u64 i = 0; i < 50; i++) {
        block.time = (HeapTime){1000 + i * 2000, 0};
        HeapTime freed = {block.time.ns + 1000, 0};
        heap_alloc(one.model, &block);
        heap_free(one.model, &freed, 1, block.address);
    }
    world_begin(&many, 1);
    block.time = last;
    heap_temporary(many.model, &block, 50, &first, 50 * 1000);
    CHECK_EQ(many.model->allocations, one.model->allocations);
    CHECK_EQ(many.model->frees, 50);
    CHECK_EQ(many.model->temporary, one.model->temporary);
    CHECK_EQ(many.model->allocated_bytes, one.model->allocated_bytes);
    CHECK_EQ(many.model->peaks[PEAK_HEAP].bytes, 112);
    // Of equal peaks the last: this is when the last one of them was allocated.
    CHECK_EQ(one.model->peaks[PEAK_HEAP].moment.ns, 1000 + 49 * 2000);
    CHECK_EQ(many.model->peaks[PEAK_HEAP].moment.ns, 100000);
    CHECK_EQ(many.model->peaks[PEAK_HEAP].moment.allocated_bytes,
             one.model->peaks[PEAK_HEAP].moment.allocated_bytes);
    CHECK_EQ(many.model->peaks[PEAK_HEAP].requested_bytes,
             one.model->peaks[PEAK_HEAP].requested_bytes);
    CHECK_EQ(many.model->total[PEAK_HEAP], 0);
    CHECK_EQ(many.model->events, one.model->events);
    const Site *site = &many.model->sites[many.model->site_count - 1];
    CHECK_EQ(site->allocations, 50);
    CHECK_EQ(site->temporary, 50);
    world_end(&many);
    CHECK_EQ(chdir(one.folder), 0);
    world_end(&one);
}

static bool count_event(void *arg, const HeapEvent *event)
{
    HeapEvent *sums = arg; // site: allocations, thread: frees; time: of the last
    sums->site += event->kind == EVENT_ALLOC;
    sums->thread += event->kind == EVENT_FREE && (event->flags & EVENT_TEMPORARY);
    sums->size += event->size;
    if (event->time.ns < sums->time.ns || event->born_ns > event->time.ns)
        sums->flags++;
    if (event->time.allocated_bytes - sums->time.allocated_bytes != event->size)
        sums->flags++;
    sums->time = event->time;
    return true;
}

TEST(runs_are_recorded_in_full)
{
    World world;
    HeapTime first = {1000, 0};
    HeapNew block = {.time = {500001000, 0}, .thread = 1, .context = 5, .address = 0x5000,
                     .size = 100, .usable = 104};
    const u64 count = 5000000;
    char *error = NULL;

    world_begin(&world, 1);
    heap_temporary(world.model, &block, count, &first, count * 30);
    block.time.ns += 10;
    block.address = 0x6000;
    heap_alloc(world.model, &block);
    Symbols *symbols = world.model->config.symbols;
    heap_close(world.model, &(HeapEnd){0});
    heap_free_model(world.model);
    symbols_free(symbols);
    struct stat status;
    CHECK_EQ(stat("recording", &status), 0);
    CHECK(status.st_size < 100000);
    Recording *recording = recording_open("recording", NULL, NULL, &error);
    CHECK(recording != NULL);
    CHECK_EQ(recording_event_count(recording), 2 * count + 1);
    HeapEvent sums = {0};
    recording_each_event(recording, 0, UINT64_MAX, count_event, &sums);
    CHECK_EQ(sums.site, count + 1);
    CHECK_EQ(sums.thread, count);
    CHECK_EQ(sums.size, (2 * count + 1) * 100);
    CHECK_EQ(sums.flags, 0);
    CHECK(sums.time.ns == block.time.ns);
    SiteSums site;
    CHECK(recording_range(recording, 0, UINT64_MAX, &site));
    CHECK_EQ(site.allocations, count + 1);
    CHECK_EQ(site.temporary, count);
    CHECK_EQ(site.live_bytes, 100);
    CHECK(recording_range(recording, 0, 250000000, &site));
    CHECK(site.allocations > count * 49 / 100 && site.allocations < count * 51 / 100);
    recording_free(recording);
    unlink("massif.out");
    unlink("recording");
    rmdir(world.folder);
}

TEST(a_bounded_recording_keeps_the_peak)
{
    World world;
    char *error = NULL;
    struct stat status;

    world_begin(&world, 31);
    Symbols *symbols = world.model->config.symbols;
    HeapConfig config = world.model->config;
    heap_close(world.model, &(HeapEnd){0});
    heap_free_model(world.model);
    world.options.max_recording_bytes = MiB;
    world.model = heap_open(&config);
    for (u32 i = 1; i <= CONTEXTS; i++)
        heap_context(world.model, i, i / 3, 0x1000 + i);
    for (u32 i = 0; i < 600000; i++)
        one_event(&world);
    heap_close(world.model, &(HeapEnd){0});
    heap_free_model(world.model);
    symbols_free(symbols);
    CHECK_EQ(stat("recording", &status), 0);
    CHECK(status.st_size > (off_t)(MiB / 4) && status.st_size <= (off_t)MiB);
    Recording *recording = recording_open("recording", NULL, NULL, &error);
    CHECK(recording != NULL);
    size_t at = recording_find_state(recording, STATE_PEAK);
    CHECK(at != SIZE_MAX);
    CHECK(recording_state_info(recording, at)->moment.ns <= world.peak_ns);
    recording_free(recording);
    unlink("massif.out");
    unlink("recording");
    rmdir(world.folder);
}

// --------------------------------------------------------------- what is not in order

TEST(a_free_that_comes_late_ends_the_block_before)
{
    World world;
    HeapNew block = {.time = {1000, 0}, .thread = 1, .context = 3, .address = 0x5000, .size = 10,
                     .usable = 16};

    world_begin(&world, 1);
    heap_alloc(world.model, &block);
    block.time.ns = 2000;
    block.thread = 2;
    block.size = 20;
    block.usable = 24;
    heap_alloc(world.model, &block); // thread 1 has freed it, and will say so
    HeapTime time = {2500, 0};
    heap_free(world.model, &time, 1, 0x5000);
    CHECK_EQ(world.model->totals.bytes[SPACE_HEAP], 20);
    CHECK_EQ(world.model->oddities.late_frees, 1);
    time.ns = 3000;
    heap_free(world.model, &time, 2, 0x5000);
    CHECK_EQ(world.model->totals.bytes[SPACE_HEAP], 0);
    heap_free(world.model, &time, 2, 0x5000); // and one of nothing
    CHECK_EQ(world.model->oddities.unknown_frees, 1);
    CHECK_EQ(world.model->totals.blocks[SPACE_HEAP], 0);
    world_end(&world);
}

TEST(a_run_that_is_told_late_leaves_the_next_owner_of_its_address_alone)
{
    World world;
    HeapNew block = {.time = {5000, 0}, .thread = 2, .context = 3, .address = 0x5000, .size = 10,
                     .usable = 16};
    HeapTime first = {1000, 0};

    world_begin(&world, 1);
    heap_alloc(world.model, &block);
    block.thread = 1;
    block.time.ns = 6000;
    heap_temporary(world.model, &block, 7, &first, 700);
    CHECK_EQ(world.model->totals.bytes[SPACE_HEAP], 10);
    CHECK_EQ(world.model->temporary, 7);
    world_end(&world);
}

TEST(numbers_that_make_no_sense_do_no_harm)
{
    World world;
    HeapNew block = {.time = {1000, 0}, .thread = UINT32_MAX, .context = UINT32_MAX - 1,
                     .address = UINT64_MAX, .size = UINT64_MAX / 4, .usable = 3};

    world_begin(&world, 1);
    heap_context(world.model, UINT32_MAX, UINT32_MAX, UINT64_MAX);
    heap_context(world.model, 50, 60, 1);
    heap_context(world.model, 3, 3, 1);
    heap_alloc(world.model, &block);
    heap_realloc(world.model, &block, UINT64_MAX);
    heap_thread_start(world.model, &block.time, UINT32_MAX, -1);
    heap_thread_end(world.model, &block.time, 4000000);
    heap_map(world.model, &(HeapNew){.address = UINT64_MAX - 4095, .size = 8192}, 0);
    heap_unmap(world.model, &block.time, 0, UINT64_MAX - 10, 100);
    heap_free(world.model, &block.time, 7, UINT64_MAX);
    CHECK_EQ(world.model->totals.bytes[SPACE_HEAP], 0);
    CHECK_EQ(world.model->totals.bytes[SPACE_MAPPED], 0);
    world_end(&world);
}

// A number such as a damaged ring may have: small, an address, anything.
static u64 random_word(World *world)
{
    switch (world_random(world, 5)) {
    case 0: return world_random(world, 100);
    case 1: return 0x10000 + world_random(world, 64) * 4096;
    case 2: return world_random(world, 1ull << 47);
    case 3: return UINT64_MAX - world_random(world, 5000);
    default: return world->random;
    }
}

TEST(records_of_a_damaged_ring_do_no_harm)
{
    World world;
    u64 words[16];
    int fd = wire_create();
    WireShared *shared = wire_map(fd);

    world_begin(&world, 13);
    CHECK(shared != NULL);
    shared->header.start_stamp = wire_stamp();
    heap_decoder_init(&world.model->decoder, world.model, shared);
    for (u32 i = 0; i < 300000; i++) {
        WireRecord record = {
            .type = (WireRecordType)world_random(&world, RECORD_TYPES),
            .ring = (u32)world_random(&world, 10) ? 1 : (u32)world.random,
            .payload = world_random(&world, 3) ? (u32)world_random(&world, 200)
                                               : (u32)world.random,
            .stamp = shared->header.start_stamp + i * 100,
            .words = words,
            .count = world_random(&world, ARRAY_LEN(words)),
        };
        // An id near 2^26 is one that the model would make room for, which takes too long here.
        for (size_t w = 0; w < ARRAY_LEN(words); w++)
            words[w] = record.type == RECORD_CONTEXT || record.type == RECORD_THREAD_START ||
                               record.type == RECORD_THREAD_END
                           ? world_random(&world, 5000)
                           : random_word(&world);
        heap_take(&world.model->decoder, &record);
    }
    CHECK_EQ(world.model->totals.blocks[SPACE_MAPPED], world.model->ranges.count);
    wire_unmap(shared);
    close(fd);
    world_end(&world);
}

// ----------------------------------------------------------------------- pages

typedef struct PlainPages {
    u32 context[PAGES]; // 0: not mapped
} PlainPages;

static void check_pages(const World *world, const PlainPages *plain)
{
    u64 bytes[CONTEXTS + 1] = {0}, total = 0;

    for (u32 i = 0; i < PAGES; i++) {
        bytes[plain->context[i]] += plain->context[i] ? PAGE_SIZE : 0;
        total += plain->context[i] ? PAGE_SIZE : 0;
    }
    CHECK_EQ(world->model->totals.bytes[SPACE_MAPPED], total);
    CHECK_EQ(world->model->totals.blocks[SPACE_MAPPED], world->model->ranges.count);
    for (u32 i = 0; i < world->model->site_count; i++) {
        const Site *site = &world->model->sites[i];
        if (site->space == SPACE_MAPPED)
            CHECK_EQ(site->live.bytes, bytes[site->context]);
    }
}

TEST(pages_are_exact_however_they_are_cut)
{
    World world;
    PlainPages plain = {0};
    u64 most = 0;

    world_begin(&world, 9);
    for (u32 i = 0; i < 20000; i++) {
        u64 start = world_random(&world, PAGES), room = PAGES - start;
        u64 count = 1 + world_random(&world, min_u64(room, 12));
        u32 context = 1 + (u32)world_random(&world, CONTEXTS);
        bool maps = world_random(&world, 2);

        world.now.ns += 10;
        HeapNew pages = {.time = world.now, .thread = 1, .context = context,
                         .address = 0x100000 + start * PAGE_SIZE, .size = count * PAGE_SIZE};
        if (maps)
            heap_map(world.model, &pages, HEAP_MAP_ANONYMOUS);
        else
            heap_unmap(world.model, &world.now, 1, pages.address, pages.size);
        for (u64 p = start; p < start + count; p++)
            plain.context[p] = maps ? context : 0;
        check_pages(&world, &plain);
        most = max_u64(most, world.model->totals.bytes[SPACE_MAPPED]);
        CHECK_EQ(world.model->peaks[PEAK_MAPPED].bytes, most);
    }
    world_end(&world);
}

TEST(mremap_moves_what_is_there)
{
    World world;
    HeapNew pages = {.thread = 1, .context = 1, .address = 0x100000, .size = 8 * PAGE_SIZE};

    world_begin(&world, 9);
    heap_map(world.model, &pages, HEAP_MAP_ANONYMOUS);
    pages = (HeapNew){.thread = 1, .context = 2, .address = 0x200000, .size = 20 * PAGE_SIZE};
    heap_remap(world.model, &pages, 0x102000, 4 * PAGE_SIZE);
    CHECK_EQ(world.model->totals.bytes[SPACE_MAPPED], 24 * PAGE_SIZE);
    CHECK_EQ(world.model->ranges.count, 3);
    world_end(&world);
}

TEST(stacks_have_their_deepest)
{
    World world;
    HeapTime time = {10, 0};

    world_begin(&world, 9);
    heap_stack(world.model, &time, 1, 3, 1000, 9000);
    heap_stack(world.model, &time, 2, 4, 500, 500);
    CHECK_EQ(world.model->totals.bytes[SPACE_STACK], 1500);
    CHECK_EQ(world.model->peaks[PEAK_STACK].bytes, 9000);
    heap_thread_end(world.model, &time, 2);
    CHECK_EQ(world.model->totals.bytes[SPACE_STACK], 1000);
    world_end(&world);
}

// ----------------------------------------------------------------------- limits

TEST(beyond_the_limits_stacks_and_threads_are_joined)
{
    enum { MOST = 20 };
    World world;

    world_begin(&world, 11);
    HeapModel *model = world.model;
    model->sites_max = MOST;
    model->places_max = (u32)model->places.count;
    heap_context(model, CONTEXTS + 1, 7, 0x9999);
    CHECK_EQ(model->oddities.cut_contexts, 1);
    for (u32 i = 0; i < THREADS * (CONTEXTS + 1); i++)
        heap_alloc(model, &(HeapNew){.time = {i, 0}, .thread = 1 + i % THREADS,
                                     .context = 1 + i / THREADS, .address = 0x10000 + i * 64,
                                     .size = 10, .usable = 16});
    CHECK_EQ(model->totals.blocks[SPACE_HEAP], THREADS * (CONTEXTS + 1));
    CHECK(model->site_count <= 2 * MOST + 1);
    u64 joined = 0, told_apart = 0;
    for (u32 i = 0; i < model->site_count; i++) {
        joined += model->sites[i].context == 0 ? model->sites[i].live.blocks : 0;
        told_apart += model->sites[i].thread != 0;
    }
    CHECK_EQ(told_apart, MOST);
    CHECK(joined > 0 && joined < THREADS * CONTEXTS);
    for (u32 i = 0; i < THREADS * (CONTEXTS + 1); i++)
        heap_free(model, &(HeapTime){1000 + i, 0}, 1, 0x10000 + i * 64);
    CHECK_EQ(model->totals.bytes[SPACE_HEAP], 0);
    for (u32 i = 0; i < model->site_count; i++)
        CHECK_EQ(model->sites[i].live.blocks, 0);
    world_end(&world);
}

// ----------------------------------------------------------------------- size and speed

TEST(ten_million_blocks_fit)
{
    BlockTable table = {0};
    const u64 count = 10000000;

    for (u64 i = 0; i < count; i++) {
        LiveBlock *block = blocks_add(&table, 0x1000 + i * 48);
        CHECK(block != NULL);
        block->size = i;
    }
    CHECK(table.used * sizeof(LiveBlock) + (table.mask + 1ull) * sizeof(u32) <= count * 51);
    for (u64 i = 0; i < count; i += 3) {
        LiveBlock *block = blocks_find(&table, 0x1000 + i * 48);
        CHECK(block && block->size == i);
        blocks_remove(&table, block);
    }
    for (u64 i = 0; i < count; i += 1000)
        CHECK((blocks_find(&table, 0x1000 + i * 48) != NULL) == (i % 3 != 0));
    CHECK_EQ(table.count, count - (count + 2) / 3);
    blocks_free(&table);
}

TEST(an_event_is_cheap)
{
    World world;
    struct timespec start, end;
    const u64 count = 1000000;

    world_begin(&world, 3);
    recording_close(world.model->writer, &world.model->now, &(RecordingEnd){0});
    world.model->writer = NULL;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (u64 i = 0; i < count; i++) {
        u64 address = 0x10000 + (i * 7919 % 1000) * 64;
        HeapNew block = {.time = {i * 100, 0}, .thread = 1 + i % 3, .context = 1 + i % CONTEXTS,
                         .address = address, .size = 50, .usable = 56};
        HeapTime time = {i * 100 + 50, 0};
        heap_alloc(world.model, &block);
        heap_free(world.model, &time, 1, address);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    printf("%.1f ns an event\n", ns / (2.0 * (double)count));
    CHECK(ns / (2.0 * (double)count) < 5000); // usual are 30
    world_end(&world);
}
