// SPDX-License-Identifier: MIT
//
// Growing buffers, varints and the small structures of a recording's file. Readers of these
// never trust a length: a Cursor that runs out reads zeros and says so once, at the end.
#include "recording/format.h"

const VarintForm varint_forms[28] = {
    [0 ... 6] = {0, 1},
    [7 ... 13] = {0x80, 2},
    [14 ... 20] = {0x8080, 3},
    [21 ... 27] = {0x808080, 4},
};

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

bool bytes_reserve(Bytes *bytes, size_t more)
{
    if (bytes->failed)
        return false;
    if (bytes->count + more <= bytes->capacity)
        return true;
    size_t capacity = (bytes->count + more) * 3 / 2 + 256;
    u8 *data = realloc(bytes->data, capacity);
    if (!data) {
        bytes->failed = true;
        return false;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void bytes_put(Bytes *bytes, const void *data, size_t size)
{
    if (size == 0 || !bytes_reserve(bytes, size))
        return;
    memcpy(bytes->data + bytes->count, data, size);
    bytes->count += size;
}

void bytes_put_varint(Bytes *bytes, u64 value)
{
    if (!bytes_reserve(bytes, 10))
        return;
    bytes->count = (size_t)(varint_write(bytes->data + bytes->count, value) - bytes->data);
}

void bytes_put_signed(Bytes *bytes, i64 value)
{
    bytes_put_varint(bytes, zigzag(value));
}

void bytes_put_text(Bytes *bytes, const char *text)
{
    size_t length = text ? strlen(text) : 0;

    bytes_put_varint(bytes, text ? length + 1 : 0);
    bytes_put(bytes, text, length);
}

void bytes_free(Bytes *bytes)
{
    free(bytes->data);
    *bytes = (Bytes){ 0 };
}

u64 cursor_varint_slow(Cursor *cursor)
{
    u64 value = 0;

    for (u32 shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        u8 byte = *cursor->at++;
        value |= (u64)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    cursor->failed = true;
    cursor->at = cursor->end;
    return 0;
}

u8 cursor_u8(Cursor *cursor)
{
    if (cursor->at < cursor->end)
        return *cursor->at++;
    cursor->failed = true;
    return 0;
}

const u8 *cursor_take(Cursor *cursor, u64 size)
{
    if (size > (u64)(cursor->end - cursor->at)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    const u8 *data = cursor->at;
    cursor->at += size;
    return data;
}

char *cursor_text(Cursor *cursor)
{
    u64 length = cursor_varint(cursor);
    if (length == 0)
        return NULL;
    const u8 *data = cursor_take(cursor, length - 1);
    return data ? strndup((const char *)data, length - 1) : NULL;
}

bool array_reserve(void *ret_array, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count <= *capacity)
        return true;
    size_t wanted = max_u64(count, *capacity * 2);
    void **array = ret_array;
    u8 *grown = realloc(*array, wanted * element_bytes);
    if (!grown)
        return false;
    memset(grown + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
    *array = grown;
    *capacity = wanted;
    return true;
}

// ---------------------------------------------------------------- infos
void put_moment(Bytes *bytes, const Moment *moment)
{
    bytes_put_varint(bytes, moment->ns);
    bytes_put_varint(bytes, moment->instructions);
    bytes_put_varint(bytes, moment->allocated_bytes);
}

Moment get_moment(Cursor *cursor)
{
    Moment moment;

    moment.ns = cursor_varint(cursor);
    moment.instructions = cursor_varint(cursor);
    moment.allocated_bytes = cursor_varint(cursor);
    return moment;
}

void put_totals(Bytes *bytes, const SpaceTotals *totals)
{
    for (u32 i = 0; i < SPACE_COUNT; i++) {
        bytes_put_varint(bytes, totals->bytes[i]);
        bytes_put_varint(bytes, totals->blocks[i]);
        bytes_put_varint(bytes, totals->usable[i]);
    }
}

void get_totals(Cursor *cursor, SpaceTotals *ret_totals)
{
    for (u32 i = 0; i < SPACE_COUNT; i++) {
        ret_totals->bytes[i] = cursor_varint(cursor);
        ret_totals->blocks[i] = cursor_varint(cursor);
        ret_totals->usable[i] = cursor_varint(cursor);
    }
}

void put_run(Bytes *bytes, const RecordingInfo *info)
{
    bytes_put_text(bytes, info->tool);
    bytes_put_text(bytes, info->command);
    bytes_put_text(bytes, info->options);
    bytes_put_text(bytes, info->executable);
    bytes_put_signed(bytes, info->pid);
    bytes_put_varint(bytes, info->start_unix_ns);
    bytes_put_varint(bytes, (info->counts_instructions ? 1 : 0) | (info->pages_as_heap ? 2 : 0) |
                                (info->has_stacks ? 4 : 0));
    bytes_put_varint(bytes, info->heap_admin_bytes);
    bytes_put_varint(bytes, info->time_unit);
    bytes_put_varint(bytes, info->depth);
    bytes_put_varint(bytes, info->threshold_ppm);
}

bool get_run(Cursor *cursor, RecordingInfo *ret_info)
{
    ret_info->tool = cursor_text(cursor);
    ret_info->command = cursor_text(cursor);
    ret_info->options = cursor_text(cursor);
    ret_info->executable = cursor_text(cursor);
    ret_info->pid = (i32)cursor_signed(cursor);
    ret_info->start_unix_ns = cursor_varint(cursor);
    u64 flags = cursor_varint(cursor);
    ret_info->counts_instructions = flags & 1;
    ret_info->pages_as_heap = flags & 2;
    ret_info->has_stacks = flags & 4;
    ret_info->heap_admin_bytes = (u32)cursor_varint(cursor);
    ret_info->time_unit = (u32)cursor_varint(cursor);
    ret_info->depth = (u32)cursor_varint(cursor);
    ret_info->threshold_ppm = (u32)cursor_varint(cursor);
    return !cursor->failed;
}

void run_free(RecordingInfo *info)
{
    free((char *)info->tool);
    free((char *)info->command);
    free((char *)info->options);
    free((char *)info->executable);
    *info = (RecordingInfo){ 0 };
}

void put_node(Bytes *bytes, const Node *node)
{
    bytes_put_varint(bytes, node->level);
    bytes_put_varint(bytes, node->first);
    bytes_put_varint(bytes, node->count);
    put_moment(bytes, &node->info.start);
    put_moment(bytes, &node->info.end);
    put_totals(bytes, &node->info.totals);
    for (u32 i = 0; i < SPACE_COUNT; i++)
        bytes_put_varint(bytes, node->info.high[i]);
    bytes_put_varint(bytes, node->info.events);
    bytes_put_varint(bytes, node->info.allocations);
    bytes_put_varint(bytes, node->info.frees);
    bytes_put_varint(bytes, node->info.temporary);
    bytes_put_varint(bytes, node->first_event_ns);
    bytes_put_varint(bytes, node->last_event_ns);
}

bool get_node(Cursor *cursor, Node *ret_node)
{
    Node node = { .level = (u32)cursor_varint(cursor) };

    node.first = cursor_varint(cursor);
    node.count = cursor_varint(cursor);
    node.info.start = get_moment(cursor);
    node.info.end = get_moment(cursor);
    get_totals(cursor, &node.info.totals);
    for (u32 i = 0; i < SPACE_COUNT; i++)
        node.info.high[i] = cursor_varint(cursor);
    node.info.events = cursor_varint(cursor);
    node.info.allocations = cursor_varint(cursor);
    node.info.frees = cursor_varint(cursor);
    node.info.temporary = cursor_varint(cursor);
    node.first_event_ns = cursor_varint(cursor);
    node.last_event_ns = cursor_varint(cursor);
    if (cursor->failed || node.level >= LEVELS || node.count == 0 ||
        node.count > 1ull << (4 * node.level) || node.first > UINT64_MAX / 2)
        return false;
    *ret_node = node;
    return true;
}

u8 *chunk_decompress(void *context, const ChunkHeader *header, const u8 *stored)
{
    u8 *plain = malloc((size_t)header->plain_bytes + 1);
    size_t n = 0;

    if (!plain)
        return NULL;
    if (header->codec == CODEC_ZSTD && context)
        n = ZSTD_decompressDCtx(context, plain, header->plain_bytes, stored,
                                header->stored_bytes);
    else if (header->codec == CODEC_ZSTD)
        n = ZSTD_decompress(plain, header->plain_bytes, stored, header->stored_bytes);
    else if (header->codec == CODEC_PLAIN && header->plain_bytes == header->stored_bytes)
        memcpy(plain, stored, n = header->plain_bytes);
    if (header->codec >= CODECS || ZSTD_isError(n) || n != header->plain_bytes) {
        free(plain);
        return NULL;
    }
    return plain;
}
