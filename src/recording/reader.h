// SPDX-License-Identifier: MIT
//
// The reader's inside, shared by the files that make it: reader.c (opening, what there is),
// reader_file.c (chunks), reader_names.c (definitions), reader_cache.c (bodies in memory),
// reader_nodes.c (spans of time),
// reader_sums.c (states, ranges, series), reader_events.c (events),
// reader_blocks.c (blocks).
#ifndef MUNINN_RECORDING_READER_H
#define MUNINN_RECORDING_READER_H

#include "base/map.h"
#include "recording/events.h"
#include "recording/format.h"

typedef struct StateChunk {
    RecordedState state;
    u64 offset;
} StateChunk;

typedef struct FrameTexts {
    u32 function, file, object; // numbers of texts; 0: not known
} FrameTexts;

// A block that nobody freed.
typedef struct LivingBlock {
    u64 address, born_ns, size, usable;
    u32 site;
    bool is_dead; // while they are being found
} LivingBlock;

typedef struct CachedBody {
    u64 offset; // of its chunk
    u8 *data;
    u32 size;
    u32 pins;   // so many read it: it stays
    struct CachedBody *newer, *older; // by when they were asked for
} CachedBody;

struct Recording {
    int fd;
    char *path;
    u64 file_size;
    u64 inode;
    u64 scanned;       // up to here chunks are known; 0: nothing
    u64 plain_bytes;   // of the chunks taken in, before compression
    bool is_whole;     // the index was read: nothing will be added
    RecordingWarnFn *warn;
    void *warn_arg;

    RecordingInfo info;
    bool has_info;
    RecordingEnd end;
    Moment last;

    char **texts;      // [0] is NULL
    size_t text_count, text_capacity;
    RecordedModule *modules;
    size_t module_count, module_capacity;
    RecordedContext *contexts;
    size_t context_count, context_capacity;
    RecordedFrame *frames;
    FrameTexts *frame_texts;
    size_t frame_count, frame_capacity, frame_texts_capacity;
    RecordedThread *threads;
    size_t thread_count, thread_capacity;
    RecordedSite *sites;
    size_t site_count, site_capacity;
    u64 name_chunks, sample_chunks; // taken in
    u8 **build_ids;                 // owned
    size_t build_id_count, build_id_capacity;

    Sample *samples;
    size_t sample_count, sample_capacity;
    StateChunk *states;
    size_t state_count, state_capacity;
    u64 *histogram_chunks; // offsets
    size_t histogram_count, histogram_capacity;
    SiteHistogram *histograms; // of histogram_sites; NULL: not read
    u8 *histogram_known;
    u32 histogram_sites;

    u64 sums_offset, sums_level, sums_first; // the sums met last, for the node after them
    Node *nodes;
    size_t node_count, node_capacity;
    u32 *leaves;       // nodes of which no part is there, in order of time
    size_t leaf_count, leaf_capacity;
    u32 *by_level[LEVELS]; // nodes by their first slice
    size_t level_count[LEVELS], level_capacity[LEVELS];

    Map cached;        // CachedBody by offset
    CachedBody *newest, *oldest;
    u64 cache_bytes;
    RingBlock *ring;   // of an event reader that was closed
    void *memo;        // reader_sums.c: ranges computed before
    LivingBlock *living; // at the end, in order of birth, if knows_living
    size_t living_count;
    bool knows_living;
};

// reader_file.c
__attribute__((format(printf, 2, 3))) void reader_warn(Recording *recording, const char *format,
                                                        ...);
// Takes in the chunks after `scanned`, or all by the index. False: out of memory.
bool reader_scan(Recording *recording, bool is_first);
// The body of the chunk, to be freed; NULL: it is broken, and `warn` has been told.
u8 *reader_load_body(Recording *recording, u64 offset, u32 *ret_size);

// reader_names.c: the first of everything, which is nothing; then a chunk of definitions.
bool reader_begin_names(Recording *recording);
bool reader_take_names(Recording *recording, Cursor *cursor);
void reader_free_names(Recording *recording);

// reader_nodes.c
bool reader_add_node(Recording *recording, const Node *node);
// Events follow their slice.
void reader_add_events(Recording *recording, u64 slice, u64 offset);
bool reader_build_leaves(Recording *recording);
const Node *reader_leaf(const Recording *recording, size_t leaf);

// Where a moment is: all leaves before `leaf` have passed, and of it a part, if is_inside.
typedef struct Position {
    size_t leaf;
    bool is_inside;
} Position;
// Rounded to the end of a leaf where there are no events, or when not exact.
Position reader_position(const Recording *recording, u64 ns, bool exact);
// The widest node that begins with this leaf and ends at or before leaf `end`; *ret_next is
// the leaf after it.
const Node *reader_widest(const Recording *recording, size_t leaf, size_t end, size_t *ret_next);

// reader_cache.c: the body from the cache, pinned there; NULL: it is broken.
CachedBody *reader_pin_body(Recording *recording, u64 offset);
void reader_unpin_body(CachedBody *body);
void reader_drop_cache(Recording *recording);

// reader_events.c: the events of a leaf, one after the other.
typedef struct EventReader {
    EventDecoder decoder;
    const Node *leaf;
    CachedBody *body;
    RingBlock *ring;
} EventReader;
// False: they are not there; then it must not be closed.
bool event_reader_open(Recording *recording, const Node *leaf, EventReader *ret_reader);
void event_reader_close(Recording *recording, EventReader *reader);

// reader_blocks.c
void reader_forget_living(Recording *recording);

// reader_sums.c
void reader_forget_sums(Recording *recording);

#endif
