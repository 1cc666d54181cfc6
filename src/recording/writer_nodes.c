// SPDX-License-Identifier: MIT
//
// Slices and what joins them. A slice's sums are written and added to a node of level 1,
// which after 16 slices is written and added to one of level 2, and so on: a reader that wants
// the sums of any span reads at most 15 nodes of every level, and a recording that must become
// smaller drops the 16 below a node without having to compute anything.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/writer.h"

// The next site with its bit set, at or after `site`, or UINT32_MAX; the bit is cleared. Sites
// come in order, as they are written, without being sorted.
static u32 take_changed(u64 *changed, u32 site, size_t site_count)
{
    u32 word = site / 64;
    u64 bits = site < site_count ? changed[word] & UINT64_MAX << site % 64 : 0;

    while (!bits) {
        if (++word * 64ull >= site_count)
            return UINT32_MAX;
        bits = changed[word];
    }
    changed[word] &= changed[word] - 1; // all before it are clear
    return word * 64 + (u32)__builtin_ctzll(bits);
}

static bool open_node_reserve(RecordingWriter *writer, u32 level)
{
    OpenNode *open = &writer->open[level];

    return array_reserve(&open->sums, &writer->open_capacity[level], writer->site_count,
                         sizeof(SiteSums)) &&
           array_reserve(&open->changed, &writer->open_changed_capacity[level],
                         writer->site_count / 64 + 1, sizeof(u64));
}

static void join_sums(OpenNode *open, u32 site, const SiteSums *sums)
{
    SiteSums *sum = &open->sums[site];

    if (!(sum->allocations | sum->frees)) {
        open->changed[site / 64] |= 1ull << site % 64;
        open->changed_count++;
        *sum = *sums;
        return;
    }
    if (sums->allocations) {
        sum->first_ns = sum->allocations ? sum->first_ns : sums->first_ns;
        sum->last_ns = sums->last_ns;
    }
    sum->live_bytes += sums->live_bytes;
    sum->live_blocks += sums->live_blocks;
    sum->live_usable += sums->live_usable;
    sum->allocated_bytes += sums->allocated_bytes;
    sum->allocations += sums->allocations;
    sum->freed_bytes += sums->freed_bytes;
    sum->frees += sums->frees;
    sum->temporary += sums->temporary;
    sum->reallocations += sums->reallocations;
    sum->peak_bytes = max_u64(sum->peak_bytes, sums->peak_bytes);
}

static void join_node(OpenNode *open, const Node *node, u32 level)
{
    if (open->children++ == 0) {
        open->node = *node;
        open->node.level = level;
        return;
    }
    SliceInfo *info = &open->node.info;
    open->node.count += node->count;
    open->node.last_event_ns = node->last_event_ns;
    info->end = node->info.end;
    info->totals = node->info.totals;
    for (u32 i = 0; i < SPACE_COUNT; i++)
        info->high[i] = max_u64(info->high[i], node->info.high[i]);
    info->events += node->info.events;
    info->allocations += node->info.allocations;
    info->frees += node->info.frees;
    info->temporary += node->info.temporary;
}

static void put_one_chunk(RecordingWriter *writer, ChunkKind kind, const Node *node,
                          const Bytes *body)
{
    WrittenChunk *chunk = writer_put_chunk(writer, kind, body);

    if (!chunk)
        return;
    chunk->level = (u8)node->level;
    chunk->first = node->first;
    chunk->count = node->count;
}

// The node whose sites are in writer->sums. It comes last: where it is, all of it is.
static void put_node_chunks(RecordingWriter *writer, const Node *node)
{
    Bytes *body = &writer->plain;

    bytes_put_varint(&writer->chunk_info, node->level);
    bytes_put_varint(&writer->chunk_info, node->first);
    put_one_chunk(writer, CHUNK_SUMS, node, &writer->sums.rest);
    body->count = 0;
    sums_nets(&writer->sums, body);
    put_node(&writer->chunk_info, node);
    put_one_chunk(writer, CHUNK_NODE, node, body);
}

static void put_open_node(RecordingWriter *writer, u32 level);

// The parent of `level` has taken one in: full, it goes to the file and into its own parent.
static void child_added(RecordingWriter *writer, u32 level)
{
    if (writer->open[level].children == FAN_OUT)
        put_open_node(writer, level);
}

static void put_open_node(RecordingWriter *writer, u32 level)
{
    OpenNode *open = &writer->open[level];
    OpenNode *parent = level + 1 < LEVELS ? &writer->open[level + 1] : NULL;

    if (parent && !open_node_reserve(writer, level + 1)) {
        writer_fail(writer, ENOMEM);
        return;
    }
    sums_begin(&writer->sums, open->node.info.start.ns);
    for (u32 site = 0; (site = take_changed(open->changed, site, writer->site_count)) !=
                       UINT32_MAX;) {
        sums_encoder_add(&writer->sums, site, &open->sums[site]);
        if (parent)
            join_sums(parent, site, &open->sums[site]);
        open->sums[site] = (SiteSums){ 0 };
    }
    put_node_chunks(writer, &open->node);
    open->changed_count = 0;
    open->children = 0;
    if (!parent)
        return;
    join_node(parent, &open->node, level + 1);
    child_added(writer, level + 1);
}

static void take_site(SpaceTotals *totals, SiteState *site, SiteSums *ret_sums)
{
    u64 change = site->live_bytes - site->start_bytes;

    totals->blocks[site->space] += (u64)site->allocations - site->frees;
    totals->usable[site->space] += site->usable_change;
    *ret_sums = (SiteSums){
        .live_bytes = change,
        .live_blocks = (u64)site->allocations - site->frees,
        .live_usable = site->usable_change,
        .allocated_bytes = site->allocated_bytes,
        .allocations = site->allocations,
        .freed_bytes = site->allocated_bytes - change,
        .frees = site->frees,
        .temporary = site->temporary,
        .reallocations = site->reallocations,
        .peak_bytes = site->peak_bytes,
        .first_ns = site->allocations ? site->first_ns : 0,
        .last_ns = site->allocations ? site->last_ns : 0,
    };
    site->allocated_bytes = site->usable_change = 0;
    site->allocations = site->frees = site->temporary = site->reallocations = 0;
}

// Of events that are not compressed nothing is copied.
static WrittenChunk *put_events(RecordingWriter *writer)
{
    EventEncoder *encoder = &writer->encoder;
    Bytes *body = &writer->plain;
    struct iovec parts[1 + COLUMNS];

    body->count = 0;
    if (writer->events_level != 0) {
        encoder_finish(encoder, body);
        return writer_put_chunk(writer, CHUNK_EVENTS, body);
    }
    encoder_put_head(encoder, body);
    if (body->failed)
        return writer_put_chunk(writer, CHUNK_EVENTS, body);
    parts[0] = (struct iovec){body->data, body->count};
    for (u32 i = 0; i < COLUMNS; i++)
        parts[1 + i] = (struct iovec){encoder->columns[i], encoder_column_bytes(encoder, i)};
    WrittenChunk *chunk = writer_put_parts(writer, CHUNK_EVENTS, parts, ARRAY_LEN(parts));
    encoder_restart(encoder);
    return chunk;
}

void writer_put_slice(RecordingWriter *writer)
{
    Node *slice = &writer->slice;

    if (!open_node_reserve(writer, 1)) {
        writer_fail(writer, ENOMEM);
        return;
    }
    sums_begin(&writer->sums, slice->info.start.ns);
    for (u32 site = 0; (site = take_changed(writer->changed, site, writer->site_count)) !=
                       UINT32_MAX;) {
        SiteSums sums;

        take_site(&writer->totals, &writer->sites[site], &sums);
        sums_encoder_add(&writer->sums, site, &sums);
        join_sums(&writer->open[1], site, &sums);
    }
    writer->changed_count = 0;
    slice->info.totals = writer->totals;
    put_node_chunks(writer, slice);
    bytes_put_varint(&writer->chunk_info, slice->first);
    WrittenChunk *chunk = put_events(writer);
    if (chunk)
        chunk->first = slice->first;
    join_node(&writer->open[1], slice, 1);
    child_added(writer, 1);
}

// At the end, what is not full is written too: the highest of them covers the whole run.
void writer_put_open_nodes(RecordingWriter *writer)
{
    for (u32 level = 1; level < LEVELS && !writer->error; level++) {
        bool is_last = true;

        for (u32 above = level + 1; above < LEVELS; above++)
            is_last &= writer->open[above].children == 0;
        if (writer->open[level].children > 1 || (writer->open[level].children && !is_last))
            put_open_node(writer, level);
        if (is_last)
            break;
    }
}
