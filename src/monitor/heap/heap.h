// SPDX-License-Identifier: MIT
//
// The heap model, for tools that give events of the heap (TOOL_GIVES_HEAP). events.c decodes the
// records of the client's rings in the order of their stamps, and calls the functions in the middle
// of this header. The model keeps the live blocks, the peak and the recording.
//
//   ring ── wire_drain() ── intake ── heap_take() (events.c) ── heap_alloc() … (the model)
//
// What the caller of the model promises, and what it does not
//   H1  Contexts are announced before they are used, parents before children, with ids that
//       the engine gave out: dense, from 1, but not in order. 0 is the empty stack.
//   H2  Calls come in the order of time, threads mixed: `ns` and `instructions` never fall.
//   H3  Events need not make sense. The model ignores a free of an address at which it knows
//       no block: operator delete and the free in it may both be reported, and blocks that
//       were allocated before the start are not known.
//   H4  An allocation at an address that is live means that another thread has freed the old
//       block, and that the event of this free comes a moment late (at most HEAP_LATE_NS).
//       The old block ends now, and that one late free (or the old address of a late realloc)
//       is ignored.
//   H5  A context's innermost pc is the return address in the caller of the function that
//       was called by name: malloc itself is no frame, nor is operator new if the program
//       called that. For pages it is the address behind the system call. All pcs are looked
//       up one byte back, unless they have WIRE_EXACT_PC.
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

// A block that is allocated, or pages that are mapped.
typedef struct HeapNew {
    HeapTime time;
    u32 thread;  // its number, from 1
    u32 context;
    u64 address;
    u64 size;    // bytes asked for
    u64 usable;  // bytes given; at least size
} HeapNew;

// ------------------------------------------------------------ what the model is told

// Announces a context. May be called again with the same values.
void heap_context(HeapModel *model, u32 id, u32 parent, u64 pc);

void heap_alloc(HeapModel *model, const HeapNew *block);
void heap_free(HeapModel *model, const HeapTime *time, u32 thread, u64 address);
// `block` replaces the block at `old_address`, which may be the same address; at no time do both
// count. If the old block is not known, this is an allocation.
void heap_realloc(HeapModel *model, const HeapNew *block, u64 old_address);
// `count` times (at least once) the thread allocated `block` and freed it before it did
// anything else with the heap, so at most one of them was live at any time. block->time is
// when the last was freed, `first` when the first was allocated, `lived_ns` the sum of their
// lives. This has the effect of `count` calls of heap_alloc() and heap_free(), but is cheap.
void heap_temporary(HeapModel *model, const HeapNew *block, u64 count, const HeapTime *first,
                    u64 lived_ns);

// Pages [address, address + size) were mapped, in place of any that were mapped there.
void heap_map(HeapModel *model, const HeapNew *pages, HeapMapKind kind);
// Pages in [address, address + size) were unmapped; unknown pages in the range are ignored.
void heap_unmap(HeapModel *model, const HeapTime *time, u32 thread, u64 address, u64 size);
// mremap: the pages at old_address are now at pages->address, with another size.
void heap_remap(HeapModel *model, const HeapNew *pages, u64 old_address, u64 old_size);

// --stacks=yes. The stack of `thread` is `bytes` deep, has been `deepest` deep since the last
// call for this thread (in `context`).
void heap_stack(HeapModel *model, const HeapTime *time, u32 thread, u32 context, u64 bytes,
                u64 deepest);
void heap_thread_start(HeapModel *model, const HeapTime *time, u32 thread, i32 tid);
void heap_thread_end(HeapModel *model, const HeapTime *time, u32 thread);

// ------------------------------------------------------------ its life

typedef struct HeapConfig {
    const Options *options;
    const char *tool; // the name of the tool that makes the events
    i32 pid;    // the client's own pid, which stands in file names
    i32 os_pid; // the client's pid in the monitor's namespace
    int option_count; // muninn's words, then the client's
    const char *const *option_words;
    int argc;
    const char *const *argv;
    const char *program;
    Symbols *symbols;
    const WireShared *shared;
    // Prints a line for the user; `line` has no newline.
    void (*say)(void *arg, const char *line);
    void (*alarm)(void *arg, const char *line); // an output has failed
    void *say_arg; // the first argument of both
} HeapConfig;

// Opens the files at once, so that the user learns early of a file that cannot be opened; the run
// goes on without it. NULL: no memory.
HeapModel *heap_open(const HeapConfig *config);
// The monitor of a fork's child is a copy of the parent's. heap_prepare_copy(), in the parent's
// monitor: makes the recording hold all events since the fork began, at this stamp. heap_go_back(),
// in the copy, whose descriptors are still the parent's: takes the model back to the state at the
// fork. heap_divide(), in the copy: goes on under the child's name. Files that the parent has
// written stay the parent's.
void heap_prepare_copy(HeapModel *model, u64 fork_stamp);
void heap_go_back(HeapModel *model, u64 fork_stamp);
void heap_divide(HeapModel *model, const HeapConfig *config);
// To be called beside symbols_map() when code was mapped: the recording names the modules.
void heap_code(HeapModel *model, const SymbolsMapping *mapping);
// To be called in every turn of the monitor's loop: clocks, samples of RSS, periodic snapshots.
void heap_turn(HeapModel *model);
// How long a turn may wait, at most wait_ms.
int heap_wait_ms(const HeapModel *model, int wait_ms);
// The end, however it came: writes massif.out and closes the recording.
typedef struct HeapEnd {
    bool is_known;  // the process ended with `status`, or by `signal`
    bool by_exec;   // another program goes on under this pid
    i32 status, signal;
} HeapEnd;
// Keeps the state at the end, for twins that are still to come.
void heap_close(HeapModel *model, const HeapEnd *end);
void heap_free_model(HeapModel *model);
// Says that the program ended at this stamp; heap_close() follows. Without this call the program
// ends when heap_close() is called.
void heap_ended(HeapModel *model, u64 stamp);
// To be called when the client is about to execute another program, and waits. Looks names up while
// their code is mapped, and moves the recording aside for that program's.
void heap_before_exec(HeapModel *model);
void heap_exec_failed(HeapModel *model);

// `snapshot`, `detailed_snapshot`, `all_snapshots`, `heap_top` and `heap_names` of `muninn ctl`;
// `say` gets the answer in pieces. Returns the exit status. If `wait` is false it may return
// HEAP_LATER: then a copy of this process works on the answer, and heap_turn() will pass it to
// `say` and call `done`.
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
// To be called when the client of a command has gone: `arg` is not used any more.
void heap_forget(HeapModel *model, void *arg);

// ------------------------------------------------------------ events.c

// A stamp and its time, from which on stamps are converted with a new rate.
typedef struct ClockPoint {
    u64 stamp, ns;
} ClockPoint;
enum { CLOCK_POINTS = 256 };

// The state of decoding; part of the model, which sets it up.
typedef struct HeapDecoder {
    HeapModel *model;
    u64 start_stamp;      // of the wire's header
    u64 ns_per_tick_q32;  // 32.32
    u64 calibrated_stamp; // stamp and ns (since the start) from which stamps are converted
    u64 calibrated_ns;
    ClockPoint points[CLOCK_POINTS]; // the last pairs of these two, a ring
    u64 point_count;
    u64 last_stamp;       // H2
    HeapTime last;
    u32 thread_of_ring[WIRE_RINGS]; // number of the thread
    u64 instructions_of_ring[WIRE_RINGS];
    u64 peeked_of_ring[WIRE_RINGS]; // the state of the run when it was peeked at
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
// The same for a stamp that is long past.
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
// Decodes a record. False: it is no event of the heap.
bool heap_take(HeapDecoder *decoder, const WireRecord *record);
// Decodes a stream, as a WireStreamFn.
size_t heap_take_stream(HeapDecoder *decoder, WireStream *stream);

#endif
