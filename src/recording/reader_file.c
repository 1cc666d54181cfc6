// SPDX-License-Identifier: MIT
//
// Chunks of a file that may be anything: a closed recording is read by its index, any other
// by walking from chunk to chunk. Where a chunk is broken, the walk goes on at the next place
// that is one, and the gap is told with its offset.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "recording/reader.h"

enum {
    HEAD_READ = 4096,       // header and most infos in one read
    SEARCH_WINDOW = 1 << 16,
    GROWTH_WAIT_US = 2000,
    SMALLEST_CHUNK = sizeof(ChunkHeader),
};

void reader_warn(Recording *recording, const char *format, ...)
{
    va_list arguments;
    char *line;

    if (!recording->warn)
        return;
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) >= 0) {
        recording->warn(recording->warn_arg, line);
        free(line);
    }
    va_end(arguments);
}

static size_t read_at(const Recording *recording, void *data, size_t size, u64 offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(recording->fd, (u8 *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

static bool header_is_sane(const ChunkHeader *header)
{
    return header->magic == CHUNK_MAGIC && header->info_bytes <= INFO_MAX &&
           header->plain_bytes <= BODY_MAX && header->stored_bytes <= BODY_MAX;
}

static u64 chunk_bytes(const ChunkHeader *header)
{
    return sizeof(*header) + (u64)header->info_bytes + header->stored_bytes;
}

typedef enum HeadState { HEAD_GOOD, HEAD_BROKEN, HEAD_CUT } HeadState;

// Header and info; *ret_info is to be freed.
static HeadState read_head(Recording *recording, u64 offset, ChunkHeader *ret_header,
                           u8 **ret_info)
{
    u8 *head = malloc(HEAD_READ);
    size_t got = head ? read_at(recording, head, HEAD_READ, offset) : 0;

    if (got < sizeof(*ret_header)) {
        free(head);
        return HEAD_CUT;
    }
    memcpy(ret_header, head, sizeof(*ret_header));
    size_t needed = sizeof(*ret_header) + ret_header->info_bytes;
    if (!header_is_sane(ret_header)) {
        free(head);
        return HEAD_BROKEN;
    }
    if (needed > got) {
        u8 *larger = realloc(head, needed);
        head = larger ? larger : head;
        if (!larger || read_at(recording, head, needed, offset) < needed) {
            free(head);
            return HEAD_CUT;
        }
    }
    memmove(head, head + sizeof(*ret_header), ret_header->info_bytes);
    if (chunk_head_crc(ret_header, head) != ret_header->head_crc) {
        free(head);
        return HEAD_BROKEN;
    }
    *ret_info = head;
    return offset + chunk_bytes(ret_header) <= recording->file_size ? HEAD_GOOD : HEAD_CUT;
}

// The body as it is in the file, to be freed; NULL: it is broken.
static u8 *load_stored(Recording *recording, u64 offset, const ChunkHeader *header)
{
    u8 *stored = malloc((size_t)header->stored_bytes + 1);

    if (stored && read_at(recording, stored, header->stored_bytes,
                          offset + sizeof(*header) + header->info_bytes) == header->stored_bytes &&
        chunk_crc(stored, header->stored_bytes) == header->body_crc)
        return stored;
    free(stored);
    return NULL;
}

u8 *reader_load_body(Recording *recording, u64 offset, u32 *ret_size)
{
    ChunkHeader header;
    u8 *body = NULL;

    if (read_at(recording, &header, sizeof(header), offset) == sizeof(header) &&
        header_is_sane(&header)) {
        u8 *stored = load_stored(recording, offset, &header);
        if (!recording->decompressor)
            recording->decompressor = ZSTD_createDCtx();
        body = stored ? chunk_decompress(recording->decompressor, &header, stored) : NULL;
        free(stored);
    }
    if (!body)
        reader_warn(recording, "%s: the chunk at offset %llu is broken and left out",
                    recording->path, (unsigned long long)offset);
    else
        *ret_size = header.plain_bytes;
    return body;
}

// ---------------------------------------------------------------- one chunk is taken in
static bool take_state(Recording *recording, Cursor *info, u64 offset)
{
    StateChunk chunk = { .offset = offset };

    chunk.state.reason = (StateReason)cursor_varint(info);
    chunk.state.label = cursor_text(info);
    chunk.state.moment = get_moment(info);
    get_totals(info, &chunk.state.totals);
    if (info->failed || chunk.state.reason >= STATE_REASONS) {
        free((char *)chunk.state.label);
        info->failed = true;
        return true;
    }
    bool is_peak = chunk.state.reason >= STATE_PEAK && chunk.state.reason <= STATE_PEAK_ALL;
    for (size_t i = 0; is_peak && i < recording->state_count; i++) {
        if (recording->states[i].state.reason != chunk.state.reason)
            continue;
        // A peak that has been passed since is none.
        free((char *)recording->states[i].state.label);
        recording->state_count--;
        memmove(&recording->states[i], &recording->states[i + 1],
                (recording->state_count - i) * sizeof(StateChunk));
        break;
    }
    if (!array_reserve(&recording->states, &recording->state_capacity,
                       recording->state_count + 1, sizeof(StateChunk)))
        return false;
    recording->states[recording->state_count++] = chunk;
    return true;
}

static bool take_samples(Recording *recording, Cursor *info, u64 offset)
{
    u32 size;
    u64 number = cursor_varint(info);

    if (info->failed || number < recording->sample_chunks)
        return true;
    recording->sample_chunks = number + 1;
    u8 *body = reader_load_body(recording, offset, &size);
    if (!body)
        return true;
    Cursor cursor = cursor_of(body, size);
    u64 ns = 0;
    while (cursor.at < cursor.end) {
        Sample sample = { .ns = ns += (u64)cursor_signed(&cursor) };
        sample.rss_bytes = cursor_varint(&cursor);
        sample.process_rss_bytes = cursor_varint(&cursor);
        sample.cpu_ms = cursor_varint(&cursor);
        if (cursor.failed)
            break;
        if (!array_reserve(&recording->samples, &recording->sample_capacity,
                           recording->sample_count + 1, sizeof(Sample))) {
            free(body);
            return false;
        }
        recording->samples[recording->sample_count++] = sample;
        recording->last.ns = max_u64(recording->last.ns, sample.ns);
    }
    info->failed |= cursor.failed;
    free(body);
    return true;
}

static bool take_names(Recording *recording, Cursor *info, u64 offset)
{
    u32 size;
    u64 number = cursor_varint(info);

    if (info->failed || number < recording->name_chunks)
        return true;
    recording->name_chunks = number + 1;
    u8 *body = reader_load_body(recording, offset, &size);
    if (!body)
        return true;
    Cursor cursor = cursor_of(body, size);
    bool ok = reader_take_names(recording, &cursor);
    info->failed |= cursor.failed;
    free(body);
    return ok;
}

static void take_run(Recording *recording, Cursor *info)
{
    RecordingInfo run = { 0 };

    if (!get_run(info, &run) || recording->has_info) {
        run_free(&run);
        return;
    }
    recording->info = run;
    recording->has_info = true;
}

// The list counts only if it is whole.
static bool take_living(Recording *recording, Cursor *info, u64 offset)
{
    u64 number = cursor_varint(info), count = cursor_varint(info), total = cursor_varint(info);

    if (info->failed || number != recording->living_chunk_count)
        return true;
    if (!array_reserve(&recording->living_chunks, &recording->living_chunk_capacity, number + 1,
                       sizeof(u64)))
        return false;
    recording->living_chunks[recording->living_chunk_count++] = offset;
    recording->living_listed += count;
    recording->has_living_list = total == recording->living_listed + 1;
    return true;
}

static void take_end(Recording *recording, Cursor *info)
{
    u64 kind = cursor_varint(info);

    recording->end.known = kind != 0;
    recording->end.kind = kind > END_KINDS ? END_UNTOLD : kind ? (EndKind)(kind - 1) : END_TOLD;
    recording->end.status = (i32)cursor_signed(info);
    recording->end.signal = (i32)cursor_signed(info);
    Moment moment = get_moment(info);
    if (!info->failed && moment.ns >= recording->last.ns)
        recording->last = moment;
}

static bool take_node(Recording *recording, Cursor *info, u64 offset)
{
    Node node;

    if (!get_node(info, &node)) {
        info->failed = true;
        return true;
    }
    node.offset = offset;
    if (recording->sums_level == node.level && recording->sums_first == node.first)
        node.sums_offset = recording->sums_offset;
    recording->sums_offset = 0;
    if (node.info.end.ns > recording->last.ns)
        recording->last = node.info.end;
    return reader_add_node(recording, &node);
}

// False: no memory.
static bool take_chunk(Recording *recording, const ChunkHeader *header, const u8 *data,
                       u64 offset)
{
    Cursor info = cursor_of(data, header->info_bytes);
    bool ok = true;

    recording->plain_bytes += sizeof(*header) + header->info_bytes + header->plain_bytes;
    switch (header->kind) {
    case CHUNK_RUN: take_run(recording, &info); break;
    case CHUNK_DEFINITIONS: ok = take_names(recording, &info, offset); break;
    case CHUNK_NODE: ok = take_node(recording, &info, offset); break;
    case CHUNK_EVENTS: reader_add_events(recording, cursor_varint(&info), offset); break;
    case CHUNK_SUMS:
        recording->sums_level = cursor_varint(&info);
        recording->sums_first = cursor_varint(&info);
        recording->sums_offset = offset;
        break;
    case CHUNK_STATE: ok = take_state(recording, &info, offset); break;
    case CHUNK_SAMPLES: ok = take_samples(recording, &info, offset); break;
    case CHUNK_HISTOGRAMS:
        ok = array_reserve(&recording->histogram_chunks, &recording->histogram_capacity,
                           recording->histogram_count + 1, sizeof(u64));
        if (ok)
            recording->histogram_chunks[recording->histogram_count++] = offset;
        break;
    case CHUNK_LIVING: ok = take_living(recording, &info, offset); break;
    case CHUNK_END: take_end(recording, &info); break;
    case CHUNK_INDEX: recording->is_whole = true; break;
    default: break; // of a later minor version: nothing that this one needs
    }
    if (info.failed)
        reader_warn(recording, "%s: the chunk at offset %llu has wrong contents, which are "
                    "left out", recording->path, (unsigned long long)offset);
    return ok;
}

// ---------------------------------------------------------------- all chunks
// The next offset at which a chunk begins, or the end of the file.
static u64 find_chunk(Recording *recording, u64 offset)
{
    u8 *window = malloc(SEARCH_WINDOW);
    u64 found = recording->file_size;

    while (window && offset + SMALLEST_CHUNK <= recording->file_size &&
           found == recording->file_size) {
        size_t got = read_at(recording, window, SEARCH_WINDOW, offset);
        if (got < SMALLEST_CHUNK)
            break;
        const u32 magic = CHUNK_MAGIC;
        u8 *hit = window;
        while (found == recording->file_size &&
               (hit = memmem(hit, got - (size_t)(hit - window), &magic, sizeof(magic))) != NULL) {
            ChunkHeader header;
            u8 *info = NULL;
            u64 at = offset + (u64)(hit - window);
            if (read_head(recording, at, &header, &info) == HEAD_GOOD)
                found = at;
            free(info);
            hit++;
        }
        offset += got - (sizeof(magic) - 1);
    }
    free(window);
    return found;
}

static void tell_cut(Recording *recording, u64 offset)
{
    reader_warn(recording,
                "%s: the file is cut off: the chunk at offset %llu is not all there (%llu bytes); "
                "what comes before it is used",
                recording->path, (unsigned long long)offset,
                (unsigned long long)(recording->file_size - offset));
}

// A chunk that is not all there may be about to be: the file was opened while it is written.
static bool has_grown(Recording *recording)
{
    struct stat status;

    usleep(GROWTH_WAIT_US);
    if (fstat(recording->fd, &status) != 0 || (u64)status.st_size <= recording->file_size)
        return false;
    recording->file_size = (u64)status.st_size;
    return true;
}

static bool walk_chunks(Recording *recording, bool is_first)
{
    u64 offset = recording->scanned;

    while (offset < recording->file_size && !recording->is_whole) {
        ChunkHeader header;
        u8 *info = NULL;
        HeadState state = read_head(recording, offset, &header, &info);
        if (state == HEAD_GOOD) {
            bool ok = take_chunk(recording, &header, info, offset);
            free(info);
            if (!ok)
                return false;
            offset += chunk_bytes(&header);
            recording->scanned = offset;
            continue;
        }
        free(info);
        if (!is_first)
            break; // it is being written
        if (state == HEAD_CUT && has_grown(recording))
            continue;
        u64 next = find_chunk(recording, offset + 1);
        if (next == recording->file_size) {
            tell_cut(recording, offset);
            break;
        }
        reader_warn(recording, "%s: %llu bytes at offset %llu are broken and left out",
                    recording->path, (unsigned long long)(next - offset),
                    (unsigned long long)offset);
        offset = next;
    }
    return true;
}

// True when the file has an index that is good; then every chunk of it has been taken in.
static bool walk_index(Recording *recording, bool *ret_ok)
{
    FileTrailer trailer;
    u32 size;

    if (recording->file_size < sizeof(FileHeader) + sizeof(trailer) ||
        read_at(recording, &trailer, sizeof(trailer), recording->file_size - sizeof(trailer)) !=
            sizeof(trailer) ||
        memcmp(trailer.magic, TRAILER_MAGIC, sizeof(trailer.magic)) != 0 ||
        crc32(0, (const Bytef *)&trailer.index_offset, sizeof(u64)) != trailer.crc)
        return false;
    u8 *body = reader_load_body(recording, trailer.index_offset, &size);
    if (!body)
        return false;
    Cursor cursor = cursor_of(body, size);
    u64 offset = 0;
    *ret_ok = true;
    while (*ret_ok && cursor.at < cursor.end) {
        ChunkHeader header;
        offset += cursor_varint(&cursor);
        const u8 *data = cursor_take(&cursor, sizeof(header));
        if (!data)
            break;
        memcpy(&header, data, sizeof(header));
        const u8 *info = cursor_take(&cursor, header.info_bytes);
        if (!info || offset + chunk_bytes(&header) > recording->file_size)
            break;
        *ret_ok = take_chunk(recording, &header, info, offset);
    }
    recording->is_whole = true;
    recording->scanned = recording->file_size;
    free(body);
    return true;
}

bool reader_scan(Recording *recording, bool is_first)
{
    bool ok = true;

    if (recording->scanned == 0)
        recording->scanned = sizeof(FileHeader);
    if (!is_first || !walk_index(recording, &ok))
        ok = walk_chunks(recording, is_first);
    return ok && reader_build_leaves(recording);
}
