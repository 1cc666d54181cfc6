// SPDX-License-Identifier: MIT
//
// Recordings with a limit: the file stays below it, events go oldest first, then slices are
// joined; totals stay exact at the ends of slices, and peaks and asked states are all there.
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "recording_world.h"

// States of the model: live of all sites, kept to compare.
typedef struct KeptState {
    SiteSums *live;
    Moment moment;
    StateReason reason;
} KeptState;

static KeptState keep_state(World *world, StateReason reason, const char *label)
{
    KeptState kept = { .moment = world->now, .reason = reason };

    kept.live = calloc(world->site_count, sizeof(SiteSums));
    model_range(world, 0, UINT64_MAX, kept.live);
    recording_keep_state(world->writer, reason, label, &world->now, kept.live,
                         world->site_count);
    return kept;
}

static void check_state(World *world, Recording *recording, size_t index, const KeptState *kept)
{
    SiteSums *live = calloc(world->site_count, sizeof(SiteSums));

    CHECK(recording_state(recording, index, live));
    CHECK_EQ(recording_state_info(recording, index)->moment.ns, kept->moment.ns);
    for (u32 i = 0; i < world->site_count; i++) {
        CHECK_EQ(live[i].live_bytes, kept->live[i].live_bytes);
        CHECK_EQ(live[i].live_blocks, kept->live[i].live_blocks);
        CHECK_EQ(live[i].live_usable, kept->live[i].live_usable);
        CHECK_EQ(live[i].allocations, 0);
    }
    free(live);
    free(kept->live);
}

static void check_slice_ends(World *world, Recording *recording, u32 rounds)
{
    size_t slices = recording_slice_count(recording);

    check_range(world, recording, 0, UINT64_MAX);
    for (u32 i = 0; i < rounds; i++) {
        size_t a = world_random(world, slices), b = world_random(world, slices);
        const SliceInfo *from = recording_slice(recording, a < b ? a : b);
        const SliceInfo *to = recording_slice(recording, a < b ? b : a);
        check_range(world, recording, from->start.ns, to->end.ns);
    }
}

TEST(a_bounded_recording_keeps_its_limit_its_peak_and_what_was_asked)
{
    static const u64 limits[] = { 400000, 2000000 };

    for (u32 round = 0; round < ARRAY_LEN(limits); round++) {
        World world;
        struct stat status;
        KeptState kept[10];

        world_begin(&world, 30 + round, 60, limits[round]);
        for (u32 i = 0; i < 8; i++) {
            world_events(&world, 100000, 2000);
            kept[i] = keep_state(&world, i == 3 ? STATE_THRESHOLD : STATE_ASKED, "asked");
            free(keep_state(&world, STATE_PEAK, NULL).live);
            CHECK(stat(world.path, &status) == 0);
            CHECK((u64)status.st_size <= limits[round]);
        }
        kept[8] = keep_state(&world, STATE_PEAK, NULL);
        world_events(&world, 100000, 2000);
        world_close(&world);
        CHECK(stat(world.path, &status) == 0 && (u64)status.st_size <= limits[round]);

        Recording *recording = world_open(&world);
        CHECK_EQ(recording_event_count(recording), world.count);
        CHECK(recording_events_kept_since_ns(recording) > 0);
        CHECK_EQ(recording_state_count(recording), 9);
        for (u32 i = 0; i < 9; i++)
            check_state(&world, recording, i, &kept[i]);
        CHECK_EQ(recording_find_state(recording, STATE_PEAK), 8);
        check_slice_ends(&world, recording, 20);
        u64 since = recording_events_kept_since_ns(recording);
        for (u32 i = 0; i < 10 && since < world.now.ns; i++) {
            u64 a = since + world_random(&world, world.now.ns - since);
            check_range(&world, recording, a, a + world_random(&world, 100000));
        }
        CHECK_EQ(world.warning_count, 0);
        recording_free(recording);
        world_end(&world);
    }
}

TEST(slices_are_joined_when_events_are_not_enough)
{
    World world;
    struct stat status;

    world_begin(&world, 40, 3000, 300000);
    world_events(&world, 1500000, 2000);
    world_close(&world);
    CHECK(stat(world.path, &status) == 0 && status.st_size <= 300000);
    Recording *recording = world_open(&world);
    CHECK_EQ(recording_event_count(recording), world.count);
    CHECK(recording_slice_count(recording) > 1);
    check_slice_ends(&world, recording, 10);
    CHECK_EQ(world.warning_count, 0);
    recording_free(recording);
    world_end(&world);
}

// Its list of blocks is worth less than the course of the run.
TEST(a_bounded_recording_of_many_living_blocks_keeps_its_slices)
{
    for (u32 blocks = 20000; blocks <= 160000; blocks *= 8) {
        World world;

        world_begin(&world, 44, 100, 400000);
        world_events(&world, 1500000, 2000);
        for (u32 i = 0; i < blocks; i++)
            recording_add_living(world.writer, &(RecordedBlock){
                .site = i % 100, .address = 0x1000 + world_random(&world, 1ull << 40),
                .size = 100 + i % 1000, .usable = 1200, .born_ns = world_random(&world, 1 << 30) });
        world_close(&world);
        Recording *recording = world_open(&world);
        CHECK_EQ(recording_event_count(recording), world.count);
        CHECK(recording_slice_count(recording) > 10);
        check_slice_ends(&world, recording, 20);
        recording_free(recording);
        world_end(&world);
    }
}

TEST(a_reader_follows_a_recording_that_is_being_written)
{
    for (u32 bounded = 0; bounded < 2; bounded++) {
        World world;

        world_begin(&world, 50 + bounded, 40, bounded ? 300000 : 0);
        world_events(&world, 1000, 500);
        recording_flush(world.writer);
        Recording *recording = world_open(&world);
        for (u32 i = 0; i < 30; i++) {
            u32 context = recording_add_context(world.writer, 1, 0, 0x5000 + i, false);
            recording_set_frames(world.writer, context,
                                 &(RecordedFrame){ .function = i % 2 ? "odd" : "even" }, 1);
            recording_add_sample(world.writer, &(Sample){ .ns = world.now.ns });
            if (i % 3)
                world_events(&world, 20000, 500);
            if (i % 5 == 1)
                CHECK(recording_refresh(recording) || true); // in the middle of a slice
            recording_flush(world.writer);
            CHECK(recording_refresh(recording));
            CHECK(!recording_refresh(recording));
            CHECK_EQ(recording_event_count(recording), world.count);
            CHECK_EQ(recording_context_count(recording), 1 + world.site_count + i + 1);
            const RecordedContext *last = recording_context(recording, context);
            CHECK_STR(recording_frame(recording, last->first_frame)->function,
                      i % 2 ? "odd" : "even");
            CHECK_EQ(recording_sample_count(recording), i + 1);
            check_range(&world, recording, 0, UINT64_MAX);
        }
        world_close(&world);
        CHECK(!recording_end(recording)->known);
        CHECK(recording_refresh(recording));
        CHECK(recording_end(recording)->known && recording_end(recording)->status == 3);
        CHECK(!recording_refresh(recording));
        CHECK_EQ(world.warning_count, 0);
        recording_free(recording);
        world_end(&world);
    }
}

// ---------------------------------------------------------------- what the world refuses
static void check_consistent(Recording *recording)
{
    u32 sites = recording_site_count(recording);
    SiteSums *sums = calloc(sites + 1, sizeof(SiteSums));

    for (size_t i = 0; i < recording_slice_count(recording); i += 1 + i / 4) {
        const SliceInfo *slice = recording_slice(recording, i);
        SpaceTotals totals = { 0 };
        CHECK(recording_range(recording, 0, slice->end.ns, sums));
        for (u32 k = 0; k < sites; k++) {
            Space space = recording_site(recording, k)->space;
            totals.bytes[space] += sums[k].live_bytes;
            totals.blocks[space] += sums[k].live_blocks;
            totals.usable[space] += sums[k].live_usable;
        }
        CHECK(memcmp(&totals, &slice->totals, sizeof(totals)) == 0);
    }
    free(sums);
}

TEST(a_full_disk_ends_the_writing_and_leaves_what_was_written)
{
    World world;
    struct rlimit old, limit;
    struct stat status;

    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (u64 bytes = 200000; bytes < 900000; bytes += 97001) {
        world_begin(&world, 80, 40, 0);
        limit = (struct rlimit){ bytes, old.rlim_max };
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        world_events(&world, 200000, 1000);
        CHECK_EQ(recording_writer_error(world.writer), -EFBIG);
        CHECK(recording_close(world.writer, &world.now, &(RecordingEnd){ 0 }) < 0);
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
        CHECK(stat(world.path, &status) == 0 && (u64)status.st_size <= bytes);
        Recording *recording = world_open(&world);
        CHECK(recording_event_count(recording) > 1000);
        CHECK(!recording_end(recording)->known);
        CHECK_EQ(world.warning_count, 0);
        check_consistent(recording);
        recording_free(recording);
        world_end(&world);
    }
}

TEST(a_writer_that_is_killed_at_any_moment_leaves_a_recording)
{
    u64 events = 0;

    // On a busy machine a writer may need longer to get anything written at all.
    for (u32 round = 0; round < 12 || (events == 0 && round < 20); round++) {
        World world = { 0 };
        char beside[80];
        u32 factor = round < 12 ? 1 : 1u << (round - 11);

        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            world_begin(&world, 90 + round, 300, round % 3 ? 300000 : 0);
            for (;;)
                world_events(&world, 10000, 500);
        }
        usleep((30000 + round * 15000) * factor);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        snprintf(world.path, sizeof(world.path), "/tmp/muninn-recording-%d-%u", (int)child,
                 90 + round);
        struct stat status;
        if (stat(world.path, &status) == 0 && status.st_size > 16) {
            Recording *recording = world_open(&world);
            check_consistent(recording);
            CHECK(world.warning_count <= 1);
            events += recording_event_count(recording);
            recording_free(recording);
        }
        unlink(world.path);
        snprintf(beside, sizeof(beside), "%s.new", world.path);
        unlink(beside);
    }
    CHECK(events > 0);
}
