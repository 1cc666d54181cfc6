// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// pthread_cancel: deferred at a cancellation point, in a blocking read, in a condition wait; at
// once in asynchronous mode, in the middle of a loop; cleanup handlers run in order.
#include "guest.h"
#include <pthread.h>

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int started, cancel_sent;
static bool quiet;

static void cleanup(void *name)
{
    if (!quiet)
        say("cleanup %s\n", (char *)name);
}

static void unlock(void *m)
{
    say("cleanup unlocks %d\n", pthread_mutex_unlock(m));
}

static void *blocked_in_read(void *arg)
{
    char byte;
    pthread_cleanup_push(cleanup, "outer");
    pthread_cleanup_push(cleanup, "inner");
    started = 1;
    arg = (void *)(long)read(ends[0], &byte, 1);
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return arg;
}

static void *blocked_in_wait(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    started = 1;
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return arg;
}

static void *spinning(void *arg)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(cleanup, "spinner");
    volatile uint64_t x = 1;
    started = 1;
    for (;;)
        x = x * 3 + 1;
    pthread_cleanup_pop(0);
    return arg;
}

static void *disabled_for_a_while(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    started = 1;
    while (!cancel_sent)
        usleep(100);
    pthread_testcancel();
    say("not yet\n");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    say("never here\n");
    return arg;
}

int main(void)
{
    static const struct {
        const char *name;
        void *(*body)(void *);
    } cases[] = {{"read", blocked_in_read}, {"condition", blocked_in_wait},
                 {"spinning", spinning},    {"disabled", disabled_for_a_while}};
    CHECK(pipe(ends) == 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_t thread;
        void *result;
        started = cancel_sent = 0;
        pthread_create(&thread, NULL, cases[i].body, NULL);
        while (!started)
            usleep(100);
        usleep(5000);
        pthread_cancel(thread);
        cancel_sent = 1;
        pthread_join(thread, &result);
        say("%s: cancelled %d\n", cases[i].name, result == PTHREAD_CANCELED);
    }
    quiet = true;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, i & 1 ? blocked_in_read : spinning, NULL);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        CHECK(result == PTHREAD_CANCELED);
    }
    return 0;
}
