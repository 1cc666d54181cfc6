// SPDX-License-Identifier: MIT
//
// Arena, map and vec: their edges by example, the map also against a plain array
// under random operations.
#include "base/arena.h"
#include "base/map.h"
#include "base/pages.h"
#include "base/vec.h"

#include "unit.h"

static u64 random_state = 88172645463325252ull;

static u64 random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static bool is_zero(const u8 *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

TEST(arena_memory_is_zeroed_aligned_and_disjoint)
{
    Arena arena = { 0 };

    for (int i = 0; i < 5000; i++) {
        size_t size = random_u64() % 300;
        size_t align = 1ull << random_u64() % 8;
        u8 *p = arena_alloc(&arena, size, align);
        CHECK(p && (uintptr_t)p % align == 0);
        CHECK(is_zero(p, size));
        memset(p, 0xff, size);
    }
    arena_free(&arena);
    CHECK(arena.mapped_bytes == 0);
}

TEST(arena_serves_what_is_larger_than_a_chunk)
{
    Arena arena = { 0 };
    u8 *p = arena_alloc(&arena, 9 * MiB, PAGE_SIZE);

    CHECK(p && (uintptr_t)p % PAGE_SIZE == 0);
    p[9 * MiB - 1] = 1;
    arena_free(&arena);
}

TEST(arena_after_reset_is_zeroed_and_keeps_one_chunk)
{
    Arena arena = { 0 };

    for (int i = 0; i < 100; i++)
        memset(arena_alloc(&arena, 10000, 8), 0xff, 10000);
    arena_reset(&arena);
    u64 mapped = arena.mapped_bytes;
    for (int i = 0; i < 100; i++) {
        arena_reset(&arena);
        u8 *p = arena_alloc(&arena, 10000, 8);
        CHECK(is_zero(p, 10000));
        memset(p, 0xff, 10000);
    }
    CHECK(arena.mapped_bytes == mapped);
    arena_free(&arena);
}

TEST(arena_refuses_the_absurd)
{
    Arena arena = { 0 };

    CHECK(!arena_alloc(&arena, SIZE_MAX, 8));
    CHECK(!arena_alloc(&arena, SIZE_MAX - 64, 8));
    arena_free(&arena);
}

TEST(empty_map_knows_nothing)
{
    Map map = { 0 };
    u64 value = 7, key;
    size_t cursor = 0;

    CHECK(!map_get(&map, 1, &value) && value == 7);
    CHECK(!map_remove(&map, 1));
    CHECK(!map_next(&map, &cursor, &key, &value));
    CHECK(map_count(&map) == 0);
}

TEST(key_zero_is_a_key)
{
    Map map = { 0 };
    u64 value = 0;

    CHECK(!map_get(&map, 0, &value));
    CHECK(map_put(&map, 0, 5) && map_get(&map, 0, &value) && value == 5);
    CHECK(map_count(&map) == 1);
    CHECK(map_remove(&map, 0) && !map_remove(&map, 0));
    CHECK(map_count(&map) == 0);
    map_free(&map);
}

// Few distinct keys, so that every one is put, replaced and removed many times
// and long runs form, break and wrap around.
TEST(map_agrees_with_an_array_under_random_operations)
{
    enum { KEYS = 900 };
    static u64 model[KEYS];
    static bool present[KEYS];
    Map map = { 0 };
    size_t count = 0;

    for (int i = 0; i < 300000; i++) {
        u64 k = random_u64() % KEYS;
        u64 key = k * 4096;
        u64 value = 0;
        switch (random_u64() % 3) {
        case 0:
            CHECK(map_put(&map, key, (u64)i));
            count += !present[k];
            present[k] = true;
            model[k] = (u64)i;
            break;
        case 1:
            CHECK(map_remove(&map, key) == present[k]);
            count -= present[k];
            present[k] = false;
            break;
        default:
            CHECK(map_get(&map, key, &value) == present[k]);
            CHECK(!present[k] || value == model[k]);
        }
        CHECK(map_count(&map) == count);
    }

    size_t cursor = 0, seen = 0;
    u64 key, value;
    while (map_next(&map, &cursor, &key, &value)) {
        CHECK(present[key / 4096] && model[key / 4096] == value);
        seen++;
    }
    CHECK(seen == count);
    map_free(&map);
}

TEST(map_grows_to_a_million_keys)
{
    Map map = { 0 };
    u64 value = 0;

    for (u64 i = 0; i < 1000000; i++)
        CHECK(map_put(&map, i * 16, i));
    for (u64 i = 0; i < 1000000; i++)
        CHECK(map_get(&map, i * 16, &value) && value == i);
    CHECK(map_count(&map) == 1000000);
    map_free(&map);
}

// What is put in has to be near to where it is looked for: a run of slots in use is as long as the
// way that a search for a key that is not there may take. At random it is some hundreds here.
TEST(regular_keys_are_spread_over_a_map)
{
    enum { KEYS = 90000, RUN_MAX = 800 };
    static const u64 starts[] = {0, 1, 0x7f0000000000, 1ull << 62};

    for (u32 pattern = 0; pattern < ARRAY_LEN(starts) * 45; pattern++) {
        u32 shift = pattern % 45;
        Map map = {0};
        size_t run = 0, longest = 0;
        for (u64 i = 1; i <= KEYS; i++)
            CHECK(map_put(&map, (i << shift) + starts[pattern / 45], i));
        for (size_t i = 0; i < 2 * map.slot_count; i++) {
            run = map.slots[i % map.slot_count].key ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        if (longest > RUN_MAX)
            FAIL("%u slots in a row of keys %u bits apart", (u32)longest, shift);
        map_free(&map);
    }
}

TEST(vec_keeps_its_elements_while_it_grows)
{
    Vec vec;

    vec_init(&vec, sizeof(u64));
    for (u64 i = 0; i < 200000; i++)
        CHECK(vec_push(&vec, &i));
    for (u64 i = 0; i < 200000; i++)
        CHECK(*(u64 *)vec_at(&vec, i) == i);
    vec_remove_unordered(&vec, 10);
    CHECK(*(u64 *)vec_at(&vec, 10) == 199999 && vec.count == 199999);
    vec_pop(&vec);
    CHECK(vec.count == 199998);
    CHECK(*(u64 *)vec_push(&vec, NULL) == 0);
    vec_free(&vec);
    CHECK(vec.count == 0 && !vec.data);
}

TEST(vec_holds_elements_larger_than_a_page)
{
    static u8 element[10000];
    Vec vec;

    vec_init(&vec, sizeof(element));
    for (int i = 0; i < 20; i++) {
        memset(element, i, sizeof(element));
        CHECK(vec_push(&vec, element));
    }
    for (int i = 0; i < 20; i++)
        CHECK(((u8 *)vec_at(&vec, (size_t)i))[9999] == i);
    vec_free(&vec);
}

TEST(reserved_pages_open_one_by_one)
{
    u8 *pages = pages_reserve(16 * GiB);

    CHECK(pages && pages_open(pages + GiB, PAGE_SIZE));
    pages[GiB] = 1;
    pages_discard(pages + GiB, PAGE_SIZE);
    CHECK(pages[GiB] == 0);
    pages_unmap(pages, 16 * GiB);
}
