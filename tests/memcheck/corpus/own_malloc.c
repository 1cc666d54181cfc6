// SPDX-License-Identifier: MIT
//
// A program that brings its own malloc: replaced, unless the user wants it to be left alone.
#include "corpus.h"

static _Alignas(16) u8 arena[1 << 20];
static u64 used;

void *malloc(size_t size)
{
    u8 *p = arena + used;
    used += (size + 15) & ~15ull;
    return p;
}

void free(void *p)
{
    HIDE(p);
}

CASE(own_malloc)
{
    // ONLY gcc-O0 clang-O0
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 state=live
    free(p);
}

CASE(own_malloc_is_left_alone) // OPTIONS --soname-synonyms=somalloc=nouserintercepts
{
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    CHECK(p >= arena && p < arena + sizeof(arena));
    READ1(p + 10);
    free(p);
}
