// SPDX-License-Identifier: MIT
//
// Marking from roots, on all workers at once. Two passes make each block be read
// once: the first follows start pointers only and puts aside what interior pointers
// hit; the second follows every pointer from those that were not reached after all.
// Marks grow by an atomic maximum, so the result does not depend on who was first.
//
// Work is a stack for each worker. When another is idle, half of a stack goes to the pool. To know
// who holds a block, one worker goes breadth first: then who reaches it first is on a shortest
// way to it.
#include "base/pages.h"
#include "base/raw_syscall.h"
#include "tools/heap/leak_trace.h"

#define PIECE_BYTES (64 * KiB) // of a root that is read in one go
#define GIVE_MIN    16         // smaller stacks are not worth sharing
#define SPINS       64         // before the processor is left to others

typedef struct Marker Marker;

typedef struct Worker {
    Marker *marker;
    bool is_possible; // the second pass
    Tracer tracer;
    TraceStack aside; // hit by interior pointers in the first pass
} Worker;

struct Marker {
    LeakCheck *check;
    Worker *workers;
    u32 lock;        // of the pool, next_root and is_done: 1 while somebody has it
    TraceStack pool; // work for whoever has none
    u64 next_root;
    u64 next_root_offset;
    u32 idle;
    bool is_done;
};

// Held for moments only. What a Lock notes of its holder is thread-local: it is not for workers.
static void marker_lock(Marker *marker)
{
    for (u32 tries = 1; __atomic_exchange_n(&marker->lock, 1, __ATOMIC_ACQUIRE); tries++) {
        __builtin_ia32_pause();
        if (tries % SPINS == 0)
            raw_syscall0(SYS_sched_yield);
    }
}

static void marker_unlock(Marker *marker)
{
    __atomic_store_n(&marker->lock, 0, __ATOMIC_RELEASE);
}

// The one word at an address that is aligned, or 0.
static u64 word_at(const LeakInput *input, GuestAddr address)
{
    u64 word;

    if (address % 8 || !input->read_words(input->data, address, 1, &word))
        return 0;
    return word;
}

static bool is_stdstring(const LeakInput *input, GuestAddr start, u64 size, u64 offset)
{
    // length, capacity, reference count, then the characters and a zero.
    if (offset != 24)
        return false;
    u64 length = word_at(input, start), capacity = word_at(input, start + 8);
    return length <= capacity && capacity == size - 25;
}

static bool is_newarray(const LeakInput *input, GuestAddr start, u64 size, u64 offset)
{
    if (offset != 8)
        return false;
    u64 elements = word_at(input, start);
    return elements > 0 && (size - 8) % elements == 0;
}

static bool is_multiple_inheritance(const LeakInput *input, GuestAddr start, u64 size, u64 offset)
{
    if (!input->is_vtable || offset % 8 || offset + 8 > size)
        return false;
    u64 first = word_at(input, start), second = word_at(input, start + offset);
    return first && second && input->is_vtable(input->data, first) &&
           input->is_vtable(input->data, second);
}

bool leak_heuristic_takes(const LeakInput *input, LeakHeuristic heuristic, GuestAddr start,
                          u64 size, GuestAddr pointer)
{
    u64 offset = pointer - start;

    switch (heuristic) {
    case LEAK_STDSTRING: return is_stdstring(input, start, size, offset);
    case LEAK_LENGTH64: return offset == 8 && word_at(input, start) == size - 8;
    case LEAK_NEWARRAY: return is_newarray(input, start, size, offset);
    case LEAK_MULTIPLE_INHERITANCE:
        return offset && is_multiple_inheritance(input, start, size, offset);
    default: return false;
    }
}

static LeakHeuristic heuristic_for(const LeakInput *input, GuestAddr start, u64 size,
                                   GuestAddr pointer)
{
    for (u32 h = LEAK_BY_START + 1; h < LEAK_HEURISTIC_COUNT; h++) {
        if ((input->heuristics & LEAK_HEURISTIC_BIT(h)) &&
            leak_heuristic_takes(input, (LeakHeuristic)h, start, size, pointer))
            return (LeakHeuristic)h;
    }
    return LEAK_BY_START;
}

static u8 mark_for(const Worker *worker, u32 block, GuestAddr address)
{
    const LeakInput *input = &worker->marker->check->input;
    GuestAddr start = leak_block_start(&input->blocks[block]);

    if (worker->is_possible)
        return MARK_POSSIBLE;
    if (address == start)
        return MARK_START;
    u64 size = leak_block_size(&input->blocks[block]);
    LeakHeuristic heuristic = heuristic_for(input, start, size, address);
    return heuristic ? mark_of_heuristic(heuristic) : MARK_POSSIBLE;
}

static bool accept(void *owner, u32 block, GuestAddr value, u32 reader)
{
    Worker *worker = owner;
    u8 *place = &worker->marker->check->marks[block];
    u8 old = __atomic_load_n(place, __ATOMIC_RELAXED);

    if (old == MARK_START || (worker->is_possible && old != MARK_NONE))
        return false;
    u8 mark = mark_for(worker, block, value);
    do {
        if (old >= mark)
            return false;
    } while (
        !__atomic_compare_exchange_n(place, &old, mark, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (mark == MARK_POSSIBLE && !worker->is_possible && !leak_trace_push(&worker->aside, block))
        worker->tracer.has_failed = true;
    if (worker->marker->check->holders && old < MARK_REACHED)
        worker->marker->check->holders[block] = reader;
    return worker->is_possible || (mark >= MARK_REACHED && old < MARK_REACHED);
}

static void share_work(void *owner)
{
    Worker *worker = owner;
    Marker *marker = worker->marker;
    TraceStack *work = &worker->tracer.work;

    if (work->count < GIVE_MIN || !__atomic_load_n(&marker->idle, __ATOMIC_RELAXED))
        return;
    marker_lock(marker);
    for (u64 half = work->count / 2; half > 0; half--) {
        if (!leak_trace_push(&marker->pool, work->items[work->count - 1]))
            break;
        work->count--;
    }
    marker_unlock(marker);
}

// A piece of a root, or false when all are taken.
static bool take_root(Marker *marker, u64 *ret_root, GuestAddr *ret_low, GuestAddr *ret_high)
{
    const LeakInput *input = &marker->check->input;
    bool taken = false;

    marker_lock(marker);
    while (!taken && marker->next_root < input->root_count) {
        const LeakRange *root = &input->roots[marker->next_root];
        GuestAddr low = ((root->low + 7) & ~7ull) + marker->next_root_offset;
        if (low >= root->high) {
            marker->next_root++;
            marker->next_root_offset = 0;
            continue;
        }
        *ret_root = marker->next_root;
        *ret_low = low;
        *ret_high = root->high - low > PIECE_BYTES ? low + PIECE_BYTES : root->high;
        marker->next_root_offset += PIECE_BYTES;
        taken = true;
    }
    marker_unlock(marker);
    return taken;
}

// Waits for work from others. False when nobody has any: the pass is over.
static bool take_pooled(Worker *worker, u32 workers)
{
    Marker *marker = worker->marker;

    __atomic_add_fetch(&marker->idle, 1, __ATOMIC_ACQ_REL);
    for (;;) {
        marker_lock(marker);
        u64 share = (marker->pool.count + 1) / 2;
        for (u64 i = 0; i < share; i++)
            leak_trace_block(&worker->tracer, marker->pool.items[--marker->pool.count]);
        if (share)
            __atomic_sub_fetch(&marker->idle, 1, __ATOMIC_ACQ_REL);
        if (!share && __atomic_load_n(&marker->idle, __ATOMIC_ACQUIRE) == workers)
            marker->is_done = true;
        bool is_done = marker->is_done;
        marker_unlock(marker);
        if (share || is_done)
            return share != 0;
        for (u32 i = 0; i < SPINS; i++)
            __builtin_ia32_pause();
        raw_syscall0(SYS_sched_yield);
    }
}

static void read_words(const LeakCheck *check, Tracer *tracer)
{
    for (u64 i = 0; i < check->input.word_count; i++) {
        leak_trace_from(tracer, check->codes.first_word + (u32)i);
        leak_trace_word(tracer, 0, check->input.words[i]);
    }
}

// Those that were not reached after all.
static void trace_aside(Worker *worker, const TraceStack *aside)
{
    const u8 *marks = worker->marker->check->marks;

    for (u64 i = 0; i < aside->count; i++) {
        u64 block = aside->items[i];
        if (__atomic_load_n(&marks[block], __ATOMIC_RELAXED) == MARK_POSSIBLE)
            leak_trace_block(&worker->tracer, block);
    }
}

static void run_worker(void *argument, u32 number, u32 count)
{
    Marker *marker = argument;
    Worker *worker = &marker->workers[number];
    GuestAddr low, high;
    u64 root;

    if (!worker->is_possible) {
        while (take_root(marker, &root, &low, &high)) {
            leak_trace_from_root(&worker->tracer, root);
            leak_for_each_word(&marker->check->input, low, high, leak_trace_word, &worker->tracer);
            if (!worker->tracer.is_queue)
                leak_trace_drain(&worker->tracer);
        }
        if (number == 0)
            read_words(marker->check, &worker->tracer);
    } else {
        // The first pass may have had more workers than this one.
        for (u32 i = number; i < marker->check->input.workers; i += count)
            trace_aside(worker, &marker->workers[i].aside);
    }
    do
        leak_trace_drain(&worker->tracer);
    while (take_pooled(worker, count));
}

static void run_pass(Marker *marker, bool is_possible)
{
    const LeakInput *input = &marker->check->input;

    marker->idle = 0;
    marker->is_done = false;
    for (u32 i = 0; i < input->workers; i++)
        marker->workers[i].is_possible = is_possible;
    if (input->workers > 1)
        input->run_workers(input->data, input->workers, run_worker, marker);
    else
        run_worker(marker, 0, 1);
}

bool leak_mark_from_roots(LeakCheck *check)
{
    Marker marker = {.check = check};
    u64 bytes = check->input.workers * sizeof(Worker);

    marker.workers = pages_map(bytes);
    if (!marker.workers)
        return false;
    for (u32 i = 0; i < check->input.workers; i++) {
        Worker *worker = &marker.workers[i];
        worker->marker = &marker;
        leak_trace_init(&worker->tracer, check, accept, worker);
        worker->tracer.share = share_work;
        worker->tracer.is_queue = check->holders != NULL;
        worker->tracer.finds_containers = check->index.containers.count != 0;
    }
    run_pass(&marker, false);
    run_pass(&marker, true);
    bool has_failed = false;
    for (u32 i = 0; i < check->input.workers; i++) {
        has_failed |= marker.workers[i].tracer.has_failed;
        leak_trace_free(&marker.workers[i].tracer);
        leak_trace_stack_free(&marker.workers[i].aside);
    }
    leak_trace_stack_free(&marker.pool);
    pages_unmap(marker.workers, bytes);
    return !has_failed;
}
