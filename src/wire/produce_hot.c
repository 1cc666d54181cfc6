// SPDX-License-Identifier: MIT
//
// The engine's end of the wire. Runs inside the cache's light exits too, so it
// keeps to general registers and raw system calls.
#include <errno.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/prefetch.h"
#include "base/raw_syscall.h"
#include "wire/heap_events.h"
#include "wire/wire.h"

enum { HEADER_WORDS = 2 }; // type, run (8 bits), size in words (16), payload (32); stamp
enum { WAIT_MS = 100 };    // between looks whether the other side still lives

static i64 futex_wait(u32 *word, u32 value)
{
    struct { i64 seconds, nanoseconds; } timeout = {0, WAIT_MS * 1000000};
    return raw_syscall4(SYS_futex, (u64)word, FUTEX_WAIT, value, (u64)&timeout);
}

bool wire_hung_up(int life)
{
    u8 byte;
    i64 n = raw_syscall6(SYS_recvfrom, (u64)life, (u64)&byte, 1, MSG_DONTWAIT | MSG_PEEK, 0, 0);
    return n == 0 || (raw_failed(n) && n != -EAGAIN && n != -EINTR);
}

static bool is_gone(const int *life)
{
    int fd = __atomic_load_n(life, __ATOMIC_RELAXED);
    return fd < 0 || wire_hung_up(fd);
}

void wire_ring_bell(WireProducer *producer)
{
    static const u8 byte = 1;
    if (*producer->life >= 0)
        raw_syscall6(SYS_sendto, (u64)*producer->life, (u64)&byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                     0, 0);
}

// ----------------------------------------------------------------- rings

static void raise_high(u32 *high, u32 value)
{
    u32 seen = __atomic_load_n(high, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(high, &seen, value, false,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

bool wire_producer_open(WireProducer *producer, WireShared *shared, const int *life)
{
    if (!shared)
        return false;
    *producer = (WireProducer){.shared = shared, .life = life};
    for (u32 i = 0; i < WIRE_RINGS; i++) {
        WireRing *ring = &shared->rings[i];
        u32 expected = RING_FREE;
        bool is_last = i == WIRE_RINGS - 1;
        if (!is_last && !__atomic_compare_exchange_n(&ring->state, &expected, RING_OWNED, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        if (is_last)
            __atomic_store_n(&ring->state, RING_OWNED, __ATOMIC_RELEASE);
        producer->ring = ring;
        producer->is_common = is_last;
        producer->read_seen = __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE);
        raise_high(&shared->header.ring_high, i + 1);
        break;
    }
    return true;
}

void wire_producer_close(WireProducer *producer)
{
    if (producer->ring && !producer->is_common)
        __atomic_store_n(&producer->ring->state, RING_ENDED, __ATOMIC_RELEASE);
    producer->ring = NULL;
}

static void lock_common(WireRing *ring)
{
    while (__atomic_exchange_n(&ring->lock, 1, __ATOMIC_ACQUIRE))
        futex_wait(&ring->lock, 1);
}

static void unlock_common(WireRing *ring)
{
    __atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
    raw_syscall3(SYS_futex, (u64)&ring->lock, FUTEX_WAKE, 1);
}

// Waits until `bytes` more fit. False: nobody will ever read them.
static bool wait_for_room(WireProducer *producer, u64 write, u64 bytes)
{
    WireRing *ring = producer->ring;
    for (;;) {
        producer->read_seen = __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE);
        if (write + bytes - producer->read_seen <= WIRE_RING_BYTES)
            return true;
        if (is_gone(producer->life))
            return false;
        __atomic_store_n(&ring->producer_waits, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ring->read, __ATOMIC_SEQ_CST) == producer->read_seen) {
            wire_ring_bell(producer);
            futex_wait(&ring->producer_waits, 1);
        }
    }
}

// Room at the end of what is published; the record is not begun if there is none.
u64 *wire_reserve(WireProducer *producer, WireRecordType type, u32 run, size_t words, u64 stamp)
{
    WireRing *ring = producer->ring;
    u64 bytes = (words + HEADER_WORDS) * 8;
    u64 write = ring->write;
    u64 to_end = WIRE_RING_BYTES - write % WIRE_RING_BYTES;
    u64 needed = bytes <= to_end ? bytes : to_end + bytes;
    if (UNLIKELY(write + needed - producer->read_seen > WIRE_RING_BYTES) &&
        !wait_for_room(producer, write, needed))
        return NULL;
    if (UNLIKELY(needed != bytes)) {
        *(u64 *)(ring->data + write % WIRE_RING_BYTES) = RECORD_SKIP | to_end / 8 << 16;
        write += to_end;
        __atomic_store_n(&ring->write, write, __ATOMIC_RELEASE);
    }
    u64 *at = (u64 *)(ring->data + write % WIRE_RING_BYTES);
    prefetch_line_to_write((u8 *)at + WIRE_FETCH_BYTES);
    at[0] = (u64)type | (u64)(run & 0xff) << 8 | (words + HEADER_WORDS) << 16;
    at[1] = stamp;
    return at + HEADER_WORDS;
}

u64 *wire_begin(WireProducer *producer, WireRecordType type, size_t words)
{
    WireRing *ring = producer->ring;
    if (!ring || *producer->life < 0 || (words + HEADER_WORDS) * 8 > WIRE_RECORD_BYTES_MAX)
        return NULL;
    if (producer->is_common) {
        lock_common(ring);
        producer->read_seen = __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE);
    } else {
        wire_heap_flush(producer);
    }
    // Two stores, since this thread may lose its core between the stamp and the second one.
    __atomic_store_n(&ring->begun, ring->begun + 1, __ATOMIC_RELEASE);
    u64 stamp = wire_stamp();
    __atomic_store_n(&ring->begun, stamp, __ATOMIC_RELEASE);
    u64 *at = wire_reserve(producer, type, 0, words, stamp);
    if (!at && producer->is_common)
        unlock_common(ring);
    return at;
}

void wire_publish(WireProducer *producer)
{
    WireRing *ring = producer->ring;
    u64 write = ring->write;
    u64 words = *(u64 *)(ring->data + write % WIRE_RING_BYTES) >> 16 & 0xffff;
    __atomic_store_n(&ring->write, write + words * 8, __ATOMIC_RELEASE);
    if (producer->is_common)
        unlock_common(ring);
}

// ----------------------------------------------------------------- codec

static size_t text_words(WireText text)
{
    return 1 + text.size / 8 + 1;
}

static u64 *put_text(u64 *at, WireText text)
{
    size_t words = text_words(text);
    at[words - 1] = 0;
    *at++ = text.size;
    for (size_t i = 0; i < text.size; i++)
        ((char *)at)[i] = text.data[i];
    return at + words - 1;
}

static u64 *put_words(u64 *at, WireWords words)
{
    *at++ = words.count;
    for (size_t i = 0; i < words.count; i++)
        *at++ = words.data[i];
    return at;
}

#define U64(field) , 1
#define TEXT(field) , text_words(record->field)
#define WORDS(field) , 1 + record->field.count
#define RECORD(NAME, Name, ...)                                      \
    static size_t words_of_##Name(const Wire_##Name *record)         \
    {                                                                \
        (void)record;                                                \
        const size_t parts[] = {0 __VA_ARGS__};                      \
        size_t sum = 0;                                              \
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)                \
            sum += parts[i];                                         \
        return sum;                                                  \
    }
#include "wire/records.def"
#undef U64
#undef TEXT
#undef WORDS

#define U64(field) *at++ = record->field;
#define TEXT(field) at = put_text(at, record->field);
#define WORDS(field) at = put_words(at, record->field);
#define RECORD(NAME, Name, ...)                                                 \
    void wire_put_##Name(WireProducer *producer, const Wire_##Name *record)     \
    {                                                                           \
        u64 *at = wire_begin(producer, RECORD_##NAME, words_of_##Name(record)); \
        if (!at)                                                                \
            return;                                                             \
        __VA_ARGS__                                                             \
        wire_publish(producer);                                                 \
    }
#include "wire/records.def"
#undef U64
#undef TEXT
#undef WORDS

WireVerdict wire_finding_wait(WireShared *shared, u32 id, const int *life)
{
    WireFinding *finding = &shared->findings[id];
    for (;;) {
        u32 verdict = __atomic_load_n(&finding->verdict, __ATOMIC_ACQUIRE);
        if (verdict != VERDICT_NONE)
            return verdict;
        if (is_gone(life))
            return VERDICT_IGNORED;
        futex_wait(&finding->verdict, VERDICT_NONE);
    }
}

bool wire_wait(u32 *word, const int *life)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
        if (is_gone(life)) // its last act may have been to set the word
            return __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0;
        futex_wait(word, 0);
    }
    return true;
}

void wire_sync(WireProducer *producer)
{
    if (!producer->ring)
        return;
    u32 sequence = __atomic_add_fetch(&producer->shared->header.sync_sequence, 1, __ATOMIC_RELAXED);
    wire_put_sync(producer, &(Wire_sync){sequence});
    wire_ring_bell(producer);
    for (;;) {
        u32 synced = __atomic_load_n(&producer->ring->synced, __ATOMIC_ACQUIRE);
        if ((i32)(synced - sequence) >= 0 || is_gone(producer->life))
            return;
        futex_wait(&producer->ring->synced, synced);
    }
}
