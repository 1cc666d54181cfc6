// SPDX-License-Identifier: MIT
//
// Counters: numbers per thread that blocks add constants to.
//
// A block is divided into segments, straight runs that are left at their end alone. All additions
// of a segment, whatever their counters, are one increment of the segment's own number; what the
// counters are is computed when somebody asks, from how often each segment has run and what it
// adds. Segments of blocks that are made again are the same ones.
//
// The numbers are words of a table that each thread has behind gs: first the counters themselves,
// for what is added directly, then the segments.
//
//     word 0 … COUNTERS-1            directly added to counter 0 …
//     word COUNTERS … WORDS-1        how often segment COUNTERS … has run
//
// A thread may leave a segment in its middle: by a signal that is delivered, by a fault, because
// somebody has asked it to stop. counters_left() then puts right directly what the segment's number
// has told too much, or not yet (G2).
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "base/futex_lock.h"
#include "base/pages.h"
#include "tools/plugin/segments.h"

u32 counter_count;
u32 word_count = COUNTERS;

static Lock ended_lock;
static u64 *ended; // sums of the words of threads that have ended

void *counters_reserve(u64 bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void counters_init(void)
{
    if (ended)
        return;
    ended = counters_reserve(WORDS * sizeof(*ended));
    if (!ended || !segments_init())
        plugin_refuse("no memory for its counters");
}

MuninnCounter muninn_counter(void)
{
    counters_init();
    u32 number = __atomic_fetch_add(&counter_count, 1, __ATOMIC_RELAXED);
    if (number >= COUNTERS)
        plugin_refuse("muninn_counter: there are no more than %u", COUNTERS);
    return number;
}

// ------------------------------------------------------------------- threads

bool counters_thread_start(ToolThread *thread)
{
    counters_init(); // one may be made later
    u64 *words = counters_reserve(WORDS * sizeof(*words));
    if (!words)
        return false;
    thread->engine_gs = (u64)words;
    __asm__ volatile("wrgsbase %0" : : "r"(thread->engine_gs));
    return true;
}

// Pages that a thread has not touched need not be read. The kernel does not tell them from those
// that it has swapped out.
static bool can_tell_untouched(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 && info.totalswap == 0;
}

typedef void TouchedFn(const u64 *from, u32 first, u32 count, void *arg);

// Calls fn for each run of words from `first` to `end` that may be other than 0.
static void each_touched_in(const u64 *words, u32 first, u32 end, TouchedFn *fn, void *arg)
{
    enum { WORDS_OF_PAGE = PAGE_SIZE / sizeof(u64), PAGES_AT_ONCE = 1024 };
    unsigned char is_there[PAGES_AT_ONCE];
    bool asks = can_tell_untouched();
    memset(is_there, 1, sizeof(is_there));
    for (; first < end; first += PAGES_AT_ONCE * WORDS_OF_PAGE) {
        u32 left = (end - first + WORDS_OF_PAGE - 1) / WORDS_OF_PAGE;
        u32 pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        if (asks && mincore((void *)(words + first), pages * PAGE_SIZE, is_there) != 0)
            memset(is_there, 1, sizeof(is_there));
        for (u32 p = 0; p < pages; p++) {
            u32 at = first + p * WORDS_OF_PAGE;
            if (is_there[p] & 1)
                fn(words + at, at, WORDS_OF_PAGE, arg);
        }
    }
}

static void each_touched(const u64 *words, TouchedFn *fn, void *arg)
{
    each_touched_in(words, 0, __atomic_load_n(&counter_count, __ATOMIC_RELAXED), fn, arg);
    each_touched_in(words, COUNTERS, __atomic_load_n(&word_count, __ATOMIC_RELAXED), fn, arg);
}

static void add_words(const u64 *from, u32 first, u32 count, void *arg)
{
    u64 *sums = arg;
    for (u32 i = 0; i < count; i++)
        sums[first + i] += from[i];
}

void counters_thread_end(ToolThread *thread)
{
    u64 *words = words_of(thread);
    if (!words)
        return;
    lock_acquire(&ended_lock);
    each_touched(words, add_words, ended);
    lock_release(&ended_lock);
    thread->engine_gs = 0;
    __asm__ volatile("wrgsbase %0" : : "r"(0ul));
    munmap(words, WORDS * sizeof(*words));
}

// -------------------------------------------------------------------- asking

// counters[c] += of each word what it says
typedef struct Sums {
    u64 *counters;
    u32 first, count; // of the counters that are asked for
} Sums;

static void add_counters(const u64 *from, u32 first, u32 count, void *arg)
{
    const Sums *sums = arg;
    for (u32 i = 0; i < count; i++) {
        u32 word = first + i;
        if (LIKELY(!from[i]))
            continue;
        if (word < COUNTERS) {
            if (word - sums->first < sums->count)
                sums->counters[word - sums->first] += from[i];
            continue;
        }
        const Segment *s = &segments[word];
        for (u32 a = 0; a < s->addition_count; a++) {
            const Addition *addition = &additions[s->first_addition + a];
            if (addition->counter < COUNTERS && addition->counter - sums->first < sums->count)
                sums->counters[addition->counter - sums->first] += from[i] * addition->amount;
        }
    }
}

static void add_thread(ToolThread *thread, void *arg)
{
    if (words_of(thread))
        each_touched(words_of(thread), add_counters, arg);
}

static void total(const Sums *sums)
{
    memset(sums->counters, 0, sums->count * sizeof(u64));
    if (!segments)
        return;
    lock_acquire(&ended_lock);
    each_touched(ended, add_counters, (void *)(u64)sums);
    lock_release(&ended_lock);
    tool_for_each_thread(add_thread, (void *)(u64)sums);
}

void muninn_counter_totals(uint64_t *totals, size_t count)
{
    total(&(Sums){.counters = totals, .count = (u32)count});
}

uint64_t muninn_counter_total(MuninnCounter counter)
{
    u64 sum;
    total(&(Sums){.counters = &sum, .first = counter, .count = 1});
    return sum;
}

uint64_t muninn_counter_of(MuninnThread *thread, MuninnCounter counter)
{
    u64 sum = 0;
    add_thread(thread_of(thread), &(Sums){.counters = &sum, .first = counter, .count = 1});
    return sum;
}

static void reset_thread(ToolThread *thread, void *arg)
{
    (void)arg;
    if (words_of(thread))
        madvise(words_of(thread), WORDS * sizeof(u64), MADV_DONTNEED);
}

void muninn_counters_reset(void)
{
    if (!segments)
        return;
    lock_acquire(&ended_lock);
    madvise(ended, WORDS * sizeof(u64), MADV_DONTNEED);
    lock_release(&ended_lock);
    tool_for_each_thread(reset_thread, NULL);
}
