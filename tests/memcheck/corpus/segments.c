// SPDX-License-Identifier: MIT
//
// Stacks in segments (gcc -fsplit-stack): a call that needs more room goes on in another mapping, and
// its return comes back. Neither is a frame that was left: what lies between is as it was.
// BUILD -fsplit-stack -fuse-ld=gold -pthread
// ONLY gcc-O0 gcc-O2
#include "corpus.h"

#include <pthread.h>

static u64 word;

static NOINLINE u64 deep(u64 levels, const u8 *above)
{
    u8 room[3000];
    u8 *p = room;
    HIDE(p);
    memset(p, (int)levels, 2000);
    u64 sum = levels ? deep(levels - 1, p) : 0;
    for (u32 i = 0; i < 2000; i++)
        CHECK(p[i] == (u8)levels);
    BRANCH(p[1999]);
    return sum + (above ? above[5] : 0);
}

CASE(calls_in_many_segments)
{
    for (u32 i = 0; i < 5; i++)
        word += deep(1500, NULL);
    BRANCH(word);
}

static void *in_thread(void *unused)
{
    (void)unused;
    word += deep(300, NULL);
    return NULL;
}

CASE(calls_in_segments_of_threads)
{
    pthread_t threads[3];
    for (u32 i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, in_thread, NULL) == 0);
    for (u32 i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    BRANCH(word);
}

// What a frame in a segment has left is undefined for the next one there.
static NOINLINE u64 last_byte(u64 levels, bool sets)
{
    u8 room[3000];
    u8 *p = room;
    HIDE(p);
    if (sets)
        memset(p, 1, sizeof(room));
    return levels ? last_byte(levels - 1, sets) : p[2900];
}

CASE(undefined_in_a_segment)
{
    BRANCH(last_byte(100, true));
    BRANCH(last_byte(100, false)); // EXPECT memcheck uninit-branch
}
