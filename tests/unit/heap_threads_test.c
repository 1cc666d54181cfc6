// SPDX-License-Identifier: MIT
//
// Threads that free each other's blocks, race for the same free, look blocks up meanwhile, start,
// end and fork.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_world.h"

enum { WORKERS = 4, MAILBOXES = 512, ROUNDS = 40000 };

static GuestAddr mailbox[MAILBOXES]; // blocks in transit
static u64 frees_that_won;

static void *exchange_blocks(void *argument)
{
    u64 seed = (u64)argument * 7919 + 1;
    HeapThread *t = heap_thread_start((u16)(u64)argument);

    for (u32 i = 0; i < ROUNDS; i++) {
        u64 r = world_random(&seed);
        u64 size = r % 64 == 0 ? (r >> 8) % 200000 : (r >> 8) % 300 + 8;
        GuestAddr mine = world_alloc(t, size, 16, HEAP_MALLOC, (u32)i);
        memset((void *)mine, (u8)mine >> 4, min_u64(size, 4096));
        GuestAddr theirs =
            __atomic_exchange_n(&mailbox[(r >> 40) % MAILBOXES], mine, __ATOMIC_ACQ_REL);
        u64 usable;
        if (!theirs)
            continue;
        if (!heap_usable_size(theirs, &usable))
            return "a block in the mailbox is not live";
        for (u64 k = 0; k < min_u64(usable, 4096); k++) {
            if (((u8 *)theirs)[k] != (u8)theirs >> 4)
                return "a block was overwritten";
        }
        if (heap_free(t, theirs, HEAP_MALLOC, 1, NULL) != HEAP_OK)
            return "a free of a live block failed";
        if (i % 10000 == 9999) {
            heap_thread_end(t);
            t = heap_thread_start((u16)(u64)argument);
        }
    }
    heap_thread_end(t);
    return NULL;
}

static void start_heap(u64 volume)
{
    HeapOptions options;

    world_options(&options);
    options.freelist_volume = volume;
    CHECK(heap_init(&options));
    memset(mailbox, 0, sizeof(mailbox));
}

static void run_all(void *(*fn)(void *))
{
    pthread_t threads[WORKERS];

    for (u64 i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, fn, (void *)(i + 1)) == 0);
    for (u64 i = 0; i < WORKERS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        if (complaint)
            FAIL("%s", (const char *)complaint);
    }
}

TEST(threads_free_the_blocks_of_others)
{
    static const u64 volumes[] = {0, 100000, 20000000};

    for (u32 i = 0; i < ARRAY_LEN(volumes); i++) {
        HeapStats stats;
        start_heap(volumes[i]);
        run_all(exchange_blocks);
        heap_validate();
        HeapThread *t = heap_thread_start(9);
        for (u32 k = 0; k < MAILBOXES; k++) {
            if (mailbox[k])
                CHECK_EQ(heap_free(t, mailbox[k], HEAP_MALLOC, 1, NULL), HEAP_OK);
        }
        heap_thread_end(t);
        heap_stats(&stats);
        CHECK_EQ(stats.allocs, WORKERS * ROUNDS);
        CHECK_EQ(stats.live_blocks, 0);
        CHECK_EQ(stats.live_bytes, 0);
        heap_validate();
        heap_destroy();
    }
}

enum { CONTESTED = 20000 };

static GuestAddr contested[CONTESTED];
static u32 racing_at; // all racers free this one next

// The racers wait for each other at every block: whoever comes last opens the next.
static void *race_to_free(void *argument)
{
    static u32 arrived;
    HeapThread *t = heap_thread_start((u16)(u64)argument);
    u64 won = 0;

    for (u32 i = 0; i < CONTESTED; i++) {
        if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) % 2 == 0)
            __atomic_store_n(&racing_at, i + 1, __ATOMIC_RELEASE);
        for (u32 spins = 1; __atomic_load_n(&racing_at, __ATOMIC_ACQUIRE) <= i; spins++) {
            if (spins % 1000 == 0)
                sched_yield(); // the other may have no core
        }
        won += heap_free(t, contested[i], HEAP_MALLOC, 1, NULL) == HEAP_OK;
    }
    __atomic_fetch_add(&frees_that_won, won, __ATOMIC_RELAXED);
    heap_thread_end(t);
    return NULL;
}

TEST(of_racing_frees_exactly_one_wins)
{
    pthread_t racers[2];

    start_heap(20000000);
    HeapThread *t = heap_thread_start(9);
    for (u32 i = 0; i < CONTESTED; i++)
        contested[i] = world_alloc(t, 10, 16, HEAP_MALLOC, 1);
    frees_that_won = racing_at = 0;
    for (u64 i = 0; i < 2; i++)
        CHECK(pthread_create(&racers[i], NULL, race_to_free, (void *)(i + 1)) == 0);
    for (u64 i = 0; i < 2; i++)
        pthread_join(racers[i], NULL);
    CHECK_EQ(frees_that_won, CONTESTED);
    heap_thread_end(t);
    heap_validate();
    heap_destroy();
}

static u32 finished;

static void *look_up(void *argument)
{
    u64 seed = (u64)argument;
    HeapBlock block;

    if ((u64)argument > 2) {
        void *complaint = exchange_blocks(argument);
        __atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
        return complaint;
    }
    while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < WORKERS - 2) {
        GuestAddr address =
            __atomic_load_n(&mailbox[world_random(&seed) % MAILBOXES], __ATOMIC_ACQUIRE);
        if (address && heap_find(address + 4, &block) && block.size_bytes > 300000)
            return "a description makes no sense";
    }
    return NULL;
}

TEST(lookups_without_locks_survive_concurrent_change)
{
    start_heap(10000);
    finished = 0;
    run_all(look_up);
    heap_validate();
    heap_destroy();
}

static void *fork_often(void *argument)
{
    if ((u64)argument != 1)
        return exchange_blocks(argument);
    HeapThread *t = heap_thread_start(1);
    for (u32 i = 0; i < 20; i++) {
        int status;
        heap_fork_prepare();
        pid_t child = fork();
        if (child == 0) {
            heap_fork_child(t);
            for (u32 k = 0; k < 3000; k++)
                heap_free(t, world_alloc(t, k, 16, HEAP_MALLOC, 1), HEAP_MALLOC, 1, NULL);
            _exit(0);
        }
        heap_fork_parent();
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return "a child of a fork failed";
    }
    heap_thread_end(t);
    return NULL;
}

TEST(children_of_forks_among_busy_threads_can_allocate)
{
    start_heap(100000);
    run_all(fork_often);
    heap_validate();
    heap_destroy();
}
