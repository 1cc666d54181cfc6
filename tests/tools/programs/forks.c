// SPDX-License-Identifier: MIT
//
// Forks while its threads compute in floating point and allocate. Prints what must not change.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static double compute(int rounds)
{
    double sum = 0;
    for (int i = 1; i <= rounds; i++) {
        char *p = malloc((size_t)i % 100 + 1);
        sum += 1.0 / i;
        free(p);
    }
    return sum;
}

static void *work(void *arg)
{
    while (!stop)
        compute(100);
    return arg;
}

int main(void)
{
    pthread_t threads[2];
    int failed = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 15; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(compute(200) > 5.8 && compute(200) < 5.9 ? 0 : 1);
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%.6f %d\n", compute(1000), failed);
    return 0;
}
