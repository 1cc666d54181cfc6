// SPDX-License-Identifier: MIT
//
// What an allocation costs, printed as comments. It fails only when a cost is absurd, so that a
// loaded machine passes.
#include <pthread.h>

#include "heap_world.h"

static void nothing_allocated(GuestAddr start, u64 size, bool is_zeroed, u32 context)
{
    (void)start, (void)size, (void)is_zeroed, (void)context;
}

static void nothing_freed(GuestAddr start, u64 size)
{
    (void)start, (void)size;
}

static void start_heap(void)
{
    HeapOptions options;

    world_options(&options);
    options.hooks.allocated = nothing_allocated;
    options.hooks.freed = nothing_freed;
    CHECK(heap_init(&options));
}

static void pairs(HeapThread *t, u64 size, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        GuestAddr p = world_alloc(t, size, 16, HEAP_MALLOC, i);
        *(volatile u8 *)p = 1;
        heap_free(t, p, HEAP_MALLOC, i, NULL);
    }
}

TEST(heap_pair_cost)
{
    static const u64 sizes[] = {16, 24, 100, 1000, 4000, 20000, 100000};

    for (u32 i = 0; i < ARRAY_LEN(sizes); i++) {
        u32 count = sizes[i] > 5000 ? 200000 : 2000000;
        start_heap();
        HeapThread *t = heap_thread_start(1);
        pairs(t, sizes[i], count / 2);
        double begin = world_cpu_ns();
        pairs(t, sizes[i], count);
        double cost = (world_cpu_ns() - begin) / count;
        printf("# malloc and free of %llu bytes: %.1f ns\n", (unsigned long long)sizes[i], cost);
        CHECK(cost < 20000);
        heap_thread_end(t);
        heap_destroy();
    }
}

// A tree that is built and torn down: many blocks live at once, sizes mixed.
TEST(churn_cost)
{
    enum { LIVE = 100000, ROUNDS = 1000000 };
    static GuestAddr live[LIVE];
    u64 seed = 42;

    start_heap();
    HeapThread *t = heap_thread_start(1);
    memset(live, 0, sizeof(live));
    double begin = world_cpu_ns();
    for (u32 i = 0; i < ROUNDS; i++) {
        u64 r = world_random(&seed);
        GuestAddr *place = &live[r % LIVE];
        if (*place)
            heap_free(t, *place, HEAP_MALLOC, 1, NULL);
        *place = world_alloc(t, 16 + (r >> 32) % 200, 16, HEAP_MALLOC, 1);
        *(volatile u8 *)*place = 1;
    }
    printf("# churn with %d live: %.1f ns a pair\n", LIVE, (world_cpu_ns() - begin) / ROUNDS);
    heap_thread_end(t);
    heap_destroy();
}

enum { PAIRS = 3000000 };

static void *pair_thread(void *argument)
{
    HeapThread *t = heap_thread_start((u16)(u64)argument);

    pairs(t, 24, PAIRS / 4);
    double begin = world_cpu_ns();
    pairs(t, 24, PAIRS);
    u64 cost = (u64)(world_cpu_ns() - begin);
    heap_thread_end(t);
    return (void *)cost;
}

// How many times as much a pair costs in the slower of two threads as in one alone.
static double price_of_company(void)
{
    pthread_t threads[2];
    void *alone, *both[2];

    CHECK(pthread_create(&threads[0], NULL, pair_thread, (void *)1) == 0);
    pthread_join(threads[0], &alone);
    for (u64 i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, pair_thread, (void *)(i + 1)) == 0);
    for (u64 i = 0; i < 2; i++)
        pthread_join(threads[i], &both[i]);
    printf("# a pair: %.1f ns alone, %.1f and %.1f ns with two threads\n",
           (double)(u64)alone / PAIRS, (double)(u64)both[0] / PAIRS, (double)(u64)both[1] / PAIRS);
    return (double)max_u64((u64)both[0], (u64)both[1]) / (double)(u64)alone;
}

// What others do on the machine may disturb one measurement, a common lock disturbs all.
TEST(two_threads_are_no_slower_each_than_one)
{
    double price;

    start_heap();
    u32 tries = 0;
    do {
        price = price_of_company();
    } while (price >= 4 && ++tries < 10);
    CHECK(price < 4);
    heap_destroy();
}

TEST(find_costs_little)
{
    enum { BLOCKS = 100000 };
    static GuestAddr blocks[BLOCKS];
    HeapBlock block;

    start_heap();
    HeapThread *t = heap_thread_start(1);
    for (u32 i = 0; i < BLOCKS; i++)
        blocks[i] = world_alloc(t, 40, 16, HEAP_MALLOC, i);
    double begin = world_cpu_ns();
    for (u32 i = 0; i < BLOCKS; i++) {
        CHECK(heap_find(blocks[i] + 39, &block));
        CHECK(block.alloc_context == i);
    }
    printf("# find: %.1f ns\n", (world_cpu_ns() - begin) / BLOCKS);
    heap_thread_end(t);
    heap_destroy();
}
