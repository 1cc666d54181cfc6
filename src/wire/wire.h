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
//   W2  A full ring blocks its producer; nothing is dropped. If the monitor is gone, a
//       producer drops everything instead, and the run goes on.
//   W3  The client can scribble over all of this. The monitor copies a record before
//       it looks at it, checks every length, and believes no pointer.
//   W4  Records of all threads have one order, that of their stamps (the time stamp
//       counter as the record was begun). If one thread's record was published before
//       another thread's was begun, it comes first.
//   W6  What is held back stands before everything that is not published yet. The consumer may
//       look at it at any time, and is told what became of it when it is published.
//   W5  A thread is interrupted only between wire_kick_begin() and wire_kick_end(), and never
//       once the engine has closed that: the signal would kill a program that is executed.
#ifndef MUNINN_WIRE_WIRE_H
#define MUNINN_WIRE_WIRE_H

#include "base/types.h"
#include "wire/findings.h"

#define WIRE_MAGIC 0x006e6e696e756d77ull
enum { WIRE_VERSION = 1 };

enum {
    WIRE_RING_BYTES = 1 << 20, // what a stream of events makes while another has the core
    WIRE_FETCH_BYTES = 640, // the producer asks for the ring's lines so far ahead: they are in
                            // the consumer's cache, which may be 300 ns away
    WIRE_RINGS = 2048,
    WIRE_RECORD_BYTES_MAX = 64 * 1024,
    WIRE_FINDINGS = 1 << 18,
    WIRE_REQUEST_BYTES = 4096,
    WIRE_PLACE_BYTES = 64,
    WIRE_NAME_BYTES = 256,
    WIRE_ALARM_BYTES = 1024,
    WIRE_HEAP_COUNTS = 1 << 15, // more threads than that count for themselves
    WIRE_FRAMES_MAX = 512, // of one stack
    WIRE_DRAIN_MAX = 65536,
};

// In lists of pcs, as the call stack has them: the first is exact, the others are
// return addresses unless this bit is set; 0 stands for frames left out. With the number of an
// unloading (RECORD_UNMAP) in it a pc is of the code that was there before.
#define WIRE_EXACT_PC (1ull << 63)
enum { WIRE_UNLOADING_SHIFT = 48, WIRE_UNLOADING_MASK = (1 << 14) - 1 };

typedef enum WireRecordType {
    RECORD_NONE,
    RECORD_SKIP, // to the end of the ring's memory
#define RECORD(NAME, Name, ...) RECORD_##NAME,
#include "wire/records.def"
    RECORD_TYPES,
} WireRecordType;

// FieldsMapping.place of PART_ADDRESS_MAPPED: what the mapping is. The last three are an ELF
// object's.
typedef enum MappedPlace {
    MAPPED_ANONYMOUS,
    MAPPED_FILE,
    MAPPED_TEXT,
    MAPPED_DATA,
    MAPPED_BSS,
} MappedPlace;

// FieldsHolder.place: what holds a block, in the order in which they are preferred.
typedef enum HolderKind {
    HOLDER_DATA, // of an ELF object; the monitor makes HOLDER_GLOBAL of it if it knows a name
    HOLDER_TLS,
    HOLDER_STACK,
    HOLDER_MEMORY,
    HOLDER_REGISTER,
    HOLDER_RECORD,
    HOLDER_OTHERS,
    HOLDER_GLOBAL,
    HOLDER_KIND_COUNT
} HolderKind;

// Of a finding.
typedef enum FindingFlags {
    FINDING_NOT_ERROR = 1, // does not count as one, though it may be shown
    FINDING_HIDDEN = 2,    // is only judged: the suppressions may know it
    FINDING_ASKED_FOR = 4, // the user wants to see it: no limit on their number holds
} FindingFlags;

// What TREE_NODE has the values of, in this order; the monitor has the names (trees.c).
typedef enum WireTree {
    TREE_MEMORY,      // bytes and blocks now
    TREE_MEMORY_FULL, // and ever allocated, and freed
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

// An allocation and its repetitions, held back because the next event may well be its end:
// `state` counts both, and is odd while the block is live. Changes of it alone are
// made by emitted code too. Blocks of different sizes, of one stack and at one moment, are counted
// alike: that is a series of pairs, whose state has WIRE_PAIRS added.
typedef struct WireRepeat {
    u64 state;   // 0: there is nothing
    u64 result;  // the block; what is no address: emitted code shall leave it alone
    u64 size;
    // See ToolRepeat in engine/toolapi/toolapi.h.
    u64 sp, slot, tag;
    u32 site;
    u32 inner;   // ThreadCtx.lean.inner of the call, if emitted code put it
} WireRepeat;
#define WIRE_INNER_UNKNOWN UINT32_MAX
#define WIRE_PAIRS (~0ull << 31) // as a sign-extended 32-bit constant

// The HEAP_ALLOC of the first allocation stands in the ring, where the next record goes: to publish
// it is to move `write`. Of a series of pairs the HEAP_PAIRS stands there, which grows.
typedef struct WireHeld {
    WireRepeat repeat;
    u32 run;         // odd while the rest changes; two more for each new allocation
    u32 pairs_end;   // lower half of the state that ends a series; 0: it has ended, since there was
                     // a pause: the consumer has looked at the ring, or a system call was made
    u64 next;        // of a series: where its next word goes, as seen from here; the producer's
    u64 address;
    u64 allocated;   // stamp of the last allocation that has one
    // Once it has been freed
    u64 stamp;       // of the last change that has one
    u64 lived;       // ticks that `samples` of them lived
    u64 samples;
} WireHeld;

typedef enum WireRingState { RING_FREE, RING_OWNED, RING_ENDED } WireRingState;

// Positions count bytes since the ring was made and never wrap.
typedef struct WireRing {
    // The producer's line.
    _Alignas(64) u64 write; // what is before it is published
    u64 begun;              // stamp of the record begun last; while that is being read,
                            // one more than the stamp before it
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
    u32 lock;               // of the last ring, which threads share when there are too many
    _Alignas(64) u8 data[WIRE_RING_BYTES];
    u8 beyond[WIRE_FETCH_BYTES]; // no data: may be asked for, and shall be nobody's line
} WireRing;

typedef enum WireVerdict {
    VERDICT_NONE,       // the monitor has not answered
    VERDICT_SHOWN,
    VERDICT_SUPPRESSED,
    VERDICT_IGNORED,    // over the limit, not asked for, or no error: not counted
} WireVerdict;

typedef struct WireFinding {
    u64 count;   // times it happened; the engine's
    u32 verdict; // WireVerdict; a futex; the monitor's
    u32 unused;
} WireFinding;

// What a tool counts of the heap, each thread on a line of its own: so the sums are known even if
// the process is killed. The engine's. The first is of no thread.
typedef struct WireHeapCounts {
    _Alignas(64) u64 allocs;
    u64 frees, allocated_bytes, freed_bytes;
    u64 more_allocs, more_frees, more_bytes; // of "total heap usage" alone
    u64 is_used; // 0: neither this nor any behind it
} WireHeapCounts;

typedef enum WireCommandStatus { COMMAND_OK, COMMAND_FAILED, COMMAND_UNKNOWN } WireCommandStatus;

// The monitor interrupts a thread of the client's with this signal, SI_QUEUE and this value: it
// shall look at the request (W5). The kernel keeps one signal of a kind, so a kick may swallow
// that of an instruction: an invalid one is executed again, and its signal comes after all.
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

// Whether the monitor is content with its options and has opened its outputs; if not content it
// has said why (READY_REFUSED), or why stands in `alarm` (READY_FAILED).
typedef enum WireReady { READY_NOT_YET, READY_YES, READY_REFUSED, READY_FAILED } WireReady;

typedef struct WireHeader {
    u64 magic;
    u32 version;
    i32 pid;
    u64 start_stamp;  // time stamp counter and CLOCK_MONOTONIC at one moment
    u64 start_ns;
    u64 fork_stamp;   // as a fork began to make this process; 0: none did
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
    // What the user must hear of though the report may not reach him: the client's process has his
    // standard error, the monitor has not. Lines with an end; the newest ones if they are many.
    u32 alarm_sequence; // of the newest
    char alarm[WIRE_ALARM_BYTES];
    _Alignas(64) u32 tick; // the monitor's: one more each time that it looks at the rings
} WireHeader;

typedef struct WireShared {
    _Alignas(4096) WireHeader header;
    _Alignas(4096) WireFinding findings[WIRE_FINDINGS];
    _Alignas(4096) WireHeapCounts heap_counts[WIRE_HEAP_COUNTS];
    _Alignas(4096) WireRing rings[WIRE_RINGS];
} WireShared;

// A memfd of the right size, empty; or -errno. Close-on-exec.
int wire_create(void);
// Maps it; NULL when it is not a wire, or there is no memory.
WireShared *wire_map(int fd);
void wire_unmap(WireShared *shared);

// Not before what precedes it has been read (W4): rdtsc alone may be executed early.
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
    u64 read_seen;     // the consumer's position when last looked at
    bool is_common;    // the ring is shared with other threads, under its lock
    const int *life;   // the socket; *life < 0 when the monitor is gone
    // Events of the heap that come in quick succession share a stamp (heap_events.h).
    u32 stamps_left;   // so many more have that of the last
    u32 tick_seen;
    u32 stamps_shared; // that had the last one, when all had come
    u64 tick_stamp;    // when it was seen to change
} WireProducer;

// False when the process is without a monitor.
bool wire_producer_open(WireProducer *producer, WireShared *shared, const int *life);
void wire_producer_close(WireProducer *producer);

// Room for a record of `words` words behind its header, all in one piece; NULL: the
// monitor is gone. wire_publish() must follow, with nothing else in between.
u64 *wire_begin(WireProducer *producer, WireRecordType type, size_t words);
// The spare half word of a record's header; `words` is what wire_begin() gave.
static inline void wire_set_payload(u64 *words, u32 payload)
{
    words[-2] |= (u64)payload << 32;
}
void wire_publish(WireProducer *producer);
// The same in pieces, for records that have their stamp already.
u64 *wire_reserve(WireProducer *producer, WireRecordType type, u32 run, size_t words, u64 stamp);

// Wakes the monitor now; without it it looks a few times a second.
void wire_ring_bell(WireProducer *producer);
// True when the other side has closed the socket.
bool wire_hung_up(int life);

#define RECORD(NAME, Name, ...) \
    void wire_put_##Name(WireProducer *producer, const Wire_##Name *record);
#include "wire/records.def"

// Waits until the monitor has dealt with everything that this thread has put.
void wire_sync(WireProducer *producer);
// Waits for a word in the header to differ from 0. False: the monitor is gone. The socket may
// get another number, or be given up by another thread, meanwhile.
bool wire_wait(u32 *word, const int *life);
// The newest request, if it is not `seen` and is one for each thread, or has been taken by
// nobody and is taken now. Returns its sequence, 0: none.
u32 wire_request_take(WireShared *shared, u32 seen, char ret_text[WIRE_REQUEST_BYTES],
                      bool *ret_for_all);
// Before another program is executed; and when it was not.
void wire_kicks_close(WireShared *shared);
void wire_kicks_open(WireShared *shared);
// Waits for the monitor's verdict on a finding. VERDICT_IGNORED if it is gone.
WireVerdict wire_finding_wait(WireShared *shared, u32 id, const int *life);

// ------------------------------------------------------------------- consuming

typedef struct WireRecord {
    WireRecordType type;
    u32 ring;         // the number of the ring it came from
    u32 payload;      // of its header
    bool is_peek;     // held back by its producer: it may come again, changed
    bool was_peeked;  // and this is it
    u64 stamp;
    const u64 *words; // a private copy
    size_t count;
} WireRecord;

typedef struct WireConsumer WireConsumer;
WireConsumer *wire_consumer_new(WireShared *shared);
void wire_consumer_free(WireConsumer *consumer);

// Hands over what can be put in order now, up to about WIRE_DRAIN_MAX; with `final`, when no
// producer lives any more, everything. Returns the number of records.
typedef void WireRecordFn(void *arg, const WireRecord *record);
// Events of the heap come in streams: those of one ring that follow each other are handed over
// together, if `fn` is set, which takes as many of them as are wire_is_streamed(), whole, with
// stamps up to the limit, and says how many records that is. Nearly all are HEAP_ALLOC and
// HEAP_PAIR (WIRE_STREAM_ALLOC words) and HEAP_FREE (WIRE_STREAM_FREE).
enum { WIRE_STREAM_ALLOC = 4, WIRE_STREAM_FREE = 3 };
typedef struct WireStream {
    u32 ring;
    const u64 *words; // a private copy; behind its end there is WIRE_STREAM_ALLOC words more
    size_t count;
    u64 limit;
    // What was taken
    size_t taken;     // words
    u64 last;         // stamp of the last record, if there is one
    u8 run;           // of the header of the last that was held back
} WireStream;
typedef size_t WireStreamFn(void *arg, WireStream *stream);
// A record's type and length in its header.
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
// Whether everything that was begun up to this stamp has been handed over.
bool wire_has_drained(WireConsumer *consumer, u64 stamp);
// Rings whose contents made no sense; what was in them is lost.
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
// The engine says it on standard error, at the latest when it next waits for the monitor.
void wire_alarm(WireShared *shared, const char *line);

// Makes `text` the request; returns its sequence. The text is cut to fit.
u32 wire_request(WireShared *shared, const char *text, bool for_all);
// False: no thread may be interrupted now. Else wire_kick_end() must follow.
bool wire_kick_begin(WireShared *shared);
void wire_kick_end(WireShared *shared);

const char *wire_record_name(WireRecordType type);

#endif
