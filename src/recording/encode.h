// SPDX-License-Identifier: MIT
//
// Events to columns: what every event of the client runs through, hence inline. It allocates
// nothing, and looks up nothing if events have numbers.
#ifndef MUNINN_RECORDING_ENCODE_H
#define MUNINN_RECORDING_ENCODE_H

#include <string.h>

#include "recording/events.h"

enum { SEEN_BITS = 14 };

// Inline wherever it is used: most of an event is constant there.
#define ENCODE static inline __attribute__((always_inline))

// What glibc's malloc gives for a request: a guess that costs nothing when it is right.
static inline u64 guess_usable(u64 size)
{
    return max_u64(24, ((size + 8 + 15) & ~15ull) - 8);
}

// Blocks lie at multiples of 16: the low bits go to the top, where zeros are free.
static inline u64 pack_address(u64 delta)
{
    return zigzag((i64)delta >> 4) ^ (delta << 60);
}

static inline u64 unpack_address(u64 packed)
{
    u64 low = packed >> 60;

    return ((u64)unzigzag(packed & (UINT64_MAX >> 4)) << 4) | low;
}

static inline void encode_varint(EventEncoder *encoder, EventColumn column, u64 value)
{
    encoder->at[column] = varint_write(encoder->at[column], value);
}

static inline void encode_mixed(EventEncoder *encoder, EventColumn column, u64 value)
{
    encoder->at[column] = varint_write_mixed(encoder->at[column], value);
}

static inline u32 encode_thread(EventEncoder *encoder, const HeapEvent *event, u32 site_thread)
{
    if (LIKELY(event->thread == site_thread))
        return 0;
    encode_varint(encoder, COLUMN_RARE, event->thread);
    return HEAD_THREAD;
}

// What else is unusual about an event; the bits go to its head.
static inline u32 encode_rare(EventEncoder *encoder, const HeapEvent *event,
                              const Moment *before, u64 advance)
{
    u64 advanced = event->time.allocated_bytes - before->allocated_bytes;
    u32 head = 0;

    if (UNLIKELY(advanced != advance)) {
        head |= HEAD_ALLOCATED;
        encode_varint(encoder, COLUMN_RARE, zigzag((i64)advanced));
    }
    if (UNLIKELY(encoder->counts_instructions)) {
        u64 executed = event->time.instructions - before->instructions;
        encode_varint(encoder, COLUMN_RARE, zigzag((i64)executed));
    }
    return head;
}

// What is left out is written all the same, and not counted: whether it is cannot be predicted.
ENCODE u32 encode_site(EventEncoder *encoder, const HeapEvent *event)
{
    u8 **at = &encoder->at[COLUMN_SITE], *end = varint_write(*at, event->site);

    if (event->kind == EVENT_FREE) {
        *at = end;
        return 0;
    }
    bool is_same = event->site == encoder->last_site;
    *at = is_same ? *at : end;
    encoder->last_site = event->site;
    return is_same ? HEAD_SAME_SITE : 0;
}

ENCODE u32 encode_place(EventEncoder *encoder, const HeapEvent *event)
{
    u32 kind = event->kind == EVENT_FREE;

    encode_mixed(encoder, COLUMN_ADDRESS,
                 pack_address(event->address - encoder->last_address[kind]));
    encode_mixed(encoder, COLUMN_SIZE, event->size);
    encoder->last_address[kind] = event->address;
    if (LIKELY(event->usable == guess_usable(event->size)))
        return 0;
    encode_varint(encoder, COLUMN_RARE, zigzag((i64)(event->usable - event->size)));
    return HEAD_USABLE;
}

ENCODE u32 encode_block(EventEncoder *encoder, const HeapEvent *event)
{
    u32 head = encode_site(encoder, event);
    return head | encode_place(encoder, event);
}

static inline SeenBlock *seen_block(const EventEncoder *encoder, u64 address)
{
    return &encoder->seen[(address >> 4) * 0x9e3779b97f4a7c15ull >> (64 - SEEN_BITS)];
}

// The number of the allocation that is freed, if that is known. Where events have numbers nothing
// is `seen`; on the short way that is known when this is compiled.
ENCODE u32 encode_number_of(const EventEncoder *encoder, const HeapEvent *event, bool is_seen)
{
    u32 unknown = encoder->allocations - BACK_REFERENCES;

    if (LIKELY(!is_seen))
        return event->number ? event->number : unknown;
    const SeenBlock *seen = seen_block(encoder, event->address);
    bool is_it = seen->address == event->address && seen->born_ns == event->born_ns &&
                 seen->site == event->site && seen->size == event->size &&
                 seen->usable == event->usable;
    return is_it ? seen->number : unknown;
}

// A number may be that of an older block, 2^32 allocations ago, but that was born before.
ENCODE u32 encode_free(EventEncoder *encoder, const HeapEvent *event, bool is_seen)
{
    u32 ago = encoder->allocations - encode_number_of(encoder, event, is_seen);
    u32 head = HEAD_FREE | (event->flags & EVENT_TEMPORARY ? HEAD_TEMPORARY : 0);

    if (ago < encoder->allocations - encoder->chunk_start && ago < BACK_REFERENCES &&
        event->born_ns >= encoder->start.ns) {
        encode_mixed(encoder, COLUMN_AGE, ago);
        return head | HEAD_BACK;
    }
    encode_varint(encoder, COLUMN_AGE, event->time.ns - event->born_ns);
    return head | encode_block(encoder, event);
}

ENCODE u32 encode_alloc(EventEncoder *encoder, const HeapEvent *event, bool is_seen)
{
    encoder->allocations++;
    if (UNLIKELY(is_seen))
        *seen_block(encoder, event->address) = (SeenBlock){
            .address = event->address, .born_ns = event->time.ns, .size = (u32)event->size,
            .usable = (u32)event->usable, .site = event->site, .number = encoder->allocations,
        };
    return encode_block(encoder, event);
}

// Without other bits it would be HEAD_REPEAT.
ENCODE u32 encode_time(EventEncoder *encoder, u32 head, u64 since)
{
    u8 **at = &encoder->at[COLUMN_TIME], *end = varint_write(*at, since);
    bool is_at_once = since == 0 && head != 0;

    *at = is_at_once ? *at : end;
    return is_at_once ? head | HEAD_AT_ONCE : head;
}

// There is room; it is not the first, the clock of bytes has advanced by its size, and instructions
// are not counted. That clock, and the count of events, are the caller's.
ENCODE void encode_usual(EventEncoder *encoder, const HeapEvent *event, u32 site_thread,
                         bool is_seen)
{
    u32 head = event->kind == EVENT_FREE ? encode_free(encoder, event, is_seen)
                                         : encode_alloc(encoder, event, is_seen);
    head |= event->flags & EVENT_BY_REALLOC ? HEAD_BY_REALLOC : 0;
    head |= encode_thread(encoder, event, site_thread);
    *encoder->at[COLUMN_HEAD]++ = (u8)encode_time(encoder, head,
                                                  event->time.ns - encoder->last.ns);
    encoder->last.ns = event->time.ns;
}

// The same for an allocation whose free comes next, at end_ns.
ENCODE void encode_usual_pair(EventEncoder *encoder, const HeapEvent *event, u64 end_ns,
                              u32 site_thread)
{
    u64 since = event->time.ns - encoder->last.ns, lived = end_ns - event->time.ns;
    u32 head = HEAD_PAIR | encode_alloc(encoder, event, false);

    encoder->pair_address[pair_class(event->usable)] = event->address;

    head |= encode_thread(encoder, event, site_thread);
    if (since | lived) {
        encode_varint(encoder, COLUMN_TIME, since);
        encode_varint(encoder, COLUMN_AGE, lived);
    } else {
        head |= HEAD_AT_ONCE;
    }
    *encoder->at[COLUMN_HEAD]++ = (u8)head;
    encoder->last.ns = end_ns;
    encoder->last.allocated_bytes += 2 * event->size;
}

// And for more of them, in a row (HEAD_ROW): each by encode_in_row(), in the place that `size` had
// before it, and then all by encode_row(). There is room.
enum { ROW_SIZE_END = 1 << 14 }; // a varint of two bytes at most
static inline bool fits_row(const EventEncoder *encoder, u64 address, u64 size, u64 usable)
{
    return size < ROW_SIZE_END && usable == guess_usable(size) &&
           encoder->pair_address[pair_class(usable)] == address;
}

ENCODE u8 *encode_in_row(u8 *at, u64 size)
{
    u32 is_long = size > 0x7f;
    u16 bytes = (u16)((size & 0x7f) | is_long << 7 | size >> 7 << 8);

    memcpy(at, &bytes, sizeof(bytes));
    return at + 1 + is_long;
}

static inline void encode_row(EventEncoder *encoder, u8 *sizes_end, u32 count, u64 bytes)
{
    encoder->at[COLUMN_SIZE] = sizes_end;
    encode_varint(encoder, COLUMN_AGE, count);
    *encoder->at[COLUMN_HEAD]++ = HEAD_ROW;
    encoder->last.allocated_bytes += 2 * bytes;
    encoder->allocations += count;
}

// There is room. The site's own thread and space are given, for what follows from them.
static inline void encode_event(EventEncoder *encoder, const HeapEvent *event, u32 site_thread,
                                Space space)
{
    u64 advance = space == encoder->clock_space ? event->size : 0;

    if (UNLIKELY(encoder->count == 0)) {
        encoder->start = event->time;
        encoder->start.allocated_bytes -= advance;
        encoder->last = encoder->start;
    }
    Moment before = encoder->last;
    encode_usual(encoder, event, site_thread, encoder->seen != NULL);
    encoder->at[COLUMN_HEAD][-1] |= (u8)encode_rare(encoder, event, &before, advance);
    encoder->last.allocated_bytes = event->time.allocated_bytes;
    encoder->last.instructions = event->time.instructions;
    encoder->count++;
}

#endif
