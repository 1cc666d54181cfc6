// SPDX-License-Identifier: MIT
//
// Makes many kinds of mistakes, for the incumbent to report: its words and layout
// are compared with ours. Built without optimisation.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int numbers[4];
static char *kept;

static int branch(const int *p)
{
    return p[0] ? 1 : 2;
}

static void *in_thread(void *unused)
{
    volatile char *p = malloc(4);

    p[4] = 1;
    pthread_setname_np(pthread_self(), "worker");
    p[-1] = 2;
    free((void *)p);
    p[1] = 3;
    return unused;
}

static void heap(void)
{
    int *block = malloc(10), local;
    volatile int sink = branch(block) + branch(&local);

    ((volatile char *)block)[12] = 1;
    free(block);
    free(block);
    free((char *)malloc(8) + 1);
    free(&local);
    free((void *)0x1234);
    free(numbers);
    (void)sink;
}

static void calls(void)
{
    char text[32] = "0123456789";
    char *block = malloc(20);
    int null = open("/dev/null", O_WRONLY);
    void *pages = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    strncpy(text + 1, text, 4);
    write(null, block, 20);
    write(null, block + 19, 4);
    free(pages);
    free((void *)calls);
    kept = malloc((size_t)-1);
    kept = calloc((size_t)-1, 1);
    close(null);
    free(block);
}

static void leak(void)
{
    void **outer = malloc(16);

    outer[0] = malloc(2000);
    kept = malloc(20);
    kept = (char *)malloc(21) + 1;
    for (int i = 0; i < 1100; i++)
        outer = malloc(3);
}

int main(void)
{
    pthread_t thread;

    heap();
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    calls();
    for (int i = 0; i < 1500; i++)
        ((volatile char *)malloc(1))[1] = 0;
    leak();
    return 0;
}
