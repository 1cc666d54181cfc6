// SPDX-License-Identifier: MIT
//
// The program whose processes the hunt `kills` kills. It makes findings, allocations, threads and
// children until its standard input is closed; then it ends with status 7. Each number that stands
// in its output in a whole line belongs to a finding that was made before.
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTHS = 12, BLOCK = 24 };

static volatile int sink;

__attribute__((noinline)) static void read_beyond(unsigned n)
{
    char *block = malloc(BLOCK);
    __asm__("" : "+r"(block)); // the compiler shall not know where it points
    sink += block[BLOCK + n % 4];
    free(block);
}

static void climb(unsigned path, unsigned depth);

__attribute__((noinline)) static void climb_left(unsigned path, unsigned depth)
{
    climb(path >> 1, depth - 1);
    __asm__ volatile("" ::: "memory");
}

// Another stack for each number, so that the reader of symbols has work.
__attribute__((noinline)) static void climb(unsigned path, unsigned depth)
{
    if (depth == 0)
        read_beyond(path);
    else if (path & 1)
        climb(path >> 1, depth - 1);
    else
        climb_left(path, depth);
    __asm__ volatile("" ::: "memory");
}

static void allocate(unsigned n)
{
    static char *held[512];
    for (unsigned i = 0; i < 200; i++) {
        unsigned at = (n * 31 + i * 7) % 512;
        free(held[at]);
        held[at] = malloc(16 + (n * i) % 4000);
    }
    if (n % 8 == 0)
        sink += !malloc(100); // a leak
}

static void *work(void *arg)
{
    for (unsigned n = 0; n < 200; n++) {
        char *block = malloc(n + 1);
        memset(block, (int)(size_t)arg, n + 1);
        free(block);
    }
    return NULL;
}

static void start_others(unsigned n)
{
    pthread_t thread;
    if (n % 3 == 0 && pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_join(thread, NULL);
    if (n % 10 == 4) {
        pid_t child = fork();
        if (child == 0) {
            climb(n, DEPTHS);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    bool findings = argc > 1 && strchr(argv[1], 'f');
    bool others = argc > 1 && strchr(argv[1], 'o');
    struct pollfd in = {.fd = 0, .events = POLLIN};

    for (unsigned n = 0; n < 100000; n++) {
        if (findings)
            climb(n, DEPTHS);
        allocate(n);
        if (others)
            start_others(n);
        printf("%u\n", n);
        fflush(stdout);
        if (poll(&in, 1, 0) == 1)
            break;
    }
    return 7;
}
