// SPDX-License-Identifier: MIT
//
// Round trips of random recordings: every event, and sums at random moments and over random
// ranges, equal what follows from the plain list of events.
#include "recording_world.h"

typedef struct EventCheck {
    const World *world;
    size_t next;
    u64 to_ns;
    bool ok;
} EventCheck;

static bool check_event(void *arg, const HeapEvent *event)
{
    EventCheck *check = arg;
    const HeapEvent *wanted = &check->world->events[check->next++];

    check->ok &= event->kind == wanted->kind && event->flags == wanted->flags &&
                 event->site == wanted->site && event->thread == wanted->thread &&
                 memcmp(&event->time, &wanted->time, sizeof(Moment)) == 0 &&
                 event->address == wanted->address && event->size == wanted->size &&
                 event->usable == wanted->usable && event->born_ns == wanted->born_ns;
    return check->ok;
}

TEST(every_event_comes_back_as_it_was)
{
    World world;

    world_begin(&world, 1, 50, 0);
    world_events(&world, 200000, 3000);
    world_close(&world);
    Recording *recording = world_open(&world);
    EventCheck check = { .world = &world, .ok = true };
    recording_each_event(recording, 0, UINT64_MAX, check_event, &check);
    CHECK(check.ok);
    CHECK_EQ(check.next, world.count);
    CHECK_EQ(recording_event_count(recording), world.count);
    CHECK_EQ(recording_events_kept_since_ns(recording), 0);
    CHECK_EQ(world.warning_count, 0);
    recording_free(recording);
    world_end(&world);
}

TEST(sums_of_any_range_are_those_of_its_events)
{
    for (u64 seed = 2; seed < 8; seed++) {
        World world;
        u32 sites = seed == 7 ? 20000 : 30;

        world_begin(&world, seed, sites, 0);
        world.ns_step = seed % 2 ? 200 : 500000; // slices that end by count, and by time
        for (u32 i = 0; i < 20; i++) {
            world_events(&world, 20000, 3000);
            if (i % 7 == 3)
                recording_close_slice(world.writer, &world.now);
        }
        world_close(&world);
        Recording *recording = world_open(&world);
        check_range(&world, recording, 0, UINT64_MAX);
        for (u32 i = 0; i < 25; i++) {
            u64 a = world_random(&world, world.now.ns), b = world_random(&world, world.now.ns);
            if (i % 3 == 0) // exactly at an event
                a = world.events[world_random(&world, world.count)].time.ns;
            if (i % 4 == 0)
                b = a + world_random(&world, 1000);
            check_range(&world, recording, min_u64(a, b), max_u64(a, b));
        }
        CHECK_EQ(world.warning_count, 0);
        recording_free(recording);
        world_end(&world);
    }
}

TEST(repeated_pairs_are_as_if_told_one_by_one)
{
    World world;

    world_begin(&world, 13, 40, 0);
    for (u32 i = 0; i < 200; i++) {
        world_events(&world, world_random(&world, 500), 300);
        world_repeat(&world, 1 + (u32)world_random(&world, i % 20 ? 500 : 40000));
    }
    world_close(&world);
    Recording *recording = world_open(&world);
    EventCheck check = { .world = &world, .ok = true };
    recording_each_event(recording, 0, UINT64_MAX, check_event, &check);
    CHECK(check.ok);
    CHECK_EQ(check.next, world.count);
    for (u32 i = 0; i < 20; i++) {
        u64 a = world_random(&world, world.now.ns), b = a + world_random(&world, world.now.ns / 4);
        check_range(&world, recording, a, b);
    }
    CHECK_EQ(world.warning_count, 0);
    recording_free(recording);
    world_end(&world);
}

TEST(slices_follow_each_other_and_end_in_the_right_totals)
{
    World world;

    world_begin(&world, 9, 40, 0);
    world.ns_step = 100000;
    world_events(&world, 300000, 2000);
    world_close(&world);
    Recording *recording = world_open(&world);
    SpaceTotals totals = { 0 };
    u64 high[SPACE_COUNT] = { 0 }, at = 0;
    CHECK(recording_slice_count(recording) > 20);
    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        u64 frees = 0;
        if (i)
            CHECK_EQ(slice->start.ns, recording_slice(recording, i - 1)->end.ns);
        memcpy(high, totals.bytes, sizeof(high));
        for (u64 k = 0; k < slice->events; k++, at++) {
            const HeapEvent *event = &world.events[at];
            Space space = world.sites[event->site].space;
            u64 sign = event->kind == EVENT_ALLOC ? 1 : UINT64_MAX;
            CHECK(event->time.ns >= slice->start.ns && event->time.ns < slice->end.ns);
            totals.bytes[space] += sign * event->size;
            totals.blocks[space] += sign;
            totals.usable[space] += sign * event->usable;
            high[space] = max_u64(high[space], totals.bytes[space]);
            frees += event->kind == EVENT_FREE;
        }
        CHECK(memcmp(&totals, &slice->totals, sizeof(totals)) == 0);
        CHECK(memcmp(high, slice->high, sizeof(high)) == 0);
        CHECK_EQ(slice->frees, frees);
        CHECK_EQ(slice->allocations, slice->events - frees);
    }
    CHECK_EQ(at, world.count);
    recording_free(recording);
    world_end(&world);
}

TEST(series_are_live_bytes_at_the_end_of_each_span)
{
    World world;
    enum { POINTS = 60, GROUPS = 3 };
    u64 got[POINTS * GROUPS];

    world_begin(&world, 10, 40, 0);
    world_events(&world, 400000, 2000);
    world_close(&world);
    Recording *recording = world_open(&world);
    u32 *group_of = calloc(world.site_count, sizeof(u32));
    for (u32 i = 0; i < world.site_count; i++)
        group_of[i] = i % 5 < GROUPS ? i % 5 : UINT32_MAX;
    for (u32 round = 0; round < 8; round++) {
        u64 from = round * world.now.ns / 9, to = round % 2 ? world.now.ns : from + 12345;
        CHECK(recording_series(recording, from, to, POINTS, group_of, GROUPS, got));
        for (u32 point = 0; point < POINTS; point++) {
            u64 at = from + (to - from) * (point + 1) / POINTS, wanted[GROUPS] = { 0 };
            for (size_t i = 0; i < world.count && world.events[i].time.ns < at; i++) {
                const HeapEvent *event = &world.events[i];
                if (group_of[event->site] < GROUPS)
                    wanted[group_of[event->site]] +=
                        event->kind == EVENT_ALLOC ? event->size : 0 - event->size;
            }
            for (u32 group = 0; group < GROUPS; group++)
                CHECK_EQ(got[point * GROUPS + group], wanted[group]);
        }
    }
    free(group_of);
    recording_free(recording);
    world_end(&world);
}

// ---------------------------------------------------------------- blocks
typedef struct BlockCheck {
    RecordedBlock *blocks;
    size_t count;
} BlockCheck;

static bool keep_block(void *arg, const RecordedBlock *block)
{
    BlockCheck *check = arg;

    check->blocks[check->count++] = *block;
    return true;
}

// Dead in order of death, then the living in order of birth, by the list.
static size_t model_blocks(const World *world, u64 from_ns, u64 to_ns, RecordedBlock *blocks)
{
    size_t count = 0;

    for (size_t i = 0; i < world->count; i++) {
        const HeapEvent *event = &world->events[i];
        if (event->kind == EVENT_FREE && event->time.ns >= from_ns && event->born_ns < to_ns)
            blocks[count++] = (RecordedBlock){
                .site = event->site, .freed_by = event->thread, .flags = event->flags,
                .address = event->address, .size = event->size, .usable = event->usable,
                .born_ns = event->born_ns, .died_ns = event->time.ns };
    }
    for (size_t i = 0; i < world->count; i++) {
        const HeapEvent *event = &world->events[i];
        bool is_live = false;
        for (size_t k = 0; event->kind == EVENT_ALLOC && k < world->live_count; k++)
            is_live |= world->live[k].address == event->address;
        if (is_live && event->time.ns < to_ns)
            blocks[count++] = (RecordedBlock){
                .site = event->site, .address = event->address, .size = event->size,
                .usable = event->usable, .born_ns = event->time.ns };
    }
    return count;
}

static bool same_block(const RecordedBlock *a, const RecordedBlock *b)
{
    return a->site == b->site && a->freed_by == b->freed_by && a->flags == b->flags &&
           a->address == b->address && a->size == b->size && a->usable == b->usable &&
           a->born_ns == b->born_ns && a->died_ns == b->died_ns;
}

TEST(blocks_are_those_that_lived_in_the_range)
{
    World world;

    world_begin(&world, 11, 40, 0);
    world_events(&world, 100000, 300);
    world_close(&world);
    Recording *recording = world_open(&world);
    RecordedBlock *wanted = calloc(world.count, sizeof(RecordedBlock));
    BlockCheck got = { .blocks = calloc(world.count, sizeof(RecordedBlock)) };
    for (u32 round = 0; round < 4; round++) {
        u64 from = round * world.now.ns / 4, to = round == 3 ? UINT64_MAX : from + world.now.ns / 5;
        got.count = 0;
        CHECK(recording_each_block(recording, from, to, keep_block, &got));
        size_t count = model_blocks(&world, from, to, wanted);
        CHECK_EQ(got.count, count);
        for (size_t i = 0; i < count; i++)
            CHECK(same_block(&got.blocks[i], &wanted[i]));
    }
    free(wanted);
    free(got.blocks);
    recording_free(recording);
    world_end(&world);
}

// A long-lived half and a short-lived half of blocks, 3,000 sites, 100 to 900 ns apart.
TEST(an_event_takes_at_most_12_bytes_before_compression)
{
    World world;
    enum { EVENTS = 600000, KEPT = 30000 };
    static struct { u64 address, born_ns; u32 size, site; } kept[KEPT];

    world_counts_instructions = false;
    world_begin(&world, 12, 3000, 0);
    world_counts_instructions = true;
    for (u32 i = 0; i < EVENTS; i++) {
        u32 at = (u32)world_random(&world, world_random(&world, 2) ? 16 : KEPT);
        bool is_free = kept[at].address != 0;
        world.now.ns += 100 + world_random(&world, 800);
        if (!is_free) {
            kept[at].address = 0x555555560000 + world_random(&world, 1 << 22) * 16;
            kept[at].born_ns = world.now.ns;
            kept[at].size = 1 + (u32)world_random(&world, world_random(&world, 4) ? 300 : 9000);
            kept[at].site = (u32)world_random(&world, world.site_count);
        }
        u64 usable = kept[at].size <= 24 ? 24 : ((kept[at].size + 23ull) & ~15ull) - 8;
        bool is_heap = world.sites[kept[at].site].space == SPACE_HEAP;
        world.now.allocated_bytes += is_heap ? kept[at].size : 0;
        recording_add_event(world.writer, &(HeapEvent){
            .kind = is_free ? EVENT_FREE : EVENT_ALLOC, .site = kept[at].site,
            .thread = world.sites[kept[at].site].thread, .time = world.now,
            .address = kept[at].address, .size = kept[at].size, .usable = usable,
            .born_ns = kept[at].born_ns });
        kept[at].address = is_free ? 0 : kept[at].address;
    }
    world_close(&world);
    Recording *recording = world_open(&world);
    u64 bytes = recording_plain_bytes(recording);
    printf("%.2f bytes an event\n", (double)bytes / EVENTS);
    CHECK(bytes <= 12ull * EVENTS);
    recording_free(recording);
    world_end(&world);
}
