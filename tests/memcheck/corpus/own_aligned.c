// SPDX-License-Identifier: MIT
//
// What C23 tells free, and an aligned_alloc that is no memalign (glibc's is, before 2.38): the
// program brings these functions along, since not every C library has them.
// BUILD -fno-builtin
#include "corpus.h"
#include "own_aligned.h"

#define ALIGNED_ALLOC(alignment, size) \
    call_from_elsewhere((void *)aligned_alloc, (void *)(alignment), size, 0)
#define FREE_SIZED(p, size) call_from_elsewhere((void *)free_sized, p, size, 0)
#define FREE_ALIGNED_SIZED(p, alignment, size) \
    call_from_elsewhere((void *)free_aligned_sized, p, alignment, size)

CASE(size_is_no_multiple_of_the_alignment)
{
    // NOT-VALGRIND alignments
    u8 *p = (u8 *)ALIGNED_ALLOC(64l, 100); // EXPECT memcheck bad-size multiple=64
    CHECK((uintptr_t)p % 64 == 0);
    FREE_ALIGNED_SIZED(p, 64, 100);
}

CASE(freed_with_another_size)
{
    // NOT-VALGRIND sizes-of-delete
    void *p = malloc(10);
    HIDE(p);
    FREE_SIZED(p, 12); // EXPECT memcheck size-mismatch fn=malloc/free told=12 of=10 alloc=-2
    p = ALIGNED_ALLOC(64l, 128);
    FREE_ALIGNED_SIZED(p, 32, 64);
    // EXPECT memcheck size-mismatch told=64 of=128 alloc=-1
    // EXPECT memcheck alignment-mismatch had=64 told=32 alloc=-1
}

CASE(freed_with_what_it_was_asked_for)
{
    // NOT-VALGRIND sizes-of-delete
    void *p = malloc(10);
    HIDE(p);
    FREE_SIZED(p, 10);
    p = ALIGNED_ALLOC(64l, 128);
    FREE_ALIGNED_SIZED(p, 64, 128);
    p = ALIGNED_ALLOC(64l, 128);
    free(p);
    FREE_SIZED(NULL, 5);
}

// What they are told by the same object is not looked at.
CASE(called_by_the_object_that_they_are_in)
{
    // NOT-VALGRIND sizes-of-delete
    size_t *u = (size_t *)block(8);
    void *p = malloc(10);
    HIDE(p);
    free_sized(p, 12);
    p = aligned_alloc(*u & 1, 128);
    HIDE(p);
    CHECK((uintptr_t)p % 16 == 0);
    memset(p, 0, 128);
    free_aligned_sized(p, 5, *u);
    free(u);
}
