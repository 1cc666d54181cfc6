// SPDX-License-Identifier: MIT
//
// The writer's inside, shared by the files that make it: writer.c (life, slices, events),
// writer_file.c (chunks, the index), writer_names.c (contexts, frames, threads, sites) and
// writer_bound.c (a recording that may not grow).
#ifndef MUNINN_RECORDING_WRITER_H
#define MUNINN_RECORDING_WRITER_H

#include <string.h>
#include <sys/uio.h>

#include "recording/events.h"
#include "recording/format.h"

// What the writer knows of a chunk that it has written.
typedef struct WrittenChunk {
    u64 offset;
    u64 bytes;   // with header and info
    u16 kind;
    u8 level;    // of a node
    u8 reason;   // of a state
    u64 first, count; // of a node: slices; of events: the slice
} WrittenChunk;

// The sums of a level's node that is being filled: of every site, zeros where nothing was.
typedef struct OpenNode {
    Node node;
    SiteSums *sums;     // site_capacity of them, or NULL; live_ fields are changes
    u64 *changed;       // a bit for every site with sums
    u32 changed_count;
    u32 children;       // in it so far
} OpenNode;

// The site in the slice that is being filled; one line and a half, touched by every event.
typedef struct SiteState {
    u64 live_bytes;
    u64 start_bytes; // live when the slice began
    u64 allocated_bytes;
    u64 peak_bytes;
    u64 first_ns, last_ns;
    u64 usable_change; // as a difference: it may be below 0
    u32 allocations, frees; // both 0: not changed
    u32 temporary, reallocations;
    u32 thread;
    Space space;
} SiteState;

typedef struct LastFree {
    u32 site;
    u64 size, born_ns;
} LastFree;

typedef struct StringTable {
    u64 *slots;  // hash << 32 | number
    size_t slot_count;
    char **texts;
    size_t count, capacity;
} StringTable;

struct RecordingWriter {
    int fd;
    char *own_name;         // of the regular file, behind all links; NULL: it is none
    u64 max_bytes;
    int level, events_level; // of zstd; 0: not compressed
    bool is_fixed_level;     // and the user's, for events too
    RecordingInfo info;     // strings are owned
    u64 offset;             // where the next chunk goes
    int error;              // errno-like; not 0: nothing is written any more

    WrittenChunk *chunks;
    size_t chunk_count, chunk_capacity;
    u64 next_bound_check;   // file size at which the limit is looked at
    u32 slice_events;       // enough for a slice

    Bytes plain, stored, chunk_info;
    SumsEncoder sums;
    void *compressor;       // ZSTD_CCtx

    Bytes names;            // definitions not yet written
    u32 name_chunks;
    u32 module_count, context_count;
    StringTable strings;
    Bytes samples;
    u32 sample_count, sample_chunks;
    u64 last_sample_ns;
    Bytes histograms;
    u32 histogram_count;
    Bytes living;           // blocks not yet written
    u64 living_count;       // all so far
    u32 living_waiting, living_chunks;
    RecordedBlock last_living;

    SiteState *sites;
    size_t site_count, site_capacity;
    u64 *changed;           // a bit for every site that is in this slice
    size_t changed_count, changed_capacity;
    EventEncoder encoder;
    Node slice;             // being filled
    u64 slice_number;
    SpaceTotals totals;
    LastFree last_free;     // of a temporary block: what may be repeated
    u64 slice_ns;           // a slice ends after so long
    u32 short_slices;       // that ended so, since slice_ns was doubled
    OpenNode open[LEVELS];  // [0] is not used
    size_t open_capacity[LEVELS], open_changed_capacity[LEVELS];
};

// writer.c: before an event, when a slice may be due or columns are full. False: it cannot be
// written.
bool writer_prepare(RecordingWriter *writer, u64 ns);

// So many events of the heap may take the short way of add_event.h, if none is at *ret_ns or
// later and the clock of bytes stands at allocated_bytes; 0: none.
u32 writer_usual_events(const RecordingWriter *writer, u64 allocated_bytes, u64 *ret_ns);

// writer_file.c
void writer_fail(RecordingWriter *writer, int error);
// Writes a chunk: writer->chunk_info and `body`; what is known of it goes to chunks. The info
// is emptied.
WrittenChunk *writer_put_chunk(RecordingWriter *writer, ChunkKind kind, const Bytes *body);
// The same with a body in parts, none of them copied, and not compressed.
enum { CHUNK_PARTS_MAX = 1 + COLUMNS };
WrittenChunk *writer_put_parts(RecordingWriter *writer, ChunkKind kind, const struct iovec *parts,
                               u32 count);
bool writer_write_at(RecordingWriter *writer, const void *data, size_t size, u64 offset);
void writer_put_index(RecordingWriter *writer);

// writer_names.c: definitions that are waiting go to the file.
void writer_put_names(RecordingWriter *writer);
void writer_free_names(RecordingWriter *writer);

// writer_nodes.c
void writer_put_slice(RecordingWriter *writer);
void writer_put_open_nodes(RecordingWriter *writer);

// writer_bound.c: makes the file smaller when it comes near its limit; and at the end, when
// all but the index has been written.
void writer_keep_bound(RecordingWriter *writer);
void writer_bound_end(RecordingWriter *writer);

#endif
