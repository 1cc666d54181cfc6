// SPDX-License-Identifier: MIT
//
// Blocks given back wrongly, and sizes and alignments asked for wrongly.
#include "corpus.h"

#include <errno.h>
#include <malloc.h>

CASE(free_twice)
{
    u8 *p = block(24);
    free(p);
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free block=inside:0 of=24 state=freed free=-2
}

CASE(free_inside)
{
    u8 *p = block(24) + 8;
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free block=inside:8 of=24 state=live alloc=-2
}

CASE(free_one_behind)
{
    u8 *p = block(24) + 24;
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free block=after:0 of=24 state=live
}

CASE(free_global)
{
    static u8 global[64];
    u8 *p = global;
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free
}

CASE(free_stack)
{
    u8 local[64], *p = local;
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free where=stack
}

CASE(free_constant)
{
    char *p = (char *)"constant";
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free
}

CASE(free_nonsense)
{
    u8 *p = (u8 *)0x123456789abcull;
    HIDE(p);
    free(p); // EXPECT memcheck invalid-free where=unknown
}

CASE(realloc_freed)
{
    u8 *p = block(24);
    free(p);
    HIDE(p);
    p = (u8 *)realloc(p, 50); // EXPECT memcheck invalid-free block=inside:0 of=24 state=freed
    HIDE(p);
    CHECK(!p);
}

CASE(realloc_inside)
{
    u8 *p = block(24) + 4;
    HIDE(p);
    p = (u8 *)realloc(p, 50); // EXPECT memcheck invalid-free block=inside:4 of=24
    HIDE(p);
}

CASE(realloc_to_nothing)
{
    u8 *p = block(24);
    p = (u8 *)realloc(p, 0);
    // EXPECT-MUNINN memcheck realloc-zero block=inside:0 of=24 alloc=-1 why=realloc-zero
    HIDE(p);
}

CASE(realloc_of_null)
{
    void *p = NULL;
    HIDE(p);
    p = realloc(p, 10);
    HIDE(p);
    memset(p, 0, 10);
    free(p);
}

CASE(reallocarray_of_null)
{
    void *p = NULL;
    HIDE(p);
    p = reallocarray(p, 10, 10);
    HIDE(p);
    memset(p, 0, 100);
    p = reallocarray(p, 20, 10);
    HIDE(p);
    BRANCH(((u8 *)p)[99]);
    free(p);
}

static NOINLINE size_t negative(long n)
{
    __asm__ volatile("" : "+r"(n));
    return n;
}

CASE(malloc_negative)
{
    void *p = malloc(negative(-1)); // EXPECT memcheck fishy-size fn=malloc arg=size
    HIDE(p);
    CHECK(!p);
}

CASE(calloc_negative)
{
    void *p = calloc(negative(-3), 1); // EXPECT memcheck fishy-size fn=calloc arg=nmemb
    HIDE(p);
    CHECK(!p);
}

CASE(realloc_negative)
{
    void *q = block(8);
    void *p = realloc(q, negative(-8)); // EXPECT memcheck fishy-size fn=realloc arg=size
    HIDE(p);
    CHECK(!p);
    free(q);
}

CASE(realloc_of_nothing_negative)
{
    void *none = NULL;
    HIDE(none);
    void *p = realloc(none, negative(-8)); // EXPECT memcheck fishy-size fn=malloc arg=size
    HIDE(p);
    CHECK(!p);
    p = reallocarray(none, negative(-8), 1); // EXPECT memcheck fishy-size fn=malloc arg=size
    HIDE(p);
    CHECK(!p);
}

CASE(posix_memalign_negative)
{
    void *p;
    int error = posix_memalign(&p, 64, negative(-4)); // EXPECT memcheck fishy-size fn=memalign arg=size
    CHECK(error == ENOMEM);
    p = valloc(negative(-4)); // EXPECT memcheck fishy-size fn=memalign arg=size
    HIDE(p);
    CHECK(!p);
}

CASE(undefined_sizes)
{
    size_t *size = (size_t *)block(8);
    void *p;
    *size &= 64;
    p = valloc(*size); // EXPECT memcheck uninit-branch
    HIDE(p);
    free(p);
    CHECK(posix_memalign(&p, 64, *size) == 0); // EXPECT memcheck uninit-branch
    HIDE(p);
    CHECK(malloc_usable_size((void *)*size) == 0); // EXPECT memcheck uninit-branch
    free(p);
    free(size);
}

static NOINLINE void is_no_memory(void *p)
{
    HIDE(p);
    CHECK(!p && errno == ENOMEM);
    errno = 0;
}

// Whoever fails says so in errno, and a product that is too large is no negative size.
CASE(no_memory_sets_errno)
{
    const size_t large = (size_t)1 << 60;
    void *kept = block(8);
    errno = 0;
    is_no_memory(malloc(negative(large)));
    is_no_memory(calloc(negative(large), 1));
    is_no_memory(realloc(kept, negative(large)));
    is_no_memory(reallocarray(kept, negative(large), 32));
    is_no_memory(reallocarray(NULL, negative(large), 32));
    is_no_memory(memalign(64, negative(large)));
    is_no_memory(aligned_alloc(64, negative(large)));
    is_no_memory(valloc(negative(large)));
    memset(kept, 1, 8);
    free(kept);
}

CASE(memalign_negative)
{
    void *p = memalign(64, negative(-4)); // EXPECT memcheck fishy-size fn=memalign arg=size
    HIDE(p);
    CHECK(!p);
}

CASE(malloc_too_much)
{
    void *p = malloc(negative(1l << 60));
    HIDE(p);
    CHECK(!p);
}

CASE(calloc_overflow)
{
    void *p = calloc(negative(1l << 33), negative(1l << 33));
    HIDE(p);
    CHECK(!p);
}

CASE(malloc_of_nothing)
{
    void *p = malloc(negative(0)), *q = malloc(negative(0));
    HIDE(p);
    HIDE(q);
    CHECK(p && q && p != q);
    free(p);
    free(q);
}

CASE(every_allocator_is_freed)
{
    void *p[7] = {malloc(10), calloc(1, 10), realloc(NULL, 10), memalign(64, 10), valloc(10),
                  aligned_alloc(32, 64), NULL};
    CHECK(posix_memalign(&p[6], 128, 10) == 0);
    for (int i = 0; i < 7; i++) {
        HIDE(p[i]);
        memset(p[i], 0, 10);
        free(p[i]);
    }
}

CASE(pvalloc_is_freed)
{
    // NOT-VALGRIND pvalloc
    u8 *p = (u8 *)pvalloc(10);
    HIDE(p);
    CHECK((uintptr_t)p % 4096 == 0);
    p[4095] = 1;
    free(p);
}

CASE(posix_memalign_bad_alignment)
{
    void *p = NULL;
    CHECK(posix_memalign(&p, 24, 10) == 22);
    // EXPECT-MUNINN memcheck bad-alignment alignment=24 why=alignments
    CHECK(posix_memalign(&p, 4, 10) == 22);
    // EXPECT-MUNINN memcheck bad-alignment alignment=4 why=alignments
    CHECK(posix_memalign(&p, 0, 10) == 22);
    // EXPECT-MUNINN memcheck bad-alignment alignment=0 why=alignments
    CHECK(p == NULL);
}

CASE(alignments_that_are_none)
{
    size_t forty = 40, none = 0, two = 2;
    HIDE(forty);
    HIDE(none);
    HIDE(two);
    void *p[4] = {
        memalign(forty, 10),
        // EXPECT-MUNINN memcheck bad-alignment alignment=40 top=memalign why=alignments
        aligned_alloc(forty, 80),
        // EXPECT-MUNINN memcheck bad-alignment alignment=40 why=alignments
        memalign(none, 10),
        // EXPECT-MUNINN memcheck bad-alignment alignment=0 why=alignments
        memalign(two, 10),
    };
    for (int i = 0; i < 4; i++) {
        HIDE(p[i]);
        memset(p[i], 0, 10);
        free(p[i]);
    }
}

CASE(strdup_is_a_block)
{
    char *p = strdup("hello"); // the terminator is the last byte
    HIDE(p);
    BRANCH(p[5]);
    READ1(p + 6); // EXPECT memcheck invalid-read size=1 block=after:0 of=6 alloc=-3
    free(p);
}

CASE(getline_and_friends)
{
    char *line = NULL, *text = NULL;
    size_t size = 0;
    FILE *f = fmemopen((void *)"one\ntwo\n", 8, "r");
    CHECK(getline(&line, &size, f) == 4 && strcmp(line, "one\n") == 0);
    fclose(f);
    CHECK(asprintf(&text, "%d-%s", 5, "x") == 3);
    CHECK(strcmp(text, "5-x") == 0);
    free(line);
    free(text);
}

CASE(quarantine_keeps_blocks_apart)
{
    u8 *p = block(100);
    free(p);
    HIDE(p);
    for (int i = 0; i < 100; i++)
        free(block(100));
    WRITE1(p); // EXPECT memcheck invalid-write size=1 block=inside:0 of=100 state=freed
}

CASE(mallinfo_and_tuning)
{
    mallopt(M_MMAP_THRESHOLD, 65536);
    free(malloc(70000));
    malloc_trim(0);
}
