// SPDX-License-Identifier: MIT
//
// What heap.h promises, one promise a test.
#include <sys/wait.h>
#include <unistd.h>

#include "heap_world.h"
#include "tools/heap/heap_internal.h"

static HeapThread *t;

static void start_with(const HeapOptions *options)
{
    CHECK(heap_init(options));
    t = heap_thread_start(7);
    CHECK(t);
}

static void start(void)
{
    HeapOptions options;

    world_options(&options);
    start_with(&options);
}

static void finish(void)
{
    heap_validate();
    heap_thread_end(t);
    heap_validate();
    heap_destroy();
    CHECK_EQ(world_mapped_bytes, 0);
}

static GuestAddr get(u64 size)
{
    return world_alloc(t, size, 16, HEAP_MALLOC, 5);
}

TEST(blocks_of_all_sizes_are_aligned_apart_and_usable)
{
    static const u32 redzones[] = { 0, 1, 16, 100, 4096 };

    for (u32 r = 0; r < ARRAY_LEN(redzones); r++) {
        HeapOptions options;
        world_options(&options);
        options.redzone_bytes = redzones[r];
        start_with(&options);
        for (u64 size = 0; size < 3 * MiB; size += size / 7 + 1) {
            u64 usable;
            GuestAddr a = get(size);
            CHECK(a && a % 16 == 0);
            memset((void *)a, 0xaa, size);
            CHECK(heap_usable_size(a, &usable) && usable == size);
        }
        // The gap behind every block is at least the redzone, and nobody else's.
        for (u64 size = 1; size < 2 * MiB; size = size * 3 + 1) {
            GuestAddr a = get(size);
            HeapBlock block;
            for (u64 i = 0; i < redzones[r]; i += redzones[r] / 3 + 1) {
                CHECK(heap_find(a + size + i, &block) && block.relation != HEAP_INSIDE);
                CHECK(heap_find(a - 1 - i, &block) && block.relation != HEAP_INSIDE);
            }
        }
        finish();
    }
}

TEST(alignment_is_kept_up_to_many_megabytes)
{
    start();
    for (u64 alignment = 1; alignment <= 16 * MiB; alignment *= 2) {
        for (u64 size = 0; size < 2 * MiB; size = size * 9 + 1) {
            GuestAddr a = world_alloc(t, size, alignment, HEAP_MEMALIGN, 9);
            u64 usable;
            CHECK(a && a % alignment == 0);
            CHECK(heap_usable_size(a, &usable) && usable == size);
            memset((void *)a, 1, size);
            if (size % 2)
                CHECK_EQ(heap_free(t, a, HEAP_MALLOC, 1, NULL), HEAP_OK);
        }
    }
    finish();
}

TEST(description_tells_all_about_a_block)
{
    HeapBlock block;

    start();
    GuestAddr a = world_alloc(t, 40, 16, HEAP_NEW_ARRAY, 1234);
    CHECK(heap_find(a + 17, &block));
    CHECK(block.start == a && block.size_bytes == 40 && block.alloc_context == 1234);
    CHECK(block.thread == 7 && block.kind == HEAP_NEW_ARRAY && block.state == HEAP_LIVE);
    CHECK(block.relation == HEAP_INSIDE && block.distance_bytes == 17 && !block.is_external);
    CHECK_EQ(heap_free(t, a, HEAP_NEW_ARRAY, 77, NULL), HEAP_OK);
    CHECK(heap_find(a, &block));
    CHECK(block.state == HEAP_QUARANTINED && block.free_context == 77);
    CHECK(block.alloc_context == 1234 && block.size_bytes == 40);
    finish();
}

TEST(address_in_a_gap_belongs_to_the_nearer_block_and_else_to_the_lower)
{
    HeapBlock block;

    start();
    GuestAddr low = get(32), high = get(32);
    CHECK(high == low + 48);
    CHECK(heap_find(low + 32, &block) && block.start == low && block.relation == HEAP_AFTER);
    CHECK(block.distance_bytes == 0);
    CHECK(heap_find(low + 40, &block) && block.start == low && block.distance_bytes == 8);
    CHECK(heap_find(high - 7, &block) && block.start == high && block.relation == HEAP_BEFORE);
    CHECK(block.distance_bytes == 7);
    CHECK(heap_find(high - 1, &block) && block.start == high && block.distance_bytes == 1);
    finish();
}

TEST(overrun_past_an_unused_neighbour_finds_its_block)
{
    HeapBlock block;

    start();
    GuestAddr a = get(32);
    CHECK(heap_find(a + 500, &block) && block.start == a && block.distance_bytes == 468);
    CHECK(!heap_find(a + 20000, &block));
    CHECK(!heap_find(a + 64 * MiB, &block));
    CHECK(!heap_find(~0ull, &block) && !heap_find(0, &block));
    finish();
}

TEST(address_before_the_first_block_of_a_slab_finds_it)
{
    HeapBlock block;

    start();
    GuestAddr a = get(64);
    CHECK(a % 65536 == 16);
    CHECK(heap_find(a - 9, &block) && block.start == a && block.relation == HEAP_BEFORE);
    CHECK(block.distance_bytes == 9);
    finish();
}

TEST(live_block_wins_over_a_recycled_neighbour)
{
    HeapOptions options;
    HeapBlock block;

    world_options(&options);
    options.freelist_volume = 0;
    start_with(&options);
    GuestAddr low = get(32), high = get(32);
    CHECK_EQ(heap_free(t, high, HEAP_MALLOC, 3, NULL), HEAP_OK);
    CHECK(heap_find(high - 2, &block) && block.start == low && block.relation == HEAP_AFTER);
    CHECK(heap_find(high + 2, &block) && block.start == high && block.state == HEAP_RECYCLED);
    finish();
}

TEST(large_and_huge_blocks_are_found_from_inside_and_from_both_gaps)
{
    static const u64 sizes[] = { 40000, 100000, 1048575, 1048576, 9000000 };
    HeapBlock block;

    start();
    for (u32 i = 0; i < ARRAY_LEN(sizes); i++) {
        GuestAddr a = world_alloc(t, sizes[i], 16, HEAP_MALLOC, i);
        CHECK(heap_find(a + sizes[i] / 2, &block) && block.start == a);
        CHECK(block.alloc_context == i && block.size_bytes == sizes[i]);
        CHECK(heap_find(a + sizes[i], &block) && block.start == a && block.relation == HEAP_AFTER);
        CHECK(heap_find(a - 1, &block) && block.start == a && block.relation == HEAP_BEFORE);
        if (sizes[i] >= MiB) // where its mapping is not
            CHECK(heap_find(a - 40, &block) && block.start == a && block.distance_bytes == 40);
    }
    finish();
}

TEST(wrong_frees_are_told_apart)
{
    HeapBlock block;

    start();
    GuestAddr a = get(100), b = world_alloc(t, 10, 16, HEAP_NEW, 8), c = get(2 * MiB);
    CHECK_EQ(heap_free(t, a + 16, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, a + 3, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, 0x1234, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, ~0ull, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, c + 64, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, c, HEAP_MALLOC, 30, &block), HEAP_OK);
    CHECK_EQ(heap_free(t, c, HEAP_MALLOC, 31, &block), HEAP_DOUBLE_FREE);
    CHECK(block.free_context == 30 && block.size_bytes == 2 * MiB);
    CHECK_EQ(heap_free(t, b, HEAP_MALLOC, 40, &block), HEAP_MISMATCHED);
    CHECK(block.kind == HEAP_NEW && block.state == HEAP_LIVE && block.alloc_context == 8);
    CHECK_EQ(heap_free(t, b, HEAP_NEW, 41, &block), HEAP_DOUBLE_FREE);
    CHECK_EQ(block.free_context, 40);
    CHECK_EQ(heap_free(t, a, HEAP_MALLOC, 50, &block), HEAP_OK);
    GuestAddr never_used = a + 128 * 3;
    CHECK_EQ(heap_free(t, never_used, HEAP_MALLOC, 1, &block), HEAP_NOT_A_BLOCK);
    finish();
}

TEST(alignment_that_was_asked_for_is_remembered_while_the_block_lives)
{
    static const u64 sizes[] = { 0, 10, 5000, 300000, 3 * MiB };

    start();
    for (u32 i = 0; i < ARRAY_LEN(sizes); i++) {
        for (u64 alignment = 1; alignment <= 1 * MiB; alignment *= 4) {
            HeapBlock block;
            GuestAddr a = world_alloc(t, sizes[i], alignment, HEAP_NEW | HEAP_ALIGNED, 5);
            CHECK(a % alignment == 0 && a % 16 == 0);
            CHECK(heap_live_at(a, &block));
            CHECK_EQ(block.alignment, alignment);
            CHECK_EQ(block.kind, HEAP_NEW);
            CHECK_EQ(heap_free(t, a, HEAP_NEW, 6, NULL), HEAP_OK);
            CHECK(!heap_live_at(a, &block));
            CHECK(heap_find(a, &block) && block.free_context == 6 && block.alignment == 0);
        }
        HeapBlock block;
        CHECK(heap_live_at(get(sizes[i]), &block) && block.alignment == 0);
    }
    finish();
}

TEST(block_of_a_function_with_several_names_is_freed_by_the_partner_of_any)
{
    static const HeapKind kinds[] = { HEAP_MALLOC, HEAP_NEW, HEAP_NEW_ARRAY, HEAP_MEMALIGN,
                                      HEAP_ANY_NEW, HEAP_ANY };
    static const char *fits[] = { // a row for what frees, in the same order
        "1..1.1", ".1..11", "..1.11", "1..1.1", ".11.11", "111111" };

    for (u32 freed = 0; freed < ARRAY_LEN(kinds); freed++) {
        for (u32 made = 0; made < ARRAY_LEN(kinds); made++)
            CHECK_EQ(heap_kinds_match(kinds[made], kinds[freed]), fits[freed][made] == '1');
    }
}

TEST(freed_block_is_not_used_again_until_the_volume_is_exceeded)
{
    HeapOptions options;

    world_options(&options);
    options.freelist_volume = 100000;
    start_with(&options);
    GuestAddr first = get(32);
    heap_free(t, first, HEAP_MALLOC, 1, NULL);
    u32 rounds = 0;
    for (HeapBlock block; heap_find(first, &block) && block.state == HEAP_QUARANTINED; rounds++)
        heap_free(t, get(32), HEAP_MALLOC, 1, NULL);
    CHECK(rounds > 100000 / 48 * 3 / 4 && rounds < 100000 / 48 * 2);
    finish();
}

static bool is_quarantined(GuestAddr start, u64 size)
{
    HeapBlock block;

    return heap_find(start, &block) && block.start == start && block.size_bytes == size &&
           block.state == HEAP_QUARANTINED;
}

// The marks are of a size of their own: what leaves quarantine is not used again at once.
TEST(what_is_freed_in_one_place_again_and_again_goes_round_quickly)
{
    enum { OFTEN = 1, SELDOM = 2, BEFORE = 512, MARKS = 100000, BEHIND = 4096, PIECE = 65536 };
    static GuestAddr early[BEFORE], marks[MARKS];
    HeapOptions options;
    u32 kept = 0, seams = 0, pieces = 1;

    world_options(&options);
    options.freelist_volume = 20000000;
    options.brief_volume = 1000000;
    start_with(&options);
    GuestAddr seldom = get(32);
    heap_free(t, seldom, HEAP_MALLOC, SELDOM, NULL);
    for (u32 i = 0; i < BEFORE; i++)
        heap_free(t, early[i] = get(32), HEAP_MALLOC, OFTEN, NULL);
    for (u32 i = 0; i < MARKS; i++)
        CHECK((marks[i] = get(200)));
    for (u32 i = 0; i < MARKS; i++)
        heap_free(t, marks[i], HEAP_MALLOC, OFTEN, NULL);
    for (u32 i = 0; i < BEHIND; i++)
        heap_free(t, get(400), HEAP_MALLOC, OFTEN, NULL);

    for (u32 i = 0; i < MARKS; i++) {
        bool is_kept = is_quarantined(marks[i], 200);
        kept += is_kept;
        if (i == 0)
            continue;
        bool is_same = marks[i] / PIECE == marks[i - 1] / PIECE;
        pieces += !is_same;
        seams += is_same && is_kept != is_quarantined(marks[i - 1], 200);
    }
    // A sixteenth, but for chance: all of a piece of memory, unless a turn ended in it.
    CHECK(kept > MARKS / 100 && kept < MARKS / 4);
    CHECK(seams <= pieces / 4);
    for (u32 i = 0; i < BEFORE; i++)
        CHECK(is_quarantined(early[i], 32));
    CHECK(is_quarantined(seldom, 32));
    finish();
}

TEST(big_blocks_leave_quarantine_before_older_small_ones)
{
    HeapOptions options;
    HeapBlock block;

    world_options(&options);
    options.freelist_volume = 3000000;
    start_with(&options);
    GuestAddr small = get(32);
    heap_free(t, small, HEAP_MALLOC, 1, NULL);
    GuestAddr big = get(2000000);
    heap_free(t, big, HEAP_MALLOC, 1, NULL);
    CHECK(heap_find(big, &block) && block.state == HEAP_QUARANTINED);
    GuestAddr other = get(2000000);
    heap_free(t, other, HEAP_MALLOC, 1, NULL);
    CHECK(heap_is_unsettled());
    heap_settle();
    CHECK(!heap_is_unsettled() && !heap_find(big, &block));
    CHECK(heap_find(other, &block) && block.state == HEAP_QUARANTINED);
    CHECK(heap_find(small, &block) && block.state == HEAP_QUARANTINED);
    finish();
}

TEST(huge_blocks_go_back_to_the_system)
{
    start();
    for (u32 i = 0; i < 100; i++) {
        GuestAddr a = get(8 * MiB);
        CHECK(a);
        heap_free(t, a, HEAP_MALLOC, 1, NULL);
        CHECK(world_mapped_bytes < 40 * MiB);
    }
    finish();
}

static u64 parked_bytes;

static void note_parked(GuestAddr start, u64 size)
{
    memset((void *)start, 0x77, size); // nobody may miss what was there
    parked_bytes += size;
}

TEST(a_heap_that_grows_parks_what_it_does_not_need)
{
    enum { BUFFERS = 50, BUFFER = 100000, OLD = 25, NEW = 15 };
    GuestAddr buffers[BUFFERS];
    HeapOptions options;

    world_options(&options);
    options.hooks.park = note_parked;
    start_with(&options);
    for (u32 i = 0; i < BUFFERS; i++) {
        CHECK((buffers[i] = get(BUFFER)));
        *(u8 *)buffers[i] = 0x11;
    }
    parked_bytes = 0;
    for (u32 i = 0; i < BUFFERS; i++)
        heap_free(t, buffers[i], HEAP_MALLOC, 1, NULL);
    quarantine_close(t);
    while (parked_bytes == 0)
        CHECK(get(BUFFER));
    CHECK(parked_bytes >= (u64)OLD * BUFFER);
    for (u32 i = 0; i < BUFFERS; i++) {
        CHECK(is_quarantined(buffers[i], BUFFER));
        CHECK(i >= OLD || *(u8 *)buffers[i] == 0x77);
        CHECK(i < BUFFERS - NEW || *(u8 *)buffers[i] == 0x11); // a stale pointer is mostly used soon
    }
    // Once is enough.
    u64 parked = parked_bytes;
    for (u32 i = 0; i < 3 * BUFFERS; i++)
        CHECK(get(BUFFER));
    CHECK_EQ(parked_bytes, parked);
    // What leaves quarantine is used again.
    u64 mapped = world_mapped_bytes;
    quarantine_drain(t);
    for (u32 i = 0; i < BUFFERS; i++)
        CHECK(get(BUFFER));
    CHECK_EQ(world_mapped_bytes, mapped);
    finish();
}

TEST(what_is_used_again_at_once_is_parked_less_often)
{
    enum { BUFFERS = 200, BUFFER = 100000 };
    GuestAddr buffers[BUFFERS];
    HeapOptions options;

    world_options(&options);
    options.hooks.park = note_parked;
    start_with(&options);
    for (u32 i = 0; i < BUFFERS; i++)
        CHECK((buffers[i] = get(BUFFER)));
    for (u32 i = 0; i < BUFFERS; i++)
        heap_free(t, buffers[i], HEAP_MALLOC, 1, NULL);
    quarantine_drain(t);
    quarantine_trim();
    u64 ticks = heap.trim_ticks;
    for (u32 i = 0; i < BUFFERS; i++)
        CHECK(get(BUFFER));
    quarantine_trim();
    CHECK_EQ(heap.trim_ticks, 4 * ticks);
    quarantine_trim(); // nothing was meanwhile
    CHECK_EQ(heap.trim_ticks, ticks);
    finish();
}

TEST(huge_blocks_are_parked_as_they_are_freed)
{
    HeapOptions options;

    world_options(&options);
    options.hooks.park = note_parked;
    start_with(&options);
    GuestAddr huge = get(2 * MiB), larger_than_quarantine = get(30 * MiB);
    parked_bytes = 0;
    heap_free(t, huge, HEAP_MALLOC, 1, NULL);
    CHECK_EQ(parked_bytes, 2 * MiB);
    heap_free(t, larger_than_quarantine, HEAP_MALLOC, 1, NULL);
    CHECK_EQ(parked_bytes, 2 * MiB);
    finish();
}

TEST(what_was_filled_on_purpose_is_not_parked)
{
    HeapOptions options;

    world_options(&options);
    options.hooks.park = note_parked;
    options.free_fill = 0x5a;
    start_with(&options);
    GuestAddr medium = get(100000), huge = get(2 * MiB);
    parked_bytes = 0;
    heap_free(t, huge, HEAP_MALLOC, 1, NULL);
    heap_free(t, medium, HEAP_MALLOC, 1, NULL);
    quarantine_close(t);
    quarantine_trim();
    CHECK(*(u8 *)medium == 0x5a && *(u8 *)huge == 0x5a);
    finish();
}

TEST(slabs_that_are_empty_again_are_given_back)
{
    enum { BLOCKS = 200000 };
    static GuestAddr blocks[BLOCKS];
    HeapOptions options;

    world_options(&options);
    options.freelist_volume = 100000;
    start_with(&options);
    world_discarded_bytes = 0;
    for (u32 i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = get(200)));
    for (u32 i = 0; i < BLOCKS; i++)
        heap_free(t, blocks[i], HEAP_MALLOC, 1, NULL);
    CHECK(world_discarded_bytes > BLOCKS * 200ull * 7 / 10);
    // What was given back serves other sizes.
    u64 mapped = world_mapped_bytes;
    for (u32 i = 0; i < BLOCKS / 2; i++)
        CHECK((blocks[i] = get(100)));
    CHECK_EQ(world_mapped_bytes, mapped);
    finish();
}

TEST(zeroed_blocks_are_zero_even_in_used_memory)
{
    HeapOptions options;

    world_options(&options);
    options.freelist_volume = 0;
    options.free_fill = 0xdd;
    start_with(&options);
    for (u32 i = 0; i < 1000; i++) {
        u64 size = i * 37 % 5000 + (i % 100 == 0) * 100000;
        u8 *p = (u8 *)world_alloc(t, size, 16, HEAP_MALLOC | HEAP_ZEROED, 1);
        for (u64 k = 0; k < size; k++)
            CHECK(p[k] == 0);
        memset(p, 0x55, size);
        heap_free(t, (GuestAddr)p, HEAP_MALLOC, 1, NULL);
    }
    finish();
}

TEST(fills_are_written_at_allocation_and_at_free)
{
    HeapOptions options;

    world_options(&options);
    options.malloc_fill = 0xa5;
    options.free_fill = 0x5a;
    start_with(&options);
    const u8 *p = (const u8 *)get(100);
    CHECK(p[0] == 0xa5 && p[99] == 0xa5);
    heap_free(t, (GuestAddr)p, HEAP_MALLOC, 1, NULL);
    CHECK(p[0] == 0x5a && p[99] == 0x5a);
    finish();
}

TEST(realloc_moves_content_and_frees_the_old_block)
{
    GuestAddr moved = 0;
    HeapBlock block;

    start();
    GuestAddr a = get(100);
    memset((void *)a, 0x42, 100);
    CHECK_EQ(heap_realloc(t, a, 5000, 9, true, &moved), HEAP_OK);
    CHECK(moved != a && ((u8 *)moved)[99] == 0x42);
    CHECK(heap_find(a, &block) && block.state == HEAP_QUARANTINED && block.free_context == 9);
    CHECK_EQ(heap_realloc(t, a, 10, 9, true, &moved), HEAP_DOUBLE_FREE);
    CHECK_EQ(heap_realloc(t, moved + 1, 10, 9, true, &moved), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_realloc(t, moved, 4 * MiB, 9, false, &moved), HEAP_NEEDS_FULL);
    finish();
}

TEST(light_allocation_never_maps)
{
    start();
    CHECK_EQ(heap_alloc(t, 10, 16, HEAP_MALLOC, 1), 0);
    CHECK_EQ(world_mapped_bytes, 0);
    CHECK(get(10) && heap_alloc(t, 10, 16, HEAP_MALLOC, 1));
    CHECK_EQ(heap_alloc(t, 4 * MiB, 16, HEAP_MALLOC, 1), 0);
    finish();
}

TEST(refused_memory_is_a_failed_allocation_and_nothing_else)
{
    start();
    world_map_limit = 8 * MiB;
    CHECK(get(100));
    CHECK_EQ(get(1ull << 40), 0);
    CHECK_EQ(get(~0ull), 0);
    CHECK_EQ(get(~0ull - 4096), 0);
    u32 count = 0;
    while (count < 1000 && get(64000))
        count++;
    CHECK(count > 50 && count < 1000);
    heap_validate();
    CHECK(get(100));
    finish();
}

TEST(quarantine_is_given_up_before_an_allocation_fails)
{
    GuestAddr blocks[200];
    u32 count = 0;

    start();
    world_map_limit = 12 * MiB;
    while (count < 200 && (blocks[count] = get(60000)))
        count++;
    CHECK(count < 200);
    for (u32 i = 0; i < count; i++)
        heap_free(t, blocks[i], HEAP_MALLOC, 1, NULL);
    for (u32 i = 0; i < count; i++)
        CHECK(get(60000));
    finish();
}

TEST(client_that_writes_over_everything_does_not_disturb_the_heap)
{
    enum { BLOCKS = 5000 };
    static GuestAddr blocks[BLOCKS];
    HeapBlock block;

    start();
    for (u32 i = 0; i < BLOCKS; i++)
        blocks[i] = world_alloc(t, i % 300, 16, HEAP_MALLOC, i);
    for (u32 i = 0; i < BLOCKS; i++)
        memset((void *)(blocks[i] & ~65535ull), 0xff, 65536);
    heap_validate();
    for (u32 i = 0; i < BLOCKS; i++) {
        CHECK(heap_find(blocks[i], &block) && block.alloc_context == i);
        CHECK_EQ(heap_free(t, blocks[i], HEAP_MALLOC, 1, NULL), HEAP_OK);
        memset((void *)(blocks[i] & ~65535ull), 0xfe, 65536);
    }
    finish();
}

// Counted page by page: what statm says is off by what each processor has not yet told.
static u64 resident_bytes(void)
{
    unsigned long long kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");

    while (file && !kib && fgets(line, sizeof(line), file))
        sscanf(line, "Rss: %llu kB", &kib);
    CHECK(kib);
    fclose(file);
    return kib * KiB;
}

TEST(a_block_costs_a_gap_and_at_most_24_bytes_more)
{
    enum { BLOCKS = 500000, BATCHES = 6 };
    u64 least = ~0ull;

    start();
    // Where in the tables' pages a batch falls differs from run to run, by half a byte a block.
    for (u32 batch = 0; batch < BATCHES; batch++) {
        u64 before = resident_bytes();
        for (u32 i = 0; i < BLOCKS; i++)
            memset((void *)get(32), 1, 32);
        least = min_u64(least, (resident_bytes() - before) / BLOCKS);
    }
    printf("# a block of 32 bytes costs %llu\n", (unsigned long long)least);
    CHECK(least <= 32 + 16 + 24);
    finish();
}

TEST(counters_are_exact)
{
    HeapStats stats;

    start();
    GuestAddr a = get(100), b = get(2 * MiB);
    get(1);
    heap_free(t, a, HEAP_MALLOC, 1, NULL);
    heap_free(t, a, HEAP_MALLOC, 1, NULL);
    heap_free(t, b, HEAP_NEW, 1, NULL);
    heap_stats(&stats);
    CHECK_EQ(stats.allocs, 3);
    CHECK_EQ(stats.frees, 2);
    CHECK_EQ(stats.allocated_bytes, 101 + 2 * MiB);
    CHECK_EQ(stats.live_bytes, 1);
    CHECK_EQ(stats.live_blocks, 1);
    heap_thread_end(t);
    t = heap_thread_start(8);
    heap_stats(&stats);
    CHECK_EQ(stats.allocs, 3);
    finish();
}

TEST(child_of_a_fork_goes_on_alone)
{
    HeapStats stats;
    int status;

    start();
    HeapThread *other = heap_thread_start(9);
    world_alloc(other, 10, 16, HEAP_MALLOC, 1);
    get(20);
    heap_fork_prepare();
    pid_t child = fork();
    if (child == 0) {
        heap_fork_child(t);
        for (u32 i = 0; i < 10000; i++)
            heap_free(t, get(i % 500), HEAP_MALLOC, 1, NULL);
        heap_stats(&stats);
        bool ok = stats.live_blocks == 2 && stats.live_bytes == 30;
        heap_validate();
        _exit(ok ? 0 : 1);
    }
    heap_fork_parent();
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    heap_thread_end(other);
    finish();
}

// --- external blocks

TEST(what_is_counted_can_be_read_by_others)
{
    static HeapCounts shared[3];
    HeapStats stats;

    memset(shared, 0, sizeof shared);
    start();
    get(100);
    heap_count_in(shared, ARRAY_LEN(shared));
    CHECK_EQ(shared[1].allocs, 1); // what has been counted so far is there
    CHECK_EQ(shared[1].allocated_bytes, 100);
    CHECK(shared[0].is_used && shared[1].is_used && !shared[2].is_used);
    HeapThread *second = heap_thread_start(8), *third = heap_thread_start(9);
    heap_free(t, world_alloc(second, 20, 16, HEAP_MALLOC, 1), HEAP_MALLOC, 1, NULL);
    world_alloc(third, 3, 16, HEAP_MALLOC, 1); // there is no room for it
    CHECK_EQ(shared[1].frees, 1);
    CHECK_EQ(shared[2].allocs, 1);
    heap_thread_end(second);
    CHECK_EQ(shared[0].allocs, 1);
    CHECK_EQ(shared[2].allocs, 0);
    heap_count_refused_realloc(5);
    CHECK_EQ(shared[0].more_bytes, 5);
    heap_stats(&stats);
    CHECK_EQ(stats.allocs, 3);
    CHECK_EQ(stats.live_bytes, 103);
    CHECK_EQ(stats.usage_bytes, 128);
    heap_thread_end(third);
    finish();
}

TEST(child_counts_what_it_has_got)
{
    static HeapCounts shared[3], before[3];
    HeapStats stats;
    int status;

    memset(shared, 0, sizeof shared);
    start();
    heap_count_in(shared, ARRAY_LEN(shared));
    HeapThread *other = heap_thread_start(9);
    world_alloc(other, 10, 16, HEAP_MALLOC, 1);
    GuestAddr freed = world_alloc(other, 10, 16, HEAP_MALLOC, 1);
    heap_free(other, world_alloc(other, 10, 16, HEAP_MALLOC, 1), HEAP_MALLOC, 1, NULL);
    get(20);
    heap_fork_prepare();
    world_alloc(other, 10, 16, HEAP_MALLOC, 1); // from its magazine, without a lock
    world_alloc(other, 10, 16, HEAP_MALLOC, 1);
    heap_free(other, freed, HEAP_MALLOC, 1, NULL);
    memcpy(before, shared, sizeof shared);
    pid_t child = fork();
    if (child == 0) {
        heap_fork_child(t);
        heap_free(t, get(7), HEAP_MALLOC, 1, NULL);
        heap_stats(&stats);
        bool ok = stats.live_blocks == 4 && stats.live_bytes == 50;
        _exit(ok && memcmp(before, shared, sizeof shared) == 0 ? 0 : 1);
    }
    heap_fork_parent();
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    heap_thread_end(other);
    finish();
}

TEST(announced_block_is_found_before_the_one_it_is_carved_from)
{
    HeapBlock block;

    start();
    GuestAddr arena = get(10000);
    CHECK_EQ(heap_malloclike(t, arena + 100, 50, 8, false, 70), HEAP_OK);
    CHECK(heap_find(arena + 120, &block) && block.is_external && block.start == arena + 100);
    CHECK(block.kind == HEAP_CUSTOM && block.alloc_context == 70 && block.thread == 7);
    CHECK(heap_find(arena + 153, &block) && block.is_external && block.relation == HEAP_AFTER);
    CHECK(heap_find(arena + 92, &block) && block.is_external && block.relation == HEAP_BEFORE);
    CHECK(heap_find(arena + 160, &block) && !block.is_external && block.start == arena);
    CHECK_EQ(heap_malloclike(t, arena + 100, 5, 0, false, 71), HEAP_MISMATCHED);
    CHECK_EQ(heap_freelike(t, arena + 100, 72, &block), HEAP_OK);
    CHECK(heap_find(arena + 101, &block) && block.state == HEAP_QUARANTINED && block.is_external);
    CHECK_EQ(heap_freelike(t, arena + 100, 73, &block), HEAP_DOUBLE_FREE);
    CHECK_EQ(block.free_context, 72);
    CHECK_EQ(heap_malloclike(t, arena + 90, 50, 8, false, 74), HEAP_OK);
    CHECK_EQ(heap_freelike(t, arena + 100, 73, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, arena + 90, HEAP_MALLOC, 75, &block), HEAP_MISMATCHED);
    finish();
}

TEST(announced_block_can_be_resized)
{
    HeapBlock old;
    HeapStats stats;

    start();
    GuestAddr arena = get(1000);
    CHECK_EQ(heap_malloclike(t, arena, 50, 0, false, 70), HEAP_OK);
    CHECK_EQ(heap_resize_inplace(t, arena, 80, 71, &old), HEAP_OK);
    CHECK_EQ(old.size_bytes, 50);
    CHECK_EQ(heap_resize_inplace(t, arena, 20, 71, &old), HEAP_OK);
    CHECK_EQ(old.size_bytes, 80);
    CHECK_EQ(heap_resize_inplace(t, arena + 1, 20, 71, &old), HEAP_NOT_A_BLOCK);
    heap_stats(&stats);
    CHECK_EQ(stats.live_bytes, 1020);
    CHECK_EQ(stats.live_blocks, 2);
    finish();
}

TEST(pool_does_what_the_requests_say)
{
    HeapBlock block;

    start();
    GuestAddr arena = get(10000);
    CHECK_EQ(heap_pool_create(arena, 4, false, 0), HEAP_OK);
    CHECK_EQ(heap_pool_create(arena, 4, false, 0), HEAP_MISMATCHED);
    for (u32 i = 0; i < 10; i++)
        CHECK_EQ(heap_pool_alloc(t, arena, arena + 100 + i * 100, 50, i), HEAP_OK);
    CHECK_EQ(heap_pool_alloc(t, arena + 1, arena + 5000, 50, 1), HEAP_NOT_A_BLOCK);
    CHECK(heap_find(arena + 310, &block) && block.kind == HEAP_POOL && block.pool == arena);
    CHECK_EQ(heap_pool_free(t, arena, arena + 300, 9, &block), HEAP_OK);
    CHECK_EQ(heap_pool_free(t, arena, arena + 300, 9, &block), HEAP_DOUBLE_FREE);
    CHECK_EQ(heap_pool_free(t, arena, arena + 301, 9, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_free(t, arena + 200, HEAP_MALLOC, 9, &block), HEAP_NOT_A_BLOCK);
    CHECK_EQ(heap_pool_change(arena, arena + 400, arena + 410, 60, 8), HEAP_OK);
    CHECK(heap_find(arena + 410, &block) && block.size_bytes == 60);
    CHECK_EQ(heap_pool_move(arena, arena + 8), HEAP_OK);
    CHECK(!heap_pool_exists(arena) && heap_pool_exists(arena + 8));
    // [120, 520) keeps 200, 410 and 500 cut to 20, and the tail of 100.
    CHECK_EQ(heap_pool_trim(t, arena + 8, arena + 120, 400, 6), HEAP_OK);
    CHECK(heap_find(arena + 125, &block) && block.start == arena + 120 && block.size_bytes == 30);
    CHECK(heap_find(arena + 510, &block) && block.start == arena + 500 && block.size_bytes == 20);
    CHECK(heap_find(arena + 610, &block) && block.state == HEAP_QUARANTINED);
    heap_validate();
    CHECK_EQ(heap_pool_destroy(t, arena + 8, 5), HEAP_OK);
    CHECK(!heap_pool_exists(arena + 8));
    CHECK(heap_find(arena + 510, &block) && block.state == HEAP_QUARANTINED);
    finish();
}

TEST(auto_free_pool_ends_the_blocks_inside_its_chunks)
{
    HeapBlock block;

    start();
    GuestAddr arena = get(10000);
    CHECK_EQ(heap_pool_create(arena, 0, false, HEAP_POOL_META | HEAP_POOL_AUTO_FREE), HEAP_OK);
    CHECK_EQ(heap_pool_alloc(t, arena, arena + 100, 1000, 1), HEAP_OK);
    CHECK_EQ(heap_malloclike(t, arena + 100, 50, 0, false, 2), HEAP_OK);
    CHECK_EQ(heap_malloclike(t, arena + 200, 50, 0, false, 3), HEAP_OK);
    CHECK_EQ(heap_malloclike(t, arena + 2000, 50, 0, false, 4), HEAP_OK);
    CHECK_EQ(heap_pool_free(t, arena, arena + 100, 9, NULL), HEAP_OK);
    CHECK_EQ(heap_freelike(t, arena + 2000, 9, NULL), HEAP_OK);
    CHECK(!heap_find(arena + 210, &block) || block.state != HEAP_LIVE || !block.is_external);
    finish();
}

typedef struct Seen {
    GuestAddr starts[100];
    u32 count;
} Seen;

static void see(void *data, const HeapBlock *block)
{
    Seen *seen = data;

    seen->starts[seen->count++] = block->start;
}

TEST(walk_is_sorted_and_leaves_containers_out)
{
    Seen seen = { 0 };

    start();
    GuestAddr arena = get(10000), huge = get(3 * MiB), small = get(16);
    heap_free(t, get(16), HEAP_MALLOC, 1, NULL);
    heap_malloclike(t, arena + 64, 64, 0, false, 1);
    heap_malloclike(t, arena + 256, 64, 0, false, 1);
    heap_malloclike(t, 4096, 64, 0, false, 1);
    CHECK(heap_for_each_live(true, see, &seen));
    CHECK_EQ(seen.count, 5);
    for (u32 i = 0; i < seen.count; i++) {
        CHECK(i == 0 || seen.starts[i] > seen.starts[i - 1]);
        CHECK(seen.starts[i] != arena);
    }
    CHECK_EQ(seen.starts[0], 4096);
    // Chunks that MALLOCLIKE blocks lie in stay, unless they are the same.
    heap_pool_create(0x1000000, 0, false, HEAP_POOL_META);
    heap_pool_alloc(t, 0x1000000, 8192, 1000, 1);
    heap_pool_alloc(t, 0x1000000, 16384, 64, 1);
    heap_malloclike(t, 8192, 64, 0, false, 1);
    heap_malloclike(t, 8300, 64, 0, false, 1);
    heap_malloclike(t, 16384, 64, 0, false, 1);
    seen.count = 0;
    CHECK(heap_for_each_live(true, see, &seen));
    CHECK_EQ(seen.count, 9);
    CHECK_EQ(seen.starts[1], 8192);
    CHECK_EQ(seen.starts[2], 8192);
    CHECK_EQ(seen.starts[3], 8300);
    CHECK_EQ(seen.starts[4], 16384);
    seen.count = 0;
    CHECK(heap_for_each_live(false, see, &seen));
    CHECK_EQ(seen.count, 11);
    CHECK(huge && small);
    finish();
}
