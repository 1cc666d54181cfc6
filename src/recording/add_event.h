// SPDX-License-Identifier: MIT
//
// An event into the recording: inline, for the heap model, which has millions of them a second.
// All others call recording_add_event(), which is this.
#ifndef MUNINN_RECORDING_ADD_EVENT_H
#define MUNINN_RECORDING_ADD_EVENT_H

#include "recording/encode.h"
#include "recording/writer.h"

static inline void first_change(RecordingWriter *writer, u32 number, SiteState *site)
{
    if (LIKELY(site->allocations | site->frees))
        return;
    writer->changed[number / 64] |= 1ull << number % 64;
    writer->changed_count++;
    site->start_bytes = site->peak_bytes = site->live_bytes;
}

static inline void sum_alloc(RecordingWriter *writer, SiteState *site, const HeapEvent *event,
                             Space space)
{
    u64 *bytes = &writer->totals.bytes[space];
    u64 *high = &writer->slice.info.high[space];

    site->live_bytes += event->size;
    site->allocated_bytes += event->size;
    site->usable_change += event->usable;
    if (site->live_bytes > site->peak_bytes)
        site->peak_bytes = site->live_bytes;
    if (site->allocations++ == 0)
        site->first_ns = event->time.ns;
    site->last_ns = event->time.ns;
    site->reallocations += event->flags & EVENT_BY_REALLOC;
    *bytes += event->size;
    if (*bytes > *high)
        *high = *bytes;
}

static inline void sum_free(RecordingWriter *writer, SiteState *site, const HeapEvent *event,
                            Space space)
{
    site->live_bytes -= event->size;
    site->usable_change -= event->usable;
    site->frees++;
    writer->totals.bytes[space] -= event->size;
    if (UNLIKELY(event->flags & EVENT_TEMPORARY)) {
        site->temporary++;
        writer->slice.info.temporary++;
        writer->last_free = (LastFree){event->site, event->size, event->born_ns};
    }
}

// As end_slice_if_due() decides, in the few words that almost every event needs; or there is
// something else that is not as usual.
static inline bool must_prepare(const RecordingWriter *writer, u64 ns)
{
    return (writer->slice.info.events >= writer->slice_events) |
           (ns - writer->slice.info.start.ns >= writer->slice_ns) |
           (writer->encoder.count == writer->encoder.capacity) | (writer->error != 0);
}

// `space` is the site's. The number of an allocation; 0: it is none.
static inline __attribute__((always_inline)) u32 sum_event(RecordingWriter *writer,
                                                           SiteState *site,
                                                           const HeapEvent *event, Space space)
{
    first_change(writer, event->site, site);
    if (event->kind == EVENT_ALLOC)
        sum_alloc(writer, site, event, space);
    else
        sum_free(writer, site, event, space);
    return event->kind == EVENT_ALLOC ? writer->encoder.allocations : 0;
}

static inline u32 writer_add_in_time(RecordingWriter *writer, const HeapEvent *event)
{
    if (UNLIKELY(must_prepare(writer, event->time.ns)) &&
        !writer_prepare(writer, event->time.ns))
        return 0;
    SiteState *site = &writer->sites[event->site];
    if (UNLIKELY(writer->slice.info.events++ == 0)) {
        writer->slice.first_event_ns = event->time.ns;
        memcpy(writer->slice.info.high, writer->totals.bytes, sizeof(writer->totals.bytes));
    }
    encode_event(&writer->encoder, event, site->thread, site->space);
    return sum_event(writer, site, event, site->space);
}

static inline u32 writer_add(RecordingWriter *writer, const HeapEvent *event)
{
    if (LIKELY(event->time.ns >= writer->encoder.last.ns))
        return writer_add_in_time(writer, event);
    HeapEvent late = *event;
    late.time.ns = writer->encoder.last.ns;
    return recording_add_event(writer, &late);
}

// ------------------------------------------------------------------- the short way
// For events of the heap that change nothing but columns and sums, and have numbers;
// writer_usual_events() has said so. They
// advance the clock of bytes by their size, and are counted by writer_count_usual() behind them.
static inline void writer_count_usual(RecordingWriter *writer, u32 events)
{
    writer->slice.info.events += events;
    writer->encoder.count += events;
}

static inline __attribute__((always_inline)) u32 writer_add_usual(RecordingWriter *writer,
                                                                  const HeapEvent *event)
{
    SiteState *site = &writer->sites[event->site];

    encode_usual(&writer->encoder, event, site->thread, false);
    writer->encoder.last.allocated_bytes += event->size;
    return sum_event(writer, site, event, SPACE_HEAP);
}

// A block that comes, and goes at `end_ns`; `event` is its allocation.
static inline __attribute__((always_inline)) void
writer_add_usual_pair(RecordingWriter *writer, const HeapEvent *event, u64 end_ns)
{
    SiteState *site = &writer->sites[event->site];
    u64 size = event->size, begin_ns = event->time.ns;
    u64 *high = &writer->slice.info.high[SPACE_HEAP];

    writer->slice.info.temporary++;
    encode_usual_pair(&writer->encoder, event, end_ns, site->thread);
    first_change(writer, event->site, site);
    site->allocated_bytes += size;
    site->peak_bytes = max_u64(site->peak_bytes, site->live_bytes + size);
    if (site->allocations++ == 0)
        site->first_ns = begin_ns;
    site->last_ns = begin_ns;
    site->frees++;
    site->temporary++;
    *high = max_u64(*high, writer->totals.bytes[SPACE_HEAP] + size);
    writer->last_free = (LastFree){event->site, size, begin_ns};
}

// Blocks that came and went at the moment of the last event, which was a pair of their site: a row,
// whose sizes end at `sizes_end`.
static inline void writer_add_row(RecordingWriter *writer, u32 number, u8 *sizes_end, u32 count,
                                  u64 bytes, u64 largest)
{
    SiteState *site = &writer->sites[number];
    u64 *high = &writer->slice.info.high[SPACE_HEAP];

    encode_row(&writer->encoder, sizes_end, count, bytes);
    writer->slice.info.temporary += count;
    site->allocated_bytes += bytes;
    site->peak_bytes = max_u64(site->peak_bytes, site->live_bytes + largest);
    site->allocations += count;
    site->last_ns = writer->encoder.last.ns;
    site->frees += count;
    site->temporary += count;
    *high = max_u64(*high, writer->totals.bytes[SPACE_HEAP] + largest);
}

#endif
