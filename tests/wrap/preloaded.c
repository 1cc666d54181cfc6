// SPDX-License-Identifier: MIT
//
// A preloaded library wraps functions of the program, of a library that it is linked with, and of
// the C library, among them an indirect one.
// LIBRARY: target objects_target.c -Wl,-soname,libtarget.so.1
// LINK: target
// PRELOAD: preloaded_wrappers.c
// STDOUT: the program's 12
// STDOUT: the library's 101
// STDOUT: the C library's: the time and 1,000,000 hours
// STDOUT: threads: 80000 of 80000 wrapped
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define KEEP __attribute__((noinline, noipa))
enum { THREADS = 4, CALLS = 20000 };

int target(int a);

KEEP int own(int a)
{
    return a;
}

KEEP int concurrent(int a)
{
    return a;
}

static void *call_often(void *argument)
{
    int *wrapped = argument;
    for (int i = 0; i < CALLS; i++)
        *wrapped += concurrent(i) == i + 1;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int wrapped[THREADS] = {0}, sum = 0;
    printf("the program's %d\n", own(2));
    printf("the library's %d\n", target(1));
    struct timespec now;
    long wrapped_time = time(NULL); // an indirect function
    clock_gettime(CLOCK_REALTIME, &now);
    long hours = (wrapped_time - now.tv_sec + 1800) / 3600;
    printf("the C library's: the time and %ld,000,000 hours\n", hours / 1000000);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_often, &wrapped[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += wrapped[i];
    }
    printf("threads: %d of %d wrapped\n", sum, THREADS * CALLS);
    return 0;
}
