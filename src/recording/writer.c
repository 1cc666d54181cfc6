// SPDX-License-Identifier: MIT
//
// The writer of a recording: every event is encoded (events.c) and summed up by site; every
// so often the sums and the events become a slice in the file. All that is done for an event
// is O(1) and allocates nothing; what a slice costs is shared by its events.
//
// What must stay true
//   W1  Slices follow each other without a gap, and every event is in one.
//   W2  A slice has at least 32 events for every site in it, or lasted long, so that sums cost
//       less than events.
//   W3  Definitions are written before what names them.
//   W4  Memory follows sites, names and one slice, of which there are three copies at most: as
//       columns, as a body, compressed. Until slices are full of events, which may take hours, it
//       grows with them: to some MiB. Of a chunk in the file 40 bytes are kept.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/assert.h"
#include "base/output_file.h"
#include "recording/add_event.h"

enum {
    SLICE_EVENTS = 1 << 16,     // enough for a slice, if the recording may be large enough
    SLICE_EVENTS_MIN = 1 << 10,
    LIMIT_PER_SLICE_EVENT = 1 << 10, // bytes of max_bytes for an event of a slice
    SLICE_EVENTS_MORE = 4,      // times as many, when they are of many sites
    EVENTS_PER_SITE = 32,
    FIRST_SLICE_NS = 10000000,  // how long a slice lasts in a run that has just begun
    SPARSE_FACTOR = 16,         // longer, if its sums would cost as much as its events
    SLICES_PER_LENGTH = 256,    // then slices become twice as long
    SAMPLES_PER_CHUNK = 256,
    LIVING_PER_CHUNK = 1 << 16,
    DEFAULT_LEVEL = 1,
    // 9 ns an event instead of 16, and a fifth more bytes (bench/run, C++ churn). Not for the
    // index, which has headers of chunks in it: who looks for chunks shall not find those.
    DEFAULT_EVENTS_LEVEL = -5,
    // Of a program that does little but allocate, even that is a tenth of what it costs: events
    // that come as often as this are stored as they are, which takes half as much more room.
    DENSE_EVENTS = 1 << 12,
    DENSE_NS = 1000, // an event
};

static void copy_info(RecordingInfo *to, const RecordingInfo *from)
{
    *to = *from;
    to->tool = from->tool ? strdup(from->tool) : NULL;
    to->command = from->command ? strdup(from->command) : NULL;
    to->options = from->options ? strdup(from->options) : NULL;
    to->executable = from->executable ? strdup(from->executable) : NULL;
}

static void writer_free(RecordingWriter *writer)
{
    for (u32 i = 0; i < LEVELS; i++) {
        free(writer->open[i].sums);
        free(writer->open[i].changed);
    }
    writer_free_names(writer);
    encoder_free(&writer->encoder);
    run_free(&writer->info);
    ZSTD_freeCCtx(writer->compressor);
    bytes_free(&writer->plain);
    bytes_free(&writer->stored);
    bytes_free(&writer->chunk_info);
    sums_free(&writer->sums);
    bytes_free(&writer->samples);
    bytes_free(&writer->histograms);
    bytes_free(&writer->living);
    free(writer->sites);
    free(writer->changed);
    free(writer->chunks);
    free(writer->own_name);
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer);
}

static bool writer_begin(RecordingWriter *writer, const RecordingInfo *info)
{
    FileHeader header = { .magic = FILE_MAGIC, .version = FORMAT_VERSION };

    copy_info(&writer->info, info);
    writer->compressor = ZSTD_createCCtx();
    writer->module_count = 1;  // 0 is none
    writer->context_count = 1; // 0 is the empty stack
    writer->slice_ns = FIRST_SLICE_NS;
    writer->slice.count = 1;
    if (!writer->compressor || !encoder_init(&writer->encoder, info)) {
        errno = ENOMEM;
        return false;
    }
    if (!writer_write_at(writer, &header, sizeof(header), 0))
        return false;
    writer->offset = sizeof(header);
    put_run(&writer->chunk_info, info);
    return writer_put_chunk(writer, CHUNK_RUN, NULL) != NULL;
}

// The file, locked and empty. -1 and EWOULDBLOCK: another writer has it. Whoever was about to lock
// it may have found it unlinked: then it is another file's name by now.
static int open_locked(const char *path)
{
    enum { TRIES = 100 };
    struct stat own, named;

    for (int i = 0; i < TRIES; i++) {
        int fd = output_open(path, O_RDWR);
        if (fd < 0) {
            errno = -fd;
            return -1;
        }
        if (fstat(fd, &own) != 0 || !S_ISREG(own.st_mode))
            return fd;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            break;
        }
        bool is_named = stat(path, &named) == 0 && named.st_ino == own.st_ino &&
                        named.st_dev == own.st_dev;
        if (is_named && ftruncate(fd, 0) == 0)
            return fd;
        close(fd);
    }
    errno = EWOULDBLOCK;
    return -1;
}

static char *find_own_name(int fd, const char *path)
{
    struct stat own, named;
    char *name = realpath(path, NULL);

    if (name && fstat(fd, &own) == 0 && S_ISREG(own.st_mode) && stat(name, &named) == 0 &&
        named.st_ino == own.st_ino && named.st_dev == own.st_dev)
        return name;
    free(name);
    return NULL;
}

RecordingWriter *recording_create(const WriterConfig *config, const RecordingInfo *info,
                                  int *ret_error)
{
    RecordingWriter *writer = calloc(1, sizeof(*writer));

    if (!writer) {
        *ret_error = ENOMEM;
        return NULL;
    }
    writer->max_bytes = config->max_bytes;
    writer->next_bound_check = config->max_bytes / 16 * 15;
    writer->slice_events = SLICE_EVENTS;
    if (config->max_bytes)
        writer->slice_events = (u32)min_u64(
            SLICE_EVENTS, max_u64(SLICE_EVENTS_MIN, config->max_bytes / LIMIT_PER_SLICE_EVENT));
    writer->level = config->level ? (int)config->level : DEFAULT_LEVEL;
    writer->events_level = config->level ? (int)config->level : DEFAULT_EVENTS_LEVEL;
    writer->is_fixed_level = config->level != 0;
    writer->fd = open_locked(config->path);
    if (writer->fd < 0 || !writer_begin(writer, info) ||
        (!config->has_numbers && !encoder_keep_seen(&writer->encoder))) {
        *ret_error = errno ? errno : EIO;
        writer_free(writer);
        return NULL;
    }
    writer->own_name = find_own_name(writer->fd, config->path);
    return writer;
}

const char *recording_own_name(const RecordingWriter *writer)
{
    return writer->own_name;
}

bool recording_move(RecordingWriter *writer, const char *path)
{
    char *name = strdup(path);

    if (!name || !writer->own_name || rename(writer->own_name, name) != 0) {
        free(name);
        return false;
    }
    free(writer->own_name);
    writer->own_name = name;
    return true;
}

int recording_writer_error(const RecordingWriter *writer)
{
    return -writer->error;
}

static void put_samples(RecordingWriter *writer)
{
    if (!writer->sample_count)
        return;
    bytes_put_varint(&writer->chunk_info, writer->sample_chunks++);
    bytes_put_varint(&writer->chunk_info, writer->sample_count);
    writer_put_chunk(writer, CHUNK_SAMPLES, &writer->samples);
    writer->samples.count = 0;
    writer->sample_count = 0;
    writer->last_sample_ns = 0;
}

void recording_add_sample(RecordingWriter *writer, const Sample *sample)
{
    bytes_put_signed(&writer->samples, (i64)(sample->ns - writer->last_sample_ns));
    bytes_put_varint(&writer->samples, sample->rss_bytes);
    bytes_put_varint(&writer->samples, sample->process_rss_bytes);
    bytes_put_varint(&writer->samples, sample->cpu_ms);
    writer->last_sample_ns = sample->ns;
    if (++writer->sample_count == SAMPLES_PER_CHUNK)
        put_samples(writer);
}

static bool is_dense(const SliceInfo *info)
{
    return info->events >= DENSE_EVENTS &&
           info->end.ns - info->start.ns < info->events * DENSE_NS;
}

// The slice ends at `moment` (or just after its last event) and goes to the file.
static void end_slice(RecordingWriter *writer, const Moment *moment)
{
    Node *slice = &writer->slice;

    if (slice->info.events == 0)
        return;
    slice->last_event_ns = writer->encoder.last.ns;
    slice->info.end = *moment;
    slice->info.end.ns = max_u64(moment->ns, slice->last_event_ns + 1);
    // Those that are repeated have been counted.
    slice->info.allocations += writer->encoder.allocations - writer->encoder.chunk_start;
    slice->info.frees = slice->info.events - slice->info.allocations;
    slice->first = writer->slice_number++;
    Moment end = slice->info.end;
    writer_put_names(writer);
    if (!writer->is_fixed_level)
        writer->events_level = is_dense(&slice->info) ? 0 : DEFAULT_EVENTS_LEVEL;
    writer_put_slice(writer);
    *slice = (Node){ .count = 1, .info.start = end };
    writer_keep_bound(writer);
}

// Events of one instant stay together: a slice ends where time moves on, unless it never does.
static void end_slice_if_due(RecordingWriter *writer, u64 ns)
{
    u64 events = writer->slice.info.events;
    u64 enough = writer->slice_events, most = enough * SLICE_EVENTS_MORE;

    if (ns == writer->encoder.last.ns && events < 2 * most)
        return;
    bool is_full = events >= most ||
                   (events >= enough && events >= EVENTS_PER_SITE * writer->changed_count);
    u64 enough_ns = events >= EVENTS_PER_SITE * writer->changed_count
                        ? writer->slice_ns
                        : writer->slice_ns * SPARSE_FACTOR;
    if (!is_full && ns - writer->slice.info.start.ns < enough_ns)
        return;
    if (!is_full && events && ++writer->short_slices == SLICES_PER_LENGTH) {
        writer->short_slices = 0;
        writer->slice_ns *= 2;
    }
    Moment moment = writer->encoder.last;
    moment.ns = ns;
    end_slice(writer, &moment);
}

// None of these makes a slice due.
u32 writer_usual_events(const RecordingWriter *writer, u64 allocated_bytes, u64 *ret_ns)
{
    const EventEncoder *encoder = &writer->encoder;
    u64 events = writer->slice.info.events, enough = writer->slice_events;
    u64 many = EVENTS_PER_SITE * writer->changed_count;
    bool is_sparse = events < many;

    if (writer->error || encoder->seen || encoder->counts_instructions || encoder->count == 0 ||
        encoder->clock_space != SPACE_HEAP || events == 0 ||
        encoder->last.allocated_bytes != allocated_bytes)
        return 0;
    u64 most = is_sparse ? min_u64(many, enough * SLICE_EVENTS_MORE) : enough;
    u64 length_ns = writer->slice_ns * (is_sparse ? SPARSE_FACTOR : 1);
    *ret_ns = writer->slice.info.start.ns + length_ns;
    return events < most ? (u32)min_u64(most - events, encoder->capacity - encoder->count) : 0;
}

static bool make_room(RecordingWriter *writer)
{
    if (encoder_make_room(&writer->encoder))
        return true;
    writer_fail(writer, ENOMEM);
    return false;
}

bool writer_prepare(RecordingWriter *writer, u64 ns)
{
    if (writer->error)
        return false;
    end_slice_if_due(writer, ns);
    return writer->encoder.count < writer->encoder.capacity || make_room(writer);
}

int recording_writer_fd(const RecordingWriter *writer)
{
    return writer->fd;
}

u32 recording_add_event(RecordingWriter *writer, const HeapEvent *event)
{
    ASSERT(event->site < writer->site_count);
    return writer_add(writer, event);
}

// A slice may have ended between the two: the free tells enough of its block.
static void sum_repeats(RecordingWriter *writer, SiteState *site, u32 count, u64 step_ns)
{
    SliceInfo *info = &writer->slice.info;
    Space space = site->space;
    u64 size = writer->last_free.size, born_ns = writer->last_free.born_ns;

    info->events += 2 * (u64)count;
    info->allocations += count;
    info->temporary += count;
    info->high[space] = max_u64(info->high[space], writer->totals.bytes[space] + size);
    if (site->allocations == 0)
        site->first_ns = born_ns + step_ns;
    site->last_ns = born_ns + count * step_ns;
    site->allocations += count;
    site->frees += count;
    site->temporary += count;
    site->allocated_bytes += count * size;
    site->peak_bytes = max_u64(site->peak_bytes, site->live_bytes + size);
}

void recording_repeat_pair(RecordingWriter *writer, u32 count, u64 step_ns)
{
    if (writer->error || count == 0)
        return;
    ASSERT(count <= RECORDING_REPEATS_MAX && writer->slice.info.events > 0);
    if (writer->encoder.count == writer->encoder.capacity && !make_room(writer))
        return;
    SiteState *site = &writer->sites[writer->last_free.site];
    bool counts = site->space == writer->encoder.clock_space;
    encoder_repeat(&writer->encoder, counts ? writer->last_free.size : 0, count, step_ns);
    sum_repeats(writer, site, count, step_ns);
}

void recording_close_slice(RecordingWriter *writer, const Moment *moment)
{
    end_slice(writer, moment);
}

void recording_keep_state(RecordingWriter *writer, StateReason reason, const char *label,
                          const Moment *moment, const SiteSums *live, u32 site_count)
{
    SpaceTotals totals = { 0 };
    u32 count = 0, before = 0;
    Bytes *body = &writer->plain;

    ASSERT(site_count <= writer->site_count);
    writer_put_names(writer);
    for (u32 i = 0; i < site_count; i++)
        count += live[i].live_blocks || live[i].live_bytes;
    body->count = 0;
    bytes_put_varint(body, count);
    for (u32 i = 0; i < site_count; i++) {
        if (!live[i].live_blocks && !live[i].live_bytes)
            continue;
        bytes_put_varint(body, i - before);
        bytes_put_varint(body, live[i].live_bytes);
        bytes_put_varint(body, live[i].live_blocks);
        bytes_put_signed(body, (i64)(live[i].live_usable - live[i].live_bytes));
        before = i;
        Space space = writer->sites[i].space;
        totals.bytes[space] += live[i].live_bytes;
        totals.blocks[space] += live[i].live_blocks;
        totals.usable[space] += live[i].live_usable;
    }
    bytes_put_varint(&writer->chunk_info, reason);
    bytes_put_text(&writer->chunk_info, label);
    put_moment(&writer->chunk_info, moment);
    put_totals(&writer->chunk_info, &totals);
    WrittenChunk *chunk = writer_put_chunk(writer, CHUNK_STATE, body);
    if (chunk)
        chunk->reason = (u8)reason;
}

static void put_buckets(Bytes *bytes, const u64 *buckets)
{
    u32 count = HISTOGRAM_BUCKETS;

    while (count && buckets[count - 1] == 0)
        count--;
    bytes_put_varint(bytes, count);
    for (u32 i = 0; i < count; i++)
        bytes_put_varint(bytes, buckets[i]);
}

static void put_histograms(RecordingWriter *writer)
{
    if (!writer->histogram_count)
        return;
    writer_put_names(writer);
    bytes_put_varint(&writer->chunk_info, writer->histogram_count);
    writer_put_chunk(writer, CHUNK_HISTOGRAMS, &writer->histograms);
    writer->histograms.count = 0;
    writer->histogram_count = 0;
}

void recording_set_histogram(RecordingWriter *writer, u32 site, const SiteHistogram *histogram)
{
    bytes_put_varint(&writer->histograms, site);
    put_buckets(&writer->histograms, histogram->sizes);
    put_buckets(&writer->histograms, histogram->lifetimes);
    writer->histogram_count++;
    if (writer->histograms.count > MiB)
        put_histograms(writer);
}

static void put_living(RecordingWriter *writer, bool is_last)
{
    bytes_put_varint(&writer->chunk_info, writer->living_chunks++);
    bytes_put_varint(&writer->chunk_info, writer->living_waiting);
    bytes_put_varint(&writer->chunk_info, is_last ? writer->living_count + 1 : 0);
    writer_put_chunk(writer, CHUNK_LIVING, &writer->living);
    writer->living.count = 0;
    writer->living_waiting = 0;
    writer->last_living = (RecordedBlock){ 0 };
}

void recording_add_living(RecordingWriter *writer, const RecordedBlock *block)
{
    const RecordedBlock *last = &writer->last_living;
    Bytes *living = &writer->living;

    bytes_put_varint(living, block->site);
    bytes_put_signed(living, (i64)(block->address - last->address));
    bytes_put_varint(living, block->size);
    bytes_put_signed(living, (i64)(block->usable - block->size));
    bytes_put_signed(living, (i64)(block->born_ns - last->born_ns));
    writer->last_living = *block;
    writer->living_count++;
    if (++writer->living_waiting == LIVING_PER_CHUNK)
        put_living(writer, false);
}

void recording_flush(RecordingWriter *writer)
{
    end_slice(writer, &writer->encoder.last);
    writer_put_names(writer);
    put_samples(writer);
    put_histograms(writer);
}

int recording_close(RecordingWriter *writer, const Moment *moment, const RecordingEnd *end)
{
    recording_close_slice(writer, moment);
    recording_flush(writer);
    writer_put_open_nodes(writer);
    if (writer->living_count)
        put_living(writer, true);
    bytes_put_varint(&writer->chunk_info, end->known ? 1 + (u64)end->kind : 0);
    bytes_put_signed(&writer->chunk_info, end->status);
    bytes_put_signed(&writer->chunk_info, end->signal);
    put_moment(&writer->chunk_info, moment);
    writer_put_chunk(writer, CHUNK_END, NULL);
    writer_bound_end(writer);
    writer_put_index(writer);
    int result = -writer->error;
    writer_free(writer);
    return result;
}
