// SPDX-License-Identifier: MIT
// CC: musl-gcc
// BUILD[static]: -O2 -static
// BUILD[dynamic]: -O2
//
// musl's threads: its own clone, its own TLS layout, its own exit.
#include "guest.h"
#include <pthread.h>

static __thread long local = 3;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static void *body(void *arg)
{
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
        local += (long)arg;
    }
    return (void *)local;
}

int main(void)
{
    pthread_t threads[8];
    long sum = 0;
    for (int round = 0; round < 10; round++) {
        for (long i = 0; i < 8; i++)
            CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
        for (int i = 0; i < 8; i++) {
            void *result;
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
    }
    say("%ld %ld %ld\n", sum, shared, local);
    return 0;
}
