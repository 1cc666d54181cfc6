// SPDX-License-Identifier: MIT
//
// A recording that may not grow beyond what the user named. When it is about to, it is written
// anew without its least useful parts, to a file beside it that then takes its name: somebody
// who reads the old one goes on reading it, and a crash in between leaves it whole. Links to it
// stay, and what is no regular file is left as it is. Chunks are copied as they are. What goes,
// until enough is gone:
//
//   1. peaks that have been passed since
//   2. the list of blocks that live at the end, if it alone is more than half
//   3. events, the oldest first: sums stay exact at the ends of slices
//   4. slices of which 256 are summed up above, the oldest first
//   5. the list of blocks
//   6. larger spans, the oldest and smallest first
//   7. periodic states, the oldest first
//
// The list goes as a whole: half of it is of no use.
//
// Names, the peak and the states that somebody asked for stay, even if they alone are more.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/writer.h"

enum { INDEX_PER_CHUNK = 160 }; // bytes of the index, about

typedef struct Shrink {
    RecordingWriter *writer;
    bool *dropped;
    u64 bytes, wanted; // what is left, and what it should be
} Shrink;

static void drop(Shrink *shrink, size_t chunk)
{
    if (shrink->dropped[chunk])
        return;
    shrink->dropped[chunk] = true;
    shrink->bytes -= shrink->writer->chunks[chunk].bytes + INDEX_PER_CHUNK;
}

static void drop_passed_peaks(Shrink *shrink)
{
    bool seen[STATE_REASONS] = { false };

    for (size_t i = shrink->writer->chunk_count; i-- > 0;) {
        const WrittenChunk *chunk = &shrink->writer->chunks[i];
        bool is_peak = chunk->kind == CHUNK_STATE &&
                       ((chunk->reason >= STATE_PEAK && chunk->reason <= STATE_PEAK_ALL) ||
                        chunk->reason == STATE_PEAK_COUNTED);
        if (is_peak && seen[chunk->reason])
            drop(shrink, i);
        if (is_peak)
            seen[chunk->reason] = true;
    }
}

static void drop_events(Shrink *shrink)
{
    for (size_t i = 0; i < shrink->writer->chunk_count && shrink->bytes > shrink->wanted; i++)
        if (shrink->writer->chunks[i].kind == CHUNK_EVENTS)
            drop(shrink, i);
}

// What is below a node was written before it, and after the node of its level before it.
static void drop_below(Shrink *shrink, size_t node)
{
    const WrittenChunk *above = &shrink->writer->chunks[node];

    for (size_t i = node; i-- > 0;) {
        const WrittenChunk *chunk = &shrink->writer->chunks[i];
        if (chunk->kind == CHUNK_NODE && chunk->level >= above->level)
            break;
        bool is_below = (chunk->kind == CHUNK_NODE || chunk->kind == CHUNK_SUMS) &&
                        chunk->level < above->level && chunk->first >= above->first &&
                        chunk->first + chunk->count <= above->first + above->count;
        if (is_below)
            drop(shrink, i);
    }
}

static void join_slices(Shrink *shrink, u32 from_level, u32 to_level)
{
    for (u32 level = from_level; level <= to_level; level++) {
        for (size_t i = 0; i < shrink->writer->chunk_count; i++) {
            if (shrink->bytes <= shrink->wanted)
                return;
            const WrittenChunk *chunk = &shrink->writer->chunks[i];
            if (chunk->kind == CHUNK_NODE && chunk->level == level)
                drop_below(shrink, i);
        }
    }
}

static u64 living_bytes(const Shrink *shrink)
{
    u64 sum = 0;

    for (size_t i = 0; i < shrink->writer->chunk_count; i++)
        if (shrink->writer->chunks[i].kind == CHUNK_LIVING)
            sum += shrink->writer->chunks[i].bytes;
    return sum;
}

static void drop_living(Shrink *shrink)
{
    for (size_t i = 0; i < shrink->writer->chunk_count; i++)
        if (shrink->writer->chunks[i].kind == CHUNK_LIVING)
            drop(shrink, i);
}

static void drop_periodic(Shrink *shrink)
{
    for (size_t i = 0; i < shrink->writer->chunk_count && shrink->bytes > shrink->wanted; i++) {
        const WrittenChunk *chunk = &shrink->writer->chunks[i];
        if (chunk->kind == CHUNK_STATE &&
            (chunk->reason == STATE_PERIODIC || chunk->reason == STATE_KEY_FRAME))
            drop(shrink, i);
    }
}

// ---------------------------------------------------------------- the new file
static bool copy_bytes(int from, u64 from_offset, int to, u64 to_offset, u64 size)
{
    static char buffer[1 << 16];
    off_t in = (off_t)from_offset, out = (off_t)to_offset;

    while (size) {
        ssize_t n = copy_file_range(from, &in, to, &out, size, 0);
        if (n <= 0) { // not on this file system
            n = pread(from, buffer, min_u64(size, sizeof(buffer)), in);
            if (n <= 0 || pwrite(to, buffer, (size_t)n, out) != n)
                return false;
            in += n;
            out += n;
        }
        size -= (u64)n;
    }
    return true;
}

// Copies what stays, whole runs at a time; offsets[i] becomes where chunk i is.
static bool copy_chunks(const Shrink *shrink, int to, u64 *offsets, u64 *ret_end)
{
    const RecordingWriter *writer = shrink->writer;
    u64 end = sizeof(FileHeader);

    if (!copy_bytes(writer->fd, 0, to, 0, sizeof(FileHeader)))
        return false;
    for (size_t i = 0; i < writer->chunk_count;) {
        u64 start = writer->chunks[i].offset, size = 0;
        while (i < writer->chunk_count && !shrink->dropped[i]) {
            offsets[i] = end + size;
            size += writer->chunks[i++].bytes;
        }
        if (!copy_bytes(writer->fd, start, to, end, size))
            return false;
        end += size;
        while (i < writer->chunk_count && shrink->dropped[i])
            i++;
    }
    *ret_end = end;
    return true;
}

static int open_beside(const RecordingWriter *writer, char **ret_path)
{
    struct stat status;

    if (asprintf(ret_path, "%s.new", writer->own_name) < 0)
        return -1;
    int fd = open(*ret_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && (fstat(writer->fd, &status) != 0 || fchmod(fd, status.st_mode & 0777) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void rewrite(Shrink *shrink)
{
    RecordingWriter *writer = shrink->writer;
    u64 *offsets = calloc(writer->chunk_count + 1, sizeof(u64)), end = 0;
    char *path = NULL;
    int fd = offsets ? open_beside(writer, &path) : -1;

    if (fd < 0 || !copy_chunks(shrink, fd, offsets, &end) || rename(path, writer->own_name) != 0) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        free(path);
        free(offsets);
        writer_fail(writer, error);
        return;
    }
    flock(fd, LOCK_EX | LOCK_NB);
    close(writer->fd);
    writer->fd = fd;
    writer->offset = end;
    size_t kept = 0;
    for (size_t i = 0; i < writer->chunk_count; i++) {
        if (shrink->dropped[i])
            continue;
        writer->chunks[kept] = writer->chunks[i];
        writer->chunks[kept++].offset = offsets[i];
    }
    writer->chunk_count = kept;
    free(path);
    free(offsets);
}

static void shrink_to(RecordingWriter *writer, u64 wanted)
{
    Shrink shrink = { .writer = writer, .wanted = wanted };

    shrink.bytes = writer->offset + writer->chunk_count * INDEX_PER_CHUNK;
    shrink.dropped = calloc(writer->chunk_count + 1, sizeof(bool));
    if (!shrink.dropped || writer->error) {
        free(shrink.dropped);
        return;
    }
    u64 before = shrink.bytes;
    drop_passed_peaks(&shrink);
    if (shrink.bytes > wanted && living_bytes(&shrink) > wanted / 2)
        drop_living(&shrink);
    drop_events(&shrink);
    join_slices(&shrink, 1, 2);
    if (shrink.bytes > wanted)
        drop_living(&shrink);
    join_slices(&shrink, 3, LEVELS - 1);
    drop_periodic(&shrink);
    if (shrink.bytes < before)
        rewrite(&shrink);
    free(shrink.dropped);
}

// What must stay may be more than the limit: the next look is then a quarter later.
void writer_keep_bound(RecordingWriter *writer)
{
    u64 size = writer->offset + writer->chunk_count * INDEX_PER_CHUNK;

    if (!writer->max_bytes || !writer->own_name || size < writer->next_bound_check)
        return;
    shrink_to(writer, writer->max_bytes / 2);
    size = writer->offset + writer->chunk_count * INDEX_PER_CHUNK;
    writer->next_bound_check = max_u64(writer->max_bytes / 16 * 15, size / 4 * 5);
}

void writer_bound_end(RecordingWriter *writer)
{
    u64 size = writer->offset + writer->chunk_count * INDEX_PER_CHUNK;

    if (writer->max_bytes && writer->own_name && size > writer->max_bytes)
        shrink_to(writer, writer->max_bytes);
}
