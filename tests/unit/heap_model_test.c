// SPDX-License-Identifier: MIT
//
// The heap against a model that is too simple to be wrong: a list of blocks and a shadow byte for
// every byte. Random calls, deterministic seeds; each answer is compared, content is checked at
// free, and H1 of heap.h at every announcement.
#include "heap_world.h"

enum { SPAN = 64 * MiB, MODEL_MAX = 3000 };

typedef struct ModelBlock {
    GuestAddr start;
    u64 size;
    u32 context;
    u8 kind;
    u8 tag; // its content
} ModelBlock;

static HeapThread *t;
static u64 seed;
static ModelBlock live[MODEL_MAX];
static u32 live_count;
static ModelBlock freed[MODEL_MAX]; // may have been recycled since
static u32 freed_count;

// The shadow: 0 not the heap's, 1 not addressable, 2 addressable.
static GuestAddr arena;
static u64 arena_used;
static u8 *shadow;

static GuestAddr model_map(u64 size, u64 alignment)
{
    u64 start = (arena + arena_used + alignment - 1) & ~(alignment - 1);

    size = PAGE_UP(size);
    if (start + size > arena + SPAN)
        return 0;
    arena_used = start + size - arena;
    return start;
}

static void model_unmap(GuestAddr start, u64 size)
{
    memset(shadow + (start - arena), 0, PAGE_UP(size));
    madvise((void *)start, PAGE_UP(size), MADV_DONTNEED);
}

static void expect_shadow(GuestAddr start, u64 size, u8 wanted)
{
    for (u64 i = 0; i < size; i++) {
        if (shadow[start - arena + i] != wanted)
            FAIL("byte %llu of %llu is %d, not %d", (unsigned long long)i,
                 (unsigned long long)size, shadow[start - arena + i], wanted);
    }
}

static void model_fresh(GuestAddr start, u64 size)
{
    for (u64 i = 0; i < size; i++)
        CHECK(shadow[start - arena + i] != 2);
    memset(shadow + (start - arena), 1, size);
}

static bool is_huge_size(u64 size)
{
    return size >= 1 * MiB;
}

static void model_allocated(GuestAddr start, u64 size, bool is_zeroed, u32 context)
{
    (void)is_zeroed, (void)context;
    // Of a huge block only the gaps were announced.
    expect_shadow(start, size, is_huge_size(size) ? 0 : 1);
    memset(shadow + (start - arena), 2, size);
}

static void model_freed(GuestAddr start, u64 size)
{
    expect_shadow(start, size, 2);
    memset(shadow + (start - arena), 1, size);
}

static void model_start(u32 redzone, u64 volume, u64 big)
{
    HeapOptions options;

    world_options(&options);
    options.redzone_bytes = redzone;
    options.freelist_volume = volume;
    options.freelist_big = big;
    options.hooks.map = model_map;
    options.hooks.unmap = model_unmap;
    options.hooks.fresh = model_fresh;
    options.hooks.allocated = model_allocated;
    options.hooks.freed = model_freed;
    arena = world_map(SPAN, 4 * MiB);
    shadow = (u8 *)world_map(SPAN, PAGE_SIZE);
    arena_used = 0;
    live_count = freed_count = 0;
    CHECK(arena && shadow && heap_init(&options));
    t = heap_thread_start(3);
}

static void model_finish(void)
{
    heap_thread_end(t);
    heap_destroy();
    world_unmap(arena, SPAN);
    world_unmap((GuestAddr)shadow, SPAN);
}

static u64 random_size(void)
{
    u64 r = world_random(&seed);

    switch (r % 40) {
    case 0:
        return 0;
    case 1:
        return (r >> 8) % (200 * KiB);
    case 2:
        return (r >> 8) % 16 == 0 ? (r >> 16) % (2 * MiB) : 5;
    case 3 ... 8:
        return (r >> 8) % 5000;
    default:
        return (r >> 8) % 200;
    }
}

static void step_alloc(void)
{
    u64 r = world_random(&seed), size = random_size();
    u64 alignment = r % 8 == 0 ? 1ull << (r >> 8) % 14 : 16;
    static const u8 kinds[] = { HEAP_MALLOC, HEAP_NEW, HEAP_NEW_ARRAY, HEAP_MEMALIGN };
    u8 kind = kinds[(r >> 20) % 4];

    if (live_count == MODEL_MAX)
        return;
    GuestAddr start = world_alloc(t, size, alignment, kind, (u32)(r >> 32));
    if (!start)
        return;
    CHECK(start % alignment == 0 && start % 16 == 0);
    ModelBlock block = { start, size, (u32)(r >> 32), kind, (u8)(r >> 24) };
    memset((void *)start, block.tag, size);
    live[live_count++] = block;
}

static HeapKind matching_kind(u8 kind)
{
    return kind == HEAP_MEMALIGN ? HEAP_MALLOC : (HeapKind)kind;
}

static void step_free(void)
{
    u64 r = world_random(&seed);
    HeapBlock told;

    if (live_count == 0)
        return;
    u32 which = (u32)(r % live_count);
    ModelBlock block = live[which];
    live[which] = live[--live_count];
    for (u64 i = 0; i < block.size; i++)
        CHECK(((u8 *)block.start)[i] == block.tag);
    bool mismatch = (r >> 32) % 10 == 0;
    HeapKind kind = matching_kind(block.kind);
    if (mismatch)
        kind = kind == HEAP_NEW ? HEAP_MALLOC : HEAP_NEW;
    HeapResult result = heap_free(t, block.start, kind, 55, &told);
    CHECK_EQ(result, mismatch ? HEAP_MISMATCHED : HEAP_OK);
    CHECK(!mismatch || (told.start == block.start && told.alloc_context == block.context));
    freed[freed_count++ % MODEL_MAX] = block;
    if (heap_is_unsettled() && r % 3 == 0)
        heap_settle();
}

static bool is_live_start(GuestAddr address)
{
    for (u32 i = 0; i < live_count; i++) {
        if (live[i].start == address)
            return true;
    }
    return false;
}

static void step_wrong_free(void)
{
    u64 r = world_random(&seed);
    GuestAddr address = arena + r % SPAN;

    if (r % 2 == 0 && freed_count)
        address = freed[(r >> 8) % min_u64(freed_count, MODEL_MAX)].start;
    if (is_live_start(address))
        return;
    HeapResult result = heap_free(t, address, HEAP_MALLOC, 66, NULL);
    CHECK(result == HEAP_NOT_A_BLOCK || result == HEAP_DOUBLE_FREE);
}

// The truth about an address: inside which live block, or the nearest live neighbours.
static void step_find(void)
{
    u64 r = world_random(&seed);
    HeapBlock told;

    if (live_count == 0)
        return;
    const ModelBlock *block = &live[r % live_count];
    i64 offset = (i64)((r >> 16) % (block->size + 32)) - 16;
    GuestAddr address = block->start + (u64)offset;
    CHECK(heap_find(address, &told));
    bool inside = offset >= 0 && (u64)offset < block->size;
    if (inside) {
        CHECK(told.relation == HEAP_INSIDE && told.start == block->start);
        CHECK(told.size_bytes == block->size && told.alloc_context == block->context);
        CHECK(told.kind == block->kind && told.state == HEAP_LIVE);
        CHECK_EQ(told.distance_bytes, offset);
        return;
    }
    // Something nearer may exist, but nothing farther may be told.
    u64 distance = offset < 0 ? (u64)-offset : (u64)offset - block->size;
    CHECK(told.relation == HEAP_INSIDE ? told.state != HEAP_LIVE || told.start != block->start
                                       : told.distance_bytes <= distance);
}

static void step_realloc(void)
{
    u64 r = world_random(&seed), size = random_size();
    GuestAddr moved;

    if (live_count == 0)
        return;
    ModelBlock *block = &live[r % live_count];
    if (matching_kind(block->kind) != HEAP_MALLOC)
        return;
    if (heap_realloc(t, block->start, size, 7, true, &moved) != HEAP_OK)
        return;
    for (u64 i = 0; i < min_u64(size, block->size); i++)
        CHECK(((u8 *)moved)[i] == block->tag);
    memset((void *)moved, block->tag, size);
    *block = (ModelBlock){ moved, size, 7, HEAP_MALLOC, block->tag };
}

static void check_whole(void)
{
    HeapStats stats;
    u64 bytes = 0;

    heap_validate();
    heap_stats(&stats);
    for (u32 i = 0; i < live_count; i++) {
        bytes += live[i].size;
        expect_shadow(live[i].start, live[i].size, 2);
    }
    CHECK_EQ(stats.live_bytes, bytes);
    CHECK_EQ(stats.live_blocks, live_count);
}

static void run_model(u64 first_seed, u32 steps)
{
    seed = first_seed * 0x9e3779b97f4a7c15ull + 1;
    for (u32 i = 0; i < steps; i++) {
        u64 r = world_random(&seed) % 100;
        u32 bias = i / 4000 % 2 ? 30 : 50; // the heap grows and shrinks in turn
        if (r < bias)
            step_alloc();
        else if (r < 80)
            step_free();
        else if (r < 92)
            step_find();
        else if (r < 96)
            step_wrong_free();
        else
            step_realloc();
        if (i % 2000 == 0)
            check_whole();
    }
    while (live_count)
        step_free();
    check_whole();
}

TEST(random_calls_agree_with_the_model)
{
    static const struct {
        u32 redzone;
        u64 volume, big;
    } settings[] = {
        { 16, 20000000, 1000000 }, { 16, 100000, 1000 }, { 0, 0, 0 },
        { 5, 5000, 0 },            { 256, 300000, 100 }, { 4096, 50000, 1000000 },
    };

    for (u32 i = 0; i < ARRAY_LEN(settings); i++) {
        model_start(settings[i].redzone, settings[i].volume, settings[i].big);
        run_model(i + 1, 12000);
        model_finish();
    }
}

// Announced blocks against an array of what is announced.
TEST(random_announcements_agree_with_the_model)
{
    enum { PLACES = 500 };
    static u32 context[PLACES]; // 0: not announced
    GuestAddr base = 0x10000;
    HeapOptions options;

    seed = 99;
    world_options(&options);
    CHECK(heap_init(&options));
    t = heap_thread_start(1);
    heap_pool_create(1, 0, false, 0);
    for (u32 i = 0; i < 30000; i++) {
        u64 r = world_random(&seed);
        u32 place = (u32)(r % PLACES);
        GuestAddr start = base + place * 64;
        bool pooled = place % 3 == 0;
        if (!context[place]) {
            context[place] = (u32)(r >> 33) | 1;
            HeapResult result =
                pooled ? heap_pool_alloc(t, 1, start, 1 + r % 64, context[place])
                       : heap_malloclike(t, start, 1 + r % 64, 0, false, context[place]);
            CHECK_EQ(result, HEAP_OK);
        } else if (r >> 32 & 1) {
            HeapResult result = pooled ? heap_pool_free(t, 1, start, 2, NULL)
                                       : heap_freelike(t, start, 2, NULL);
            CHECK_EQ(result, HEAP_OK);
            context[place] = 0;
        }
        HeapBlock block;
        u32 probe = (u32)(r >> 40) % PLACES;
        bool found = heap_find(base + probe * 64, &block);
        CHECK(context[probe] ? found && block.alloc_context == context[probe] &&
                                   block.state == HEAP_LIVE
                             : !found || block.state == HEAP_QUARANTINED ||
                                   block.relation != HEAP_INSIDE);
        if (i % 3000 == 0)
            heap_validate();
    }
    CHECK_EQ(heap_pool_destroy(t, 1, 3), HEAP_OK);
    heap_validate();
    heap_thread_end(t);
    heap_destroy();
}

// A client may say anything about its pools: ranges that overlap, wrap or repeat. Nothing may
// break, and what is announced last at a place is what is found there.
TEST(hostile_announcements_break_nothing)
{
    HeapOptions options;
    HeapBlock block;

    seed = 4711;
    world_options(&options);
    CHECK(heap_init(&options));
    t = heap_thread_start(1);
    for (u32 i = 0; i < 60000; i++) {
        u64 r = world_random(&seed);
        GuestAddr pool = (r >> 8) % 3 + 1, at = 0x1000 + (r >> 16) % 600, to = at + (r >> 30) % 9;
        u64 size = (r >> 34) % 50;
        if (r % 97 == 0)
            at = ~0ull - (r >> 50) % 20;
        if (r % 89 == 0)
            size = ~0ull >> (r >> 50) % 64;
        u32 redzone = (r >> 40) % 2 ? ~0u : (u32)(r >> 44) % 16;
        switch (r % 12) {
        case 0:
            heap_pool_create(pool, redzone, r >> 41 & 1, (r >> 42) % 4);
            break;
        case 1:
            if ((r >> 45) % 20 == 0)
                heap_pool_destroy(t, pool, 1);
            break;
        case 2 ... 4:
            if (heap_pool_alloc(t, pool, at, size, i) == HEAP_OK && size)
                CHECK(heap_find(at, &block));
            break;
        case 5:
            heap_pool_free(t, pool, at, 1, &block);
            break;
        case 6:
            heap_pool_trim(t, pool, at, size, 1);
            break;
        case 7:
            heap_pool_change(pool, at, to, size, 1);
            break;
        case 8:
            heap_pool_move(pool, (r >> 50) % 3 + 1);
            break;
        case 9:
            if (heap_malloclike(t, at, size, redzone, false, i) == HEAP_OK && size)
                CHECK(heap_find(at, &block) && block.alloc_context == i);
            break;
        case 10:
            heap_freelike(t, at, 1, &block);
            break;
        default:
            heap_resize_inplace(t, at, size, 1, &block);
        }
        heap_find(at + size, &block);
        if (i % 5000 == 0)
            heap_validate();
    }
    heap_thread_end(t);
    heap_destroy();
}
