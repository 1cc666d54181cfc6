// SPDX-License-Identifier: MIT
//
// Who holds the blocks of each record: by hand, in tables of many pointers, and in random heaps, where
// the sums must come out and holders must lead to roots.
#include "leak_world.h"

static LeakHolder holders[LEAK_HOLDERS_MAX];

static LeakCheck *check_holders(void)
{
    input.wants_holders = true;
    return check_now(NULL);
}

static u64 record_with(const LeakCheck *check, u32 context, u32 kind)
{
    for (u64 i = 0; i < leak_record_count(check); i++) {
        if (leak_record(check, i)->context == context && leak_record(check, i)->kind == kind)
            return i;
    }
    FAIL("no record of context %u", context);
}

static void expect_record(const LeakHolder *holder, u64 record, u64 held_blocks, u64 bytes)
{
    CHECK(holder->place == LEAK_IN_BLOCK && holder->index == record);
    CHECK(holder->blocks == held_blocks && holder->bytes == bytes);
}

TEST(list_is_held_by_a_root_and_by_itself)
{
    start_world();
    for (u32 i = 0; i < 10; i++)
        *place(i * 64, 16, 1) = i < 9 ? (u64)memory + (i + 1) * 64 : 0;
    u64 *data = place(1024, 100, 2);
    ((u64 *)(memory + 64))[1] = (u64)data;
    root[7] = (u64)memory;
    LeakCheck *check = check_holders();
    u64 list = record_with(check, 1, LOSS_REACHABLE);
    CHECK_EQ(leak_holders(check, list, holders), 2);
    CHECK(holders[0].place == LEAK_IN_ROOT && holders[0].index == 0);
    CHECK(holders[0].location == (GuestAddr)&root[7] && holders[0].bytes == 16);
    expect_record(&holders[1], list, 9, 144);
    CHECK_EQ(leak_holders(check, record_with(check, 2, LOSS_REACHABLE), holders), 1);
    expect_record(&holders[0], list, 1, 100);
    leak_free(check);
}

// Children point back to their parents and lie below them.
TEST(pointers_back_to_a_parent_do_not_make_children_its_holders)
{
    start_world();
    u64 *child = place(0, 16, 2), *parent = place(64, 16, 1);
    parent[0] = (u64)child;
    parent[1] = (u64)parent;
    child[0] = (u64)parent;
    root[0] = (u64)parent;
    LeakCheck *check = check_holders();
    u64 of_parent = record_with(check, 1, LOSS_REACHABLE);
    CHECK_EQ(leak_holders(check, of_parent, holders), 1);
    CHECK_EQ(holders[0].place, LEAK_IN_ROOT);
    CHECK_EQ(leak_holders(check, record_with(check, 2, LOSS_REACHABLE), holders), 1);
    expect_record(&holders[0], of_parent, 1, 16);
    leak_free(check);
}

TEST(lost_blocks_are_held_by_what_is_lost_and_leaders_by_nobody)
{
    start_world();
    u64 *top = place(0, 24, 1), *left = place(64, 16, 2);
    top[0] = (u64)left;
    top[1] = (u64)place(128, 32, 3);
    left[0] = (u64)top;
    LeakCheck *check = check_holders();
    u64 of_top = record_with(check, 1, LOSS_DEFINITE);
    CHECK_EQ(leak_holders(check, of_top, holders), 0);
    CHECK_EQ(leak_holders(check, record_with(check, 2, LOSS_INDIRECT), holders), 1);
    expect_record(&holders[0], of_top, 1, 16);
    CHECK_EQ(leak_holders(check, record_with(check, 3, LOSS_INDIRECT), holders), 1);
    expect_record(&holders[0], of_top, 1, 32);
    leak_free(check);
}

TEST(roots_come_before_words_and_starts_before_the_inside)
{
    u64 words[2];

    start_world();
    u64 *a = place(0, 16, 1), *b = place(64, 16, 2);
    root[3] = (u64)a + 8; // the inside of a, and later its start
    root[9] = (u64)a;
    words[0] = (u64)a;
    words[1] = (u64)b + 4;
    input.words = words;
    input.word_count = 2;
    LeakCheck *check = check_holders();
    CHECK_EQ(leak_holders(check, record_with(check, 1, LOSS_REACHABLE), holders), 1);
    CHECK(holders[0].place == LEAK_IN_ROOT && holders[0].location == (GuestAddr)&root[9]);
    CHECK_EQ(leak_holders(check, record_with(check, 2, LOSS_POSSIBLE), holders), 1);
    CHECK(holders[0].place == LEAK_IN_WORD && holders[0].index == 1);
    leak_free(check);
}

// Blocks that are not there hold nothing.
static bool read_table(void *data, GuestAddr address, u32 count, u64 *ret_words)
{
    return address >= 0x20000000 && read_direct(data, address, count, ret_words);
}

// Two records in one table; and a root that is not told apart.
TEST(many_pointers_are_told_in_a_few_pieces_that_begin_where_they_do)
{
    enum { TABLE = 300000 };
    static u64 table[TABLE], coarse[16];
    LeakRange roots[] = { { (GuestAddr)table, (GuestAddr)(table + TABLE) },
                          { (GuestAddr)coarse, (GuestAddr)(coarse + 16) } };
    LeakBlockList list = { 0 };

    start_world();
    for (u64 i = 0; i < TABLE + 2; i++)
        CHECK(leak_list_add(&list, 0x10000000 + i * 32, 8, i < 5 ? 1 : i < TABLE ? 2 : 3));
    for (u64 i = 0; i < TABLE; i++)
        table[i] = 0x10000000 + i * 32;
    coarse[4] = 0x10000000 + TABLE * 32;
    coarse[9] = 0x10000000 + (TABLE + 1) * 32;
    input.blocks = list.blocks;
    block_count = TABLE + 2;
    input.roots = roots;
    input.root_count = 2;
    input.coarse_roots = 1;
    input.read_words = read_table;
    LeakCheck *check = check_holders();
    u64 blocks_told = 0;
    u32 told = leak_holders(check, record_with(check, 2, LOSS_REACHABLE), holders);
    CHECK(told > 8 && told <= 32);
    for (u32 i = 0; i < told; i++) {
        CHECK(holders[i].place == LEAK_IN_ROOT && holders[i].index == 0);
        CHECK(holders[i].location >= (GuestAddr)&table[5] && holders[i].location < roots[0].high);
        blocks_told += holders[i].blocks;
    }
    CHECK_EQ(blocks_told, TABLE - 5);
    CHECK_EQ(leak_holders(check, record_with(check, 3, LOSS_REACHABLE), holders), 1);
    CHECK(holders[0].index == 1 && holders[0].blocks == 2 && holders[0].location == roots[1].low);
    leak_free(check);
    leak_list_free(&list);
}

TEST(more_holders_than_are_told_are_summed_as_others)
{
    start_world();
    for (u32 i = 0; i < 40; i++) {
        u64 *holder = place(i * 128, 64, 100 + i);
        root[i] = (u64)holder;
        *holder = (u64)memory + i * 128 + 64;
        blocks[block_count++] = leak_block(*holder, i + 1, 5);
    }
    LeakCheck *check = check_holders();
    u32 told = leak_holders(check, record_with(check, 5, LOSS_REACHABLE), holders);
    CHECK(told == 17 && holders[0].bytes == 40 && holders[15].bytes == 25);
    CHECK(holders[16].place == LEAK_IN_OTHERS && holders[16].index == 24);
    CHECK(holders[16].blocks == 24 && holders[16].bytes == 24 * 25 / 2);
    leak_free(check);
}

// Each block has a context of its own, so that holders of records are those of blocks.
static void expect_ways_to_roots(const LeakCheck *check)
{
    for (u64 i = 0; i < leak_record_count(check); i++) {
        const LeakRecord *record = leak_record(check, i);
        u64 at = i, steps = 0;
        u32 count;
        while ((count = leak_holders(check, at, holders)) && holders[0].place == LEAK_IN_BLOCK) {
            CHECK(count == 1 && holders[0].blocks == 1);
            CHECK_EQ(holders[0].bytes, leak_record(check, at)->bytes);
            at = holders[0].index;
            CHECK(++steps <= block_count);
        }
        bool is_lost = record->kind == LOSS_DEFINITE || record->kind == LOSS_INDIRECT;
        CHECK_EQ(count, is_lost ? 0 : 1);
        CHECK_EQ(leak_record(check, at)->kind == LOSS_DEFINITE, is_lost);
    }
}

TEST(in_random_heaps_every_way_leads_to_a_root_or_a_leader)
{
    u64 seed = 99;

    for (u32 round = 0; round < 500; round++) {
        start_world();
        u32 wanted = 2 + (u32)(world_random(&seed) % 60);
        for (u32 i = 0; i < wanted; i++)
            place(i * 64, 40, i);
        for (u32 i = 0; i < 2 * wanted; i++) {
            u64 r = world_random(&seed);
            u64 value = (u64)memory + r % wanted * 64 + ((r >> 20) % 5 == 0 ? 8 : 0);
            if ((r >> 30) % 16 == 0)
                root[(r >> 40) % ARRAY_LEN(root)] = value;
            else
                ((u64 *)(memory + (r >> 8) % wanted * 64))[(r >> 44) % 5] = value;
        }
        LeakCheck *check = check_holders();
        expect_ways_to_roots(check);
        leak_free(check);
    }
}
