// SPDX-License-Identifier: MIT
//
// Sums at moments and over ranges. A span is the fewest nodes that cover it and, where its
// ends lie inside a slice, the events of that slice up to there: exact at any moment, at a
// cost that does not grow with the recording. Where events are not kept the ends are rounded
// to the nearer end of their slice.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "recording/reader.h"

enum {
    MEMO_RANGES = 8,
    MEMO_BYTES = 64 << 20,
    SERIES_EVENTS = 2 << 20, // that a series decodes to be exact; beyond it goes by slices
};

typedef enum SumMode { SUM_LIVE, SUM_ALL } SumMode;

typedef struct RangeMemo {
    u64 from_ns, to_ns, used;
    SiteSums *sums; // NULL: free
} RangeMemo;

typedef struct Memo {
    RangeMemo ranges[MEMO_RANGES];
    u64 clock;
} Memo;

// ---------------------------------------------------------------- nodes and events into sums
static void add_live(SiteSums *to, const SiteSums *from)
{
    to->live_bytes += from->live_bytes;
    to->live_blocks += from->live_blocks;
    to->live_usable += from->live_usable;
}

static void add_all(SiteSums *to, const SiteSums *from)
{
    add_live(to, from);
    if (from->allocations) {
        to->first_ns = to->allocations ? to->first_ns : from->first_ns;
        to->last_ns = from->last_ns;
    }
    saturate_grow_u64(&to->allocated_bytes, from->allocated_bytes);
    saturate_grow_u64(&to->allocations, from->allocations);
    saturate_grow_u64(&to->freed_bytes, from->freed_bytes);
    saturate_grow_u64(&to->frees, from->frees);
    saturate_grow_u64(&to->temporary, from->temporary);
    saturate_grow_u64(&to->reallocations, from->reallocations);
    to->peak_bytes = max_u64(to->peak_bytes, from->peak_bytes);
}

static void tell_broken(Recording *recording, u64 offset)
{
    reader_warn(recording, "%s: the sums at offset %llu are broken; not all are used",
                recording->path, (unsigned long long)offset);
}

// Adds a node to the sums of all sites.
static void add_node(Recording *recording, const Node *node, SumMode mode, SiteSums *sums)
{
    CachedBody *nets = reader_pin_body(recording, node->offset);
    CachedBody *rest = mode == SUM_ALL && node->sums_offset
                           ? reader_pin_body(recording, node->sums_offset) : NULL;
    Cursor cursor = cursor_of(rest ? rest->data : NULL, rest ? rest->size : 0);
    NetsDecoder decoder = { 0 };
    SiteSums site;

    if (nets)
        nets_init(&decoder, nets->data, nets->size);
    while (nets_next(&decoder, &site)) {
        if (rest)
            get_rest(&cursor, node->info.start.ns, &site);
        if (decoder.site >= recording->site_count) {
            decoder.failed = true;
            break;
        }
        if (mode == SUM_ALL)
            add_all(&sums[decoder.site], &site);
        else
            add_live(&sums[decoder.site], &site);
    }
    for (u32 i = 0; i < NET_COLUMNS; i++)
        decoder.failed |= decoder.columns[i].failed;
    if (decoder.failed || cursor.failed)
        tell_broken(recording, node->offset);
    if (nets)
        reader_unpin_body(nets);
    if (rest)
        reader_unpin_body(rest);
}

static void add_leaves(Recording *recording, size_t leaf, size_t end, SumMode mode, SiteSums *sums)
{
    while (leaf < end) {
        const Node *node = reader_widest(recording, leaf, end, &leaf);
        add_node(recording, node, mode, sums);
    }
}

static void add_event(SiteSums *sum, const HeapEvent *event, SumMode mode)
{
    SiteSums change = { 0 };

    if (event->kind == EVENT_ALLOC) {
        change.live_bytes = change.allocated_bytes = event->size;
        change.live_usable = event->usable;
        change.live_blocks = change.allocations = 1;
        change.reallocations = event->flags & EVENT_BY_REALLOC ? 1 : 0;
        change.first_ns = change.last_ns = event->time.ns;
        change.peak_bytes = sum->live_bytes + event->size;
    } else {
        change.live_bytes = 0 - event->size;
        change.live_usable = 0 - event->usable;
        change.live_blocks = UINT64_MAX;
        change.freed_bytes = event->size;
        change.frees = 1;
        change.temporary = event->flags & EVENT_TEMPORARY ? 1 : 0;
    }
    if (mode == SUM_ALL)
        add_all(sum, &change);
    else
        add_live(sum, &change);
}

// False: the events turned out to be broken, and the leaf is now one without.
static bool add_events(Recording *recording, size_t leaf, u64 from_ns, u64 to_ns, SumMode mode,
                       SiteSums *sums)
{
    EventReader reader;
    HeapEvent event;

    if (!event_reader_open(recording, reader_leaf(recording, leaf), &reader))
        return false;
    while (decoder_next(&reader.decoder, &event) && event.time.ns < to_ns)
        if (event.time.ns >= from_ns)
            add_event(&sums[event.site], &event, mode);
    event_reader_close(recording, &reader);
    return true;
}

// False: try again, a leaf has lost its events.
static bool try_range(Recording *recording, u64 from_ns, u64 to_ns, SiteSums *sums)
{
    Position from = reader_position(recording, from_ns, true);
    Position to = reader_position(recording, to_ns, true);

    memset(sums, 0, recording->site_count * sizeof(SiteSums));
    add_leaves(recording, 0, from.leaf, SUM_LIVE, sums);
    if (from.is_inside && !add_events(recording, from.leaf, 0, from_ns, SUM_LIVE, sums))
        return false;
    for (size_t i = 0; i < recording->site_count; i++)
        sums[i].peak_bytes = sums[i].live_bytes;
    if (from.is_inside && from.leaf < to.leaf) {
        if (!add_events(recording, from.leaf, from_ns, UINT64_MAX, SUM_ALL, sums))
            return false;
        from.leaf++;
    }
    add_leaves(recording, from.leaf, to.leaf, SUM_ALL, sums);
    return !to.is_inside || add_events(recording, to.leaf, from_ns, to_ns, SUM_ALL, sums);
}

// ---------------------------------------------------------------- ranges computed before
static RangeMemo *find_memo(Recording *recording, u64 from_ns, u64 to_ns)
{
    Memo *memo = recording->memo;

    for (u32 i = 0; memo && i < MEMO_RANGES; i++) {
        RangeMemo *range = &memo->ranges[i];
        if (range->sums && range->from_ns == from_ns && range->to_ns == to_ns) {
            range->used = ++memo->clock;
            return range;
        }
    }
    return NULL;
}

static void keep_memo(Recording *recording, u64 from_ns, u64 to_ns, const SiteSums *sums)
{
    size_t size = recording->site_count * sizeof(SiteSums);
    Memo *memo = recording->memo;

    if (size == 0 || size > MEMO_BYTES / MEMO_RANGES)
        return;
    if (!memo && !(memo = recording->memo = calloc(1, sizeof(Memo))))
        return;
    RangeMemo *oldest = &memo->ranges[0];
    for (u32 i = 1; i < MEMO_RANGES; i++)
        if (memo->ranges[i].used < oldest->used)
            oldest = &memo->ranges[i];
    if (!oldest->sums && !(oldest->sums = malloc(size)))
        return;
    memcpy(oldest->sums, sums, size);
    oldest->from_ns = from_ns;
    oldest->to_ns = to_ns;
    oldest->used = ++memo->clock;
}

void reader_forget_sums(Recording *recording)
{
    Memo *memo = recording->memo;

    for (u32 i = 0; memo && i < MEMO_RANGES; i++)
        free(memo->ranges[i].sums);
    free(memo);
    recording->memo = NULL;
}

bool recording_range(Recording *recording, u64 from_ns, u64 to_ns, SiteSums *ret_sums)
{
    to_ns = max_u64(from_ns, min_u64(to_ns, recording->last.ns + 1));
    const RangeMemo *known = find_memo(recording, from_ns, to_ns);
    if (known) {
        memcpy(ret_sums, known->sums, recording->site_count * sizeof(SiteSums));
        return true;
    }
    while (!try_range(recording, from_ns, to_ns, ret_sums))
        ;
    keep_memo(recording, from_ns, to_ns, ret_sums);
    return true;
}

bool recording_state(Recording *recording, size_t index, SiteSums *ret_sums)
{
    if (index >= recording->state_count)
        return false;
    CachedBody *body = reader_pin_body(recording, recording->states[index].offset);
    if (!body)
        return false;
    memset(ret_sums, 0, recording->site_count * sizeof(SiteSums));
    Cursor cursor = cursor_of(body->data, body->size);
    u64 site = 0;
    for (u64 left = cursor_varint(&cursor); left && !cursor.failed; left--) {
        site += cursor_varint(&cursor);
        u64 bytes = cursor_varint(&cursor), blocks = cursor_varint(&cursor);
        u64 usable = bytes + (u64)cursor_signed(&cursor);
        if (cursor.failed || site >= recording->site_count) {
            cursor.failed = true;
            break;
        }
        ret_sums[site].live_bytes = bytes;
        ret_sums[site].live_blocks = blocks;
        ret_sums[site].live_usable = usable;
    }
    reader_unpin_body(body);
    if (cursor.failed)
        reader_warn(recording, "%s: the state at offset %llu is broken; not all of it is used",
                    recording->path, (unsigned long long)recording->states[index].offset);
    return true;
}

// ---------------------------------------------------------------- series
typedef struct SeriesWalk {
    Recording *recording;
    const u32 *group_of;
    u32 group_count;
    u64 *live;         // of every group, now
    size_t leaf;       // the next that has not been taken in
    bool exact, is_inside;
    EventReader reader; // of `leaf`, if is_inside
    HeapEvent event;    // the next of it, if has_event
    bool has_event;
} SeriesWalk;

static void add_to_group(SeriesWalk *walk, u32 site, u64 bytes)
{
    u32 group = walk->group_of[site];

    if (group < walk->group_count)
        walk->live[group] += bytes;
}

static void add_node_to_groups(SeriesWalk *walk, const Node *node)
{
    CachedBody *nets = reader_pin_body(walk->recording, node->offset);
    NetsDecoder decoder;
    u64 bytes;

    if (!nets)
        return;
    nets_init(&decoder, nets->data, nets->size);
    while (nets_next_bytes(&decoder, &bytes)) {
        if (decoder.site >= walk->recording->site_count) {
            decoder.failed = true;
            break;
        }
        add_to_group(walk, (u32)decoder.site, bytes);
    }
    if (decoder.failed)
        tell_broken(walk->recording, node->offset);
    reader_unpin_body(nets);
}

static void take_events(SeriesWalk *walk, u64 ns)
{
    while (walk->has_event && walk->event.time.ns < ns) {
        const HeapEvent *event = &walk->event;
        add_to_group(walk, event->site, event->kind == EVENT_ALLOC ? event->size : 0 - event->size);
        walk->has_event = decoder_next(&walk->reader.decoder, &walk->event);
    }
}

static void leave_leaf(SeriesWalk *walk)
{
    if (!walk->is_inside)
        return;
    take_events(walk, UINT64_MAX);
    event_reader_close(walk->recording, &walk->reader);
    walk->is_inside = false;
    walk->leaf++;
}

static void advance(SeriesWalk *walk, u64 ns)
{
    Recording *recording = walk->recording;
    Position to = reader_position(recording, ns, walk->exact);

    if (walk->is_inside && to.leaf > walk->leaf)
        leave_leaf(walk);
    while (walk->leaf < to.leaf) {
        const Node *node = reader_widest(recording, walk->leaf, to.leaf, &walk->leaf);
        add_node_to_groups(walk, node);
    }
    if (to.is_inside && !walk->is_inside) {
        if (!event_reader_open(recording, reader_leaf(recording, to.leaf), &walk->reader)) {
            advance(walk, ns); // a leaf without events now: its nearer end
            return;
        }
        walk->is_inside = true;
        walk->has_event = decoder_next(&walk->reader.decoder, &walk->event);
    }
    if (walk->is_inside)
        take_events(walk, ns);
}

static u64 point_ns(u64 from_ns, u64 to_ns, size_t point, size_t count)
{
    return from_ns + (u64)((__uint128_t)(to_ns - from_ns) * point / count);
}

// Whether the events around the points are few enough to decode.
static bool can_be_exact(const Recording *recording, u64 from_ns, u64 to_ns, size_t point_count)
{
    u64 events = 0;
    size_t before = SIZE_MAX;

    for (size_t i = 0; i <= point_count; i++) {
        u64 ns = point_ns(from_ns, to_ns, i, point_count);
        Position position = reader_position(recording, ns, true);
        if (position.is_inside && position.leaf != before)
            events += reader_leaf(recording, position.leaf)->info.events;
        before = position.leaf;
    }
    return events <= SERIES_EVENTS;
}

bool recording_series(Recording *recording, u64 from_ns, u64 to_ns, size_t point_count,
                      const u32 *group_of, u32 group_count, u64 *ret_bytes)
{
    to_ns = max_u64(from_ns, to_ns == UINT64_MAX ? recording->last.ns : to_ns);
    SeriesWalk walk = {
        .recording = recording, .group_of = group_of, .group_count = group_count,
        .live = calloc(group_count + 1, sizeof(u64)),
        .exact = point_count && can_be_exact(recording, from_ns, to_ns, point_count),
    };

    if (!walk.live)
        return false;
    for (size_t i = 0; i < point_count; i++) {
        advance(&walk, point_ns(from_ns, to_ns, i + 1, point_count));
        memcpy(&ret_bytes[i * group_count], walk.live, group_count * sizeof(u64));
    }
    leave_leaf(&walk);
    free(walk.live);
    return true;
}
