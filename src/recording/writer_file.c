// SPDX-License-Identifier: MIT
//
// The writer's file: chunks are appended whole, each compressed and with its checksums, so
// that whoever reads the file at any moment finds whole chunks up to some place. After an
// error (a full disk) the file is cut back to its last whole chunk and left alone.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "recording/writer.h"

enum { COMPRESS_FROM = 64 }; // bytes; less is not worth it

void writer_fail(RecordingWriter *writer, int error)
{
    if (writer->error)
        return;
    writer->error = error ? error : EIO;
    if (writer->fd >= 0 && ftruncate(writer->fd, (off_t)writer->offset) != 0)
        return; // a reader finds the last whole chunk by itself
}

bool writer_write_at(RecordingWriter *writer, const void *data, size_t size, u64 offset)
{
    const u8 *at = data;

    while (size) {
        ssize_t n = pwrite(writer->fd, at, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            writer_fail(writer, n < 0 ? errno : ENOSPC);
            return false;
        }
        at += n;
        offset += (u64)n;
        size -= (size_t)n;
    }
    return true;
}

// The parts one after the other.
static bool write_parts(RecordingWriter *writer, struct iovec *parts, u32 count, u64 offset)
{
    while (count) {
        ssize_t n = pwritev(writer->fd, parts, (int)count, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            writer_fail(writer, n < 0 ? errno : ENOSPC);
            return false;
        }
        offset += (u64)n;
        for (; count && (size_t)n >= parts->iov_len; count--)
            n -= (ssize_t)parts++->iov_len;
        if (count) {
            parts->iov_base = (u8 *)parts->iov_base + n;
            parts->iov_len -= (size_t)n;
        }
    }
    return true;
}

// A body goes to writer->stored, if that makes it smaller.
static bool compress_body(RecordingWriter *writer, ChunkKind kind, const Bytes *body)
{
    Bytes *stored = &writer->stored;
    size_t bound = ZSTD_compressBound(body->count);
    int level = kind == CHUNK_EVENTS ? writer->events_level : writer->level;

    stored->count = 0;
    if (body->count < COMPRESS_FROM || level == 0 || !bytes_reserve(stored, bound))
        return false;
    size_t n = ZSTD_compressCCtx(writer->compressor, stored->data, bound, body->data, body->count,
                                 level);
    stored->count = n;
    return !ZSTD_isError(n) && n < body->count;
}

static bool may_write(RecordingWriter *writer, u64 body_bytes)
{
    if (writer->error)
        return false;
    if (!writer->chunk_info.failed && body_bytes <= BODY_MAX &&
        array_reserve(&writer->chunks, &writer->chunk_capacity, writer->chunk_count + 1,
                      sizeof(WrittenChunk)))
        return true;
    writer_fail(writer, ENOMEM);
    return false;
}

// `header` has its kind, its codec, and how large the body was.
static WrittenChunk *put_parts(RecordingWriter *writer, ChunkHeader *header,
                               const struct iovec *parts, u32 count)
{
    Bytes *info = &writer->chunk_info;
    struct iovec all[2 + CHUNK_PARTS_MAX] = {{header, sizeof(*header)}, {info->data, info->count}};
    u64 bytes = sizeof(*header) + info->count;

    header->magic = CHUNK_MAGIC;
    header->info_bytes = (u32)info->count;
    for (u32 i = 0; i < count; i++) {
        all[2 + i] = parts[i];
        header->stored_bytes += (u32)parts[i].iov_len;
        header->body_crc = chunk_crc_more(header->body_crc, parts[i].iov_base, parts[i].iov_len);
    }
    bytes += header->stored_bytes;
    header->head_crc = chunk_head_crc(header, info->data);
    info->count = 0;
    if (!write_parts(writer, all, 2 + count, writer->offset))
        return NULL;
    WrittenChunk *chunk = &writer->chunks[writer->chunk_count++];
    *chunk = (WrittenChunk){ .offset = writer->offset, .bytes = bytes, .kind = header->kind };
    writer->offset += bytes;
    return chunk;
}

WrittenChunk *writer_put_parts(RecordingWriter *writer, ChunkKind kind, const struct iovec *parts,
                               u32 count)
{
    u64 bytes = 0;

    for (u32 i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    if (!may_write(writer, bytes))
        return NULL;
    ChunkHeader header = { .kind = (u16)kind, .codec = CODEC_PLAIN, .plain_bytes = (u32)bytes };
    return put_parts(writer, &header, parts, count);
}

WrittenChunk *writer_put_chunk(RecordingWriter *writer, ChunkKind kind, const Bytes *body)
{
    static const Bytes nothing;

    body = body ? body : &nothing;
    if (!may_write(writer, body->failed ? UINT64_MAX : body->count))
        return NULL;
    bool is_smaller = compress_body(writer, kind, body);
    const Bytes *stored = is_smaller ? &writer->stored : body;
    ChunkHeader header = {
        .kind = (u16)kind,
        .codec = is_smaller ? CODEC_ZSTD : CODEC_PLAIN,
        .plain_bytes = (u32)body->count,
    };
    return put_parts(writer, &header, &(struct iovec){stored->data, stored->count}, 1);
}

// The index is made of what is in the file: header and info of every chunk.
void writer_put_index(RecordingWriter *writer)
{
    Bytes body = { 0 };
    u64 before = 0;

    for (size_t i = 0; i < writer->chunk_count && !writer->error; i++) {
        const WrittenChunk *chunk = &writer->chunks[i];
        ChunkHeader header;

        bytes_put_varint(&body, chunk->offset - before);
        before = chunk->offset;
        if (pread(writer->fd, &header, sizeof(header), (off_t)chunk->offset) !=
                (ssize_t)sizeof(header) ||
            !bytes_reserve(&body, sizeof(header) + header.info_bytes) ||
            pread(writer->fd, body.data + body.count, sizeof(header) + header.info_bytes,
                  (off_t)chunk->offset) != (ssize_t)(sizeof(header) + header.info_bytes)) {
            writer_fail(writer, EIO);
            break;
        }
        body.count += sizeof(header) + header.info_bytes;
    }
    FileTrailer trailer = { .index_offset = writer->offset, .magic = TRAILER_MAGIC };
    trailer.crc = (u32)crc32(0, (const Bytef *)&trailer.index_offset, sizeof(u64));
    bytes_put_varint(&writer->chunk_info, writer->chunk_count);
    if (writer_put_chunk(writer, CHUNK_INDEX, &body) &&
        writer_write_at(writer, &trailer, sizeof(trailer), writer->offset))
        writer->offset += sizeof(trailer);
    bytes_free(&body);
}
