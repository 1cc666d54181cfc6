// SPDX-License-Identifier: MIT
//
// What is known of each descriptor. Records lie in chunks by number; numbers beyond
// the last chunk are not tracked, which no one will miss: they need a limit of
// more than a million.
#include "base/futex_lock.h"
#include "base/pages.h"
#include "engine/fdtrack/fdtrack_internal.h"

enum { CHUNK_RECORDS = 64, CHUNKS_MAX = (1 << 20) / CHUNK_RECORDS };

static Lock lock;
static FdRecord *chunks[CHUNKS_MAX]; // under the lock
static u64 last_sequence;

void records_lock(void)
{
    lock_acquire(&lock);
}

void records_unlock(void)
{
    lock_release(&lock);
}

static FdRecord *find(i64 fd, bool make)
{
    if (fd < 0 || fd >= (i64)CHUNKS_MAX * CHUNK_RECORDS)
        return NULL;
    FdRecord **chunk = &chunks[fd / CHUNK_RECORDS];
    if (!*chunk && make)
        *chunk = pages_map(CHUNK_RECORDS * sizeof(FdRecord));
    return *chunk ? &(*chunk)[fd % CHUNK_RECORDS] : NULL;
}

void records_open(i32 fd, u32 context, bool inherited)
{
    FdName name;
    describe_fd(fd, &name);
    records_lock();
    FdRecord *record = find(fd, true);
    if (record) {
        record->state = FD_OPEN;
        record->inherited = inherited;
        record->sequence = ++last_sequence;
        record->opened_at = context;
        record->closed_at = 0;
        record->name = name;
    }
    records_unlock();
}

void records_closing(i32 fd, i32 closer, u32 context)
{
    FdName name;
    describe_fd(fd, &name);
    records_lock();
    FdRecord *record = find(fd, false);
    if (record && record->state == FD_OPEN) {
        record->state = FD_CLOSING;
        record->closer = closer;
        record->closed_at = context;
        record->name = name;
    }
    records_unlock();
}

void records_closed(i32 fd, i32 closer, bool undone)
{
    records_lock();
    FdRecord *record = find(fd, false);
    if (record && record->state == FD_CLOSING && record->closer == closer)
        record->state = undone ? FD_OPEN : FD_CLOSED;
    records_unlock();
}

void records_closed_range(u32 first, u32 last, u32 context)
{
    records_lock();
    for (u64 fd = first; fd <= last && fd < (u64)CHUNKS_MAX * CHUNK_RECORDS; fd++) {
        FdRecord *record = find((i64)fd, false);
        if (!record) {
            fd |= CHUNK_RECORDS - 1; // no chunk: on to the next
        } else if (record->state == FD_OPEN) {
            record->state = FD_CLOSED;
            record->closed_at = context;
        }
    }
    records_unlock();
}

bool records_get(i32 fd, FdRecord *ret_record)
{
    records_lock();
    const FdRecord *record = find(fd, false);
    bool seen = record && record->state != FD_UNSEEN;
    if (seen)
        *ret_record = *record;
    records_unlock();
    return seen;
}

// ------------------------------------------------------------------- the list

typedef struct Listed {
    u64 sequence;
    i32 fd;
} Listed;

static size_t count_open(Listed *out, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < CHUNKS_MAX; i++) {
        for (size_t k = 0; chunks[i] && k < CHUNK_RECORDS; k++) {
            const FdRecord *record = &chunks[i][k];
            if (record->state != FD_OPEN && record->state != FD_CLOSING)
                continue;
            if (count < max)
                out[count] = (Listed){record->sequence, (i32)(i * CHUNK_RECORDS + k)};
            count++;
        }
    }
    return count;
}

// Shell's sort: no recursion, no memory.
static void sort_youngest_first(Listed *listed, size_t count)
{
    for (size_t gap = count / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < count; i++) {
            Listed moved = listed[i];
            size_t k = i;
            for (; k >= gap && listed[k - gap].sequence < moved.sequence; k -= gap)
                listed[k] = listed[k - gap];
            listed[k] = moved;
        }
    }
}

i32 *records_list_open(size_t *ret_count, u64 *ret_bytes)
{
    records_lock();
    size_t count = count_open(NULL, 0);
    u64 bytes = max_u64(count, 1) * sizeof(Listed);
    Listed *listed = pages_map(bytes);
    if (listed)
        count_open(listed, count);
    records_unlock();
    if (!listed)
        return NULL;
    sort_youngest_first(listed, count);
    // In place: the numbers are shorter than the pairs.
    i32 *numbers = (i32 *)(void *)listed;
    for (size_t i = 0; i < count; i++) {
        i32 fd = listed[i].fd;
        numbers[i] = fd;
    }
    *ret_count = count;
    *ret_bytes = bytes;
    return numbers;
}
