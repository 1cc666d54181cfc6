// SPDX-License-Identifier: MIT
//
// A world for the tests of the leak check: blocks in a piece of memory, one root, a reader of
// words and workers that are ordinary threads.
#ifndef MUNINN_TESTS_LEAK_WORLD_H
#define MUNINN_TESTS_LEAK_WORLD_H

#include <pthread.h>

#include "tools/heap/leak.h"

#include "heap_world.h"

enum { WORLD_BYTES = 1 << 20, BLOCKS_MAX = 4096, WORKERS_MAX = 4 };

static u8 *memory;
static LeakBlock blocks[BLOCKS_MAX];
static u32 block_count;
static u64 root[64];
static LeakRange root_range;
static LeakInput input;

static inline bool read_direct(void *data, GuestAddr address, u32 count, u64 *ret_words)
{
    (void)data;
    memcpy(ret_words, (void *)address, count * sizeof(u64));
    return true;
}

typedef struct Job {
    LeakWork *fn;
    void *argument;
    u32 worker, count;
} Job;

static inline void *run_job(void *argument)
{
    Job *job = argument;

    job->fn(job->argument, job->worker, job->count);
    return NULL;
}

static inline void run_workers(void *data, u32 workers, LeakWork *fn, void *argument)
{
    pthread_t threads[WORKERS_MAX];
    Job jobs[WORKERS_MAX];

    (void)data;
    for (u32 i = 0; i < workers; i++) {
        jobs[i] = (Job){ fn, argument, i, workers };
        pthread_create(&threads[i], NULL, run_job, &jobs[i]);
    }
    for (u32 i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
}

static inline void start_world(void)
{
    if (!memory)
        memory = (u8 *)world_map(WORLD_BYTES, 4 * MiB);
    memset(memory, 0, WORLD_BYTES);
    memset(root, 0, sizeof(root));
    block_count = 0;
    root_range = (LeakRange){ (GuestAddr)root, (GuestAddr)(root + ARRAY_LEN(root)) };
    input = (LeakInput){
        .blocks = blocks,
        .roots = &root_range,
        .root_count = 1,
        .workers = 1,
        .read_words = read_direct,
        .run_workers = run_workers,
    };
}

static inline u64 *place(u64 offset, u64 size, u32 context)
{
    blocks[block_count++] = leak_block((GuestAddr)memory + offset, size, context);
    return (u64 *)(memory + offset);
}

static inline LeakCheck *check_now(LeakHistory *history)
{
    input.block_count = block_count;
    LeakCheck *check = leak_check(&input, history);
    CHECK(check);
    return check;
}

#endif
