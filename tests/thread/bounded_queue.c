// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
// STRESS: signals
//
// Producers and consumers over a small queue with two condition variables: every item arrives once.
// A timed wait times out, and a broadcast wakes all.
#include "guest.h"
#include <pthread.h>

enum { CAPACITY = 4, ITEMS = 20000, PAIRS = 2 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int queue[CAPACITY], head, count, go, woken;
static long sum;

static void *produce(void *arg)
{
    for (int i = 1; i <= ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        while (count == CAPACITY)
            pthread_cond_wait(&not_full, &mutex);
        queue[(head + count++) % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void *consume(void *arg)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        while (count == 0)
            pthread_cond_wait(&not_empty, &mutex);
        sum += queue[head];
        head = (head + 1) % CAPACITY;
        count--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void *await_broadcast(void *arg)
{
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&not_empty, &mutex);
    woken++;
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void)
{
    pthread_t threads[2 * PAIRS], waiters[10];
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_create(&threads[i], NULL, i & 1 ? consume : produce, NULL);
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_join(threads[i], NULL);
    say("sum %ld, left %d\n", sum, count);
    for (int i = 0; i < 10; i++)
        pthread_create(&waiters[i], NULL, await_broadcast, NULL);
    usleep(10000);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_broadcast(&not_empty);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 5000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    say("timed wait: %s\n", error_name(pthread_cond_timedwait(&not_full, &mutex, &deadline)));
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 10; i++)
        pthread_join(waiters[i], NULL);
    say("woken %d\n", woken);
    return 0;
}
