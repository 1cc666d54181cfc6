// SPDX-License-Identifier: MIT
//
// The sums of a node's sites, as they are in the file: the change of what is live in columns,
// and of each site a record of the rest. Frees follow from both and are not written.
#include <stdlib.h>

#include "recording/format.h"

// What follows of a site, so that most take a few bytes.
enum { HAS_ALLOCATIONS = 1, HAS_TEMPORARY = 2, HAS_REALLOCATIONS = 4, HAS_PEAK = 8 };
enum { REST_MAX = 1 + 7 * 10 }; // bytes

void sums_begin(SumsEncoder *encoder, u64 start_ns)
{
    for (u32 i = 0; i < NET_COLUMNS; i++)
        encoder->nets[i].count = 0;
    encoder->rest.count = 0;
    encoder->count = encoder->last_site = 0;
    encoder->start_ns = start_ns;
}

void sums_encoder_add(SumsEncoder *encoder, u32 site, const SiteSums *sums)
{
    u8 has = (sums->allocations ? HAS_ALLOCATIONS : 0) | (sums->temporary ? HAS_TEMPORARY : 0) |
             (sums->reallocations ? HAS_REALLOCATIONS : 0) | (sums->peak_bytes ? HAS_PEAK : 0);
    Bytes *rest = &encoder->rest;

    bytes_put_varint(&encoder->nets[NET_SITE], site - encoder->last_site);
    bytes_put_signed(&encoder->nets[NET_BYTES], (i64)sums->live_bytes);
    bytes_put_signed(&encoder->nets[NET_BLOCKS], (i64)sums->live_blocks);
    bytes_put_signed(&encoder->nets[NET_EXTRA], (i64)(sums->live_usable - sums->live_bytes));
    encoder->last_site = site;
    encoder->count++;
    if (!bytes_reserve(rest, REST_MAX))
        return;
    u8 *at = rest->data + rest->count;
    *at++ = has;
    if (has & HAS_ALLOCATIONS) {
        at = varint_write(at, sums->allocations);
        at = varint_write(at, sums->allocated_bytes);
        at = varint_write(at, sums->first_ns - encoder->start_ns);
        at = varint_write(at, sums->last_ns - sums->first_ns);
    }
    if (has & HAS_TEMPORARY)
        at = varint_write(at, sums->temporary);
    if (has & HAS_REALLOCATIONS)
        at = varint_write(at, sums->reallocations);
    if (has & HAS_PEAK)
        at = varint_write(at, sums->peak_bytes);
    rest->count = (size_t)(at - rest->data);
}

void sums_nets(SumsEncoder *encoder, Bytes *ret_body)
{
    bytes_put_varint(ret_body, encoder->count);
    for (u32 i = 0; i < NET_COLUMNS; i++)
        bytes_put_varint(ret_body, encoder->nets[i].count);
    for (u32 i = 0; i < NET_COLUMNS; i++) {
        bytes_put(ret_body, encoder->nets[i].data, encoder->nets[i].count);
        ret_body->failed |= encoder->nets[i].failed;
    }
}

void sums_free(SumsEncoder *encoder)
{
    for (u32 i = 0; i < NET_COLUMNS; i++)
        bytes_free(&encoder->nets[i]);
    bytes_free(&encoder->rest);
}

// --------------------------------------------------------------------- reading
void nets_init(NetsDecoder *decoder, const u8 *body, size_t size)
{
    Cursor cursor = cursor_of(body, size);
    u64 sizes[NET_COLUMNS];

    *decoder = (NetsDecoder){ .left = cursor_varint(&cursor) };
    for (u32 i = 0; i < NET_COLUMNS; i++)
        sizes[i] = cursor_varint(&cursor);
    for (u32 i = 0; i < NET_COLUMNS; i++) {
        const u8 *column = cursor_take(&cursor, sizes[i]);
        decoder->columns[i] = cursor_of(column, column ? sizes[i] : 0);
    }
    decoder->failed = cursor.failed || decoder->left > sizes[NET_SITE];
    if (decoder->failed)
        decoder->left = 0;
}

bool nets_next(NetsDecoder *decoder, SiteSums *ret_sums)
{
    u64 bytes;

    if (!nets_next_bytes(decoder, &bytes))
        return false;
    *ret_sums = (SiteSums){ .live_bytes = bytes };
    ret_sums->live_blocks = (u64)cursor_signed(&decoder->columns[NET_BLOCKS]);
    ret_sums->live_usable = bytes + (u64)cursor_signed(&decoder->columns[NET_EXTRA]);
    return true;
}

void get_rest(Cursor *cursor, u64 start_ns, SiteSums *sums)
{
    u8 has = cursor_u8(cursor);

    if (has & HAS_ALLOCATIONS) {
        sums->allocations = cursor_varint(cursor);
        sums->allocated_bytes = cursor_varint(cursor);
        sums->first_ns = start_ns + cursor_varint(cursor);
        sums->last_ns = sums->first_ns + cursor_varint(cursor);
    }
    if (has & HAS_TEMPORARY)
        sums->temporary = cursor_varint(cursor);
    if (has & HAS_REALLOCATIONS)
        sums->reallocations = cursor_varint(cursor);
    if (has & HAS_PEAK)
        sums->peak_bytes = cursor_varint(cursor);
    sums->freed_bytes = sums->allocated_bytes - sums->live_bytes;
    sums->frees = sums->allocations - sums->live_blocks;
}
