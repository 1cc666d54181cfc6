// SPDX-License-Identifier: MIT
//
// A leak check of many blocks, on one, two and four workers, which must come to the same.
// MUNINN_LEAK_BLOCKS=10000000 is the size that has to take at most three seconds; make check runs a
// tenth of it and asks for no time.
#include "leak_world.h"

enum { STRIDE = 48, SIZE = 32 };

static LeakBlockList list;
static u64 count;

static u64 *block_words(u64 block)
{
    return (u64 *)(memory + block * STRIDE);
}

static void make_heap(void)
{
    const char *wanted = getenv("MUNINN_LEAK_BLOCKS");

    count = wanted ? strtoull(wanted, NULL, 10) : 1000000;
    memory = (u8 *)world_map(count * STRIDE, 4 * MiB);
    CHECK(memory && leak_list_reserve(&list, count));
    for (u64 i = 0; i < count; i++)
        CHECK(leak_list_add(&list, (GuestAddr)block_words(i), SIZE, (u32)(i % 1000)));
}

static void free_heap(void)
{
    world_unmap((GuestAddr)memory, count * STRIDE);
    leak_list_free(&list);
}

static void measure_on(u32 workers, const char *what, LeakKind wanted, u64 at_least)
{
    LeakRange range = { (GuestAddr)root, (GuestAddr)(root + ARRAY_LEN(root)) };
    input = (LeakInput){
        .blocks = list.blocks,
        .block_count = count,
        .roots = &range,
        .root_count = 1,
        .workers = workers ? workers : 1,
        .wants_holders = workers == 0,
        .read_words = read_direct,
        .run_workers = run_workers,
    };

    double begin = world_now_ns();
    clock_t cpu_begin = clock();
    LeakCheck *check = leak_check(&input, NULL);
    double seconds = (world_now_ns() - begin) / 1e9;
    double cpu = (double)(clock() - cpu_begin) / CLOCKS_PER_SEC;
    CHECK(check);
    printf("# %s, %s: %llu blocks in %.2f s, %.2f s of CPU\n", what,
           workers == 0   ? "with holders"
           : workers == 1 ? "one worker"
                          : "two workers",
           (unsigned long long)count, seconds, cpu);
    CHECK(leak_summary(check)->now[wanted].blocks >= at_least);
    CHECK(cpu < 60);
    leak_free(check);
}

// On a machine with other work, half the CPU time is what two free cores would take.
static void measure(const char *what, LeakKind wanted, u64 at_least)
{
    for (u32 workers = 0; workers <= 2; workers++)
        measure_on(workers, what, wanted, at_least);
}

// A binary tree whose nodes lie in the order of their making: what a parser leaves behind.
TEST(tree_in_order)
{
    make_heap();
    for (u64 i = 0; i < count; i++) {
        for (u64 k = 1; k <= 2; k++)
            block_words(i)[k] = 2 * i + k < count ? (u64)block_words(2 * i + k) : 0;
    }
    root[0] = (u64)memory;
    measure("tree in order", LOSS_REACHABLE, count);
    root[0] = 0;
    measure("tree in order, lost", LOSS_INDIRECT, count - 1);
    free_heap();
}

// The same tree with its nodes anywhere: every step misses every cache.
TEST(tree_in_disorder)
{
    u64 seed = 5;

    make_heap();
    u32 *where = malloc(count * sizeof(u32));
    for (u64 i = 0; i < count; i++)
        where[i] = (u32)i;
    for (u64 i = count; i-- > 1;) {
        u64 j = world_random(&seed) % (i + 1);
        u32 swap = where[i];
        where[i] = where[j];
        where[j] = swap;
    }
    for (u64 i = 0; i < count; i++) {
        for (u64 k = 1; k <= 2; k++)
            block_words(where[i])[k] = 2 * i + k < count ? (u64)block_words(where[2 * i + k]) : 0;
    }
    root[0] = (u64)block_words(where[0]);
    free(where);
    measure("tree in disorder", LOSS_REACHABLE, count);
    root[0] = 0;
    measure("tree in disorder, lost", LOSS_INDIRECT, count - 1);
    free_heap();
}

TEST(all_lost_one_by_one)
{
    make_heap();
    root[0] = 0;
    measure("all lost", LOSS_DEFINITE, count);
    free_heap();
}

// Chains, hubs, interior pointers and a large block, whose pieces are shared.
static void make_tangle(u64 blocks_wanted)
{
    u64 seed = 77;
    u64 hub = blocks_wanted - 20000; // the blocks from here on are one

    for (u64 i = 0; i < hub; i++) {
        u64 r = world_random(&seed);
        block_words(i)[0] = SIZE - 8; // a length, as a heuristic looks for
        for (u64 k = 1; k <= 2; k++) {
            static const u8 offsets[8] = { [3] = 1, [5] = 8 };
            u64 target = (u64)block_words((r >> (k * 8)) % hub);
            bool has_pointer = (r >> (52 + k * 4)) % 4 != 0;
            block_words(i)[k] = has_pointer ? target + offsets[(r >> 40) % 8] : 0;
        }
        block_words(i)[3] = r % 50000 == 0 ? (u64)block_words(hub) + 8 : 0;
    }
    for (u64 i = 0; i < 20000; i++)
        block_words(hub + i)[1] = (u64)block_words(world_random(&seed) % hub);
    list.blocks[hub] = leak_block((GuestAddr)block_words(hub), 20000 * STRIDE, 1);
    list.count = hub + 1;
    for (u64 i = 0; i < 4; i++)
        root[i] = (u64)block_words(world_random(&seed) % hub) + i % 2;
}

static bool hash_listed(void *data, const LeakListed *listed)
{
    u64 *hash = data;

    *hash = (*hash ^ (listed->block << 32 | listed->level)) * 0x9e3779b97f4a7c15ull;
    *hash ^= *hash >> 29;
    return true;
}

// Who is lost through whom, and in which order that is told: of the largest records.
static u64 hash_of_lists(LeakCheck *check)
{
    u64 hash = 1;

    for (u64 i = 0; i < 3 && i < leak_record_count(check); i++)
        leak_list_blocks(check, i, hash_listed, &hash);
    return hash;
}

static void expect_same(LeakCheck *a, LeakCheck *b)
{
    CHECK_EQ(hash_of_lists(a), hash_of_lists(b));
    for (u64 i = 0; i < list.count; i++) {
        CHECK_EQ(leak_kind_of(a, i), leak_kind_of(b, i));
        CHECK_EQ(leak_heuristic_of(a, i), leak_heuristic_of(b, i));
    }
    CHECK(memcmp(leak_summary(a), leak_summary(b), sizeof(LeakSummary)) == 0);
    CHECK_EQ(leak_record_count(a), leak_record_count(b));
    for (u64 i = 0; i < leak_record_count(a); i++) {
        const LeakRecord *x = leak_record(a, i), *y = leak_record(b, i);
        CHECK(x->context == y->context && x->kind == y->kind && x->blocks == y->blocks);
        CHECK(x->bytes == y->bytes && x->indirect_bytes == y->indirect_bytes);
    }
}

// Half of them in the first pass, then one.
static void run_fewer(void *data, u32 workers, LeakWork *fn, void *argument)
{
    static u32 pass;

    run_workers(data, pass++ % 2 ? 1 : workers / 2, fn, argument);
}

// Whatever order the workers find things in, and however many there are.
TEST(any_number_of_workers_comes_to_the_same_result)
{
    LeakRange range = { (GuestAddr)root, (GuestAddr)(root + ARRAY_LEN(root)) };
    LeakCheck *checks[5];

    make_heap();
    make_tangle(min_u64(count, 300000));
    input = (LeakInput){
        .blocks = list.blocks,
        .block_count = list.count,
        .roots = &range,
        .root_count = 1,
        .heuristics = ~0u,
        .read_words = read_direct,
        .run_workers = run_workers,
    };
    for (u32 i = 0; i < 5; i++) {
        input.workers = i < 3 ? 1u << i : 4;
        input.run_workers = i == 3 ? run_fewer : run_workers;
        input.wants_holders = i == 4;
        CHECK((checks[i] = leak_check(&input, NULL)));
        expect_same(checks[0], checks[i]);
    }
    const LeakSummary *summary = leak_summary(checks[0]);
    for (u32 k = 0; k < LEAK_KIND_COUNT; k++)
        CHECK(summary->now[k].blocks > 1000); // it is a test of all kinds
    CHECK(summary->by_heuristic[LEAK_LENGTH64].blocks > 1000);
    for (u32 i = 0; i < 5; i++)
        leak_free(checks[i]);
    free_heap();
}

// More pointers than there is room for: those of some blocks are read ahead and those of others
// when their turn comes, which ones depends on the workers.
TEST(blocks_that_are_not_read_ahead_come_to_the_same_result)
{
    enum { DENSE_STRIDE = 256, DENSE_WORDS = 30, DENSE_BLOCKS = 20000 };
    LeakCheck *checks[3];
    u64 seed = 9;

    memory = (u8 *)world_map(DENSE_BLOCKS * DENSE_STRIDE, 4 * MiB);
    CHECK(memory && leak_list_reserve(&list, DENSE_BLOCKS));
    for (u64 i = 0; i < DENSE_BLOCKS; i++) {
        u64 *words = (u64 *)(memory + i * DENSE_STRIDE);
        CHECK(leak_list_add(&list, (GuestAddr)words, DENSE_WORDS * 8, (u32)(i % 10)));
        // To starts, insides and between blocks, every other one to a higher block.
        for (u64 k = 0; k < DENSE_WORDS; k++) {
            u64 r = world_random(&seed), low = r & 1 ? i + i % 50 : 0;
            u64 target = low + (r >> 8) % (DENSE_BLOCKS - min_u64(low, DENSE_BLOCKS - 1));
            words[k] = r >> 60 ? (u64)memory + target * DENSE_STRIDE + (r >> 56) % 16 * 16 : 0;
        }
    }
    input = (LeakInput){
        .blocks = list.blocks,
        .block_count = list.count,
        .read_words = read_direct,
        .run_workers = run_workers,
    };
    for (u32 i = 0; i < 3; i++) {
        input.workers = 1u << i;
        CHECK((checks[i] = leak_check(&input, NULL)));
        expect_same(checks[0], checks[i]);
    }
    CHECK(leak_summary(checks[0])->now[LOSS_INDIRECT].blocks > DENSE_BLOCKS / 2);
    for (u32 i = 0; i < 3; i++)
        leak_free(checks[i]);
    world_unmap((GuestAddr)memory, DENSE_BLOCKS * DENSE_STRIDE);
    leak_list_free(&list);
}
