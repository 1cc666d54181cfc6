// SPDX-License-Identifier: MIT
//
// The heap model, for tools that give events of the heap (TOOL_GIVES_HEAP). The records of the
// client's rings are decoded by events.c, in the order of their stamps, and become calls of the
// functions in the middle of this header; the model keeps what is live, the peak and the recording.
//
//   ring ── wire_drain() ── intake ── heap_take() (events.c) ── heap_alloc() … (the model)
//
// What the caller of the model promises, and what it does not
//   H1  Contexts are announced before they are used, parents before children, with ids that
//       the engine gave out: dense, from 1, but not in order. 0 is the empty stack.
//   H2  Calls come in the order of time, threads mixed: `ns` and `instructions` never fall.
//   H3  An event is what the client did, not what is right: a free of an address at which
//       no block is known is nothing (operator delete and the free in it both may be told,
//       and what was allocated before the start is not known).
//   H4  An allocation at an address that is live means that the old block's free, which
//       another thread has made, comes a moment late (at most HEAP_LATE_NS): the old
//       block ends now, and that one late free (or the old address of a late realloc) is
//       to be ignored.
//   H5  A context's innermost pc is the return address in the caller of the function that
//       was called by name: malloc itself is no frame, and operator new neither if it was
//       the function called by the program. Of pages it is the address behind the system
//       call. All pcs are looked up one byte back, unless they have WIRE_EXACT_PC.
#ifndef MUNINN_MONITOR_HEAP_HEAP_H
#define MUNINN_MONITOR_HEAP_HEAP_H

#include "base/types.h"
#include "launch/options.h"
#include "monitor/symbols/symbols.h"
#include "wire/heap_events.h"
#include "wire/wire.h"

#define HEAP_LATE_NS 100000ull

typedef struct HeapModel HeapModel;

typedef struct HeapTime {
    u64 ns;           // since the start of the run
    u64 instructions; // by all threads so far; 0 unless --time-unit=i
} HeapTime;

// What is allocated or mapped: where, how much, by whom.
typedef struct HeapNew {
    HeapTime time;
    u32 thread;  // its number, from 1
    u32 context;
    u64 address;
    u64 size;    // asked for
    u64 usable;  // got; at least size
} HeapNew;

// ------------------------------------------------------------ what the model is told

// May come again, with the same values.
void heap_context(HeapModel *model, u32 id, u32 parent, u64 pc);

void heap_alloc(HeapModel *model, const HeapNew *block);
void heap_free(HeapModel *model, const HeapTime *time, u32 thread, u64 address);
// `block` takes the place of the one at `old_address`, which may be the same: at no time do
// both count. An old one that is not known makes it an allocation.
void heap_realloc(HeapModel *model, const HeapNew *block, u64 old_address);
// `count` times (at least once) the thread allocated `block` and freed it before it did
// anything else with the heap; one of them at most was live at any time. block->time is
// when the last was freed, `first` when the first was allocated, `lived_ns` how long they
// lived together. This is the same as count heap_alloc() and heap_free(), but cheap.
void heap_temporary(HeapModel *model, const HeapNew *block, u64 count, const HeapTime *first,
                    u64 lived_ns);

// Pages [address, address + size) appear; what was mapped there is gone.
void heap_map(HeapModel *model, const HeapNew *pages, HeapMapKind kind);
// They go; there may be holes, and what is not known is nothing.
void heap_unmap(HeapModel *model, const HeapTime *time, u32 thread, u64 address, u64 size);
// mremap: the pages at old_address are now at pages->address, with another size.
void heap_remap(HeapModel *model, const HeapNew *pages, u64 old_address, u64 old_size);

// --stacks=yes. The stack of `thread` is `bytes` deep, has been `deepest` deep since the last
// call for this thread (in `context`), and nothing was told of the time between.
void heap_stack(HeapModel *model, const HeapTime *time, u32 thread, u32 context, u64 bytes,
                u64 deepest);
void heap_thread_start(HeapModel *model, const HeapTime *time, u32 thread, i32 tid);
void heap_thread_end(HeapModel *model, const HeapTime *time, u32 thread);

// ------------------------------------------------------------ its life

typedef struct HeapConfig {
    const Options *options;
    const char *tool; // that the events are of
    i32 pid;    // as the client knows itself, and as files are named
    i32 os_pid; // in our namespace
    int option_count; // muninn's words, then the client's
    const char *const *option_words;
    int argc;
    const char *const *argv;
    const char *program;
    Symbols *symbols;
    const WireShared *shared;
    // Told what the user should know: one line without a newline.
    void (*say)(void *arg, const char *line);
    void (*alarm)(void *arg, const char *line); // an output has failed
    void *say_arg; // of both
} HeapConfig;

// NULL: there is no memory for it. Files are opened at once, so that one that cannot be
// is told early; the run goes on without it.
HeapModel *heap_open(const HeapConfig *config);
// The monitor of a fork child is a copy of the parent's. First, in the parent's: its recording is
// to tell everything since the fork began, at this stamp. Then, in the copy, whose descriptors
// are still the parent's: what is live is again what was live at the fork. Last it goes on under
// the child's name. What the parent has written stays the parent's.
void heap_prepare_copy(HeapModel *model, u64 fork_stamp);
void heap_go_back(HeapModel *model, u64 fork_stamp);
void heap_divide(HeapModel *model, const HeapConfig *config);
// Code that was mapped, beside symbols_map(): the recording names its modules.
void heap_code(HeapModel *model, const SymbolsMapping *mapping);
// Every turn of the monitor's loop: clocks, samples of RSS, periodic snapshots.
void heap_turn(HeapModel *model);
// The longest that a turn may wait.
int heap_wait_ms(const HeapModel *model, int wait_ms);
// The end, however it came: writes massif.out and closes the recording.
typedef struct HeapEnd {
    bool is_known;  // by exit with this status, or by this signal
    bool by_exec;   // another program goes on under this pid
    i32 status, signal;
} HeapEnd;
// What was live at the end stays, for twins that are still to come.
void heap_close(HeapModel *model, const HeapEnd *end);
void heap_free_model(HeapModel *model);
// The program has ended, at this stamp; heap_close() follows. Else it ends when that is called.
void heap_ended(HeapModel *model, u64 stamp);
// The client is about to execute another program, and waits: names are looked up while their
// code is there, and the recording makes way for that program's.
void heap_before_exec(HeapModel *model);
void heap_exec_failed(HeapModel *model);

// `snapshot`, `detailed_snapshot`, `all_snapshots`, `heap_top` and `heap_names` of `muninn ctl`;
// the answer is said in pieces. Returns the exit status; or HEAP_LATER, unless `wait`: a copy of
// this process is at it, and heap_turn() will say the answer and call `done`.
enum { HEAP_LATER = -1 };
typedef enum HeapCommand {
    HEAP_SNAPSHOT,
    HEAP_DETAILED_SNAPSHOT,
    HEAP_ALL_SNAPSHOTS,
    HEAP_TOP,
    HEAP_NAMES,
} HeapCommand;
typedef void HeapSayFn(void *arg, const char *text);
typedef void HeapDoneFn(void *arg, int status);
int heap_command(HeapModel *model, HeapCommand command, const char *arguments, HeapSayFn *say,
                 HeapDoneFn *done, void *arg, bool wait);
// Whoever asked with this `arg` has gone.
void heap_forget(HeapModel *model, void *arg);

// ------------------------------------------------------------ events.c

// A stamp's time, from which on it is counted with a new rate.
typedef struct ClockPoint {
    u64 stamp, ns;
} ClockPoint;
enum { CLOCK_POINTS = 256 };

// What decoding needs to know beside the records; part of the model, which sets it up.
typedef struct HeapDecoder {
    HeapModel *model;
    u64 start_stamp;      // of the wire's header
    u64 ns_per_tick_q32;  // 32.32
    u64 calibrated_stamp; // stamp and ns (since the start) from which it is counted on
    u64 calibrated_ns;
    ClockPoint points[CLOCK_POINTS]; // the last ones of these, a ring
    u64 point_count;
    u64 last_stamp;       // H2
    HeapTime last;
    u32 thread_of_ring[WIRE_RINGS]; // number of the thread
    u64 instructions_of_ring[WIRE_RINGS];
    u64 peeked_of_ring[WIRE_RINGS]; // the state of the run that was peeked at
} HeapDecoder;

HeapDecoder *heap_decoder(HeapModel *model);
void heap_decoder_init(HeapDecoder *decoder, HeapModel *model, const WireShared *shared);
// Adjusts the clock: call it every turn of the monitor's loop before the rings are drained.
void heap_decoder_tick(HeapDecoder *decoder, const WireShared *shared);
static inline u64 heap_decoder_ns(const HeapDecoder *decoder, u64 stamp)
{
    u64 ticks = stamp > decoder->calibrated_stamp ? stamp - decoder->calibrated_stamp : 0;
    return decoder->calibrated_ns +
           (u64)((unsigned __int128)ticks * decoder->ns_per_tick_q32 >> 32);
}
// The same of a stamp that is long past.
u64 heap_decoder_past_ns(const HeapDecoder *decoder, u64 stamp);
static inline u64 heap_decoder_lived_ns(const HeapDecoder *decoder, u64 ticks)
{
    return (u64)((unsigned __int128)ticks * decoder->ns_per_tick_q32 >> 32);
}
static inline HeapTime heap_decoder_now(HeapDecoder *decoder, u64 stamp)
{
    if (stamp <= decoder->last_stamp)
        return decoder->last;
    decoder->last_stamp = stamp;
    u64 ns = heap_decoder_ns(decoder, decoder->last_stamp);
    if (ns > decoder->last.ns)
        decoder->last.ns = ns;
    return decoder->last;
}
// True: the record was one of the heap's.
bool heap_take(HeapDecoder *decoder, const WireRecord *record);
// What a WireStreamFn does.
size_t heap_take_stream(HeapDecoder *decoder, WireStream *stream);

#endif
