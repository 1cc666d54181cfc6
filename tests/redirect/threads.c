// SPDX-License-Identifier: MIT
//
// Threads that call intercepted functions all the time, and end.
// BUILD: dynamic static musl
// PLAIN
// DELTA: selftest_counted* calls 320000 returns 320000
// DELTA: selftest_replaced_fast calls 320000
// DELTA: selftest_changed calls 8000 returns 8000
#include <pthread.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noipa))
enum { THREADS = 8, ROUNDS = 40000 };

KEEP long selftest_counted(long a)
{
    return a + 1;
}

KEEP long selftest_replaced_fast(long a, long b, long c, long d, long e, long f)
{
    return a + b + c + d + e - f;
}

KEEP long selftest_changed(long a, long b)
{
    return a + b;
}

static void *work(void *arg)
{
    long n = (long)arg;
    for (long i = 0; i < ROUNDS; i++) {
        void *volatile p = malloc((size_t)(i & 255));
        if (selftest_counted(n + i) != n + i + 1)
            abort();
        if (selftest_replaced_fast(n, 0, 0, 0, 0, i) != 2 * n + i)
            abort();
        if (i % 40 == 0 && selftest_changed(n, i) != ~(n + i + 100))
            abort();
        free(p);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    if (argc < 2 || argv[1][0] == '0')
        return 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
