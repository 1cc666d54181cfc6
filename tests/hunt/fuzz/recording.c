// SPDX-License-Identifier: MIT
//
// Recordings of the heap. Checksums are made right first, so that what is behind them is met.
//
//     recording --plain FILE COPY    writes a copy without compression: a better seed
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "recording/format.h"
#include "recording/query.h"
#include "recording/recording.h"

static bool next_chunk(const u8 *file, size_t size, size_t at, ChunkHeader *ret_header)
{
    if (at + sizeof(ChunkHeader) > size)
        return false;
    memcpy(ret_header, file + at, sizeof(*ret_header));
    return ret_header->magic == CHUNK_MAGIC &&
           at + sizeof(*ret_header) + ret_header->info_bytes + ret_header->stored_bytes <= size;
}

static void repair(u8 *file, size_t size)
{
    ChunkHeader header;

    for (size_t at = sizeof(FileHeader); next_chunk(file, size, at, &header);) {
        size_t head = sizeof(header) + header.info_bytes;
        header.body_crc = header.stored_bytes ? chunk_crc(file + at + head, header.stored_bytes)
                                              : 0;
        header.head_crc = chunk_head_crc(&header, file + at + sizeof(header));
        memcpy(file + at, &header, sizeof(header));
        at += head + header.stored_bytes;
    }
}

// ---------------------------------------------------------------- seeds

static void make_plain(const char *from, const char *to)
{
    Bytes plain = {0};
    ChunkHeader header;
    FILE *file = fopen(from, "rb");
    u8 *data = malloc(64 * MiB);
    size_t size = file ? fread(data, 1, 64 * MiB, file) : 0;

    FUZZ_CHECK(size > sizeof(FileHeader));
    bytes_put(&plain, data, sizeof(FileHeader));
    for (size_t at = sizeof(FileHeader); next_chunk(data, size, at, &header);) {
        size_t head = sizeof(header) + header.info_bytes;
        u8 *body = chunk_decompress(NULL, &header, data + at + head);
        ChunkHeader copy = header;
        if (header.kind == CHUNK_INDEX || !body)
            break;
        copy.codec = CODEC_PLAIN;
        copy.stored_bytes = header.plain_bytes;
        bytes_put(&plain, &copy, sizeof(copy));
        bytes_put(&plain, data + at + sizeof(header), header.info_bytes);
        bytes_put(&plain, body, header.plain_bytes);
        free(body);
        at += head + header.stored_bytes;
    }
    repair(plain.data, plain.count);
    FILE *out = fopen(to, "wb");
    FUZZ_CHECK(out && fwrite(plain.data, 1, plain.count, out) == plain.count);
    exit(fclose(out) != 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc == 4 && strcmp((*argv)[1], "--plain") == 0)
        make_plain((*argv)[2], (*argv)[3]);
    return 0;
}

// -------------------------------------------------------------- questions

static bool take_event(void *arg, const HeapEvent *event)
{
    *(u64 *)arg += event->size;
    return true;
}

static bool take_block(void *arg, const RecordedBlock *block)
{
    *(u64 *)arg += block->size;
    return true;
}

static void ask_tree(Recording *recording, const i64 *values, const TreeOptions *options)
{
    Tree *tree = tree_build(recording, values, options);
    char label[40];
    u64 sum = 0;

    FUZZ_CHECK(tree);
    for (u32 i = 0; i < recording_site_count(recording); i++)
        sum += (u64)values[i];
    FUZZ_CHECK((u64)tree->nodes[0].value == sum);
    for (u32 i = 0; i < tree->count; i++)
        tree_node_label(recording, &tree->nodes[i], label, sizeof(label));
    tree_free(tree);
}

static void ask_metrics(Recording *recording, i64 *values)
{
    u64 last = recording_last(recording).ns;

    for (u32 metric = 0; metric < METRIC_COUNT; metric++) {
        Selection selection = {.from_ns = metric % 2 ? last / 5 : 0, .function = "!g*",
                               .object = metric % 3 ? "*" : NULL, .spaces = 7,
                               .min_size = metric % 2};
        char *error = NULL;
        if (selection_metric(recording, &selection, (Metric)metric, values, &error))
            ask_tree(recording, values, &(TreeOptions){.bottom_up = metric % 2,
                                                       .collapse_recursion = metric % 3});
        else
            FUZZ_CHECK(error);
        free(error);
    }
}

static void ask_everything(Recording *recording)
{
    u32 sites = recording_site_count(recording);
    SiteSums *sums = calloc((size_t)sites + 1, sizeof(*sums));
    i64 *values = calloc((size_t)sites + 1, sizeof(*values));
    u32 *groups = calloc((size_t)sites + 1, sizeof(*groups));
    u64 last = recording_last(recording).ns, sum = 0, series[40];
    SiteHistogram histogram;

    for (size_t i = 0; i < recording_state_count(recording); i++)
        recording_state(recording, i, sums);
    recording_range(recording, 0, UINT64_MAX, sums);
    recording_range(recording, last / 3, last / 2, sums);
    recording_series(recording, 0, last, 20, groups, 2, series);
    recording_each_event(recording, 0, UINT64_MAX, take_event, &sum);
    recording_each_block(recording, last / 4, last, take_block, &sum);
    recording_each_living(recording, 1, last, take_block, &sum);
    recording_histogram(recording, 0, &histogram);
    ask_metrics(recording, values);
    for (u32 i = 0; i < recording_context_count(recording); i++) {
        const RecordedContext *context = recording_context(recording, i);
        FUZZ_CHECK(i == 0 || context->parent < i);
        FUZZ_CHECK(context->first_frame + context->frame_count <= recording_frame_count(recording));
    }
    free(sums);
    free(values);
    free(groups);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    char *error = NULL;
    u8 *copy = malloc(size + 1);

    memcpy(copy, data, size);
    repair(copy, size);
    Recording *recording = recording_open(fuzz_file(copy, size), NULL, NULL, &error);
    free(copy);
    FUZZ_CHECK(recording || error);
    if (recording)
        ask_everything(recording);
    recording_free(recording);
    free(error);
    return 0;
}
