// SPDX-License-Identifier: MIT
//
// The heap model from inside; private to heap/.
//
//   model.c      what an event changes: sites, totals, peaks
//   model_event.h  the part of model.c that every event runs through
//   stream.c     streams of events from the wire
//   ranges.c     what an event changes: ranges of pages, and stacks
//   blocks.c     live heap blocks by address
//   places.c     contexts, sites, modules: their numbers
//   snapshots.c  which moments massif.out shows
//   names.c      frames for contexts, once per distinct pc
//   files.c      the recording and massif.out
//   sample.c     RSS, from /proc
//   commands.c   what `muninn ctl` asks: snapshots
//   top.c        what `muninn ctl` asks: who holds most
//   copy.c       a copy of this process, for work that takes long
//   life.c       from heap_open() to heap_close()
//   twin.c       going on in the monitor of a fork's child
//
// What must stay true
//   M1  model->totals is the sum of the live figures of all sites. The heap's totals are also
//       the sum of the blocks in model->blocks that are not ignored.
//   M2  A peak is the moment at which its total was the highest. Of several such moments it is
//       the one at which most bytes were asked for, and the last of those. A new peak only begins
//       a new epoch. A site saves its figures for each peak when it first changes in the peak's
//       epoch. So a site's figures at the peak are `saved` if it has changed in the peak's epoch
//       or later; else they are its live figures. That costs O(1) an event, and is exact.
//   M3  A site saves for every peak before each change: site_touch() comes first.
//   M4  Memory is bounded by the number of live blocks and ranges, and by CONTEXTS_MAX and
//       SITES_MAX. Beyond these a new stack counts as its caller's, and a new site as that of no
//       thread.
#ifndef MUNINN_MONITOR_HEAP_MODEL_H
#define MUNINN_MONITOR_HEAP_MODEL_H

#include <stdio.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "monitor/heap/blocks.h"
#include "monitor/heap/heap.h"
#include "recording/massif_out.h"
#include "recording/recording.h"

enum {
    CONTEXTS_MAX = 8 << 20,
    SITES_MAX = 2 << 20,
    SITE_THREAD_MASK = (1 << 27) - 1,
    FRAMES_OF_PC_MAX = 64,
};
#define SITE_IGNORED UINT32_MAX // the site of blocks that --ignore-fn leaves out
#define SITE_NONE (UINT32_MAX - 1)

// Which maxima are kept exactly.
typedef enum PeakKind {
    PEAK_HEAP,   // the allocator's overhead included, as in massif.out
    PEAK_MAPPED,
    PEAK_STACK,
    PEAK_ALL,    // the bytes of all spaces
    PEAK_BOTH,   // heap and stacks: --stacks=yes
    PEAK_KINDS,
} PeakKind;

typedef struct Live {
    u64 bytes, blocks, usable;
} Live;

// Counts of powers of two, only as wide as they are used.
typedef struct Window {
    u64 *counts;
    u8 first, count;
} Window;

// Sizes below 2 KiB and lifetimes below half a millisecond are counted in the site itself: if a
// program has many sites, their windows are not in the processor's cache. When such a count is
// full, the window takes it over.
enum { FEW_SIZES = 12, FEW_LIFETIMES = 20 };

// The fields stand in the order in which an event touches them: it touches the first two cache
// lines, and the others only if there was a new peak.
typedef struct Site {
    _Alignas(64) Live live;
    u64 epoch; // the epoch in which the site last changed; M2
    u64 allocated_bytes, allocations;
    u64 frees, temporary;
    u16 few_sizes[FEW_SIZES], few_lifetimes[FEW_LIFETIMES];
    Window sizes, lifetimes; // the others
    u64 reallocations;
    u32 context;
    u32 thread : 27, pages : 3, space : 2;
    Live saved[PEAK_KINDS];
} Site;

_Static_assert(sizeof(Site) == 320 && offsetof(Site, sizes) == 128, "whole lines");

// What a site had when heap_top was last asked.
typedef struct Mark {
    u64 bytes, allocations, temporary;
} Mark;

typedef struct Peak {
    u64 bytes;
    u64 useful_bytes; // those of them that were asked for
    u64 epoch; // the epoch that the peak began
    Moment moment;
    u32 site_count; // how many sites there were then
    u64 requested_bytes;
} Peak;

// A distinct pc, of one module while that was loaded.
typedef struct Code {
    Symbols *symbols; // the symbols that know the place; a twin also has those of its parent
    CodePlace place;
    u64 pc;
    bool is_return;
    bool is_named;
    u32 frame_count;
    RecordedFrame *frames; // in model->arena
} Code;

// By the engine's id.
typedef struct Context {
    u32 number; // in the recording; 0: not announced
    u32 code;
    u32 thread; // 1 + the thread that allocated here last; 0: none has
    u32 site;   // the heap's site for that thread
    bool is_inherited; // from the parent of a twin, which may have announced it after the fork
} Context;

// By the recording's number.
typedef struct Place {
    u32 parent; // a smaller number
    u32 code;
    u8 ignored; // 0: not asked yet; 1: counts; 2: --ignore-fn
    bool is_recorded; // the recording has its frames
} Place;

typedef struct Module {
    RecordedModule recorded; // path in model->arena
    u32 number;              // in the recording; 0: none of its code has been seen
    bool is_live;
} Module;

typedef struct Range {
    u64 start, end;
    u64 born_ns;
    u32 site;
} Range;

typedef struct ModelThread {
    u64 last_block; // that it allocated, if it has not been freed
    u64 stack_bytes;
    u32 stack_site;
    i32 tid;
    u64 start_ns;
    bool is_live;
    char name[16]; // as the kernel has it; "": not known
} ModelThread;

// A moment that massif.out shows.
typedef struct Kept {
    Moment moment;
    u64 heap_bytes, extra_bytes, stack_bytes;
    u32 site_count;  // known by then
    u32 live_count;
    u32 *sites;      // with its bytes behind it; NULL: not detailed
    u64 *bytes;
    bool is_detailed, is_asked; // asked ones are never culled
} Kept;

typedef struct SiteBytes {
    u64 bytes;
    u32 site;
} SiteBytes;

typedef struct SnapshotList {
    Kept *kept;        // in order of time
    u32 count, capacity;
    SiteBytes *scratch; // site_capacity of them
    u32 scratch_capacity;
    u64 interval;      // on the clock of --time-unit
    u32 taken;         // for --detailed-freq
} SnapshotList;

// Codes whose names the reader is looking for.
typedef struct NameQueue {
    u32 next; // the first that has not been asked for
    u32 first, count;
    u32 asked[SYMBOLS_AHEAD_MAX]; // a ring
} NameQueue;

// One of --snapshot-when.
typedef struct Trigger {
    OptionTrigger at;
    bool is_above; // it is over the limit now
} Trigger;
enum { TRIGGERS_MAX = 16 };

typedef struct Sampler {
    int directory;     // /proc/PID; -1: none
    u64 next_ns;       // on our own clock
    u64 next_smaps_ns; // the dear measurement
    u64 next_names_ns; // of threads
    u64 engine_rss;    // at the last of those
    u64 last_rss;
    u64 rss_peak, process_rss_peak;
    bool has_engine_rss;
} Sampler;

// Something that a copy of this process does: `work` there, `end` here with what it wrote.
typedef struct CopyTask {
    void (*work)(HeapModel *model, void *arg, FILE *out); // NULL: the place is free
    void (*end)(HeapModel *model, void *arg, const u8 *answer, size_t size);
    void *arg;
    int fd;
    u8 *answer;
    size_t size, capacity;
} CopyTask;
enum { COPIES_MAX = 8 };

// What was not as it should be; told at the end with -v, and by heap_top.
typedef struct Oddities {
    u64 unknown_frees, late_frees, lost_blocks, cut_contexts, joined_sites;
} Oddities;

struct HeapModel {
    HeapConfig config;
    const Options *options;
    u64 start_ns; // of the run, CLOCK_MONOTONIC
    u64 ended_ns; // since then; 0: it goes on. What is done afterwards is not the program's time
    HeapDecoder decoder;

    // Hot: what every event reads.
    BlockTable blocks;
    Site *sites;
    u32 site_count, site_capacity;
    u32 sites_max, places_max; // M4
    u64 admin_bytes;            // --heap-admin
    u64 allocated_bytes;        // time unit B of massif.out: with what allocators add
    u64 requested_bytes;        // the same as the recording has it: what was asked for
    Space clock_space;          // of which space that is
    u64 recorded_ns;            // of the last event in the recording
    SpaceTotals totals;
    u64 total[PEAK_KINDS];
    Peak peaks[PEAK_KINDS];
    u64 epoch;                  // M2
    u64 next_check;             // on the clock of --time-unit: a snapshot is due
    bool counts[SPACE_COUNT];   // in what massif.out calls the total
    PeakKind main_peak;         // of that total; PEAK_KINDS: it is nothing
    Moment now;

    Map site_of;                // key → site
    Vec threads;                // ModelThread by number
    Vec ranges;                 // Range, by address
    Map late;                   // address → ns: a free that is still to come (H4)
    Vec contexts;               // Context, by the engine's id
    Vec places;                 // Place, by the recording's number
    Vec codes;                  // Code
    Map code_of;                // hash → code
    NameQueue names;
    Vec modules;                // Module
    Arena arena;

    u64 allocations, frees, temporary, reallocations, events;
    Oddities oddities;

    SnapshotList snapshots;
    Trigger triggers[TRIGGERS_MAX];
    u32 trigger_count;
    u64 periodic_next_ns;

    RecordingWriter *writer;    // NULL: none
    char *recording_path, *massif_path;
    int recording_fd;           // of one that is closed, for twins; -1: none
    bool misses_past;           // of a twin: its parent's recording has not all since the fork
    char *usual_path;           // of the recording, while it has made way
    char *usual_name;           // and that of the file itself
    bool has_told_recording;    // that it cannot be written any more
    Sampler sampler;
    Mark *marks;                // of sites
    u32 mark_count;
    u64 marked_ns;
    CopyTask copies[COPIES_MAX];
};

// ------------------------------------------------------------------- places.c

bool places_init(HeapModel *model); // false: there is no memory
// The site of a context of the engine's. SITE_IGNORED: --ignore-fn leaves it out.
u32 site_find(HeapModel *model, Space space, u32 context, u32 thread);
u32 site_find_pages(HeapModel *model, PagesKind pages, u32 context, u32 thread);
// Tells a new writer everything known so far.
void places_record_all(HeapModel *model);
void places_free(HeapModel *model);
// Threads name themselves when they run; looked at now and then.
void threads_name(HeapModel *model);
ModelThread *thread_make(HeapModel *model, u32 number);
static inline ModelThread *thread_at(HeapModel *model, u32 number)
{
    if (LIKELY(number < model->threads.count))
        return (ModelThread *)model->threads.data + number;
    return thread_make(model, number);
}

// ------------------------------------------------------------------- model.c

// One block of a site more or less. These do all but the table of blocks and the recording.
void site_grow(HeapModel *model, u32 site, u64 size, u64 usable, u64 blocks);
void site_shrink(HeapModel *model, u32 site, u64 size, u64 usable, u64 blocks);
void window_widen(Window *window, u32 bucket, u64 count);
void site_histogram(const Site *site, SiteHistogram *ret_histogram); // files.c
// H4: the free of what is here comes later.
void end_late_block(HeapModel *model, LiveBlock *found, u32 thread);
bool is_late_free(HeapModel *model, u64 address);
// Now, also when nothing has happened for a while.
Moment model_moment(const HeapModel *model);
// The clock of --time-unit.
static inline u64 model_clock(const HeapModel *model, const Moment *moment)
{
    switch (model->options->time_unit) {
    case TIME_UNIT_MS: return moment->ns;
    case TIME_UNIT_BYTES: return moment->allocated_bytes;
    default: return moment->instructions ? moment->instructions : moment->ns;
    }
}
// A site's live figures at a peak; M2.
static inline Live site_at_peak(const HeapModel *model, const Site *site, PeakKind kind)
{
    return site->epoch >= model->peaks[kind].epoch ? site->saved[kind] : site->live;
}
// --------------------------------------------------------------------- life.c

void model_set_up(HeapModel *model, const HeapConfig *config);

// ------------------------------------------------------------------- ranges.c

// Of a twin: what its parent has mapped since, and what it has unmapped.
void ranges_forget_younger(HeapModel *model, u64 ns);
void ranges_bring_back(HeapModel *model, u32 site, u64 start, u64 size, u64 born_ns);

// --------------------------------------------------------------------- top.c

// Who wants to know: said in pieces, then done. arg NULL: nobody any more.
typedef struct Asker {
    HeapSayFn *say;
    HeapDoneFn *done;
    void *arg;
} Asker;
int top_answer(HeapModel *model, const char *arguments, const Asker *asker, bool wait);
void asker_say(const Asker *asker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// -------------------------------------------------------------------- names.c

// Names every pc that has no name yet.
void names_resolve_all(HeapModel *model);
// Every turn: some of them, as far as that takes no time of this process.
void names_turn(HeapModel *model);
// For all contexts, told to the recording.
void names_record_all(HeapModel *model);
// Those that have been looked up by now.
void names_record_known(HeapModel *model);
// `heap_names`: looks up in a copy, records. As heap_command().
int names_answer(HeapModel *model, const Asker *asker, bool wait);
bool names_is_ignored(HeapModel *model, u32 place);
MassifStacks names_stacks(HeapModel *model);
bool names_are_known(const HeapModel *model, u32 place); // all of its stack
// What a copy has looked up for a stack, and what this process makes of it.
void names_send(HeapModel *model, u32 place, FILE *out);
void names_receive(HeapModel *model, const u8 *bytes, size_t size);

// ---------------------------------------------------------------- snapshots.c

void snapshots_init(HeapModel *model);
void snapshots_free(HeapModel *model);
// When model->now is due, or asked for.
void snapshots_take(HeapModel *model);
Kept snapshots_now(HeapModel *model, bool detailed);
Kept snapshots_peak(HeapModel *model);
void snapshots_ask(HeapModel *model, const Moment *moment); // one that stays
void kept_free(Kept *kept);
void triggers_init(HeapModel *model);
void triggers_check(HeapModel *model);

// -------------------------------------------------------------------- files.c

// The names are those that a fork's parent has for its own, or NULL.
void files_open(HeapModel *model, const char *parents_massif, const char *parents_recording);
void files_close(HeapModel *model, const HeapEnd *end);
char *files_command(const HeapModel *model); // the client's words; allocated
// xtree.c: the sites in callgrind's format. 0, or -errno.
int xtree_write(HeapModel *model, const char *path);
void files_make_way(HeapModel *model);  // --trace-children=yes: for the next program's
void files_come_back(HeapModel *model); // which did not come
void files_check_recording(HeapModel *model); // every turn: an error is told at once
// The state of now, into the recording.
void files_keep_state(HeapModel *model, StateReason reason, const char *label,
                      const Moment *moment);
typedef enum MassifWhich { MASSIF_NOW, MASSIF_NOW_DETAILED, MASSIF_ALL } MassifWhich;
// 0, or -errno.
int files_write_massif(HeapModel *model, const char *path, MassifWhich which, bool at_end);

// --------------------------------------------------------------------- copy.c

// False: there can be none now.
bool copy_start(HeapModel *model, const CopyTask *task);
void copy_turn(HeapModel *model); // hears those that are done
bool copy_is_at_work(const HeapModel *model);
void copy_forget_all(HeapModel *model, bool close_them);

// ------------------------------------------------------------------- sample.c

void sample_open(HeapModel *model);
void sample_turn(HeapModel *model, bool now);
void sample_close(HeapModel *model);

#endif
