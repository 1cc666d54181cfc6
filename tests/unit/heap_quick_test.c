// SPDX-License-Identifier: MIT
//
// heap_quick.h: the usual allocation and free leave the heap as the long way does, and refuse
// whatever that has to tell.
#include <pthread.h>
#include <sched.h>

#include "heap_world.h"
#include "tools/heap/heap_quick.h"

enum { REFUSED_CONTEXT = 3 };
#define REFUSED (~0ull)

static HeapThread *t;

static void start(u64 volume, u64 brief_volume)
{
    HeapOptions options;
    world_options(&options);
    options.freelist_volume = volume;
    options.brief_volume = brief_volume;
    CHECK(heap_init(&options));
    t = heap_thread_start(7);
    CHECK(t);
}

static void finish(void)
{
    heap_validate();
    heap_thread_end(t);
    heap_validate();
    heap_destroy();
    CHECK_EQ(world_mapped_bytes, 0);
}

// As a tool does: quickly if possible.
static GuestAddr get(u64 size, u32 kind, u32 context, u64 *quick_count)
{
    GuestAddr next, start_of = heap_quick_alloc(t, size, kind, context, &next);
    *quick_count += start_of != 0;
    return start_of ? start_of : world_alloc(t, size, 16, kind, context);
}

static u64 free_quickly(HeapThread *thread, GuestAddr start_of, HeapKind kind, u32 context)
{
    SlotRef ref;
    return heap_quick_find(start_of, &ref) ? heap_quick_free(thread, start_of, &ref, kind, context)
                                           : REFUSED;
}

static void give(GuestAddr start_of, u64 size, HeapKind kind, u32 context, u64 *quick_count)
{
    u64 freed = free_quickly(t, start_of, kind, context);
    if (freed == REFUSED) {
        CHECK_EQ(heap_free(t, start_of, kind, context, NULL), HEAP_OK);
        return;
    }
    CHECK_EQ(freed, size);
    ++*quick_count;
}

TEST(blocks_of_both_ways_are_alike)
{
    enum { BLOCKS = 700, ROUNDS = 200000 };
    static struct {
        GuestAddr start;
        u64 size;
        u32 kind, context;
    } blocks[BLOCKS];
    static const HeapKind kinds[] = {HEAP_MALLOC, HEAP_NEW, HEAP_NEW_ARRAY};
    u64 seed = 99, allocs = 0, frees = 0, bytes = 0, quick_allocs = 0, quick_frees = 0;
    HeapStats stats;

    start(2000000, 100000);
    memset(blocks, 0, sizeof blocks);
    for (u32 i = 0; i < ROUNDS; i++) {
        u64 r = world_random(&seed);
        u32 k = r % BLOCKS;
        HeapBlock block;
        if (!blocks[k].start) {
            u64 size = (r >> 40) % 100 == 0 ? (r >> 20) % 60000 : (r >> 20) % 400;
            u32 kind = kinds[(r >> 50) % 3], zeroed = (r >> 55) % 2 ? HEAP_ZEROED : 0;
            GuestAddr a = get(size, kind | zeroed, 1 + i, &quick_allocs);
            CHECK(a && a % 16 == 0);
            for (u64 b = 0; b < size && zeroed; b++)
                CHECK_EQ(((u8 *)a)[b], 0);
            memset((void *)a, 0xaa, size);
            blocks[k].start = a;
            blocks[k].size = size;
            blocks[k].kind = kind;
            blocks[k].context = 1 + i;
            allocs++;
            bytes += size;
            continue;
        }
        CHECK(heap_find(blocks[k].start, &block) && block.state == HEAP_LIVE);
        CHECK_EQ(block.start, blocks[k].start);
        CHECK_EQ(block.size_bytes, blocks[k].size);
        CHECK_EQ(block.alloc_context, blocks[k].context);
        CHECK_EQ(block.kind, blocks[k].kind);
        CHECK_EQ(block.thread, 7);
        give(blocks[k].start, blocks[k].size, blocks[k].kind, 5 + i % 3, &quick_frees);
        CHECK(heap_find(blocks[k].start, &block));
        CHECK(block.state == HEAP_QUARANTINED && block.free_context == 5 + i % 3);
        blocks[k].start = 0;
        frees++;
        if (i % 20000 == 0)
            heap_validate();
    }
    heap_stats(&stats);
    CHECK_EQ(stats.allocs, allocs);
    CHECK_EQ(stats.frees, frees);
    CHECK_EQ(stats.allocated_bytes, bytes);
    CHECK(quick_allocs > allocs * 9 / 10 && quick_frees > frees * 9 / 10);
    for (u32 k = 0; k < BLOCKS; k++) {
        if (blocks[k].start)
            give(blocks[k].start, blocks[k].size, blocks[k].kind, 5, &quick_frees);
    }
    heap_stats(&stats);
    CHECK_EQ(stats.live_blocks, 0);
    CHECK_EQ(stats.live_bytes, 0);
    finish();
}

TEST(what_has_to_be_told_is_refused_and_nothing_happens)
{
    u64 unused = 0, outside = 0;
    start(2000000, 0);
    GuestAddr a = get(100, HEAP_MALLOC, 1, &unused), medium = get(40000, HEAP_MALLOC, 1, &unused);
    GuestAddr huge = get(3 * MiB, HEAP_MALLOC, 1, &unused), next;
    // The chunk of the quarantine is opened by the long way.
    CHECK_EQ(heap_free(t, get(1, HEAP_MALLOC, 1, &unused), HEAP_MALLOC, 1, NULL), HEAP_OK);
    CHECK_EQ(free_quickly(t, a + 16, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, a + 1, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, a, HEAP_NEW, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, (u64)&outside, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, ~15ull, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, medium, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(free_quickly(t, huge, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED);
    CHECK_EQ(heap_quick_alloc(t, SMALL_MAX + 1, HEAP_MALLOC, 1, &next), 0);
    HeapStats stats;
    heap_stats(&stats);
    CHECK_EQ(stats.live_blocks, 3);
    CHECK_EQ(free_quickly(t, a, HEAP_MALLOC, 4), 100);
    CHECK_EQ(free_quickly(t, a, HEAP_MALLOC, REFUSED_CONTEXT), REFUSED); // a second time
    HeapBlock block;
    CHECK(heap_find(a, &block) && block.free_context == 4);
    CHECK_EQ(heap_free(t, a, HEAP_MALLOC, 5, &block), HEAP_DOUBLE_FREE);
    finish();
}

static GuestAddr move_quickly(GuestAddr old, u64 size)
{
    SlotRef ref;
    GuestAddr next;
    return heap_quick_find(old, &ref) ? heap_quick_realloc(t, old, &ref, size, 4, &next) : 0;
}

TEST(a_block_is_moved_only_if_it_can_be_freed_then)
{
    u64 unused = 0;
    HeapStats before, after;
    start(2000000, 0);
    GuestAddr a = get(100, HEAP_MALLOC, 1, &unused), new = get(100, HEAP_NEW, 1, &unused);
    GuestAddr medium = get(40000, HEAP_MALLOC, 1, &unused), gone = get(20, HEAP_MALLOC, 1, &unused);
    CHECK_EQ(move_quickly(a, 100), 0); // nothing was freed yet: there is no chunk
    CHECK_EQ(heap_free(t, gone, HEAP_MALLOC, 1, NULL), HEAP_OK);
    heap_stats(&before);
    CHECK_EQ(move_quickly(gone, 100), 0);
    CHECK_EQ(move_quickly(new, 100), 0);
    CHECK_EQ(move_quickly(medium, 100), 0);
    CHECK_EQ(move_quickly(a + 16, 100), 0);
    CHECK_EQ(move_quickly(a, SMALL_MAX + 1), 0);
    heap.active_threads++;
    CHECK_EQ(move_quickly(a, 100), 0);
    heap.active_threads--;
    heap_stats(&after);
    CHECK_EQ(after.allocs, before.allocs);
    CHECK_EQ(after.live_blocks, before.live_blocks);
    GuestAddr moved = move_quickly(a, 100);
    CHECK(moved && moved != a);
    CHECK_EQ(free_quickly(t, a, HEAP_MALLOC, 4), 100);
    HeapBlock block;
    CHECK(heap_find(moved, &block) && block.alloc_context == 4 && block.size_bytes == 100);
    finish();
}

TEST(a_big_block_goes_the_long_way)
{
    HeapOptions options;
    world_options(&options);
    options.freelist_big = 50;
    CHECK(heap_init(&options));
    t = heap_thread_start(7);
    u64 unused = 0;
    GuestAddr big = get(50, HEAP_MALLOC, 1, &unused), small = get(49, HEAP_MALLOC, 1, &unused);
    CHECK_EQ(heap_free(t, get(1, HEAP_MALLOC, 1, &unused), HEAP_MALLOC, 1, NULL), HEAP_OK);
    CHECK_EQ(free_quickly(t, big, HEAP_MALLOC, 1), REFUSED);
    CHECK_EQ(free_quickly(t, small, HEAP_MALLOC, 1), 49);
    finish();
}

// How many frees lie between that of a block and its use again, at least.
static u64 least_wait(u64 brief_volume, u64 rounds, u64 *ret_again)
{
    enum { SLOTS = 1 << 19 }; // 8 MiB, by 16
    static u32 freed_at[SLOTS];
    u64 least = ~0ull, unused = 0;
    *ret_again = 0;
    memset(freed_at, 0, sizeof freed_at);
    start(20000000, brief_volume);
    for (u32 i = 1; i <= rounds; i++) {
        GuestAddr a = get(40, HEAP_MALLOC, 1, &unused);
        u32 *at = &freed_at[a / 16 % SLOTS];
        if (*at) {
            least = min_u64(least, i - *at);
            ++*ret_again;
        }
        *at = i;
        give(a, 40, HEAP_MALLOC, 2, &unused);
    }
    finish();
    return least;
}

TEST(what_is_freed_quickly_waits_its_time)
{
    u64 again;
    CHECK_EQ(least_wait(0, 40000, &again), ~0ull); // 20 MB hold more of them
    CHECK_EQ(again, 0);
    CHECK_EQ(least_wait(1000000, 40000, &again), BRIEF_BLOCKS);
    CHECK(again > 20000);
}

// ------------------------------------------------------------------- threads

enum { CONTESTED = 20000 };
static GuestAddr contested[CONTESTED];
static u32 racing_at;
static u64 frees_that_won;

static void *race_to_free(void *argument)
{
    static u32 arrived;
    HeapThread *mine = heap_thread_start((u16)(u64)argument);
    u64 won = 0;
    for (u32 i = 0; i < CONTESTED; i++) {
        if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) % 2 == 0)
            __atomic_store_n(&racing_at, i + 1, __ATOMIC_RELEASE);
        for (u32 spins = 1; __atomic_load_n(&racing_at, __ATOMIC_ACQUIRE) <= i; spins++) {
            if (spins % 1000 == 0)
                sched_yield();
        }
        won += free_quickly(mine, contested[i], HEAP_MALLOC, 1) != REFUSED ||
               heap_free(mine, contested[i], HEAP_MALLOC, 1, NULL) == HEAP_OK;
    }
    __atomic_fetch_add(&frees_that_won, won, __ATOMIC_RELAXED);
    heap_thread_end(mine);
    return NULL;
}

TEST(of_racing_quick_frees_exactly_one_wins)
{
    pthread_t racers[2];
    start(20000000, 0);
    for (u32 i = 0; i < CONTESTED; i++)
        contested[i] = world_alloc(t, 10, 16, HEAP_MALLOC, 1);
    frees_that_won = racing_at = 0;
    for (u64 i = 0; i < 2; i++)
        CHECK(pthread_create(&racers[i], NULL, race_to_free, (void *)(i + 1)) == 0);
    for (u64 i = 0; i < 2; i++)
        pthread_join(racers[i], NULL);
    CHECK_EQ(frees_that_won, CONTESTED);
    finish();
}

TEST(threads_that_have_ended_do_not_count)
{
    start(20000000, 0);
    CHECK_EQ(heap.active_threads, 1);
    HeapThread *other = heap_thread_start(8);
    CHECK_EQ(heap.active_threads, 2);
    heap_fork_prepare();
    heap_fork_child(t);
    CHECK_EQ(heap.active_threads, 1);
    other = heap_thread_start(9);
    heap_thread_end(other);
    CHECK_EQ(heap.active_threads, 1);
    finish();
}
