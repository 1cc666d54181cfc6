// SPDX-License-Identifier: MIT
//
// The leak check: the cases of the incumbent's manual, its heuristics, records and deltas, and
// random heaps against a reference that tries everything.
#include "leak_world.h"

static void expect_kinds(const char *kinds)
{
    LeakCheck *check = check_now(NULL);

    for (u32 i = 0; i < block_count; i++) {
        char told = "rpid"[leak_kind_of(check, i)];
        if (told != kinds[i])
            FAIL("block %u is %c, not %c", i, told, kinds[i]);
    }
    leak_free(check);
}

TEST(packed_block_keeps_start_size_and_context)
{
    static const u64 sizes[] = { 0, 1, 131071, 131072, 1ull << 33, (1ull << 45) - 1, 1ull << 45 };

    for (u32 i = 0; i < ARRAY_LEN(sizes); i++) {
        LeakBlock block = leak_block(0x7fffffffffffull, sizes[i], 0xdeadbeef);
        CHECK_EQ(leak_block_start(&block), 0x7fffffffffffull);
        CHECK_EQ(leak_block_size(&block), sizes[i]);
        CHECK_EQ(leak_block_context(&block), 0xdeadbeef);
    }
}

// (1) … (9) of the table in the manual: how RRR points to AAA, and AAA to BBB. 0: not at all, 1: to
// the start, 2: to the interior. In (1), (3) and (5) there is no AAA.
TEST(the_nine_cases_of_the_manual)
{
    static const struct {
        bool has_a;
        u8 root_to, a_to_b;
        const char *kinds;
    } cases[] = {
        { false, 1, 0, "r" }, { true, 1, 1, "rr" }, { false, 0, 0, "d" },
        { true, 0, 1, "di" }, { false, 2, 0, "p" }, { true, 1, 2, "rp" },
        { true, 2, 1, "pp" }, { true, 2, 2, "pp" }, { true, 0, 2, "di" },
    };

    for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
        start_world();
        u64 *a = cases[i].has_a ? place(64, 32, 1) : NULL;
        u64 *b = place(256, 32, 2);
        u64 *first = a ? a : b;
        if (cases[i].root_to)
            root[3] = (u64)first + (cases[i].root_to == 2 ? 8 : 0);
        if (cases[i].a_to_b)
            a[1] = (u64)b + (cases[i].a_to_b == 2 ? 31 : 0);
        expect_kinds(cases[i].kinds);
    }
}

TEST(start_pointer_found_after_an_interior_one_upgrades_all_behind_it)
{
    start_world();
    u64 *a = place(0, 16, 1), *b = place(64, 16, 1), *c = place(128, 16, 1);
    a[0] = (u64)b;
    b[0] = (u64)c;
    root[0] = (u64)a + 4;
    expect_kinds("ppp");
    root[9] = (u64)a;
    expect_kinds("rrr");
}

TEST(block_of_size_zero_is_reached_by_its_start_and_no_block_by_its_end)
{
    start_world();
    u64 *a = place(0, 0, 1), *b = place(64, 16, 1);
    root[0] = (u64)a;
    root[1] = (u64)b + 16;
    expect_kinds("rd");
}

TEST(registers_are_roots_and_unaligned_words_are_not)
{
    u64 word;

    start_world();
    word = (u64)place(0, 16, 1);
    u64 other = (u64)place(64, 16, 1);
    memcpy((u8 *)root + 4, &other, 8);
    input.words = &word;
    input.word_count = 1;
    expect_kinds("rd");
}

TEST(lowest_block_of_a_lost_cycle_leads_it)
{
    start_world();
    u64 *a = place(0, 16, 1), *b = place(64, 16, 2), *c = place(128, 16, 3);
    a[0] = (u64)b;
    b[0] = (u64)c;
    c[0] = (u64)a;
    expect_kinds("dii");
}

// As the incumbent was seen to do.
TEST(cycle_that_is_pointed_to_beside_its_leader_keeps_it)
{
    start_world();
    u64 *a = place(0, 16, 1), *b = place(64, 24, 2), *c = place(128, 32, 3);
    a[0] = (u64)b;
    b[0] = (u64)a;
    c[0] = (u64)b;
    expect_kinds("did");
}

TEST(tree_lost_from_below_is_charged_to_its_top)
{
    start_world();
    u64 *e = place(0, 16, 1), *d = place(64, 24, 2), *top = place(128, 8, 3);
    d[0] = (u64)e;
    top[0] = (u64)d;
    LeakCheck *check = check_now(NULL);
    CHECK_EQ(leak_kind_of(check, 2), LOSS_DEFINITE);
    const LeakRecord *first = leak_record(check, 0);
    CHECK(first->kind == LOSS_DEFINITE && first->bytes == 8 && first->indirect_bytes == 40);
    const LeakSummary *summary = leak_summary(check);
    CHECK(summary->now[LOSS_INDIRECT].bytes == 40 && summary->now[LOSS_INDIRECT].blocks == 2);
    leak_free(check);
}

// What the incumbent was seen to do with a block of this size, these first words and a pointer to
// this offset.
TEST(heuristics_take_what_the_incumbent_takes)
{
    static const struct {
        u64 size, words[3], offset;
        char kind;
        LeakHeuristic heuristic;
    } cases[] = {
        { 35, { 5, 10, 0 }, 24, 'r', LEAK_STDSTRING }, { 44, { 5, 10, 0 }, 24, 'p', 0 },
        { 35, { 11, 10, 0 }, 24, 'p', 0 },             { 35, { 5, 11, 0 }, 24, 'p', 0 },
        { 35, { 5, 10, 7 }, 24, 'r', LEAK_STDSTRING }, { 38, { 30 }, 8, 'r', LEAK_LENGTH64 },
        { 38, { 29 }, 8, 'p', 0 },                     { 38, { 3 }, 8, 'r', LEAK_NEWARRAY },
        { 38, { 0 }, 8, 'p', 0 },                      { 8, { 0 }, 8, 'd', 0 },
        { 38, { 60 }, 8, 'p', 0 },                     { 38, { 3 }, 4, 'p', 0 },
        { 35, { 0 }, 24, 'p', 0 },
    };

    for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
        start_world();
        u64 *a = place(0, cases[i].size, 1);
        memcpy(a, cases[i].words, min_u64(cases[i].size, 24));
        root[0] = (u64)a + cases[i].offset;
        input.heuristics = ~0u;
        LeakCheck *check = check_now(NULL);
        if ("rpid"[leak_kind_of(check, 0)] != cases[i].kind)
            FAIL("case %u is %c", i, "rpid"[leak_kind_of(check, 0)]);
        CHECK_EQ(leak_heuristic_of(check, 0), cases[i].heuristic);
        if (cases[i].kind == 'r')
            CHECK_EQ(leak_summary(check)->by_heuristic[cases[i].heuristic].bytes, cases[i].size);
        leak_free(check);
        input.heuristics = 0;
        expect_kinds(cases[i].kind == 'd' ? "d" : "p");
    }
}

static bool vtable_below_100(void *data, GuestAddr value)
{
    (void)data;
    return value < 100;
}

TEST(inner_object_of_multiple_inheritance_needs_two_virtual_tables)
{
    start_world();
    u64 *a = place(0, 64, 1);
    a[0] = 10;
    a[3] = 20;
    root[0] = (u64)(a + 3);
    input.heuristics = LEAK_HEURISTIC_BIT(LEAK_MULTIPLE_INHERITANCE);
    input.is_vtable = vtable_below_100;
    expect_kinds("r");
    a[3] = 200;
    expect_kinds("p");
    a[3] = 20;
    root[0] = (u64)a + 25;
    expect_kinds("p");
}

TEST(start_pointer_takes_the_credit_from_a_heuristic)
{
    start_world();
    u64 *a = place(0, 38, 1);
    a[0] = 30;
    root[0] = (u64)a + 8;
    root[1] = (u64)a;
    input.heuristics = ~0u;
    LeakCheck *check = check_now(NULL);
    CHECK_EQ(leak_heuristic_of(check, 0), LEAK_BY_START);
    CHECK_EQ(leak_summary(check)->by_heuristic[LEAK_LENGTH64].bytes, 0);
    leak_free(check);
}

static u32 by_tens(void *data, u32 context)
{
    (void)data;
    return context / 10;
}

TEST(contexts_with_equal_keys_share_a_record)
{
    start_world();
    for (u32 i = 0; i < 40; i++)
        place(i * 64, 10 + i % 2, i);
    LeakCheck *check = check_now(NULL);
    CHECK_EQ(leak_record_count(check), 40);
    leak_free(check);
    input.context_key = by_tens;
    root[0] = leak_block_start(&blocks[0]);
    check = check_now(NULL);
    CHECK_EQ(leak_record_count(check), 5);
    CHECK(leak_record(check, 4)->kind == LOSS_REACHABLE && leak_record(check, 4)->blocks == 1);
    u64 bytes = 0;
    for (u32 i = 0; i < 5; i++) {
        CHECK(i == 0 || leak_record(check, i)->bytes <= leak_record(check, i - 1)->bytes);
        bytes += leak_record(check, i)->bytes;
    }
    CHECK_EQ(bytes, 20 * 10 + 20 * 11);
    leak_free(check);
}

static const LeakRecord *record_with(const LeakCheck *check, u32 context, u32 kind)
{
    for (u64 i = 0; i < leak_record_count(check); i++) {
        const LeakRecord *record = leak_record(check, i);
        if (record->context == context && record->kind == kind)
            return record;
    }
    FAIL("no record of context %u", context);
}

TEST(deltas_tell_what_grew_shrank_appeared_and_went)
{
    LeakHistory history = { 0 };

    start_world();
    place(0, 10, 1);
    place(64, 20, 2);
    place(128, 30, 3);
    leak_free(check_now(&history));
    place(192, 10, 1);
    place(256, 40, 4);
    root[0] = leak_block_start(&blocks[2]); // 3 is reachable now
    LeakCheck *check = check_now(&history);
    const LeakRecord *grown = record_with(check, 1, LOSS_DEFINITE);
    const LeakRecord *same = record_with(check, 2, LOSS_DEFINITE);
    const LeakRecord *gone = record_with(check, 3, LOSS_DEFINITE);
    const LeakRecord *fresh = record_with(check, 4, LOSS_DEFINITE);
    CHECK(leak_record_matches(grown, LEAK_INCREASED) && grown->old_bytes == 10);
    CHECK(!leak_record_matches(grown, LEAK_NEW) && leak_record_matches(grown, LEAK_CHANGED));
    CHECK(!leak_record_matches(same, LEAK_CHANGED) && leak_record_matches(same, LEAK_ANY));
    CHECK(leak_record_matches(gone, LEAK_CHANGED) && !leak_record_matches(gone, LEAK_INCREASED));
    CHECK(gone->blocks == 0 && !leak_record_matches(gone, LEAK_ANY));
    CHECK(leak_record_matches(fresh, LEAK_NEW) && leak_record_matches(fresh, LEAK_INCREASED));
    CHECK_EQ(leak_summary(check)->before[LOSS_DEFINITE].bytes, 60);
    leak_free(check);
    check = check_now(&history);
    for (u64 i = 0; i < leak_record_count(check); i++)
        CHECK(!leak_record_matches(leak_record(check, i), LEAK_CHANGED));
    leak_free(check);
    leak_history_free(&history);
}

typedef struct List {
    char text[200];
    u32 length;
} List;

static bool write_listed(void *data, const LeakListed *listed)
{
    List *list = data;

    list->length += (u32)snprintf(list->text + list->length, sizeof(list->text) - list->length,
                                  "%c%u ", (char)('A' + listed->block), listed->level);
    return true;
}

// The tree of the manual's block_list example.
TEST(block_list_shows_a_lost_tree_as_a_tree)
{
    u64 *node[7];
    List list = { 0 };

    start_world();
    for (u32 i = 0; i < 7; i++)
        node[i] = place(i * 64, 16, i);
    for (u32 i = 0; i < 3; i++) {
        node[i][0] = (u64)node[2 * i + 1];
        node[i][1] = (u64)node[2 * i + 2];
    }
    LeakCheck *check = check_now(NULL);
    CHECK(leak_record(check, 0)->bytes == 16 && leak_record(check, 0)->indirect_bytes == 96);
    leak_list_blocks(check, 0, write_listed, &list);
    CHECK_STR(list.text, "A0 B1 D2 E2 C1 F2 G2 ");
    list = (List){ 0 };
    u64 of_c = 0;
    while (leak_record(check, of_c)->context != 2)
        of_c++;
    leak_list_blocks(check, of_c, write_listed, &list);
    CHECK_STR(list.text, "C0 F1 G1 ");
    leak_free(check);
}

static bool count_pointer(void *data, const LeakPointer *pointer)
{
    u32 *counts = data;

    counts[pointer->place]++;
    return true;
}

TEST(who_points_at_finds_words_roots_and_blocks)
{
    u64 word;
    u32 counts[3] = { 0 };

    start_world();
    u64 *a = place(0, 64, 1), *b = place(64, 64, 1);
    word = (u64)b + 8;
    input.words = &word;
    input.word_count = 1;
    input.block_count = block_count;
    root[5] = (u64)b;
    a[2] = (u64)b;
    a[3] = (u64)b + 63;
    leak_who_points_at(&input, (GuestAddr)b, 64, count_pointer, counts);
    CHECK(counts[LEAK_IN_WORD] == 1 && counts[LEAK_IN_ROOT] == 1 && counts[LEAK_IN_BLOCK] == 2);
    memset(counts, 0, sizeof(counts));
    leak_who_points_at(&input, (GuestAddr)b, 1, count_pointer, counts);
    CHECK(counts[LEAK_IN_WORD] == 0 && counts[LEAK_IN_ROOT] == 1 && counts[LEAK_IN_BLOCK] == 1);
}

static bool read_some(void *data, GuestAddr address, u32 count, u64 *ret_words)
{
    if (address >= *(u64 *)data && address < *(u64 *)data + PAGE_SIZE)
        return false;
    return read_direct(NULL, address, count, ret_words);
}

TEST(unreadable_pages_are_skipped_and_the_rest_is_read)
{
    start_world();
    u64 hole = (u64)memory + PAGE_SIZE;
    u64 *a = place(0, 3 * PAGE_SIZE, 1);
    u64 *b = place(4 * PAGE_SIZE, 8, 1), *c = place(5 * PAGE_SIZE, 8, 1);
    a[PAGE_SIZE / 8 + 3] = (u64)b;
    a[2 * PAGE_SIZE / 8 + 3] = (u64)c;
    root[0] = (u64)a;
    input.data = &hole;
    input.read_words = read_some;
    expect_kinds("rdr");
}

TEST(empty_heap_has_no_leaks)
{
    start_world();
    root[0] = 5;
    LeakCheck *check = check_now(NULL);
    CHECK_EQ(leak_record_count(check), 0);
    leak_free(check);
}

static void add_to_list(void *data, const HeapBlock *block)
{
    CHECK(leak_list_add(data, block->start, block->size_bytes, block->alloc_context));
}

TEST(blocks_of_the_heap_go_straight_into_a_check)
{
    LeakBlockList list = { 0 };
    HeapOptions options;
    u64 *last = NULL;

    world_options(&options);
    CHECK(heap_init(&options));
    HeapThread *t = heap_thread_start(1);
    for (u32 i = 0; i < 10000; i++) {
        u64 *block = (u64 *)world_alloc(t, 16 + i % 400 + (i % 5000 == 0) * 2 * MiB, 16,
                                        HEAP_MALLOC | HEAP_ZEROED, i % 7);
        block[1] = (u64)last;
        last = block;
    }
    heap_free(t, world_alloc(t, 10, 16, HEAP_MALLOC, 9), HEAP_MALLOC, 1, NULL);
    start_world();
    heap_fork_prepare();
    CHECK(heap_for_each_live(true, add_to_list, &list));
    heap_fork_parent();
    CHECK_EQ(list.count, 10000);
    input.blocks = list.blocks;
    input.block_count = list.count;
    for (u32 lost = 0; lost < 2; lost++) {
        root[0] = lost ? 0 : (u64)last;
        LeakCheck *check = leak_check(&input, NULL);
        CHECK(check);
        const LeakAmount *now = leak_summary(check)->now;
        CHECK_EQ(now[LOSS_REACHABLE].blocks, lost ? 0 : 10000);
        CHECK_EQ(now[LOSS_DEFINITE].blocks, lost ? 1 : 0);
        leak_free(check);
    }
    leak_list_free(&list);
    heap_thread_end(t);
    heap_destroy();
}

// --- random heaps

enum { SMALL_HEAP = 40 };

static bool edge[SMALL_HEAP + 1][SMALL_HEAP]; // [SMALL_HEAP] is the root
static bool is_start_edge[SMALL_HEAP + 1][SMALL_HEAP];
static bool inner_edge[SMALL_HEAP][SMALL_HEAP]; // of what is lost: to the innermost block

static void add_edges(u32 from, GuestAddr low, GuestAddr high)
{
    for (GuestAddr at = (low + 7) & ~7ull; at + 8 <= high; at += 8) {
        u64 word = *(u64 *)at;
        u32 innermost = SMALL_HEAP;
        for (u32 i = 0; i < block_count; i++) {
            u64 start = leak_block_start(&blocks[i]), size = leak_block_size(&blocks[i]);
            if (word - start < (size ? size : 1)) {
                edge[from][i] = true;
                is_start_edge[from][i] |= word == start;
                innermost = i;
            }
        }
        if (from < SMALL_HEAP && innermost < SMALL_HEAP)
            inner_edge[from][innermost] = true;
    }
}

static void close_under(bool seen[], bool only_starts)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (u32 i = 0; i < block_count; i++) {
            for (u32 j = 0; seen[i] && j < block_count; j++) {
                if ((only_starts ? is_start_edge : edge)[i][j] && !seen[j])
                    seen[j] = changed = true;
            }
        }
    }
}

static u64 charge[SMALL_HEAP]; // what each leader leads

// One clique, straight from its definition; LEAK_KIND_COUNT is lost and not yet in one.
static void lead(u32 leader, u8 kinds[])
{
    bool member[SMALL_HEAP] = { 0 };

    member[leader] = true;
    kinds[leader] = LOSS_DEFINITE;
    for (bool changed = true; changed;) {
        changed = false;
        for (u32 i = 0; i < block_count; i++) {
            for (u32 j = 0; member[i] && j < block_count; j++) {
                if (!inner_edge[i][j] || j == leader)
                    continue;
                if (kinds[j] != LEAK_KIND_COUNT && kinds[j] != LOSS_DEFINITE)
                    continue;
                member[j] = kinds[j] == LEAK_KIND_COUNT; // what an old leader leads is known
                kinds[j] = LOSS_INDIRECT;
                charge[leader] += leak_block_size(&blocks[j]) + charge[j];
                charge[j] = 0;
                changed = true;
            }
        }
    }
}

static void reference(u8 kinds[])
{
    bool reached[SMALL_HEAP] = { 0 }, touched[SMALL_HEAP] = { 0 };

    memset(edge, 0, sizeof(edge));
    memset(is_start_edge, 0, sizeof(is_start_edge));
    memset(inner_edge, 0, sizeof(inner_edge));
    add_edges(SMALL_HEAP, root_range.low, root_range.high);
    for (u32 i = 0; i < block_count; i++)
        add_edges(i, leak_block_start(&blocks[i]),
                  leak_block_start(&blocks[i]) + leak_block_size(&blocks[i]));
    for (u32 i = 0; i < block_count; i++) {
        reached[i] = is_start_edge[SMALL_HEAP][i];
        touched[i] = edge[SMALL_HEAP][i];
    }
    close_under(reached, true);
    close_under(touched, false);
    for (u32 i = 0; i < block_count; i++)
        kinds[i] = reached[i] ? LOSS_REACHABLE : touched[i] ? LOSS_POSSIBLE : LEAK_KIND_COUNT;
    memset(charge, 0, sizeof(charge));
    for (u32 i = 0; i < block_count; i++) {
        if (kinds[i] == LEAK_KIND_COUNT)
            lead(i, kinds);
    }
}

static void make_random_heap(u64 *seed, bool is_nested)
{
    u64 offset = 0, end_of_outer = 0;

    start_world();
    u32 wanted = 1 + (u32)(world_random(seed) % (SMALL_HEAP - 1));
    for (u32 i = 0; i < wanted; i++) {
        u64 r = world_random(seed);
        u64 size = r % 20 == 0 ? r % 30000 : r % 90;
        offset += (r >> 32) % 40 * (r >> 40 & 1 ? 8 : 1) + !is_nested;
        if (offset + size > end_of_outer) {
            offset = max_u64(offset, end_of_outer);
            end_of_outer = 0;
        }
        bool is_outer = is_nested && r >> 48 & 1;
        if (is_outer && !end_of_outer) {
            size += (r >> 50) % 1000;
            end_of_outer = offset + size;
        }
        place(offset, size, i);
        offset += is_outer ? 0 : size + is_nested;
    }
    u32 pointers = (u32)(world_random(seed) % (wanted * 2));
    for (u32 i = 0; i < pointers; i++) {
        u64 r = world_random(seed);
        const LeakBlock *from = &blocks[r % wanted], *to = &blocks[(r >> 16) % wanted];
        u64 value = leak_block_start(to);
        if ((r >> 32) % 3 == 0 && leak_block_size(to))
            value += (r >> 40) % (leak_block_size(to) + 2);
        u64 slot = (leak_block_start(from) + 7) & ~7ull;
        u64 end = leak_block_start(from) + leak_block_size(from);
        if (r >> 60 == 0)
            root[(r >> 8) % ARRAY_LEN(root)] = value;
        else if (slot + 8 <= end)
            ((u64 *)slot)[(r >> 34) % ((end - slot) / 8)] = value;
    }
}

// Each block has a context of its own here, so a record is a block.
static void check_charges(const LeakCheck *check)
{
    for (u64 i = 0; i < leak_record_count(check); i++) {
        const LeakRecord *record = leak_record(check, i);
        CHECK_EQ(record->indirect_bytes, charge[record->context]);
    }
}

TEST(random_heaps_agree_with_the_reference)
{
    u64 seed = 1234567;

    for (u32 round = 0; round < 4000; round++) {
        u8 kinds[SMALL_HEAP];
        make_random_heap(&seed, round % 2 == 1); // blocks in others, every second time
        reference(kinds);
        input.workers = round % 50 < 2 ? 3 : 1;
        LeakCheck *check = check_now(NULL);
        for (u32 i = 0; i < block_count; i++) {
            if (leak_kind_of(check, i) != kinds[i])
                FAIL("round %u block %u: %d, not %d", round, i, leak_kind_of(check, i), kinds[i]);
        }
        check_charges(check);
        leak_free(check);
    }
}
