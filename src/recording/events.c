// SPDX-License-Identifier: MIT
//
// Events to columns and back. See events.h for the idea; what every event runs through is in
// encode.h.
#include "recording/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

enum { FIRST_CAPACITY = 1 << 12, VARINT_SLACK = 8 };
enum { REPEATS_IN_BODY_MAX = 1 << 24 }; // more than a slice can have

// The most bytes that an event may take in a column.
static const u8 column_bytes[COLUMNS] = {
    [COLUMN_HEAD] = 1, [COLUMN_TIME] = 10, [COLUMN_SITE] = 5, [COLUMN_ADDRESS] = 10,
    [COLUMN_SIZE] = 10, [COLUMN_AGE] = 10, [COLUMN_RARE] = 40,
};

static size_t column_size(u32 column, u32 capacity)
{
    return (size_t)capacity * column_bytes[column] + VARINT_SLACK;
}

bool encoder_init(EventEncoder *encoder, const RecordingInfo *info)
{
    *encoder = (EventEncoder){ 0 };
    encoder->counts_instructions = info->counts_instructions;
    encoder->clock_space = info->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP;
    encoder->last_site = NO_SITE;
    memset(encoder->pair_address, 0xff, sizeof(encoder->pair_address));
    return encoder_make_room(encoder);
}

void encoder_free(EventEncoder *encoder)
{
    for (u32 i = 0; i < COLUMNS; i++) {
        if (encoder->columns[i])
            pages_unmap(encoder->columns[i], column_size(i, encoder->room[i]));
    }
    free(encoder->seen);
}

bool encoder_keep_seen(EventEncoder *encoder)
{
    encoder->seen = calloc(1u << SEEN_BITS, sizeof(SeenBlock));
    return encoder->seen != NULL;
}

static bool grow_column(EventEncoder *encoder, u32 column, u32 capacity)
{
    u8 *old = encoder->columns[column];
    size_t used = encoder_column_bytes(encoder, column), size = column_size(column, capacity);
    u8 *grown = old ? pages_resize(old, column_size(column, encoder->room[column]), size)
                    : pages_map(size);

    if (!grown)
        return false;
    encoder->columns[column] = grown;
    encoder->at[column] = grown + used;
    encoder->room[column] = capacity;
    return true;
}

// What no event has filled takes no memory: of most columns that is most. malloc() would copy all
// of it to another place, where it is resident from then on.
bool encoder_make_room(EventEncoder *encoder)
{
    u32 capacity = encoder->capacity ? encoder->capacity * 2 : FIRST_CAPACITY;

    for (u32 i = 0; i < COLUMNS; i++) {
        if (!grow_column(encoder, i, capacity))
            return false;
    }
    encoder->capacity = capacity;
    return true;
}

void encoder_repeat(EventEncoder *encoder, u64 size, u32 count, u64 step_ns)
{
    encode_varint(encoder, COLUMN_TIME, step_ns);
    encode_varint(encoder, COLUMN_AGE, count);
    *encoder->at[COLUMN_HEAD]++ = HEAD_REPEAT;
    encoder->count++;
    encoder->last.ns += count * step_ns;
    encoder->last.allocated_bytes += 2 * (u64)count * size;
}

void encoder_put_head(const EventEncoder *encoder, Bytes *bytes)
{
    bytes_put_varint(bytes, encoder_column_bytes(encoder, COLUMN_HEAD));
    bytes_put_varint(bytes, encoder->counts_instructions);
    bytes_put_varint(bytes, encoder->clock_space);
    put_moment(bytes, &encoder->start);
    for (u32 i = 0; i < COLUMNS; i++)
        bytes_put_varint(bytes, encoder_column_bytes(encoder, i));
}

void encoder_restart(EventEncoder *encoder)
{
    memcpy(encoder->at, encoder->columns, sizeof(encoder->at));
    encoder->count = 0;
    encoder->chunk_start = encoder->allocations;
    memset(encoder->last_address, 0, sizeof(encoder->last_address));
    memset(encoder->pair_address, 0xff, sizeof(encoder->pair_address));
    encoder->last_site = NO_SITE;
}

void encoder_finish(EventEncoder *encoder, Bytes *bytes)
{
    encoder_put_head(encoder, bytes);
    for (u32 i = 0; i < COLUMNS; i++)
        bytes_put(bytes, encoder->columns[i], encoder_column_bytes(encoder, i));
    encoder_restart(encoder);
}

// --------------------------------------------------------------------- reading
bool decoder_init(EventDecoder *decoder, const u8 *body, size_t size, const RecordedSite *sites,
                  u32 site_count, RingBlock *ring)
{
    Cursor cursor = cursor_of(body, size);
    u64 sizes[COLUMNS];

    *decoder = (EventDecoder){
        .sites = sites, .site_count = site_count, .ring = ring,
        .repeats_allowed = REPEATS_IN_BODY_MAX, .last_site = NO_SITE,
    };
    u64 left = cursor_varint(&cursor);
    decoder->counts_instructions = cursor_varint(&cursor) != 0;
    decoder->clock_space = (Space)cursor_varint(&cursor);
    decoder->last = get_moment(&cursor);
    for (u32 i = 0; i < COLUMNS; i++)
        sizes[i] = cursor_varint(&cursor);
    for (u32 i = 0; i < COLUMNS; i++) {
        const u8 *column = cursor_take(&cursor, sizes[i]);
        decoder->columns[i] = cursor_of(column, column ? sizes[i] : 0);
    }
    decoder->failed = cursor.failed || left != sizes[COLUMN_HEAD];
    decoder->left = decoder->failed ? 0 : (u32)left;
    return !decoder->failed;
}

static inline u64 get(EventDecoder *decoder, EventColumn column)
{
    Cursor *cursor = &decoder->columns[column];
    u64 value = cursor_varint(cursor);

    decoder->failed |= cursor->failed;
    return value;
}

// The parts of a block that are written out.
static inline void get_block(EventDecoder *decoder, u32 head, HeapEvent *ret_event)
{
    u32 kind = head & HEAD_FREE;

    if (kind == EVENT_ALLOC && head & HEAD_SAME_SITE)
        ret_event->site = decoder->last_site;
    else
        ret_event->site = (u32)get(decoder, COLUMN_SITE);
    if (kind == EVENT_ALLOC)
        decoder->last_site = ret_event->site;
    decoder->last_address[kind] += unpack_address(get(decoder, COLUMN_ADDRESS));
    ret_event->address = decoder->last_address[kind];
    ret_event->size = get(decoder, COLUMN_SIZE);
    ret_event->usable = guess_usable(ret_event->size);
    if (head & HEAD_USABLE)
        ret_event->usable = ret_event->size + (u64)unzigzag(get(decoder, COLUMN_RARE));
}

static inline void get_free(EventDecoder *decoder, u32 head, HeapEvent *ret_event)
{
    u64 age = get(decoder, COLUMN_AGE);

    ret_event->kind = EVENT_FREE;
    decoder->block = BLOCK_ELSEWHERE;
    if (!(head & HEAD_BACK)) {
        ret_event->born_ns = ret_event->time.ns - age;
        get_block(decoder, head, ret_event);
        return;
    }
    if (age >= BACK_REFERENCES || age >= decoder->allocations) {
        decoder->failed = true;
        return;
    }
    decoder->block = decoder->allocations - (u32)age;
    const RingBlock *seen = &decoder->ring[decoder->block % BACK_REFERENCES];
    ret_event->site = seen->site;
    ret_event->address = seen->address;
    ret_event->size = seen->size;
    ret_event->usable = seen->usable;
    ret_event->born_ns = seen->born_ns;
}

static inline void keep_block(EventDecoder *decoder, const HeapEvent *alloc)
{
    decoder->block = ++decoder->allocations;
    decoder->ring[decoder->allocations % BACK_REFERENCES] = (RingBlock){
        .address = alloc->address, .born_ns = alloc->time.ns,
        .size = alloc->size, .site = alloc->site, .usable = alloc->usable,
    };
}

static inline void get_alloc(EventDecoder *decoder, u32 head, HeapEvent *ret_event)
{
    ret_event->kind = EVENT_ALLOC;
    ret_event->born_ns = ret_event->time.ns;
    get_block(decoder, head, ret_event);
    keep_block(decoder, ret_event);
    if (head & HEAD_PAIR)
        decoder->pair_address[pair_class(ret_event->usable)] = ret_event->address;
}

static inline void get_rare(EventDecoder *decoder, u32 head, HeapEvent *ret_event)
{
    const RecordedSite *site = &decoder->sites[ret_event->site];
    u64 advance = site->space == decoder->clock_space ? ret_event->size : 0;

    ret_event->thread = head & HEAD_THREAD ? (u32)get(decoder, COLUMN_RARE) : site->thread;
    if (head & HEAD_ALLOCATED)
        advance = (u64)unzigzag(get(decoder, COLUMN_RARE));
    ret_event->time.allocated_bytes += advance;
    if (decoder->counts_instructions)
        ret_event->time.instructions += (u64)unzigzag(get(decoder, COLUMN_RARE));
}

static bool decoder_fail(EventDecoder *decoder)
{
    decoder->failed = true;
    decoder->ends_pair = false;
    decoder->row_left = 0;
    decoder->left = 0;
    return false;
}

// The next of a repeated pair: what it was a step before.
static bool next_repeated(EventDecoder *decoder, HeapEvent *ret_event)
{
    HeapEvent *event = &decoder->pair[decoder->repeats_left-- % 2];
    bool counts = decoder->sites[event->site].space == decoder->clock_space;

    decoder->block = BLOCK_REPEATED;
    event->time.ns += decoder->step_ns;
    event->born_ns += decoder->step_ns;
    event->time.allocated_bytes += counts ? 2 * event->size : 0;
    decoder->last = event->time;
    *ret_event = *event;
    return true;
}

// The next head says that this free and its allocation, which it tells all about, are repeated.
static void keep_pair(EventDecoder *decoder, const HeapEvent *end)
{
    bool counts = decoder->sites[end->site].space == decoder->clock_space;

    decoder->pair[1] = decoder->pair[0] = *end;
    decoder->pair[0].kind = EVENT_ALLOC;
    decoder->pair[0].flags = 0;
    decoder->pair[0].time.ns = end->born_ns;
    decoder->pair[0].time.allocated_bytes -= counts ? end->size : 0;
}

static bool begin_repeats(EventDecoder *decoder, HeapEvent *ret_event)
{
    const HeapEvent *alloc = &decoder->pair[0], *end = &decoder->pair[1];

    decoder->step_ns = get(decoder, COLUMN_TIME);
    u64 count = get(decoder, COLUMN_AGE);
    if (decoder->failed || end->kind != EVENT_FREE ||
        end->time.ns - alloc->time.ns > decoder->step_ns || count == 0 ||
        count > RECORDING_REPEATS_MAX || 2 * count > decoder->repeats_allowed)
        return decoder_fail(decoder);
    decoder->repeats_allowed -= 2 * count;
    decoder->repeats_left = 2 * (u32)count;
    return next_repeated(decoder, ret_event);
}

// The allocation that was just read is freed by the next event.
static void begin_pair(EventDecoder *decoder, u32 head, const HeapEvent *alloc)
{
    HeapEvent *end = &decoder->pair[1];
    bool counts = decoder->sites[alloc->site].space == decoder->clock_space;

    *end = *alloc;
    end->kind = EVENT_FREE;
    end->flags = EVENT_TEMPORARY;
    end->time.ns += head & HEAD_AT_ONCE ? 0 : get(decoder, COLUMN_AGE);
    end->time.allocated_bytes += counts ? alloc->size : 0;
    decoder->ends_pair = true;
}

// The allocation of the next pair of a row.
static bool next_of_row(EventDecoder *decoder, HeapEvent *ret_event)
{
    u64 size = get(decoder, COLUMN_SIZE), usable = guess_usable(size);

    if (decoder->failed || decoder->last_site >= decoder->site_count)
        return decoder_fail(decoder);
    const RecordedSite *site = &decoder->sites[decoder->last_site];
    *ret_event = (HeapEvent){
        .kind = EVENT_ALLOC, .site = decoder->last_site, .thread = site->thread,
        .time = decoder->last, .address = decoder->pair_address[pair_class(usable)],
        .size = size, .usable = usable, .born_ns = decoder->last.ns,
    };
    ret_event->time.allocated_bytes += site->space == decoder->clock_space ? size : 0;
    keep_block(decoder, ret_event);
    begin_pair(decoder, HEAD_AT_ONCE, ret_event);
    decoder->row_left--;
    decoder->last = ret_event->time;
    return true;
}

static bool begin_row(EventDecoder *decoder, HeapEvent *ret_event)
{
    decoder->row_left = get(decoder, COLUMN_AGE);
    if (decoder->failed || decoder->row_left == 0)
        return decoder_fail(decoder);
    return next_of_row(decoder, ret_event);
}

static bool end_event(EventDecoder *decoder, const HeapEvent *event)
{
    decoder->last = event->time;
    if (UNLIKELY(decoder->left && *decoder->columns[COLUMN_HEAD].at == HEAD_REPEAT))
        keep_pair(decoder, event);
    return true;
}

static bool end_pair(EventDecoder *decoder, HeapEvent *ret_event)
{
    decoder->ends_pair = false;
    *ret_event = decoder->pair[1];
    return end_event(decoder, ret_event);
}

bool decoder_next(EventDecoder *decoder, HeapEvent *ret_event)
{
    if (decoder->ends_pair)
        return end_pair(decoder, ret_event);
    if (decoder->repeats_left)
        return next_repeated(decoder, ret_event);
    if (decoder->row_left)
        return next_of_row(decoder, ret_event);
    if (decoder->left == 0)
        return false;
    decoder->left--;

    u32 head = *decoder->columns[COLUMN_HEAD].at++;
    if (head == HEAD_REPEAT)
        return begin_repeats(decoder, ret_event);
    if (head == HEAD_ROW)
        return begin_row(decoder, ret_event);
    bool is_pair = (head & (HEAD_FREE | HEAD_PAIR)) == HEAD_PAIR;
    ret_event->flags = (head & HEAD_BY_REALLOC ? EVENT_BY_REALLOC : 0) |
                       (head & HEAD_TEMPORARY && !is_pair ? EVENT_TEMPORARY : 0);
    ret_event->time = decoder->last;
    ret_event->time.ns += head & HEAD_AT_ONCE ? 0 : get(decoder, COLUMN_TIME);
    if (head & HEAD_FREE)
        get_free(decoder, head, ret_event);
    else
        get_alloc(decoder, head, ret_event);
    if (!decoder->failed && ret_event->site < decoder->site_count)
        get_rare(decoder, head, ret_event);
    else
        decoder->failed = true;
    if (!decoder->failed && is_pair)
        begin_pair(decoder, head, ret_event);
    if (UNLIKELY(decoder->failed))
        return decoder_fail(decoder);
    if (!is_pair)
        return end_event(decoder, ret_event);
    decoder->last = ret_event->time;
    return true;
}
