// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2 -pthread
// BUILD[static]: -O2 -pthread -static
// STRESS: tiny-blocks
//
// Two thousand threads one after another, sixty-four at once, detached ones, and thread-local
// storage of each.
#include "guest.h"
#include <pthread.h>

enum { AT_ONCE = 64, IN_SEQUENCE = 2000 };
static __thread long local = 5;
static pthread_barrier_t barrier;
static int detached_done;

static void *short_life(void *arg)
{
    local += (long)arg;
    return (void *)local;
}

static void *meet_others(void *arg)
{
    local *= (long)arg;
    pthread_barrier_wait(&barrier);
    long result = local;
    for (int i = 0; i < 1000; i++)
        result = result * 31 + local;
    return (void *)result;
}

static void *detached(void *arg)
{
    __atomic_fetch_add(&detached_done, 1, __ATOMIC_RELEASE);
    return arg;
}

int main(void)
{
    pthread_t threads[AT_ONCE];
    void *result;
    long sum = 0;
    for (long i = 0; i < IN_SEQUENCE; i++) {
        CHECK(pthread_create(&threads[0], NULL, short_life, (void *)i) == 0);
        CHECK(pthread_join(threads[0], &result) == 0);
        sum += (long)result;
    }
    say("sequence %ld\n", sum);

    pthread_barrier_init(&barrier, NULL, AT_ONCE);
    sum = 0;
    for (long i = 0; i < AT_ONCE; i++)
        CHECK(pthread_create(&threads[i], NULL, meet_others, (void *)(i + 1)) == 0);
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], &result);
        sum ^= (long)result;
    }
    say("at once %lx, main's own %ld\n", (unsigned long)sum, local);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < 200; i++)
        CHECK(pthread_create(&threads[0], &attributes, detached, NULL) == 0);
    while (__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE) < 200)
        usleep(100);
    say("detached %d\n", detached_done);
    return 0;
}
