// SPDX-License-Identifier: MIT
//
// A program with an allocator like Firefox': its malloc only jumps to a function that others in the
// program call as well, and some functions are told an arena first. All of it is replaced.
#include "corpus.h"

static _Alignas(16) u8 arena[1 << 20];
static u64 used;

static void *take(size_t size)
{
    if (used + size > sizeof(arena))
        used = 0;
    u8 *p = arena + used;
    used += (size + 15) & ~15ull;
    return p;
}

static NOINLINE void *inner_malloc(size_t size) __asm__("inner_malloc");
static NOINLINE __attribute__((used)) void *inner_malloc(size_t size)
{
    return take(size);
}

static NOINLINE void inner_free(void *p) __asm__("inner_free");
static NOINLINE __attribute__((used)) void inner_free(void *p)
{
    HIDE(p);
}

__asm__(".text\n"
        ".globl malloc, free\n"
        ".type malloc, @function\n"
        ".type free, @function\n"
        "malloc: jmp inner_malloc\n"
        ".size malloc, . - malloc\n"
        "free: endbr64\n"
        "jmp inner_free\n"
        ".size free, . - free\n");

NOINLINE void *moz_arena_malloc(size_t id, size_t size)
{
    HIDE(id);
    return take(size);
}

NOINLINE void *moz_arena_calloc(size_t id, size_t count, size_t size)
{
    HIDE(id);
    return take(count * size);
}

NOINLINE void *moz_arena_realloc(size_t id, void *p, size_t size)
{
    HIDE(id);
    HIDE(p);
    return take(size);
}

NOINLINE void *moz_arena_memalign(size_t id, size_t alignment, size_t size)
{
    HIDE(id);
    HIDE(alignment);
    return take(size);
}

NOINLINE void moz_arena_free(size_t id, void *p)
{
    HIDE(id);
    HIDE(p);
}

CASE(what_malloc_jumps_to_is_replaced)
{
    // NOT-VALGRIND doors-of-an-allocator
    u8 *p = (u8 *)inner_malloc(10);
    HIDE(p);
    CHECK(p < arena || p >= arena + sizeof(arena));
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 state=live
    free(p);
    p = (u8 *)malloc(11);
    HIDE(p);
    inner_free(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=11 state=freed
}

CASE(functions_with_an_arena_are_of_the_family_of_malloc)
{
    // NOT-VALGRIND doors-of-an-allocator
    u8 *p = (u8 *)moz_arena_malloc(7, 10);
    HIDE(p);
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 state=live
    free(p);
    p = (u8 *)moz_arena_calloc(7, 3, 5);
    HIDE(p);
    BRANCH(p[14]);
    READ1(p + 15); // EXPECT memcheck invalid-read size=1 block=after:0 of=15 state=live
    p = (u8 *)moz_arena_realloc(7, p, 20);
    HIDE(p);
    BRANCH(p[14]);
    BRANCH(p[15]); // EXPECT memcheck uninit-branch
    moz_arena_free(7, p);
    p = (u8 *)moz_arena_memalign(7, 64, 20);
    CHECK((u64)p % 64 == 0);
    HIDE(p);
    READ1(p + 20); // EXPECT memcheck invalid-read size=1 block=after:0 of=20 state=live
    moz_arena_free(7, p);
    moz_arena_free(7, NULL);
}
