// SPDX-License-Identifier: MIT
//
// A program whose allocations are known: 200 blocks of 1000 bytes kept, 300 temporary ones of 64
// bytes, a block of 5 MiB at the highest point, 500 small ones in a second thread. Built without
// optimisation, or the compiler leaves out what is freed at once.
#include <pthread.h>
#include <stdlib.h>

static void *kept[200];

static void keep_one(int i)
{
    kept[i] = malloc(1000);
}

static void churn(size_t size)
{
    void *block = malloc(size);

    free(block);
}

static void *work(void *unused)
{
    for (int i = 0; i < 500; i++)
        churn(32);
    return unused;
}

static void spike(void)
{
    void *block = calloc(5, 1 << 20);

    free(block);
}

int main(void)
{
    pthread_t thread;

    for (int i = 0; i < 200; i++)
        keep_one(i);
    for (int i = 0; i < 300; i++)
        churn(64);
    spike();
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return kept[0] == NULL;
}
