// SPDX-License-Identifier: MIT
//
// The body of a chunk of events. Events are kept by column (kinds, times, sites, addresses,
// sizes, and what is rare), because a column of like numbers is short as varints and
// compresses well. A body stands alone: nothing of another chunk is needed, except the sites.
//
// Most blocks die young, so a free of one of the last BACK_REFERENCES blocks of its chunk is
// "the block k allocations ago", 2 bytes instead of 12. Whoever gives the events may keep the
// number of each block's allocation, which tells k; for others the writer has a small table that
// forgets, and what is not found there is written in full.
#ifndef MUNINN_RECORDING_EVENTS_H
#define MUNINN_RECORDING_EVENTS_H

#include "recording/format.h"

typedef enum EventColumn {
    COLUMN_HEAD,    // a byte: HEAD_ bits
    COLUMN_TIME,    // ns since the event before
    COLUMN_SITE,
    COLUMN_ADDRESS, // as it differs from the one before of its kind, in units of 16
    COLUMN_SIZE,
    COLUMN_AGE,     // of a free: allocations ago, or ns since it was born
    COLUMN_RARE,    // by HEAD_ bits; instructions, if they are counted
    COLUMNS,
} EventColumn;

enum {
    HEAD_FREE = 1,
    HEAD_BY_REALLOC = 2,
    HEAD_TEMPORARY = 4,
    HEAD_THREAD = 8,     // not the site's: rare has it
    HEAD_USABLE = 16,    // not what glibc would give: rare has its difference to the size
    HEAD_BACK = 32,      // a free of a block of this chunk
    HEAD_ALLOCATED = 64, // the clock of bytes did not advance by the size: rare has by how much
    HEAD_REPEAT = 128,   // no event of its own: the two before it `age` times more, every `time` ns
    // Of an allocation
    HEAD_PAIR = 4,       // and of its free, the next event, `age` ns later
    HEAD_SAME_SITE = 32, // that of the allocation before
    // No other bit: `age` pairs at the site and the moment of the allocation before, by the site's
    // thread, with as much that is usable as glibc gives: only their sizes are written. Each is
    // where the last pair of its class was.
    HEAD_ROW = HEAD_PAIR | HEAD_BY_REALLOC,
    // Beside other bits: no time has passed, nor in a pair
    HEAD_AT_ONCE = 128,
};

// An allocator that is asked for as much as it was just given back gives the same block.
enum { PAIR_CLASSES = 64 };
static inline u32 pair_class(u64 usable)
{
    return (u32)(usable >> 4) % PAIR_CLASSES;
}

// A block of this chunk that may be freed soon: what the encoder compares...
typedef struct SeenBlock {
    u64 address, born_ns;
    u32 size, usable; // larger ones are not kept
    u32 site;
    u32 number;       // of the allocation
} SeenBlock;
_Static_assert(sizeof(SeenBlock) == 32, "two in a cache line");

enum { BLOCK_ELSEWHERE = 0 };
#define BLOCK_REPEATED UINT32_MAX
#define NO_SITE UINT32_MAX

// ... and what the decoder looks up.
typedef struct RingBlock {
    u64 address, born_ns, size, usable;
    u32 site;
} RingBlock;

typedef struct EventEncoder {
    u8 *columns[COLUMNS]; // each with room for `capacity` events
    u8 *at[COLUMNS];
    u32 count, capacity;  // events that have had room; those of a row have no heads
    bool counts_instructions;
    Space clock_space;    // whose sizes advance Moment.allocated_bytes
    u32 allocations;      // so far, modulo 2^32
    u32 chunk_start;      // allocations before this chunk
    Moment start, last;
    u64 last_address[2];  // by EventKind
    u64 pair_address[PAIR_CLASSES]; // of the last pair, in this chunk; ~0: of none
    u32 last_site;        // of an allocation; NO_SITE: of none
    SeenBlock *seen;      // by a hash of the address; NULL: whoever gives events keeps numbers
    u32 room[COLUMNS];    // events that each has room for
} EventEncoder;

bool encoder_init(EventEncoder *encoder, const RecordingInfo *info);
void encoder_free(EventEncoder *encoder);
// The events to come have no numbers. False: no memory.
bool encoder_keep_seen(EventEncoder *encoder);
// For as many as there are, if count is capacity. False: no memory.
bool encoder_make_room(EventEncoder *encoder);
// The last two events come `count` times more; there is room. Moves the clock.
void encoder_repeat(EventEncoder *encoder, u64 size, u32 count, u64 step_ns);
// What stands before the columns in a body, appended to `bytes`.
void encoder_put_head(const EventEncoder *encoder, Bytes *bytes);
static inline size_t encoder_column_bytes(const EventEncoder *encoder, u32 column)
{
    return (size_t)(encoder->at[column] - encoder->columns[column]);
}
void encoder_restart(EventEncoder *encoder); // a new body
// Appends the body to `bytes` and begins a new one.
void encoder_finish(EventEncoder *encoder, Bytes *bytes);

typedef struct EventDecoder {
    Cursor columns[COLUMNS];
    u32 left;
    bool counts_instructions;
    Space clock_space;
    bool failed; // what came before is good
    u32 allocations;
    u32 block;   // of the last event: which allocation of the chunk it is or frees, from 1;
                 // BLOCK_ELSEWHERE: not known; BLOCK_REPEATED: one that comes and goes
    Moment last;
    u64 last_address[2];
    u64 pair_address[PAIR_CLASSES];
    u32 last_site;
    bool ends_pair;        // the next event is pair[1]
    u64 row_left;          // pairs still to come of HEAD_ROW
    HeapEvent pair[2];     // an allocation and its free that are repeated
    u32 repeats_left;      // events still to come of HEAD_REPEAT
    u64 repeats_allowed;   // so that a hostile body does not go on for ever
    u64 step_ns;
    const RecordedSite *sites;
    u32 site_count;
    RingBlock *ring; // the last BACK_REFERENCES allocations
} EventDecoder;

// `ring` has BACK_REFERENCES entries of the caller's; they need not be initialised.
bool decoder_init(EventDecoder *decoder, const u8 *body, size_t size, const RecordedSite *sites,
                  u32 site_count, RingBlock *ring);
// False: there is none left, or the body is broken.
bool decoder_next(EventDecoder *decoder, HeapEvent *ret_event);

#endif
