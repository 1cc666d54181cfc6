// SPDX-License-Identifier: MIT
//
// The walker of the code cache: each test breaks one invariant on purpose, and the walker's
// sentence names it; when the damage is undone the walker is content again.
#include "engine/cache/unit.h"
#include "engine/toolapi/toolapi.h"

#include "unit.h"

enum { ROOM = 64 * 1024, CODE_BYTES = 200, ENTRY_AT = 32, SITE_AT = 16 };

static Block *first, *second;

// A block with one exit to `target`. Its code is never executed: a rel32 that leads to the stub.
static Block *make(GuestAddr pc, GuestAddr target)
{
    CodeMark marks[] = {{.host_offset = 0, .boundary = 1},
                        {.host_offset = 40, .guest_delta = 4},
                        {.host_offset = 140, .guest_delta = 6}};
    Block *b = cache_reserve(ROOM, 1, 3);
    b->pc = pc;
    b->body = b->code;
    b->entry = b->return_entry = b->version_entry = b->code + ENTRY_AT;
    b->exit_count = 1;
    Exit *x = cache_exit(b->first_exit);
    *x = (Exit){.target = (i64)target, .site = SITE_AT, .from = cache_number(b)};
    CodePtr stub = cache_reserve_cold(b, 16);
    x->stub = code_ref(stub);
    i32 distance = (i32)(stub - (exit_site(x) + 4));
    memcpy(exit_site(x), &distance, 4);
    b->code_size = CODE_BYTES;
    cache_commit(b, marks, 3);
    cache_note_source(b, pc, pc + 8);
    return b;
}

// Two blocks, of which the first leads to the second, which is in all tables.
static void begin(void)
{
    static bool is_ready;
    if (!is_ready) {
        CHECK(tool_select(&(Options){.tool = "memcheck"}));
        cache_misses = (CacheMisses){(CodePtr)0x1000, (CodePtr)0x2000, (CodePtr)0x3000};
        cache_init(0, ROOM, true);
        lock_acquire(&engine_lock);
        first = make(0x400000, 0x401000);
        second = make(0x401000, 0x400000);
        cache_link(first->first_exit, second);
        CHECK(cache_publish_entry(second, ENTRY_LOOKUP) &&
              cache_publish_entry(second, ENTRY_RETURN) &&
              cache_publish_entry(second, ENTRY_VERSION));
        is_ready = true;
    }
    CHECK(cache_validate() == NULL);
}

#define BREACH(sentence) CHECK_STR(cache_validate() ? cache_validate() : "none", sentence)

TEST(the_walker_is_content_with_blocks_links_and_tables_as_the_cache_makes_them)
{
    begin();
}

TEST(a_retired_block_that_is_still_linked_is_named)
{
    begin();
    second->retired = true;
    BREACH("C1: a link leads into a retired block");
    second->retired = false;
    first->retired = true;
    BREACH("C1: a link leads out of a retired block");
    first->retired = false;
    begin();
}

TEST(a_link_that_is_missing_from_its_list_is_named)
{
    begin();
    u32 incoming = second->incoming;
    second->incoming = 0;
    BREACH("C1: a link is not in the list of the block that it leads to");
    second->incoming = incoming;
    first->incoming = first->first_exit;
    BREACH("C1: the list of a block has a link that leads elsewhere");
    first->incoming = 0;
    begin();
}

TEST(a_jump_that_does_not_go_where_its_exit_says_is_named)
{
    begin();
    u8 *site = exit_site(cache_exit(first->first_exit));
    site[0] ^= 4;
    BREACH("C1: the jump of a link leads elsewhere than into the block that it names");
    site[0] ^= 4;
    site = exit_site(cache_exit(second->first_exit));
    site[0] ^= 4;
    BREACH("C1: the jump of an exit without a link leads elsewhere than to its stub");
    site[0] ^= 4;
    cache_exit(first->first_exit)->version = 1;
    BREACH("C1: a link leads to a block of another pc or version");
    cache_exit(first->first_exit)->version = 0;
    begin();
}

TEST(a_block_that_the_index_does_not_find_is_named)
{
    begin();
    block_hash_remove(first);
    BREACH("C1: a block is not found by its pc and version");
    block_hash_insert(first);
    block_hash_insert(first);
    BREACH("C1: a block is twice in the index, or not at all");
    block_hash_remove(first);
    begin();
}

TEST(a_table_that_leads_to_what_is_no_entry_is_named)
{
    begin();
    ((CodePtr *)LOOKUP_TABLE)[7] = code_at(first->entry);
    BREACH("C1: a table leads to code that is no live block's entry");
    ((CodePtr *)LOOKUP_TABLE)[7] = cache_misses.lookup;
    ((CodeRef *)RETURN_TABLE)[7] = first->return_entry;
    BREACH("C1: a table leads to code that is no live block's entry");
    ((CodeRef *)RETURN_TABLE)[7] = code_ref(cache_misses.returns);
    ((u64 *)SECOND_TABLE)[7] = 1;
    BREACH("C1: a table leads to code that is no live block's entry");
    ((u64 *)SECOND_TABLE)[7] = 0;
    ((CodePtr *)VERSION_TABLE)[7] = code_at(first->version_entry);
    BREACH("C1: a table leads to code that is no live block's entry");
    ((CodePtr *)VERSION_TABLE)[7] = cache_misses.version;
    begin();
}

TEST(a_block_that_a_change_of_its_page_would_not_reach_is_named)
{
    begin();
    first->pc += 0x100000; // the index is asked before the pages are
    BREACH("C1: a block is not found by its pc and version");
    first->pc -= 0x100000;
    pages_clear();
    BREACH("C1: writing to the page of a block would not retire the block");
    cache_note_source(first, first->pc, first->pc + 8);
    cache_note_source(second, second->pc, second->pc + 8);
    begin();
}

TEST(a_unit_that_was_filled_while_a_thread_might_be_in_it_is_named)
{
    begin();
    LiveThread thread = {.ctx = &thread_ctx};
    ctx_live_add(&thread);
    cache_enter(&thread_ctx);
    CHECK(cache_validate() == NULL);
    thread_ctx.cache.safe_epoch++;
    BREACH("C3: a thread has an epoch that has not come yet");
    thread_ctx.cache.safe_epoch--;
    units[first->unit].retired_at = cache_epoch;
    thread_ctx.cache.safe_epoch--;
    BREACH("C3: a unit was filled again while a thread might execute its old code");
    thread_ctx.dispatch.in_cache = 0;
    CHECK(cache_validate() == NULL);
    units[first->unit].retired_at = 0;
    ctx_live_remove(&thread);
    begin();
}

TEST(records_that_overlap_or_do_not_ascend_are_named)
{
    begin();
    u8 *marks = units[first->unit].marks + first->marks;
    marks[6] = 20; // of the third mark, whose place is written in full
    BREACH("C4: the marks of a block do not ascend");
    marks[6] = 201;
    BREACH("C4: a mark lies behind the code of its block");
    marks[6] = 140;
    second->code -= 8;
    BREACH("C4: the blocks of a unit are not in the order of their code");
    second->code += 8;
    second->first_exit--;
    BREACH("C4: the exits of two blocks overlap");
    second->first_exit++;
    second->marks--;
    BREACH("C4: the marks of two blocks overlap");
    second->marks++;
    cache_exit(first->first_exit)->from++;
    BREACH("C4: an exit does not name its block");
    cache_exit(first->first_exit)->from--;
    CodePtr cold = units[first->unit].cold;
    units[first->unit].cold = units[first->unit].next - 1;
    BREACH("C4: the blocks of a unit and its stubs overlap");
    units[first->unit].cold = cold;
    begin();
}
