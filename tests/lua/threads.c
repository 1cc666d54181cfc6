// SPDX-License-Identifier: MIT
//
// Eight threads that call a function 5000 times each, while the first one forks children that call
// it once; then an execve of the program that is named.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline, noipa)) int called(int n)
{
    return n;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++)
        called(i);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) {
            called(1);
            _exit(0);
        }
        wait(NULL);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1)
        execv(argv[1], argv + 1);
    return 0;
}
