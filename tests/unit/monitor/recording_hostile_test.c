// SPDX-License-Identifier: MIT
//
// Files that are cut off, damaged, foreign or made to do harm. What can be read is read, what
// cannot is told with its offset, and nothing crashes: under MODE=asan the fuzz test here is
// the proof.
#include <fcntl.h>
#include <time.h>

#include "recording/format.h"
#include "recording_world.h"

static u8 *read_file(const char *path, size_t *ret_size)
{
    struct stat status;
    int fd = open(path, O_RDONLY);

    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    u8 *data = malloc((size_t)status.st_size + 1);
    CHECK_EQ(read(fd, data, (size_t)status.st_size), status.st_size);
    close(fd);
    *ret_size = (size_t)status.st_size;
    return data;
}

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void make_world(World *world, u64 seed, u32 parts)
{
    world_begin(world, seed, 30, 0);
    SiteHistogram histogram = { .sizes = { [3] = 7 }, .lifetimes = { [20] = 9 } };
    for (u32 i = 0; i < parts; i++) {
        world_events(world, 600, 100);
        world_repeat(world, 30);
        recording_add_sample(world->writer, &(Sample){ world->now.ns, 1, 2, 3 });
        recording_set_frames(world->writer, i % 30 + 1,
                             &(RecordedFrame){ .function = "f", .file = "f.c", .line = i }, 1);
        SiteSums *live = calloc(world->site_count, sizeof(SiteSums));
        model_range(world, 0, UINT64_MAX, live);
        recording_keep_state(world->writer, i % 2 ? STATE_PEAK : STATE_ASKED, "s", &world->now,
                             live, world->site_count);
        free(live);
        recording_set_histogram(world->writer, i % 30, &histogram);
        recording_set_thread(world->writer, &(RecordedThread){ .number = i + 1, .name = "t" });
        recording_flush(world->writer);
    }
    for (size_t i = 0; i < world->live_count; i++)
        recording_add_living(world->writer, &world->live[i]);
    world_close(world);
}

static bool nothing(void *arg, const HeapEvent *event)
{
    *(u64 *)arg += event->size;
    return true;
}

static bool no_block(void *arg, const RecordedBlock *block)
{
    *(u64 *)arg += block->size;
    return true;
}

static void ask_tree(Recording *recording, const i64 *values, const TreeOptions *options)
{
    Tree *tree = tree_build(recording, values, options);
    char label[40];
    i64 sum = 0;

    CHECK(tree != NULL);
    for (u32 i = 0; i < recording_site_count(recording); i++)
        sum = (i64)((u64)sum + (u64)values[i]);
    CHECK_EQ(tree->nodes[0].value, sum);
    for (u32 i = 0; i < tree->count; i++)
        tree_node_label(recording, &tree->nodes[i], label, sizeof(label));
    tree_free(tree);
}

// Everything that can be asked, so that whatever is wrong with the file is met.
static void ask_everything(Recording *recording)
{
    u32 sites = recording_site_count(recording);
    SiteSums *sums = calloc(sites + 1, sizeof(*sums));
    i64 *values = calloc(sites + 1, sizeof(*values));
    u32 *groups = calloc(sites + 1, sizeof(*groups));
    u64 last = recording_last(recording).ns, sum = 0, series[40];
    SiteHistogram histogram;

    for (size_t i = 0; i < recording_state_count(recording); i++)
        recording_state(recording, i, sums);
    recording_range(recording, 0, UINT64_MAX, sums);
    recording_range(recording, last / 3, last / 2, sums);
    recording_series(recording, 0, last, 20, groups, 2, series);
    recording_each_event(recording, 0, UINT64_MAX, nothing, &sum);
    recording_each_block(recording, last / 4, last, no_block, &sum);
    recording_each_living(recording, 1, last, no_block, &sum);
    recording_histogram(recording, 0, &histogram);
    for (u32 metric = 0; metric < METRIC_COUNT; metric++) {
        Selection selection = { .from_ns = metric % 2 ? last / 5 : 0, .function = "!g*",
                                .object = metric % 3 ? "*" : NULL, .spaces = 7,
                                .min_size = metric % 2 };
        char *error = NULL;
        if (!selection_metric(recording, &selection, (Metric)metric, values, &error))
            CHECK(error != NULL);
        else
            ask_tree(recording, values, &(TreeOptions){ .bottom_up = metric % 2,
                                                        .collapse_recursion = metric % 3 });
        free(error);
    }
    for (u32 i = 0; i < recording_context_count(recording); i++) {
        const RecordedContext *context = recording_context(recording, i);
        CHECK(i == 0 || context->parent < i);
        CHECK(context->first_frame + context->frame_count <= recording_frame_count(recording));
    }
    free(sums);
    free(values);
    free(groups);
}

// ---------------------------------------------------------------- cut off
// The slices that lie before an offset, as the chunks in the file tell.
static u64 events_before(const u8 *file, size_t size)
{
    u64 events = 0, last = 0; // of the slice whose events have not come
    u32 slices = 0;

    for (size_t at = sizeof(FileHeader); at + sizeof(ChunkHeader) <= size;) {
        ChunkHeader header;
        Node node;
        memcpy(&header, file + at, sizeof(header));
        size_t bytes = sizeof(header) + header.info_bytes + header.stored_bytes;
        if (header.magic != CHUNK_MAGIC || at + bytes > size)
            break;
        Cursor info = cursor_of(file + at + sizeof(header), header.info_bytes);
        if (header.kind == CHUNK_NODE && get_node(&info, &node) && node.level == 0) {
            events += last;
            last = node.info.events;
            slices++;
        }
        if (header.kind == CHUNK_EVENTS) {
            events += last;
            last = 0;
        }
        at += bytes;
    }
    // A slice whose events are not there counts only if there is no other.
    return slices == 1 ? events + last : events;
}

static bool is_chunk_end(const u8 *file, size_t size, size_t cut)
{
    size_t at = sizeof(FileHeader);

    while (at < cut && at + sizeof(ChunkHeader) <= size) {
        ChunkHeader header;
        memcpy(&header, file + at, sizeof(header));
        if (header.magic != CHUNK_MAGIC)
            break;
        at += sizeof(header) + header.info_bytes + header.stored_bytes;
    }
    return at == cut;
}

TEST(a_file_that_is_cut_off_anywhere_is_read_up_to_there)
{
    World world;
    size_t size;

    make_world(&world, 60, 6);
    u8 *file = read_file(world.path, &size);
    for (size_t cut = sizeof(FileHeader); cut < size; cut += cut < 400 ? 1 : 53) {
        write_file(world.path, file, cut);
        world.warning_count = 0;
        world.warnings[0] = '\0';
        Recording *recording = world_open(&world);
        u64 events = events_before(file, cut);
        CHECK_EQ(recording_event_count(recording), events);
        CHECK(recording_slice_count(recording) <= 1 ||
              recording_events_kept_since_ns(recording) == 0);
        if (events)
            check_range(&world, recording, 0,
                        events < world.count && world.events[events].time.ns >
                                                    world.events[events - 1].time.ns
                            ? world.events[events - 1].time.ns + 1 : world.events[0].time.ns);
        // Without all of its trailer nothing is missing.
        bool clean = cut > size - sizeof(FileTrailer) || is_chunk_end(file, size, cut);
        if (world.warning_count != !clean)
            FAIL("cut at %zu: %u warnings: %s", cut, world.warning_count, world.warnings);
        if (!clean)
            CHECK(strstr(world.warnings, "cut off") && strstr(world.warnings, "offset"));
        recording_free(recording);
    }
    free(file);
    world_end(&world);
}

TEST(a_file_without_its_index_is_the_same)
{
    World world;
    size_t size;

    make_world(&world, 61, 6);
    u8 *file = read_file(world.path, &size);
    FileTrailer trailer;
    memcpy(&trailer, file + size - sizeof(trailer), sizeof(trailer));
    write_file(world.path, file, trailer.index_offset);
    Recording *recording = world_open(&world);
    CHECK_EQ(recording_event_count(recording), world.count);
    CHECK(recording_end(recording)->known);
    CHECK_EQ(recording_state_count(recording), 4); // three asked, and the last of three peaks
    CHECK_EQ(recording_thread_count(recording), 6);
    CHECK_EQ(recording_sample_count(recording), 6);
    check_range(&world, recording, 0, UINT64_MAX);
    CHECK_EQ(world.warning_count, 0);
    recording_free(recording);
    free(file);
    world_end(&world);
}

// ---------------------------------------------------------------- damaged
TEST(a_damaged_byte_is_told_with_its_offset_and_the_rest_is_read)
{
    World world;
    size_t size;
    u32 told = 0, rounds = 0;

    make_world(&world, 62, 6);
    u8 *file = read_file(world.path, &size);
    for (size_t at = sizeof(FileHeader); at < size - sizeof(FileTrailer); at += 61) {
        file[at] ^= 0x55;
        write_file(world.path, file, size);
        world.warning_count = 0;
        world.warnings[0] = '\0';
        Recording *recording = world_open(&world);
        ask_everything(recording);
        if (world.warning_count && !strstr(world.warnings, "offset"))
            FAIL("damage at %zu of %zu: said %s", at, size, world.warnings);
        if (world.warning_count == 0) { // where the index knows better, nothing is lost
            CHECK_EQ(recording_event_count(recording), world.count);
            check_range(&world, recording, 0, UINT64_MAX);
        }
        told += world.warning_count != 0;
        rounds++;
        recording_free(recording);
        file[at] ^= 0x55;
    }
    CHECK(told > rounds / 2);
    free(file);
    world_end(&world);
}

TEST(events_that_are_damaged_leave_exact_sums_at_slice_ends)
{
    World world;
    size_t size;

    make_world(&world, 63, 6);
    u8 *file = read_file(world.path, &size);
    u32 damaged = 0;
    for (size_t at = sizeof(FileHeader); at + sizeof(ChunkHeader) < size;) {
        ChunkHeader header;
        memcpy(&header, file + at, sizeof(header));
        if (header.magic != CHUNK_MAGIC)
            break;
        at += sizeof(header) + header.info_bytes + header.stored_bytes;
        if (header.kind == CHUNK_EVENTS && damaged++ % 2 == 0)
            file[at - 1] ^= 1;
    }
    write_file(world.path, file, size);
    Recording *recording = world_open(&world);
    check_range(&world, recording, 0, UINT64_MAX);
    u64 sum = 0;
    recording_each_event(recording, 0, UINT64_MAX, nothing, &sum);
    CHECK_EQ(world.warning_count, (damaged + 1) / 2);
    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        check_range(&world, recording, slice->start.ns, slice->end.ns);
        CHECK_EQ(slice->has_events, i % 2);
    }
    CHECK_EQ(world.warning_count, (damaged + 1) / 2); // each was told once
    recording_free(recording);
    free(file);
    world_end(&world);
}

// ---------------------------------------------------------------- foreign
static void check_refused(const char *path, const char *why)
{
    char *error = NULL;

    CHECK(recording_open(path, NULL, NULL, &error) == NULL);
    if (!error || !strstr(error, why) || !strstr(error, path))
        FAIL("said: %s", error ? error : "nothing");
    free(error);
}

TEST(foreign_files_are_refused_with_a_reason)
{
    char path[64];
    FileHeader header = { .magic = FILE_MAGIC, .version = 99 };

    snprintf(path, sizeof(path), "/tmp/muninn-foreign-%d", (int)getpid());
    check_refused("/nonexistent/recording", "No such file");
    check_refused("/tmp", "not a file");
    check_refused("/dev/zero", "not a file");
    write_file(path, "", 0);
    check_refused(path, "empty");
    write_file(path, "desc: --heap\ncmd: ls\ntime_unit: i\n", 34);
    check_refused(path, "not a heap recording");
    write_file(path, "MUN", 3);
    check_refused(path, "not a heap recording");
    write_file(path, &header, sizeof(header));
    check_refused(path, "another version");
    unlink(path);
}

TEST(recordings_of_versions_1_and_2_are_read)
{
    World world;
    size_t size;

    make_world(&world, 64, 6);
    u8 *file = read_file(world.path, &size);
    for (u32 version = 1; version <= 2; version++) {
        ((FileHeader *)file)->version = version;
        write_file(world.path, file, size);
        Recording *recording = world_open(&world);
        CHECK(recording != NULL);
        CHECK_EQ(recording_event_count(recording), world.count);
        recording_free(recording);
    }
    free(file);
    world_end(&world);
}

// ---------------------------------------------------------------- made to do harm
// Checksums are made right again, so that what is behind them is met.
static void repair(u8 *file, size_t size)
{
    for (size_t at = sizeof(FileHeader); at + sizeof(ChunkHeader) <= size;) {
        ChunkHeader header;
        memcpy(&header, file + at, sizeof(header));
        size_t head = sizeof(header) + (size_t)header.info_bytes;
        if (header.magic != CHUNK_MAGIC || at + head + header.stored_bytes > size)
            break;
        header.body_crc = header.stored_bytes ? chunk_crc(file + at + head, header.stored_bytes)
                                              : 0;
        header.head_crc = chunk_head_crc(&header, file + at + sizeof(header));
        memcpy(file + at, &header, sizeof(header));
        at += head + header.stored_bytes;
    }
}

// The file with every body as plain bytes, so that changed bytes get behind the decompression.
static u8 *plain_copy(const u8 *file, size_t size, size_t *ret_size)
{
    Bytes plain = { 0 };

    bytes_put(&plain, file, sizeof(FileHeader));
    for (size_t at = sizeof(FileHeader); at + sizeof(ChunkHeader) <= size;) {
        ChunkHeader header;
        memcpy(&header, file + at, sizeof(header));
        size_t head = sizeof(header) + header.info_bytes;
        if (header.magic != CHUNK_MAGIC || header.kind == CHUNK_INDEX)
            break;
        u8 *body = chunk_decompress(NULL, &header, file + at + head);
        CHECK(body != NULL);
        ChunkHeader copy = header;
        copy.codec = CODEC_PLAIN;
        copy.stored_bytes = header.plain_bytes;
        bytes_put(&plain, &copy, sizeof(copy));
        bytes_put(&plain, file + at + sizeof(header), header.info_bytes);
        bytes_put(&plain, body, header.plain_bytes);
        free(body);
        at += head + header.stored_bytes;
    }
    repair(plain.data, plain.count);
    *ret_size = plain.count;
    return plain.data;
}

static u64 now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (u64)time.tv_sec * 1000 + (u64)time.tv_nsec / 1000000;
}

TEST(fuzz_changed_bytes_behind_right_checksums_do_no_harm)
{
    World world;
    size_t size, plain_size;

    make_world(&world, 64, 4);
    u8 *file = read_file(world.path, &size);
    u8 *plain = plain_copy(file, size, &plain_size), *copy = malloc(plain_size);
    u64 end = now_ms() + 6000;
    u32 round = 0;
    for (; round < 1500 && now_ms() < end; round++) {
        memcpy(copy, plain, plain_size);
        u32 changes = 1 + (u32)world_random(&world, 6);
        for (u32 i = 0; i < changes; i++) {
            size_t at = sizeof(FileHeader) + world_random(&world, plain_size - sizeof(FileHeader));
            static const u8 nasty[] = { 0, 1, 0x7f, 0x80, 0xff, 0xfe };
            copy[at] = world_random(&world, 2) ? nasty[world_random(&world, sizeof(nasty))]
                                               : (u8)world_random(&world, 256);
        }
        repair(copy, plain_size);
        write_file(world.path, copy, plain_size);
        world.warnings[0] = '\0';
        char *error = NULL;
        Recording *recording = recording_open(world.path, world_warn, &world, &error);
        if (recording)
            ask_everything(recording);
        free(error);
        recording_free(recording);
    }
    printf("%u files\n", round);
    free(file);
    free(plain);
    free(copy);
    world_end(&world);
}

// The file with its index as plain bytes at the end; *ret_body is where they begin.
static u8 *plain_index_copy(const u8 *file, size_t size, size_t *ret_size, size_t *ret_body)
{
    FileTrailer trailer;
    ChunkHeader header;
    Bytes copy = { 0 };

    memcpy(&trailer, file + size - sizeof(trailer), sizeof(trailer));
    memcpy(&header, file + trailer.index_offset, sizeof(header));
    size_t head = trailer.index_offset + sizeof(header) + header.info_bytes;
    u8 *body = chunk_decompress(NULL, &header, file + head);
    CHECK(body != NULL);
    bytes_put(&copy, file, head);
    bytes_put(&copy, body, header.plain_bytes);
    bytes_put(&copy, &trailer, sizeof(trailer));
    header.codec = CODEC_PLAIN;
    header.stored_bytes = header.plain_bytes;
    memcpy(copy.data + trailer.index_offset, &header, sizeof(header));
    free(body);
    *ret_size = copy.count;
    *ret_body = head;
    return copy.data;
}

TEST(fuzz_an_index_that_lies_does_no_harm)
{
    World world;
    size_t size, copy_size, body;

    make_world(&world, 65, 4);
    u8 *file = read_file(world.path, &size);
    u8 *whole = plain_index_copy(file, size, &copy_size, &body), *copy = malloc(copy_size);
    u64 end = now_ms() + 3000;
    for (u32 round = 0; round < 600 && now_ms() < end; round++) {
        memcpy(copy, whole, copy_size);
        for (u32 i = 0; i < 1 + round % 5; i++) {
            size_t at = body + world_random(&world, copy_size - sizeof(FileTrailer) - body);
            copy[at] = world_random(&world, 2) ? 0xff : (u8)world_random(&world, 256);
        }
        repair(copy, copy_size - sizeof(FileTrailer));
        write_file(world.path, copy, copy_size);
        world.warnings[0] = '\0';
        Recording *recording = world_open(&world);
        ask_everything(recording);
        recording_free(recording);
    }
    free(file);
    free(whole);
    free(copy);
    world_end(&world);
}
