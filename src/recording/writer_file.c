// SPDX-License-Identifier: MIT
//
// The writer's file: chunks are appended whole, each compressed and with its checksums, so
// that whoever reads the file at any moment finds whole chunks up to some place. After an
// error (a full disk) the file is cut back to its last whole chunk and left alone.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "recording/writer.h"

enum { COMPRESS_FROM = 64 }; // bytes; less is not worth it

void writer_fail(RecordingWriter *writer, const char *what, int error)
{
    if (writer->error)
        return;
    if (asprintf(&writer->error, "%s: %s: %s", writer->path, what, strerror(error)) < 0)
        writer->error = strdup("no memory for the recording");
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
            writer_fail(writer, "cannot be written", n < 0 ? errno : ENOSPC);
            return false;
        }
        at += n;
        offset += (u64)n;
        size -= (size_t)n;
    }
    return true;
}

// The body as it goes to the file, after header and info in writer->stored.
static bool append_body(RecordingWriter *writer, const Bytes *body, ChunkHeader *header)
{
    Bytes *stored = &writer->stored;
    size_t begin = stored->count, bound = ZSTD_compressBound(body->count);
    int level = header->kind == CHUNK_EVENTS ? writer->events_level : writer->level;

    header->codec = CODEC_PLAIN;
    header->plain_bytes = (u32)body->count;
    if (body->count >= COMPRESS_FROM && level != 0 && bytes_reserve(stored, bound)) {
        size_t n = ZSTD_compressCCtx(writer->compressor, stored->data + begin, bound, body->data,
                                     body->count, level);
        if (!ZSTD_isError(n) && n < body->count) {
            header->codec = CODEC_ZSTD;
            stored->count += n;
        }
    }
    if (header->codec == CODEC_PLAIN)
        bytes_put(stored, body->data, body->count);
    if (stored->failed)
        return false;
    header->stored_bytes = (u32)(stored->count - begin);
    header->body_crc = 0;
    if (header->stored_bytes)
        header->body_crc = (u32)crc32(0, stored->data + begin, header->stored_bytes);
    return true;
}

WrittenChunk *writer_put_chunk(RecordingWriter *writer, ChunkKind kind, const Bytes *body)
{
    static const Bytes nothing;
    Bytes *stored = &writer->stored, *info = &writer->chunk_info;
    ChunkHeader header = { .magic = CHUNK_MAGIC, .kind = (u16)kind };

    if (writer->error)
        return NULL;
    body = body ? body : &nothing;
    header.info_bytes = (u32)info->count;
    stored->count = 0;
    bytes_put(stored, &header, sizeof(header));
    bytes_put(stored, info->data, info->count);
    if (info->failed || body->failed || body->count > BODY_MAX ||
        !array_reserve(&writer->chunks, &writer->chunk_capacity, writer->chunk_count + 1,
                       sizeof(WrittenChunk)) ||
        !append_body(writer, body, &header)) {
        writer_fail(writer, "cannot be written", ENOMEM);
        return NULL;
    }
    header.head_crc = chunk_head_crc(&header, info->data);
    memcpy(stored->data, &header, sizeof(header));
    info->count = 0;
    if (!writer_write_at(writer, stored->data, stored->count, writer->offset))
        return NULL;
    WrittenChunk *chunk = &writer->chunks[writer->chunk_count++];
    *chunk = (WrittenChunk){ .offset = writer->offset, .bytes = stored->count, .kind = (u16)kind };
    writer->offset += stored->count;
    return chunk;
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
            writer_fail(writer, "cannot be read", EIO);
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
