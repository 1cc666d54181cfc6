// SPDX-License-Identifier: MIT
//
// The recording of a run's memory, muninn.heap.PID: what was allocated, mapped and
// freed, by whom, when. The heap model (monitor/heap/) writes one while the program
// runs; `muninn heap`, ms_print, SQL, exports and the viewer read one, also one that is
// still being written, was cut off, or was made of a foreign file.
//
//   writer                       file                            reader
//   recording_add_event()  ──▶  chunks of events    ──┐
//   recording_add_sample() ──▶  samples of RSS …      ├─▶  recording_each_event()
//   recording_close_slice() ─▶  a slice: sums per site ─┤     recording_state(), recording_range()
//   recording_keep_state() ──▶  a state: live per site ─┘     query.h: trees of frames
//
// Glossary
//   frame    a level of a stack as a person reads it: function, file, line, object
//   context  a stack: the innermost pc and the context that it was called from
//   space    which kind of memory: heap blocks, mapped pages, thread stacks
//   site     (space, context, thread): the unit in which everything is summed up
//   event    a block allocated or freed
//   slice    a span of time with the sums of every site that changed in it
//   state    what is live, by site, at one moment: the peak, a snapshot, a key frame
//   moment   the three clocks at one instant
//
// What must stay true
//   C1  A file is chunks, each with its size, kind and checksum, of which none needs a later
//       one: a file that ends anywhere is read up to its last whole chunk. A closed file ends
//       in an index, so that opening it reads a few chunks, not all.
//   C2  Sums are exact: at every slice end, and at any moment for which there are events. A
//       bounded recording gives up events first, oldest first, then joins slices of small
//       sites; never the peak, never a state that the user asked for.
//   C3  A file is hostile. What can be read is read; what cannot is told once, with its offset.
//   C4  The reader's memory follows what it is asked, not the size of the file.
#ifndef MUNINN_RECORDING_RECORDING_H
#define MUNINN_RECORDING_RECORDING_H

#include "base/types.h"

typedef enum Space {
    SPACE_HEAP,   // malloc, new, and what a client request declares to be blocks
    SPACE_MAPPED, // mmap, brk, shmat: pages
    SPACE_STACK,  // of threads
    SPACE_COUNT,
} Space;

typedef struct Moment {
    u64 ns;              // since the start of the run
    u64 instructions;    // executed by the client; 0: not counted (--time-unit=i counts)
    u64 allocated_bytes; // requested on the heap so far, plus freed: time unit B
} Moment;

// Context 0 is the empty stack; a context's parent has a smaller id.
typedef struct RecordedContext {
    u32 parent;
    u32 module;      // of the pc: index in modules, 0: none
    u64 pc;          // as the client had it
    bool is_return;  // a return address: it is looked up one byte back
    u32 first_frame; // in frames, innermost first; frame_count 0: not symbolised
    u32 frame_count;
} RecordedContext;

typedef struct RecordedFrame {
    const char *function; // NULL: not known
    const char *file;     // its last component; NULL: not known
    const char *directory;
    const char *object;   // absolute path; NULL: not known
    u64 pc;               // as it is shown
    u64 object_offset;
    u32 line;
    bool inlined;         // into the next frame
} RecordedFrame;

typedef struct RecordedModule {
    const char *path;
    u64 start, size, offset;
    const u8 *build_id;
    u32 build_id_size;
} RecordedModule;

typedef struct RecordedThread {
    u32 number;       // from 1, as people see it
    i32 tid;
    const char *name; // NULL: not known
    u64 start_ns, end_ns; // end 0: lived until the end
} RecordedThread;

// What mapped pages are.
typedef enum PagesKind {
    PAGES_NOT_KNOWN, // or they are none
    PAGES_ANONYMOUS,
    PAGES_FILE,
    PAGES_BRK,
    PAGES_SHM,       // System V's
    PAGES_STACK,     // of a thread
    PAGES_PROGRAM,   // there before its first instruction
    PAGES_KINDS,
} PagesKind;

typedef struct RecordedSite {
    Space space;
    u32 context;
    u32 thread;
    PagesKind pages;
} RecordedSite;

typedef enum EventKind { EVENT_ALLOC, EVENT_FREE } EventKind;

typedef enum EventFlags {
    EVENT_BY_REALLOC = 1, // this free and the alloc after it are one realloc
    EVENT_TEMPORARY = 2,  // a free: its thread allocated nothing since this block
} EventFlags;

typedef struct HeapEvent {
    EventKind kind;
    u32 flags;     // EventFlags
    u32 site;      // that allocated the block, also in a free
    u32 thread;    // that does it now
    Moment time;   // instructions only if they are counted; bytes with this event's
    u64 address;
    u64 size;      // asked for
    u64 usable;    // got
    u64 born_ns;   // of a free: when it was allocated
    u32 number;    // of a free, where WriterConfig.has_numbers: what its allocation was given
} HeapEvent;

// The sums of one site. The first two are of a moment, the others of a range of time.
typedef struct SiteSums {
    u64 live_bytes, live_blocks;
    u64 live_usable; // live_bytes and what the allocator added
    u64 allocated_bytes, allocations;
    u64 freed_bytes, frees;
    u64 temporary;   // frees with EVENT_TEMPORARY
    u64 reallocations;
    u64 peak_bytes;  // the most that was live at once in the range, at least what is known
    u64 first_ns, last_ns; // of its allocations in the range; 0 and 0: none
} SiteSums;

// The totals of a moment; those of a state are exact.
typedef struct SpaceTotals {
    u64 bytes[SPACE_COUNT];
    u64 blocks[SPACE_COUNT];
    u64 usable[SPACE_COUNT];
} SpaceTotals;

// What the monitor measures from outside, a few times a second.
typedef struct Sample {
    u64 ns;
    u64 rss_bytes;    // of the client's own mappings; the engine's are left out
    u64 process_rss_bytes; // of all
    u64 cpu_ms;
} Sample;

// Powers of two: [0] counts zero, [i] counts [2^(i-1), 2^i).
enum { HISTOGRAM_BUCKETS = 65 };
typedef struct SiteHistogram {
    u64 sizes[HISTOGRAM_BUCKETS];     // requested bytes of allocations
    u64 lifetimes[HISTOGRAM_BUCKETS]; // ns of what was freed
} SiteHistogram;

typedef enum StateReason {
    STATE_KEY_FRAME, // made by the writer, for quick access
    STATE_PEAK,      // of the heap, with what the allocator added
    STATE_PEAK_MAPPED,
    STATE_PEAK_STACK,
    STATE_PEAK_ALL,  // of the sum
    STATE_ASKED,     // by ctl, request, or signal
    STATE_THRESHOLD, // --snapshot-when
    STATE_PERIODIC,
    STATE_END,
    STATE_PEAK_COUNTED, // of what massif.out's total is, if that is not the heap
    STATE_REASONS,
} StateReason;

typedef struct RecordingInfo {
    const char *tool;       // "massif"; of an imported file: its kind
    const char *command;    // words joined by spaces, quoted where needed
    const char *options;    // of muninn
    const char *executable;
    i32 pid;
    u64 start_unix_ns;      // wall clock
    bool counts_instructions;
    bool pages_as_heap;
    bool has_stacks;
    u32 heap_admin_bytes;
    u32 time_unit;          // TimeUnit of the options
    u32 depth;              // --depth
    u32 threshold_ppm;
} RecordingInfo;

typedef enum EndKind {
    END_TOLD,     // by exit with the status, or by the signal
    END_UNTOLD,   // without a word to the engine, as by SIGKILL
    END_EXECUTED, // another program went on under the pid
    END_KINDS
} EndKind;

typedef struct RecordingEnd {
    bool known; // false: the monitor did not live to tell, or the run goes on
    EndKind kind;
    i32 status, signal;
} RecordingEnd;

// A block of the `allocations` table: one that was allocated, and freed or not.
typedef struct RecordedBlock {
    u32 site;
    u32 freed_by;      // thread; 0: still live
    u32 flags;         // EventFlags of its end
    u64 address, size, usable;
    u64 born_ns, died_ns; // died 0: live at the end
} RecordedBlock;

// --------------------------------------------------------------------- writing
typedef struct RecordingWriter RecordingWriter;

typedef struct WriterConfig {
    const char *path;
    u64 max_bytes;      // of the file; 0: no limit
    u32 level;          // of zstd; 0: its default
    bool has_numbers;   // events will have them, so that nothing need be looked up
} WriterConfig;

// NULL: *ret_error says why, errno-like. Every function below is cheap when nothing is to be
// written; a full disk ends the writing, which recording_writer_error() tells from then on.
// NULL and EWOULDBLOCK: another writer has a file of this name open.
RecordingWriter *recording_create(const WriterConfig *config, const RecordingInfo *info,
                                  int *ret_error);
int recording_writer_error(const RecordingWriter *writer); // 0, or -errno
// The name of the file itself, where the path that was given is a symbolic link. NULL: it is no
// regular file.
const char *recording_own_name(const RecordingWriter *writer);
// Gives the file another name; links to it stay where they are.
bool recording_move(RecordingWriter *writer, const char *path);
int recording_writer_fd(const RecordingWriter *writer); // of the file, until it is made smaller
u32 recording_add_module(RecordingWriter *writer, const RecordedModule *module);
// Contexts in order of their ids, from 1.
u32 recording_add_context(RecordingWriter *writer, u32 parent, u32 module, u64 pc,
                          bool is_return);
// The frames of a context's pc; may come at any time, at the end for most.
void recording_set_frames(RecordingWriter *writer, u32 context, const RecordedFrame *frames,
                          u32 count);
void recording_set_thread(RecordingWriter *writer, const RecordedThread *thread);
u32 recording_add_site(RecordingWriter *writer, const RecordedSite *site); // from 0
// In order of time; one that comes late is recorded as of the one before. Its clock of bytes has
// it already in it. Sums are kept by the writer: slices come of themselves, every so many events
// or milliseconds, and when asked. Returns the number of an allocation; 0 is none.
u32 recording_add_event(RecordingWriter *writer, const HeapEvent *event);
// The last two events were a temporary block, allocated and freed: that happened `count` more times
// (RECORDING_REPEATS_MAX at most), every `step_ns`, which is no less than what it lived.
enum { RECORDING_REPEATS_MAX = 1 << 17 };
void recording_repeat_pair(RecordingWriter *writer, u32 count, u64 step_ns);
void recording_add_sample(RecordingWriter *writer, const Sample *sample);
void recording_close_slice(RecordingWriter *writer, const Moment *moment);
// A state to keep: `live` of every site, site_count of them; only the live_ fields are read.
void recording_keep_state(RecordingWriter *writer, StateReason reason, const char *label,
                          const Moment *moment, const SiteSums *live, u32 site_count);
void recording_set_histogram(RecordingWriter *writer, u32 site, const SiteHistogram *histogram);
// Just before closing: the blocks of the heap that live, all or none, in any order. What has
// leaked is then known at once; without them a reader has to go through all events.
void recording_add_living(RecordingWriter *writer, const RecordedBlock *block);
// What is in memory goes to the file, so that a reader sees it: `muninn view PID`.
void recording_flush(RecordingWriter *writer);
// Writes the index. Returns 0 or -errno.
int recording_close(RecordingWriter *writer, const Moment *moment, const RecordingEnd *end);

// --------------------------------------------------------------------- reading
typedef struct Recording Recording;

// Problems are told to `warn` (may be NULL), a line each without a newline. NULL: not a
// recording, or not readable at all; *ret_error (to be freed) is the line to print.
typedef void RecordingWarnFn(void *arg, const char *line);
Recording *recording_open(const char *path, RecordingWarnFn *warn, void *arg, char **ret_error);
void recording_free(Recording *recording);
// Of the file, which is read as it is needed: for a child of fork() that goes on reading.
int recording_fd(const Recording *recording);
// Of a file that is being written: takes in what has been added. True: there was something.
// Pointers that were given out before are then no longer valid.
bool recording_refresh(Recording *recording);

const RecordingInfo *recording_info(const Recording *recording);
const RecordingEnd *recording_end(const Recording *recording);
Moment recording_last(const Recording *recording); // the end of what is there
u64 recording_event_count(const Recording *recording); // counted, whether kept or not
u64 recording_plain_bytes(const Recording *recording); // of the file, were it not compressed
u64 recording_events_kept_since_ns(const Recording *recording); // before it there are sums only
// The moment nearest to this one of which the sums before it are known: mostly itself.
u64 recording_nearest_ns(const Recording *recording, u64 ns);

u32 recording_context_count(const Recording *recording); // with context 0
const RecordedContext *recording_context(const Recording *recording, u32 context);
const RecordedFrame *recording_frame(const Recording *recording, u32 frame);
u32 recording_frame_count(const Recording *recording);
u32 recording_module_count(const Recording *recording);
const RecordedModule *recording_module(const Recording *recording, u32 module);
u32 recording_thread_count(const Recording *recording);
const RecordedThread *recording_thread(const Recording *recording, u32 index);
u32 recording_site_count(const Recording *recording);
const RecordedSite *recording_site(const Recording *recording, u32 site);
const char *pages_kind_name(PagesKind kind); // NULL: not known
// Of the whole run. False: the recording has none.
bool recording_histogram(Recording *recording, u32 site, SiteHistogram *ret_histogram);

size_t recording_sample_count(const Recording *recording);
const Sample *recording_sample(const Recording *recording, size_t index);

typedef struct RecordedState {
    StateReason reason;
    const char *label; // or NULL
    Moment moment;
    SpaceTotals totals;
} RecordedState;
size_t recording_state_count(const Recording *recording);
const RecordedState *recording_state_info(const Recording *recording, size_t index);
// The index of the state with this reason, or SIZE_MAX.
size_t recording_find_state(const Recording *recording, StateReason reason);
// Its live_ sums, for every site; the others are 0.
bool recording_state(Recording *recording, size_t index, SiteSums *ret_sums);

// A point of the timeline: the totals at the end of a slice, and how high each went in it.
typedef struct SliceInfo {
    Moment start, end;
    SpaceTotals totals;      // at the end
    u64 high[SPACE_COUNT];   // the most bytes in it
    u64 events;
    u64 allocations, frees, temporary;
    bool has_events;         // they are kept
} SliceInfo;
size_t recording_slice_count(const Recording *recording);
const SliceInfo *recording_slice(const Recording *recording, size_t index);

// Sums of every site for [from_ns, to_ns): live_ at to_ns, the others within. Exact where
// events are kept, else to the slice. ret_sums has recording_site_count() entries. Quick for
// all of the run, and where key frames are near.
bool recording_range(Recording *recording, u64 from_ns, u64 to_ns, SiteSums *ret_sums);

// Live bytes of chosen groups over time, for stacked charts: group_of[site] < group_count or
// U32_MAX; ret_bytes is point_count rows of group_count; times are ends of equal spans. Exact
// while the slices around the points have 2 million events at most; beyond, and where events
// are not kept, each point is taken to the nearer end of its slice.
bool recording_series(Recording *recording, u64 from_ns, u64 to_ns, size_t point_count,
                      const u32 *group_of, u32 group_count, u64 *ret_bytes);

// Events in [from_ns, to_ns), in order; stops when fn returns false.
typedef bool EventFn(void *arg, const HeapEvent *event);
bool recording_each_event(Recording *recording, u64 from_ns, u64 to_ns, EventFn *fn, void *arg);

// Blocks that lived at some time in [from_ns, to_ns): the dead in order of death, then the
// living. Those whose events are not kept are missing.
typedef bool BlockFn(void *arg, const RecordedBlock *block);
bool recording_each_block(Recording *recording, u64 from_ns, u64 to_ns, BlockFn *fn, void *arg);
// Blocks of these spaces (bits 1 << Space) that live at the end and were born before to_ns, in any
// order. Quick if the writer told them, as it does for the heap, or once somebody has asked.
bool recording_each_living(Recording *recording, u32 spaces, u64 to_ns, BlockFn *fn, void *arg);
// Whether the writer told those of the heap.
bool recording_lists_living(const Recording *recording);
// Whether those of these spaces are known although events were given up.
bool recording_knows_living(const Recording *recording, u32 spaces);

#endif
