// SPDX-License-Identifier: MIT
//
// The bytes of a recording, below what they mean: the file's header, chunks, varints, and
// the buffers that both sides use. docs/user/heap-recording.md tells the same to somebody
// who writes a reader of their own; a change here is a change there and of the version.
//
//   file    FileHeader, chunks, and of a closed file a FileTrailer
//   chunk   ChunkHeader, info (plain, small), body (mostly zstd)
//
// An info is what a reader wants of every chunk when it opens the file; a body is read when
// somebody asks. Integers of fixed size are little-endian; all others are LEB128 varints,
// signed ones zigzag.
#ifndef MUNINN_RECORDING_FORMAT_H
#define MUNINN_RECORDING_FORMAT_H

#include <string.h>

#include "recording/recording.h"

#define FILE_MAGIC "MUNHEAP\n"
#define TRAILER_MAGIC "MUNHEAPE"
#define CHUNK_MAGIC 0x4b4e4843u // "CHNK"
enum {
    FORMAT_VERSION = 4, // 3 has no kinds of pages; 2 no rows; 1 no pairs, and every time and site
    FORMAT_VERSION_READ = 1, // and later
    INFO_MAX = 1 << 20,   // bytes of an info
    BODY_MAX = 256 << 20, // plain bytes of a body
    SITE_SPACE_BITS = 2,  // of a site's first number; the rest is its PagesKind
    LEVELS = 7,           // of nodes: slices, and what joins 16 of the level below
    FAN_OUT = 16,
    BACK_REFERENCES = 1 << 14, // how many allocations back a free may point
};

typedef struct FileHeader {
    char magic[8];
    u32 version;
    u32 reserved; // 0
} FileHeader;

typedef enum ChunkKind {
    CHUNK_RUN = 1,    // info: RecordingInfo
    CHUNK_DEFINITIONS,
    CHUNK_NODE,       // info: a span of time; body: which sites changed, and how much is live
    CHUNK_EVENTS,     // info: which slice; body: columns of events
    CHUNK_STATE,      // info: RecordedState; body: live of every site
    CHUNK_SAMPLES,
    CHUNK_HISTOGRAMS,
    CHUNK_END,        // info: RecordingEnd and the last moment
    CHUNK_INDEX,      // body: headers and infos of all chunks before it
    CHUNK_SUMS,       // info: which node follows; body: the other sums of its sites
    CHUNK_LIVING,     // body: heap blocks that live at the end
    CHUNK_KINDS,
} ChunkKind;

typedef enum Codec { CODEC_PLAIN, CODEC_ZSTD, CODECS } Codec;

typedef struct ChunkHeader {
    u32 magic;
    u16 kind;
    u16 codec;
    u32 info_bytes;
    u32 stored_bytes; // of the body in the file
    u32 plain_bytes;  // of the body when decompressed
    u32 body_crc;     // CRC-32 (zlib) of the stored body
    u32 head_crc;     // of the 24 bytes above and the info
} ChunkHeader;
_Static_assert(sizeof(ChunkHeader) == 28, "as it is in the file");

typedef struct FileTrailer {
    u64 index_offset;
    u32 crc; // of index_offset
    u32 reserved;
    char magic[8];
} FileTrailer;
_Static_assert(sizeof(FileTrailer) == 24, "as it is in the file");

// ---------------------------------------------------------------- bytes to write
typedef struct Bytes {
    u8 *data;
    size_t count, capacity;
    bool failed; // no memory: what is put in is dropped
} Bytes;

bool bytes_reserve(Bytes *bytes, size_t more);
void bytes_put(Bytes *bytes, const void *data, size_t size);
void bytes_put_varint(Bytes *bytes, u64 value);
void bytes_put_signed(Bytes *bytes, i64 value);
void bytes_put_text(Bytes *bytes, const char *text); // NULL is kept apart from ""
void bytes_free(Bytes *bytes);

static inline u64 zigzag(i64 value)
{
    return ((u64)value << 1) ^ (u64)(value >> 63);
}

static inline i64 unzigzag(u64 value)
{
    return (i64)(value >> 1) ^ -(i64)(value & 1);
}

// The caller has made room for 10 bytes. How long a value above 127 is cannot be predicted, so
// lengths up to 8 are written without a branch: groups of 7 bits are spread to bytes and all 8
// stored.
static inline u8 *varint_write(u8 *at, u64 value)
{
    if (value < 0x80) {
        *at = (u8)value;
        return at + 1;
    }
    if (UNLIKELY(value >> 56)) {
        for (; value >= 0x80; value >>= 7)
            *at++ = (u8)value | 0x80;
        *at++ = (u8)value;
        return at;
    }
    u32 bits = 64 - (u32)__builtin_clzll(value);
    u32 bytes = (bits * 9 + 64) >> 6; // (bits + 6) / 7
    value = (value & 0x00fffffff0000000) << 4 | (value & 0x000000000fffffff);
    value = (value & 0x0fffc0000fffc000) << 2 | (value & 0x00003fff00003fff);
    value = (value & 0x3f803f803f803f80) << 1 | (value & 0x007f007f007f007f);
    value |= 0x8080808080808080 & ((1ull << 8 * (bytes - 1)) - 1);
    memcpy(at, &value, sizeof(value));
    return at + bytes;
}

// By the highest bit that is set: how long it is, and the bits that say that more follows.
typedef struct VarintForm {
    u32 marks, bytes;
} VarintForm;
extern const VarintForm varint_forms[28];

// The same for values that are often above 127 and often not: up to 4 bytes without a branch.
static inline u8 *varint_write_mixed(u8 *at, u64 value)
{
    if (UNLIKELY(value >> 28))
        return varint_write(at, value);
    VarintForm form = varint_forms[31 - __builtin_clz((u32)value | 1)];
    u32 spread = (u32)value;
    spread = (spread & 0x0fffc000) << 2 | (spread & 0x00003fff);
    spread = (spread & 0x3f803f80) << 1 | (spread & 0x007f007f);
    spread |= form.marks;
    memcpy(at, &spread, sizeof(spread));
    return at + form.bytes;
}

// ---------------------------------------------------------------- bytes to read
// After a read beyond the end everything reads as 0 and `failed` is set.
typedef struct Cursor {
    const u8 *at, *end;
    bool failed;
} Cursor;

static inline Cursor cursor_of(const void *data, size_t size)
{
    return (Cursor){ .at = data, .end = (const u8 *)data + size };
}

u64 cursor_varint_slow(Cursor *cursor);

// As in writing, lengths cannot be predicted: up to 8 bytes are read at once, cut after the first
// without the high bit, and their groups of 7 bits pushed together.
static inline u64 cursor_varint(Cursor *cursor)
{
    if (LIKELY(cursor->end - cursor->at >= 8)) {
        u64 word;
        memcpy(&word, cursor->at, sizeof(word));
        u64 ends = ~word & 0x8080808080808080;
        if (LIKELY(ends)) {
            u32 last_bit = (u32)__builtin_ctzll(ends);
            cursor->at += (last_bit + 1) / 8;
            word &= (2ull << last_bit) - 1;
            word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
            word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
            return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
        }
    }
    return cursor_varint_slow(cursor);
}

static inline i64 cursor_signed(Cursor *cursor)
{
    return unzigzag(cursor_varint(cursor));
}

u8 cursor_u8(Cursor *cursor);
const u8 *cursor_take(Cursor *cursor, u64 size); // NULL: not as many there
// A copy to be freed; NULL when NULL was written, or on failure.
char *cursor_text(Cursor *cursor);

// Makes room for `count` elements in a malloc()ed array; new ones are zeroed.
bool array_reserve(void *ret_array, size_t *capacity, size_t count, size_t element_bytes);

// ---------------------------------------------------------------- infos
void put_moment(Bytes *bytes, const Moment *moment);
Moment get_moment(Cursor *cursor);
void put_totals(Bytes *bytes, const SpaceTotals *totals);
void get_totals(Cursor *cursor, SpaceTotals *ret_totals);
void put_run(Bytes *bytes, const RecordingInfo *info);
bool get_run(Cursor *cursor, RecordingInfo *ret_info);
void run_free(RecordingInfo *info);

// A slice (level 0) or 16 nodes of the level below in one.
typedef struct Node {
    u32 level;
    u64 first, count;       // of slices, as they were written
    SliceInfo info;         // has_events is set by the reader
    u64 first_event_ns, last_event_ns;
    u64 offset;             // of its chunk
    u64 sums_offset;        // of its CHUNK_SUMS; 0: lost
    u64 events_offset;      // 0: its events are not kept
} Node;
void put_node(Bytes *bytes, const Node *node);
bool get_node(Cursor *cursor, Node *ret_node);

// The bodies of a node. What changes of the live is apart from the rest and in columns, because
// series and moments need nothing else of hundreds of nodes.
typedef enum NetColumn { NET_SITE, NET_BYTES, NET_BLOCKS, NET_EXTRA, NET_COLUMNS } NetColumn;

typedef struct SumsEncoder {
    Bytes nets[NET_COLUMNS]; // NET_EXTRA: what usable changed by more than bytes
    Bytes rest;
    u32 count, last_site;
    u64 start_ns;
} SumsEncoder;

void sums_begin(SumsEncoder *encoder, u64 start_ns);
// In order of sites; live_ fields are changes, in two's complement.
void sums_encoder_add(SumsEncoder *encoder, u32 site, const SiteSums *sums);
void sums_nets(SumsEncoder *encoder, Bytes *ret_body); // appends
void sums_free(SumsEncoder *encoder);

typedef struct NetsDecoder {
    Cursor columns[NET_COLUMNS];
    u64 left;
    u64 site;
    bool failed;
} NetsDecoder;

void nets_init(NetsDecoder *decoder, const u8 *body, size_t size);
// The next site's change of bytes alone; the other columns are not read.
static inline bool nets_next_bytes(NetsDecoder *decoder, u64 *ret_bytes)
{
    if (decoder->left == 0)
        return false;
    decoder->left--;
    decoder->site += cursor_varint(&decoder->columns[NET_SITE]);
    *ret_bytes = (u64)cursor_signed(&decoder->columns[NET_BYTES]);
    return true;
}
// The live_ fields; the others are 0.
bool nets_next(NetsDecoder *decoder, SiteSums *ret_sums);
// The other fields of the same site, from the body of CHUNK_SUMS.
void get_rest(Cursor *cursor, u64 start_ns, SiteSums *sums);

u32 chunk_crc(const u8 *data, size_t size);
u32 chunk_crc_more(u32 crc, const u8 *data, size_t size); // of what follows
u32 chunk_head_crc(const ChunkHeader *header, const u8 *info);
// The body as it was before it was stored, to be freed. NULL: it is broken, or no memory. The
// context is a ZSTD_DCtx, which is dear to make, or NULL.
u8 *chunk_decompress(void *context, const ChunkHeader *header, const u8 *stored);

#endif
