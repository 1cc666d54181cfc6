// SPDX-License-Identifier: MIT
//
// A program whose malloc and free are stubs that jump through a table of functions, as Chromium's
// are, and that enters the table in a way of its own, too: none of it is replaced.
// BUILD -fno-builtin
#include "corpus.h"

#include <valgrind/valgrind.h>

typedef struct Table {
    void *(*alloc)(size_t size);
    void *(*resize)(void *block, size_t size);
    void (*release)(void *block);
} Table;

typedef struct Block {
    u64 mark, size;
    u8 bytes[];
} Block;
enum { MARK = 0x6b636f6c62 };

static _Alignas(16) u8 arena[1 << 20];
static u64 used;

static void *table_alloc(size_t size)
{
    if (used + sizeof(Block) + size + 16 > sizeof(arena))
        used = 0;
    Block *block = (Block *)(arena + used);
    used += (sizeof(Block) + size + 15) & ~15ull;
    block->mark = MARK;
    block->size = size;
    return block->bytes;
}

static Block *block_of(void *p)
{
    Block *block = (Block *)((u8 *)p - sizeof(Block));
    if (block->mark != MARK) // not of this allocator: Chromium dies
        __builtin_trap();
    return block;
}

static void *table_resize(void *p, size_t size)
{
    u8 *larger = (u8 *)table_alloc(size);
    u64 old = block_of(p)->size;
    for (u64 i = 0; i < old && i < size; i++)
        larger[i] = ((u8 *)p)[i];
    return larger;
}

static void table_release(void *p)
{
    if (p)
        block_of(p)->mark = 0;
}

static const Table plain = {table_alloc, table_resize, table_release};
static const Table *volatile head = &plain;

NOINLINE void *malloc(size_t size)
{
    return head->alloc(size);
}

NOINLINE void free(void *p)
{
    head->release(p);
}

// The entry that has no name outside.
static NOINLINE void *resize_unchecked(void *p, size_t size)
{
    return head->resize(p, size);
}

static bool is_in_arena(const void *p)
{
    return (const u8 *)p >= arena && (const u8 *)p < arena + sizeof(arena);
}

CASE(entries_without_a_name_find_their_blocks)
{
    // NOT-VALGRIND allocator-behind-a-table
    // SAYS is left alone, and what it gives is not checked
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    CHECK(is_in_arena(p));
    p[9] = 'x';
    p = (u8 *)resize_unchecked(p, 1000);
    CHECK(is_in_arena(p) && p[9] == 'x');
    READ1(p + 1000); // the program's own memory: nothing is known of its blocks
    free(p);
}

// A library has announced a block; free() uses the memory without a word.
CASE(what_is_announced_there_is_no_block)
{
    // NOT-VALGRIND allocator-behind-a-table
    u8 *p = (u8 *)malloc(100);
    HIDE(p);
    VALGRIND_MALLOCLIKE_BLOCK(p, 100, 0, 0);
    VALGRIND_FREELIKE_BLOCK(p, 0);
    p[5] = 1;
    READ1(p + 5);
    free(p);
}

CASE(the_user_wants_it_replaced) // OPTIONS --soname-synonyms=somalloc=NONE
{
    // ONLY gcc-O0 clang-O0
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    CHECK(!is_in_arena(p));
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 state=live
    free(p);
}

// What becomes of such a program without the rule.
CASE(where_it_dies_the_option_is_named) // OPTIONS --soname-synonyms=somalloc=*
{
    // DIES SIGILL
    // NOT-VALGRIND allocator-behind-a-table
    // SAYS --soname-synonyms=somalloc=nouserintercepts
    u8 *p = (u8 *)malloc(100);
    HIDE(p);
    for (u32 i = 0; i < 100; i++)
        p[i] = 0;
    p = (u8 *)resize_unchecked(p, 1000); // EXPECT memcheck invalid-read size=8 line=any
    HIDE(p);
}
