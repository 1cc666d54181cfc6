// SPDX-License-Identifier: MIT
//
// All that the engine and the monitor share: one piece of shared memory per run,
// in which every client thread has a ring for its records, every finding a slot
// for its verdict and its count, and the monitor a place for its requests.
//
//   engine                                       monitor
//   wire_put_x(producer, &x)  ──  ring  ──▶      wire_drain() → wire_get_x()
//   wire_finding_wait()       ◀─ verdict ──      wire_finding_judge()
//   wire_request_take()       ◀─ request ──      wire_request()
//
// Beside it there is a socket, `life`: a byte in it wakes the monitor at once, and its
// hang-up says that the other side is gone.
//
// What must stay true
//   W1  A ring has one producer at a time and one consumer. What the producer has
//       published is never changed or lost, also when its process dies the next moment.
//   W2  A full ring blocks its producer; no record is dropped. If the monitor has died,
//       producers drop all records instead, and the run goes on.
//   W3  The client can overwrite all of this memory. The monitor copies a record before
//       it looks at it, checks every length, and follows no pointer.
//   W4  Records of all threads have one order, that of their stamps (the time stamp
//       counter as the record was begun). If one thread's record was published before
//       another thread's was begun, it comes first.
//   W5  A thread is interrupted only between wire_kick_begin() and wire_kick_end(), and never
//       after the engine has forbidden it (wire_kicks_close()): the signal would kill a program
//       that the client executes.
//   W6  A record that is held back stands before all other records that are not published. The
//       consumer may peek at it at any time, and sees the final record when it is published.
#ifndef MUNINN_WIRE_WIRE_H
#define MUNINN_WIRE_WIRE_H

#include "base/types.h"
#include "wire/findings.h"

#define WIRE_MAGIC 0x006e6e696e756d77ull
enum { WIRE_VERSION = 1 };

enum {
    WIRE_RING_BYTES = 1 << 20, // room for a stream of events while another process has the core
    WIRE_FETCH_BYTES = 640, // the producer prefetches the ring's lines so far ahead: they are in
                            // the consumer's cache, which may be 300 ns away
    WIRE_RINGS = 2048,
    WIRE_RECORD_BYTES_MAX = 64 * 1024,
    WIRE_FINDINGS = 1 << 18,
    WIRE_REQUEST_BYTES = 4096,
    WIRE_PLACE_BYTES = 64,
    WIRE_NAME_BYTES = 256,
    WIRE_ALARM_BYTES = 1024,
    WIRE_HEAP_COUNTS = 1 << 15, // threads with a slot of their own; others count in their process
    WIRE_FRAMES_MAX = 512, // frames of one stack
    WIRE_DRAIN_MAX = 65536,
};

// A list of pcs is a stack, innermost frame first. The first pc is exact, the others are
// return addresses unless this bit is set; 0 stands for frames left out. A pc that contains the
// number of an unloading (RECORD_UNMAP) belongs to code that was unloaded then.
#define WIRE_EXACT_PC (1ull << 63)
enum { WIRE_UNLOADING_SHIFT = 48, WIRE_UNLOADING_MASK = (1 << 14) - 1 };

typedef enum WireRecordType {
    RECORD_NONE,
    RECORD_SKIP, // no record: the next one stands at the start of the ring's memory
#define RECORD(NAME, Name, ...) RECORD_##NAME,
#include "wire/records.def"
    RECORD_TYPES,
} WireRecordType;

// FieldsMapping.place of PART_ADDRESS_MAPPED: what the mapping is. The last three are parts of an
// ELF object.
typedef enum MappedPlace {
    MAPPED_ANONYMOUS,
    MAPPED_FILE,
    MAPPED_TEXT,
    MAPPED_DATA,
    MAPPED_BSS,
} MappedPlace;

// FieldsHolder.place: what holds a block. If several things hold it, the first in this order is
// reported.
typedef enum HolderKind {
    HOLDER_DATA, // data of an ELF object; HOLDER_GLOBAL if the monitor knows the variable's name
    HOLDER_TLS,
    HOLDER_STACK,
    HOLDER_MEMORY,
    HOLDER_REGISTER,
    HOLDER_RECORD,
    HOLDER_OTHERS,
    HOLDER_GLOBAL,
    HOLDER_KIND_COUNT
} HolderKind;

// Flags of a finding.
typedef enum FindingFlags {
    FINDING_NOT_ERROR = 1, // it does not count as an error, though it may be shown
    FINDING_HIDDEN = 2,    // it is not shown; the monitor only matches it with suppressions
    FINDING_ASKED_FOR = 4, // the user asked for it: the limit on the number of findings is ignored
} FindingFlags;

// The trees of contexts, and the values that a TREE_NODE has, in this order. The monitor has the
// names (trees.c).
typedef enum WireTree {
    TREE_MEMORY,      // bytes and blocks now
    TREE_MEMORY_FULL, // bytes and blocks now, ever allocated, and freed
    TREE_LEAKS,       // by kind of leak: bytes, blocks; increases; decreases
    TREE_COUNT
} WireTree;
enum { TREE_VALUES_MAX = 27 };

enum { PROFILES_MAX = 8, PROFILE_EVENTS_MAX = 32 };

typedef struct WireText {
    const char *data; // ends in a zero byte, which size does not count
    size_t size;
} WireText;

typedef struct WireWords {
    const u64 *data;
    size_t count;
} WireWords;

#define U64(field) u64 field;
#define TEXT(field) WireText field;
#define WORDS(field) WireWords field;
#define RECORD(NAME, Name, ...)  \
    typedef struct Wire_##Name { \
        __VA_ARGS__              \
    } Wire_##Name;
#include "wire/records.def"
#undef U64
#undef TEXT
#undef WORDS

// ---------------------------------------------------------- the shared memory

// An allocation that is held back, because the thread's next event may well be the free of the same
// block; and its repetitions. `state` counts allocations and frees, and is odd while the block is
// live. Emitted code may change `state`, and no other member. A series of pairs (blocks of
// different sizes, allocated and freed by one stack at one stamp) is counted in the same way; its
// state has WIRE_PAIRS added.
typedef struct WireRepeat {
    u64 state;   // 0: no allocation is held back
    u64 result;  // the block; a value that is no address keeps emitted code from counting
    u64 size;
    // See ToolRepeat in engine/toolapi/toolapi.h.
    u64 sp, slot, tag;
    u32 site;
    u32 inner;   // ThreadCtx.lean.inner of the call, if emitted code made this record
} WireRepeat;
#define WIRE_INNER_UNKNOWN UINT32_MAX
#define WIRE_PAIRS (~0ull << 31) // as a sign-extended 32-bit constant

// The record of what is held back stands in the ring where the next record goes, so that to publish
// it is to move `write`: a HEAP_ALLOC for the first allocation, or a growing HEAP_PAIRS for a
// series.
typedef struct WireHeld {
    WireRepeat repeat;
    u32 run;         // odd while the other members change; two more for each new allocation
    u32 pairs_end;   // lower half of the state at which a series ends; 0: it ends now, after a
                     // pause: the consumer has looked at the ring, or a system call was made
    u64 next;        // of a series: where its next word goes, relative to this; the producer's
    u64 address;
    u64 allocated;   // stamp of the last allocation that has one
    // Valid when the block has been freed at least once:
    u64 stamp;       // stamp of the last change that has one
    u64 lived;       // ticks that `samples` of the blocks lived, in all
    u64 samples;
} WireHeld;

typedef enum WireRingState { RING_FREE, RING_OWNED, RING_ENDED } WireRingState;

// Positions count bytes since the ring was made and never wrap.
typedef struct WireRing {
    // The producer's line.
    _Alignas(64) u64 write; // all bytes before this position are published
    u64 begun;              // stamp of the record begun last; while the clock is being read,
                            // one more than the stamp before
    // The consumer's line.
    _Alignas(64) u64 read;
    u32 producer_waits; // futex: a producer sleeps until `read` moves
    u32 synced;         // futex: sequence of the last SYNC record that was dealt with
    u32 command_status; // WireCommandStatus of the thread's last COMMAND
    char place[WIRE_PLACE_BYTES]; // answer to its last PLACE: "file:line", or ""
    char name[WIRE_NAME_BYTES];   // and "function (file:line)", or ""
    // Set once in a while.
    _Alignas(64) WireHeld held;
    _Alignas(64) u32 state; // WireRingState
    u32 lock;               // of the last ring, which threads share if there are too many of them
    _Alignas(64) u8 data[WIRE_RING_BYTES];
    u8 beyond[WIRE_FETCH_BYTES]; // never used: prefetches beyond `data` must not hit another ring
} WireRing;

typedef enum WireVerdict {
    VERDICT_NONE,       // the monitor has not answered
    VERDICT_SHOWN,
    VERDICT_SUPPRESSED,
    VERDICT_IGNORED,    // not counted: over the limit, not asked for, or no error
} WireVerdict;

typedef struct WireFinding {
    u64 count;   // how often it happened; written by the engine
    u32 verdict; // WireVerdict; a futex; written by the monitor
    u32 unused;
} WireFinding;

// A tool's counts of the heap. Each thread has a slot, on a cache line of its own, in shared
// memory: so the monitor knows the sums even if the process is killed. Written by the engine. The
// first slot belongs to no thread.
typedef struct WireHeapCounts {
    _Alignas(64) u64 allocs;
    u64 frees, allocated_bytes, freed_bytes;
    u64 more_allocs, more_frees, more_bytes; // of "total heap usage" alone
    u64 is_used; // 0: neither this nor any behind it
} WireHeapCounts;

typedef enum WireCommandStatus { COMMAND_OK, COMMAND_FAILED, COMMAND_UNKNOWN } WireCommandStatus;

// The monitor interrupts a thread of the client's with this signal, SI_QUEUE and this value, so
// that it looks at the request (W5). The kernel keeps one standard signal of a number, so a kick
// may swallow the signal of an invalid instruction: the instruction is executed again, and its
// signal comes then.
#define WIRE_KICK_SIGNAL SIGILL
#define WIRE_KICK 0x6d756e696e6e4b69ull

// What the monitor must know of the tool before it reads the first record. The monitor decides by
// this, never by the name: so it serves tools that it has never heard of.
typedef enum WireToolGives {
    TOOL_GIVES_ERRORS = 1,      // it looks for errors: their number stands at the report's end
    TOOL_GIVES_DESCRIPTORS = 2, // the same, but only if the user has descriptors tracked
    TOOL_GIVES_HEAP = 4,        // events of the heap, which become a recording
} WireToolGives;

enum { WIRE_TITLE_BYTES = 96 };

typedef struct WireTool {
    u32 gives;                             // WireToolGives
    char name[32];                         // "memcheck"
    char title[WIRE_TITLE_BYTES];          // the first line of its reports
    char title_as_valgrind[WIRE_TITLE_BYTES]; // the same under the name valgrind
} WireTool;

// READY_YES: the monitor accepts its options and has opened its outputs. READY_REFUSED: it does
// not, and has told the user why. READY_FAILED: it does not, and the reason stands in `alarm`.
typedef enum WireReady { READY_NOT_YET, READY_YES, READY_REFUSED, READY_FAILED } WireReady;

typedef struct WireHeader {
    u64 magic;
    u32 version;
    i32 pid;
    u64 start_stamp;  // time stamp counter and CLOCK_MONOTONIC at one moment
    u64 start_ns;
    u64 fork_stamp;   // when the fork that made this process began; 0: no fork did
    WireTool tool;
    u32 ring_high;    // rings below it have been used
    u32 finding_high; // findings below it have been made
    u32 stop_findings; // the monitor wants no new ones: --error-limit
    u32 shown_count;  // different findings shown so far
    u32 ready;        // a futex: WireReady
    u32 finished;     // a futex: 1 when the report is written
    i32 exit_code;    // with it: what to exit with, -1 for the client's own
    u32 sync_sequence; // of the newest SYNC record
    u32 staying;      // the monitor goes on after the client's end, for children of it
    u32 exit_now;     // the monitor wants the client to end: --exit-on-first-error
    // A request of the monitor's; at most one at a time.
    u32 request_sequence; // of the newest
    u32 request_taken;    // of the last one taken
    u32 request_for_all;  // every thread is to answer it for itself
    u32 kicking;          // the monitor's: a signal is being sent
    u32 kicks_closed;     // the engine's: none may be sent now
    char request[WIRE_REQUEST_BYTES];
    // Lines that the user must see even if the report does not reach him. The engine prints them,
    // since the client's process has the user's standard error and the monitor has not. Each line
    // ends in a newline; if there are too many, the newest are kept.
    u32 alarm_sequence; // of the newest
    char alarm[WIRE_ALARM_BYTES];
    _Alignas(64) u32 tick; // the monitor adds one each time that it looks at the rings
} WireHeader;

typedef struct WireShared {
    _Alignas(4096) WireHeader header;
    _Alignas(4096) WireFinding findings[WIRE_FINDINGS];
    _Alignas(4096) WireHeapCounts heap_counts[WIRE_HEAP_COUNTS];
    _Alignas(4096) WireRing rings[WIRE_RINGS];
} WireShared;

// Returns a memfd of the right size, empty, close-on-exec; or -errno.
int wire_create(void);
// Maps a wire. NULL: the file is not a wire, or there is no memory.
WireShared *wire_map(int fd);
void wire_unmap(WireShared *shared);

// Reads the time stamp counter after all earlier loads, as W4 asks: rdtsc alone may be executed
// early.
static inline u64 wire_stamp(void)
{
    u32 low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (u64)high << 32 | low;
}

// ------------------------------------------------------------------- producing
// Callable from the cache: general registers only, no libc.

typedef struct WireProducer {
    WireShared *shared;
    WireRing *ring;
    u64 read_seen;     // the consumer's position when the producer last looked at it
    bool is_common;    // the ring is shared with other threads, under its lock
    const int *life;   // the socket; *life < 0 when the monitor is gone
    // Events of the heap that come in quick succession share a stamp (heap_events.h).
    u32 stamps_left;   // so many more events have the stamp of the last one
    u32 tick_seen;     // WireHeader.tick when the producer last looked at it
    u32 stamps_shared; // how many events may share a stamp
    u64 tick_stamp;    // the stamp at which tick_seen changed
} WireProducer;

// False when the process is without a monitor.
bool wire_producer_open(WireProducer *producer, WireShared *shared, const int *life);
void wire_producer_close(WireProducer *producer);

// Returns room for a record of `words` words behind its header, all in one piece. NULL: the
// monitor has died. The caller writes the words and calls wire_publish(), with no other call of
// this header in between.
u64 *wire_begin(WireProducer *producer, WireRecordType type, size_t words);
// The spare half word of a record's header; `words` is what wire_begin() gave.
static inline void wire_set_payload(u64 *words, u32 payload)
{
    words[-2] |= (u64)payload << 32;
}
void wire_publish(WireProducer *producer);
// As wire_begin(), for a record that has its stamp already.
u64 *wire_reserve(WireProducer *producer, WireRecordType type, u32 run, size_t words, u64 stamp);

// Wakes the monitor now. It looks at the rings a few times a second without this.
void wire_ring_bell(WireProducer *producer);
// True when the other side has closed the socket.
bool wire_hung_up(int life);

#define RECORD(NAME, Name, ...) \
    void wire_put_##Name(WireProducer *producer, const Wire_##Name *record);
#include "wire/records.def"

// Waits until the monitor has dealt with everything that this thread has put.
void wire_sync(WireProducer *producer);
// Waits until a word in the header differs from 0. False: the monitor has died. Meanwhile another
// thread may give the socket another number (*life), or close it.
bool wire_wait(u32 *word, const int *life);
// Takes the newest request, if its sequence is not `seen` and it is either for all threads or not
// taken by another thread. Returns its sequence; 0: there is no such request.
u32 wire_request_take(WireShared *shared, u32 seen, char ret_text[WIRE_REQUEST_BYTES],
                      bool *ret_for_all);
// wire_kicks_close() forbids kicks, before the client executes another program. wire_kicks_open()
// allows them again if that has failed.
void wire_kicks_close(WireShared *shared);
void wire_kicks_open(WireShared *shared);
// Waits for the monitor's verdict on a finding. VERDICT_IGNORED if the monitor has died.
WireVerdict wire_finding_wait(WireShared *shared, u32 id, const int *life);

// ------------------------------------------------------------------- consuming

typedef struct WireRecord {
    WireRecordType type;
    u32 ring;         // the number of the ring it came from
    u32 payload;      // the spare half word of its header
    bool is_peek;     // its producer still holds it back: it will come again, perhaps changed
    bool was_peeked;  // it came before, as a peek
    u64 stamp;
    const u64 *words; // a private copy
    size_t count;
} WireRecord;

typedef struct WireConsumer WireConsumer;
WireConsumer *wire_consumer_new(WireShared *shared);
void wire_consumer_free(WireConsumer *consumer);

// wire_drain() hands over the records whose order is certain now, up to about WIRE_DRAIN_MAX. With
// `final` true, when no producer lives any more, it hands over all. Returns the number of records.
typedef void WireRecordFn(void *arg, const WireRecord *record);
// Events of the heap can come in streams: if wire_stream_to() has set a function, consecutive
// events of one ring are handed to it together. It takes whole records as long as they are
// wire_is_streamed() and their stamps are not above the limit, and returns how many it took. Nearly
// all are HEAP_ALLOC and HEAP_PAIR (WIRE_STREAM_ALLOC words) and HEAP_FREE (WIRE_STREAM_FREE).
enum { WIRE_STREAM_ALLOC = 4, WIRE_STREAM_FREE = 3 };
typedef struct WireStream {
    u32 ring;
    const u64 *words; // a private copy; WIRE_STREAM_ALLOC words behind its end are readable
    size_t count;
    u64 limit;
    // Set by the function:
    size_t taken;     // number of words that it took
    u64 last;         // stamp of the last record that it took, if any
    u8 run;           // from the header of the last record that was held back
} WireStream;
typedef size_t WireStreamFn(void *arg, WireStream *stream);
// The bits of a header that hold the record's type and length.
#define WIRE_STREAM_MASK 0xffff00ffu
#define WIRE_STREAM_HEAD(type, words) ((u32)(type) | (u32)(words) << 16)
static inline bool wire_is_streamed(u64 header)
{
    const u64 types = 1ull << RECORD_HEAP_ALLOC | 1ull << RECORD_HEAP_PAIR |
                      1ull << RECORD_HEAP_FREE | 1ull << RECORD_HEAP_REALLOC |
                      1ull << RECORD_HEAP_RUN | 1ull << RECORD_HEAP_PAIRS |
                      1ull << RECORD_CONTEXT;
    return (u8)header < 64 && types >> (u8)header & 1;
}
void wire_stream_to(WireConsumer *consumer, WireStreamFn *fn);
size_t wire_drain(WireConsumer *consumer, bool final, WireRecordFn *fn, void *arg);
// Whether all records that were begun up to this stamp have been handed over.
bool wire_has_drained(WireConsumer *consumer, u64 stamp);
// The number of rings whose contents made no sense; their records are lost.
u32 wire_damaged_rings(const WireConsumer *consumer);

// False when the record is not of that type or not well formed. Texts and words
// point into the record.
#define RECORD(NAME, Name, ...) \
    bool wire_get_##Name(const WireRecord *record, Wire_##Name *ret_record);
#include "wire/records.def"

void wire_synced(WireShared *shared, u32 ring, u32 sequence);
void wire_finding_judge(WireShared *shared, u32 id, WireVerdict verdict);
void wire_set_ready(WireShared *shared, WireReady ready);
void wire_finish(WireShared *shared, i32 exit_code);
// Lets the engine print the line on standard error, at the latest when it next waits for the
// monitor.
void wire_alarm(WireShared *shared, const char *line);

// Makes `text` the request; returns its sequence. The text is cut to fit.
u32 wire_request(WireShared *shared, const char *text, bool for_all);
// False: no thread may be interrupted now. If true, wire_kick_end() must follow.
bool wire_kick_begin(WireShared *shared);
void wire_kick_end(WireShared *shared);

const char *wire_record_name(WireRecordType type);

#endif
