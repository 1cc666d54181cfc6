// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// Keys with destructors: they run at thread exit, again for values set while they run, and not for
// main's exit; C11 threads' tss too.
#include "guest.h"
#include <pthread.h>
#include <threads.h>

static pthread_key_t keys[40];
static tss_t c11_key;
static int destroyed, rounds;

static void count(void *value)
{
    destroyed += (int)(long)value;
}

static void set_again(void *value)
{
    if (++rounds < 3)
        pthread_setspecific(keys[0], value);
}

static void *body(void *arg)
{
    for (long i = 0; i < 40; i++)
        CHECK(pthread_setspecific(keys[i], (void *)(i + 1)) == 0);
    long sum = 0;
    for (int i = 0; i < 40; i++)
        sum += (long)pthread_getspecific(keys[i]);
    say("sum %ld\n", sum);
    return arg;
}

static int c11_body(void *arg)
{
    tss_set(c11_key, arg);
    return 55;
}

int main(void)
{
    for (int i = 0; i < 40; i++)
        CHECK(pthread_key_create(&keys[i], i == 0 ? set_again : count) == 0);
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        rounds = destroyed = 0;
        pthread_create(&thread, NULL, body, NULL);
        pthread_join(thread, NULL);
        say("destroyed %d, rounds %d\n", destroyed, rounds);
    }
    tss_create(&c11_key, count);
    thrd_t other;
    int result = 0;
    destroyed = 0;
    thrd_create(&other, c11_body, (void *)9L);
    thrd_join(other, &result);
    say("c11 result %d, destroyed %d\n", result, destroyed);
    pthread_setspecific(keys[1], (void *)1L);
    return 0;
}
