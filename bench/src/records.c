// SPDX-License-Identifier: MIT
//
// How many records pass over the wire in a second: one thread writes, one reads. Prints millions.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

static WireShared *shared;
static int life[2];
static u64 count;

static void *produce(void *arg)
{
    WireProducer producer;
    wire_producer_open(&producer, shared, &life[0]);
    for (u64 i = 0; i < count; i++)
        wire_put_context(&producer, &(Wire_context){i, 1, 2});
    return arg;
}

static void count_it(void *arg, const WireRecord *record)
{
    *(u64 *)arg += record->count > 0;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    u64 got = 0;

    count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    shared = wire_map(wire_create());
    WireConsumer *consumer = shared ? wire_consumer_new(shared) : NULL;
    if (!consumer || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, life) != 0)
        return 1;
    double start = seconds();
    if (pthread_create(&thread, NULL, produce, NULL) != 0)
        return 1;
    // As the monitor does: a consumer that looks all the time takes the lines from its producer.
    while (got < count) {
        if (wire_drain(consumer, false, count_it, &got) < 1000)
            usleep(20);
    }
    printf("%.2f\n", (double)count / (seconds() - start) / 1e6);
    return 0;
}
