// SPDX-License-Identifier: MIT
//
// The monitor's end of the wire: puts the records of all rings into one order.
//
// A ring that is empty now may get a record with a stamp smaller than one we
// hold, if its producer has taken the stamp and not published yet. `begun` shows
// that, except for the moment in which that store is still in the store buffer of its
// core. So a record is handed over when it is older than ORDER_LAG and than
// whatever is begun elsewhere.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own_file.h"
#include "wire/heap_events.h"
#include "wire/wire.h"

#define ORDER_LAG 100000ull // ticks: tens of microseconds; a store buffer drains in one
enum { PREFETCH_BYTES = 1024 };
enum { HEADER_BYTES = 16, SHORT_BYTES = 32 };
enum { STREAM = 64 }; // so many records in a row are not one that somebody waits for

typedef struct RingView {
    u64 read;      // private copy of the position; the shared one is for the producer
    u64 last;      // stamp of the last record taken
    u64 next;      // stamp of the record at read, when has_next
    u64 header;    // its first word, checked
    u64 available; // write position when last looked at
    bool has_next;
    bool damaged;
    // What is held back (W6)
    bool next_is_held; // `next` is that of `held`, a copy
    bool waits;        // it has changed, and will be looked at in the next turn
    bool was_peeked;   // the run peeked at has not been taken yet
    u8 taken_run;      // of the last record taken that had been held back
    u32 peeked_run;
    u32 peeked_drain;  // in which turn; what changes again meanwhile has to wait
    u64 peeked_state;
    WireHeld held;
    u64 record[HEAP_PAIRS_WORDS]; // its allocation, or what there is of its series
} RingView;

struct WireConsumer {
    WireShared *shared;
    u32 damaged;
    u32 drain; // counts the turns
    WireStreamFn *stream;
    RingView rings[WIRE_RINGS];
    u64 copy[WIRE_RECORD_BYTES_MAX / 8];
};

static long futex_wake(u32 *word)
{
    return syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int wire_create(void)
{
    int fd = memfd_create("muninn-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    i64 error = own_file_resize(fd, sizeof(WireShared));
    if (error < 0) {
        close(fd);
        return (int)error;
    }
    return fd;
}

WireShared *wire_map(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || (u64)info.st_size != sizeof(WireShared))
        return NULL;
    void *at = mmap(NULL, sizeof(WireShared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

void wire_unmap(WireShared *shared)
{
    munmap(shared, sizeof(WireShared));
}

WireConsumer *wire_consumer_new(WireShared *shared)
{
    WireConsumer *consumer = calloc(1, sizeof(*consumer));
    if (consumer)
        consumer->shared = shared;
    return consumer;
}

void wire_consumer_free(WireConsumer *consumer)
{
    free(consumer);
}

void wire_stream_to(WireConsumer *consumer, WireStreamFn *fn)
{
    consumer->stream = fn;
}

u32 wire_damaged_rings(const WireConsumer *consumer)
{
    return consumer->damaged;
}

static void give_back(WireRing *ring, u64 read)
{
    __atomic_store_n(&ring->read, read, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->producer_waits, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&ring->producer_waits, 0, __ATOMIC_SEQ_CST);
        futex_wake(&ring->producer_waits);
    }
}

static void abandon(WireConsumer *consumer, RingView *view, WireRing *ring)
{
    if (!view->damaged)
        consumer->damaged++;
    view->damaged = true;
    view->has_next = false;
    view->read = view->available = __atomic_load_n(&ring->write, __ATOMIC_ACQUIRE);
    give_back(ring, view->read);
}

static u64 record_bytes(u64 header)
{
    return (header >> 16 & 0xffff) * 8;
}

// Reads the header of the record at view->read. A skip is passed over.
static inline void look(WireConsumer *consumer, RingView *view, WireRing *ring)
{
    u64 read = view->read, available = view->available;
    view->has_next = false;
    while (!view->damaged && read < available) {
        u64 offset = read % WIRE_RING_BYTES;
        u64 header = __atomic_load_n((u64 *)(ring->data + offset), __ATOMIC_RELAXED);
        u64 bytes = record_bytes(header);
        bool is_skip = (header & 0xff) == RECORD_SKIP;
        if (UNLIKELY(bytes == 0 || offset + bytes > WIRE_RING_BYTES || read + bytes > available ||
                     (!is_skip && (bytes < HEADER_BYTES || bytes > WIRE_RECORD_BYTES_MAX)))) {
            abandon(consumer, view, ring);
            return;
        }
        if (UNLIKELY(is_skip)) {
            view->read = read += bytes;
            continue;
        }
        memcpy(&view->next, ring->data + offset + 8, sizeof(view->next));
        view->header = header;
        view->has_next = true;
        return;
    }
}

// Of what is held back in the ring.
static u64 held_bytes(u64 state)
{
    if (!wire_is_series(state))
        return HEAP_ALLOC_BYTES;
    return 8 * (HEAP_PAIRS_HEAD + ((u64)wire_series_events(state) + 1) / 2);
}

// Whether there is something held back that has not been handed over as it is now. The
// caller makes sure that nothing is published that has not been taken.
static bool peek(const WireConsumer *consumer, RingView *view, WireRing *ring)
{
    const WireHeld *held = &ring->held;
    u64 offset = view->read % WIRE_RING_BYTES;
    u32 run = __atomic_load_n(&held->run, __ATOMIC_ACQUIRE);
    u64 state = __atomic_load_n(&held->repeat.state, __ATOMIC_ACQUIRE);
    u64 bytes = held_bytes(state);
    if (state == 0 || run % 2 || (u8)(run / 2) == view->taken_run ||
        (view->was_peeked && view->peeked_run == run && view->peeked_state == state) ||
        bytes > sizeof(view->record) || offset + bytes > WIRE_RING_BYTES)
        return false;
    memcpy(&view->held, held, sizeof(view->held));
    memcpy(view->record, ring->data + offset, bytes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&held->run, __ATOMIC_RELAXED) != run ||
        __atomic_load_n(&ring->write, __ATOMIC_RELAXED) != view->read)
        return false;
    view->held.run = run;
    view->held.repeat.state = state;
    bool has_stamp = state == 1 || wire_is_series(state);
    view->next = max_u64(has_stamp ? view->record[1] : view->held.stamp, view->last);
    view->waits = view->peeked_drain == consumer->drain;
    return !view->waits;
}

static void refresh(WireConsumer *consumer, u32 index)
{
    RingView *view = &consumer->rings[index];
    WireRing *ring = &consumer->shared->rings[index];
    u64 write = __atomic_load_n(&ring->write, __ATOMIC_ACQUIRE);
    if (write - view->read > WIRE_RING_BYTES || (write & 7)) {
        abandon(consumer, view, ring);
        return;
    }
    view->available = write;
    if (view->next_is_held)
        view->has_next = false; // it may have been published
    view->next_is_held = view->waits = false;
    if (!view->has_next)
        look(consumer, view, ring);
    if (!view->has_next && !view->damaged && view->read == write && peek(consumer, view, ring))
        view->has_next = view->next_is_held = true;
}

static void take_held(WireConsumer *consumer, u32 index, WireRecord *ret_record)
{
    RingView *view = &consumer->rings[index];
    u64 state = view->held.repeat.state, *words = consumer->copy;
    bool is_series = wire_is_series(state);
    if (is_series) {
        words = view->record + 2;
        words[0] = wire_series_events(state);
    } else {
        wire_heap_run_words(&view->held, view->record, state, words);
    }
    *ret_record = (WireRecord){
        .type = is_series ? RECORD_HEAP_PAIRS : RECORD_HEAP_RUN,
        .ring = index,
        .payload = (u32)(view->record[0] >> 32),
        .is_peek = true,
        .was_peeked = view->was_peeked && view->peeked_run == view->held.run,
        .stamp = view->next,
        .words = words,
        .count = is_series ? held_bytes(state) / 8 - 2 : HEAP_RUN_WORDS,
    };
    view->was_peeked = true;
    view->peeked_run = view->held.run;
    view->peeked_drain = consumer->drain;
    view->peeked_state = view->held.repeat.state;
    view->last = view->next;
    view->next_is_held = view->has_next = false;
}

// A record that was held back; `run` is of its header.
static void note_run(RingView *view, u8 run, WireRecord *record)
{
    if (record->type != RECORD_HEAP_ALLOC && record->type != RECORD_HEAP_PAIR &&
        record->type != RECORD_HEAP_RUN && record->type != RECORD_HEAP_PAIRS)
        return;
    record->was_peeked = view->was_peeked && (u8)(view->peeked_run / 2) == run;
    view->was_peeked = false;
    view->taken_run = run;
}

// Copies the record out (W3) and moves on.
static inline void take(WireConsumer *consumer, u32 index, WireRecord *ret_record)
{
    RingView *view = &consumer->rings[index];
    WireRing *ring = &consumer->shared->rings[index];
    const u8 *at = ring->data + view->read % WIRE_RING_BYTES;
    u64 header = view->header, bytes = record_bytes(header);
    // The lines come from the producer's cache: ask for those that follow meanwhile.
    __builtin_prefetch(ring->data + (view->read + PREFETCH_BYTES) % WIRE_RING_BYTES);
    // The lengths of most cannot be predicted, so they are copied alike.
    if (LIKELY(bytes <= SHORT_BYTES && at + SHORT_BYTES <= ring->data + WIRE_RING_BYTES))
        memcpy(consumer->copy, at, SHORT_BYTES);
    else
        memcpy(consumer->copy, at, bytes);
    *ret_record = (WireRecord){
        .type = header & 0xff,
        .ring = index,
        .payload = (u32)(header >> 32),
        .stamp = view->next,
        .words = consumer->copy + HEADER_BYTES / 8,
        .count = bytes / 8 - HEADER_BYTES / 8,
    };
    note_run(view, (u8)(header >> 8), ret_record);
    view->last = view->next;
    view->read += bytes;
    look(consumer, view, ring);
}

// Takes a stream, if there is one at view->read. Returns the number of its records.
static size_t take_stream(WireConsumer *consumer, u32 index, u64 limit, void *arg)
{
    enum { BYTES = 8192 }; // of a cache's size, and not too long for those who wait for room
    RingView *view = &consumer->rings[index];
    WireRing *ring = &consumer->shared->rings[index];
    u64 offset = view->read % WIRE_RING_BYTES, bytes = view->available - view->read;
    bytes = min_u64(min_u64(bytes, BYTES), WIRE_RING_BYTES - offset);
    memcpy(consumer->copy, ring->data + offset, bytes);
    WireStream stream = {
        .ring = index, .words = consumer->copy, .count = bytes / 8, .limit = limit,
        .last = view->last, .run = view->taken_run,
    };
    size_t records = consumer->stream(arg, &stream);
    if (records == 0)
        return 0;
    view->read += stream.taken * 8;
    view->last = stream.last;
    view->taken_run = stream.run;
    look(consumer, view, ring);
    return records;
}

// The stamp below which this ring will have no further record.
static u64 bound(const WireConsumer *consumer, u32 index, u64 now, bool final)
{
    const RingView *view = &consumer->rings[index];
    if (view->has_next || view->waits)
        return view->next;
    if (final || view->damaged)
        return ~0ull;
    u64 begun = __atomic_load_n(&consumer->shared->rings[index].begun, __ATOMIC_ACQUIRE);
    return begun > view->last && begun < now ? begun : now;
}

// A ring whose thread has ended is free again when it has been emptied.
static void retire(WireConsumer *consumer, u32 index)
{
    RingView *view = &consumer->rings[index];
    WireRing *ring = &consumer->shared->rings[index];
    u32 state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
    if (state != RING_ENDED || view->has_next)
        return;
    if (view->read != __atomic_load_n(&ring->write, __ATOMIC_ACQUIRE))
        return;
    give_back(ring, view->read);
    view->damaged = false;
    __atomic_store_n(&ring->state, RING_FREE, __ATOMIC_RELEASE);
}

// One record, or a stream of them, and hands it over. Returns how many.
static size_t take_next(WireConsumer *consumer, u32 index, u64 limit, WireRecordFn *fn, void *arg)
{
    RingView *view = &consumer->rings[index];
    WireRecord record;
    if (consumer->stream && !view->next_is_held && !view->was_peeked &&
        wire_is_streamed(view->header)) {
        size_t count = take_stream(consumer, index, limit, arg);
        if (count)
            return count;
    }
    if (UNLIKELY(view->next_is_held))
        take_held(consumer, index, &record);
    else
        take(consumer, index, &record);
    fn(arg, &record);
    return 1;
}

// Takes from `index` while its records are older than all others can be.
static size_t take_run(WireConsumer *consumer, u32 index, u64 limit, WireRecordFn *fn, void *arg)
{
    RingView *view = &consumer->rings[index];
    WireRing *ring = &consumer->shared->rings[index];
    size_t count = 0;
    u64 given_back = view->read;
    while (view->has_next && view->next <= limit && count < WIRE_DRAIN_MAX) {
        count += take_next(consumer, index, limit, fn, arg);
        if (view->read - given_back > WIRE_RING_BYTES / 8) {
            give_back(ring, view->read);
            given_back = view->read;
        }
    }
    give_back(ring, view->read);
    return count;
}

// The ring whose record comes next, and the stamp up to which it may be taken.
typedef struct Choice {
    u32 ring;        // WIRE_RINGS: there is no record
    u64 least;       // its record's stamp
    u64 limit;       // no other ring will have a smaller one
} Choice;

static Choice choose(WireConsumer *consumer, u32 high, u64 now, bool final)
{
    Choice choice = {WIRE_RINGS, ~0ull, now};
    for (u32 i = 0; i < high; i++) {
        refresh(consumer, i);
        u64 stamp = bound(consumer, i, now, final);
        if (consumer->rings[i].has_next && stamp < choice.least) {
            if (choice.ring != WIRE_RINGS && choice.least < choice.limit)
                choice.limit = choice.least;
            choice.least = stamp;
            choice.ring = i;
        } else if (stamp < choice.limit) {
            choice.limit = stamp;
        }
    }
    return choice;
}

static u32 rings_used(const WireConsumer *consumer)
{
    u32 high = __atomic_load_n(&consumer->shared->header.ring_high, __ATOMIC_ACQUIRE);
    return high < WIRE_RINGS ? high : WIRE_RINGS;
}

// True when what has been chosen can be taken, perhaps after ORDER_LAG: somebody may wait for the
// answer to it, and to come back later would cost him milliseconds. But not in a stream of
// records, of which `taken` have come: to take each as it is written costs both sides dearly.
static bool can_take(const WireConsumer *consumer, Choice *choice, u32 high, u64 now, size_t taken)
{
    if (choice->ring == WIRE_RINGS)
        return false;
    // Nothing to be put in order with, now that the record has been seen.
    if (taken == 0 && high == 1 && rings_used(consumer) == 1)
        choice->limit = ~0ull;
    if (choice->least <= choice->limit)
        return true;
    if (choice->limit < now || choice->least - now > ORDER_LAG || taken > STREAM)
        return false;
    while (wire_stamp() - ORDER_LAG < choice->least)
        __builtin_ia32_pause();
    choice->limit = 0; // look again
    return true;
}

// Their producers may have paused: what they do next is to have a stamp of its own.
static void end_series(WireConsumer *consumer)
{
    u32 high = rings_used(consumer);
    for (u32 i = 0; i < high; i++) {
        u32 *end = &consumer->shared->rings[i].held.pairs_end;
        if (__atomic_load_n(end, __ATOMIC_RELAXED))
            __atomic_store_n(end, 0, __ATOMIC_RELAXED);
    }
}

size_t wire_drain(WireConsumer *consumer, bool final, WireRecordFn *fn, void *arg)
{
    size_t count = 0;
    consumer->drain++;
    // The client's, so read once: it may have written anything.
    __atomic_store_n(&consumer->shared->header.tick, consumer->drain, __ATOMIC_RELAXED);
    end_series(consumer);
    while (count < WIRE_DRAIN_MAX || final) {
        u64 now = final ? ~0ull : wire_stamp() - ORDER_LAG;
        u32 high = rings_used(consumer);
        Choice choice = choose(consumer, high, now, final);
        if (!can_take(consumer, &choice, high, now, count)) {
            for (u32 i = 0; i < high; i++)
                retire(consumer, i);
            break;
        }
        count += take_run(consumer, choice.ring, choice.limit, fn, arg);
    }
    return count;
}

bool wire_has_drained(WireConsumer *consumer, u64 stamp)
{
    Choice choice = choose(consumer, rings_used(consumer), wire_stamp() - ORDER_LAG, false);
    return choice.limit > stamp && choice.least > stamp;
}

// ----------------------------------------------------------------- codec

typedef struct Cursor {
    const u64 *at;
    size_t left;
    bool bad;
} Cursor;

static u64 get_u64(Cursor *cursor)
{
    if (cursor->left == 0) {
        cursor->bad = true;
        return 0;
    }
    cursor->left--;
    return *cursor->at++;
}

static const u64 *get_span(Cursor *cursor, u64 words)
{
    if (cursor->bad || words > cursor->left) {
        cursor->bad = true;
        return NULL;
    }
    const u64 *span = cursor->at;
    cursor->at += words;
    cursor->left -= words;
    return span;
}

static WireText get_text(Cursor *cursor)
{
    u64 size = get_u64(cursor);
    if (size > WIRE_RECORD_BYTES_MAX) {
        cursor->bad = true;
        return (WireText){"", 0};
    }
    const char *data = (const char *)get_span(cursor, size / 8 + 1);
    if (!data || data[size] != '\0') {
        cursor->bad = true;
        return (WireText){"", 0};
    }
    return (WireText){data, size};
}

static WireWords get_words(Cursor *cursor)
{
    u64 count = get_u64(cursor);
    const u64 *data = get_span(cursor, count);
    return (WireWords){data, data ? count : 0};
}

#define U64(field) result.field = get_u64(&cursor);
#define TEXT(field) result.field = get_text(&cursor);
#define WORDS(field) result.field = get_words(&cursor);
#define RECORD(NAME, Name, ...)                                             \
    bool wire_get_##Name(const WireRecord *record, Wire_##Name *ret_record) \
    {                                                                       \
        Wire_##Name result;                                                 \
        Cursor cursor = {record->words, record->count, false};              \
        if (record->type != RECORD_##NAME)                                  \
            return false;                                                   \
        __VA_ARGS__                                                         \
        if (cursor.bad || cursor.left != 0)                                 \
            return false;                                                   \
        *ret_record = result;                                               \
        return true;                                                        \
    }
#include "wire/records.def"
#undef U64
#undef TEXT
#undef WORDS

const char *wire_record_name(WireRecordType type)
{
    static const char *const names[] = {
        [RECORD_NONE] = "none",
        [RECORD_SKIP] = "skip",
#define RECORD(NAME, Name, ...) [RECORD_##NAME] = #Name,
#include "wire/records.def"
    };
    return type < ARRAY_LEN(names) ? names[type] : "unknown";
}

void wire_finding_judge(WireShared *shared, u32 id, WireVerdict verdict)
{
    if (id >= WIRE_FINDINGS)
        return;
    __atomic_store_n(&shared->findings[id].verdict, verdict, __ATOMIC_RELEASE);
    futex_wake(&shared->findings[id].verdict);
}

void wire_synced(WireShared *shared, u32 ring, u32 sequence)
{
    __atomic_store_n(&shared->rings[ring].synced, sequence, __ATOMIC_RELEASE);
    futex_wake(&shared->rings[ring].synced);
}

void wire_set_ready(WireShared *shared, WireReady ready)
{
    __atomic_store_n(&shared->header.ready, ready, __ATOMIC_RELEASE);
    futex_wake(&shared->header.ready);
}

void wire_alarm(WireShared *shared, const char *line)
{
    WireHeader *header = &shared->header;
    char *room = header->alarm;
    size_t used = strnlen(room, WIRE_ALARM_BYTES - 1), more = strlen(line) + 1;

    if (used + more >= WIRE_ALARM_BYTES)
        used = 0; // the last one has been said long ago
    size_t size = min_u64(more, WIRE_ALARM_BYTES - 1 - used);
    room[used + size] = '\0';
    memcpy(room + used, line, size - 1);
    room[used + size - 1] = '\n';
    __atomic_add_fetch(&header->alarm_sequence, 1, __ATOMIC_RELEASE);
}

void wire_finish(WireShared *shared, i32 exit_code)
{
    shared->header.exit_code = exit_code;
    __atomic_store_n(&shared->header.finished, 1, __ATOMIC_RELEASE);
    futex_wake(&shared->header.finished);
}
