// SPDX-License-Identifier: MIT
//
// A heap of COUNT blocks in disorder, a binary tree, searched for leaks by request: once while a
// variable points to it, once when it is lost. Says how long each search took: `kept WALL CPU OWN`,
// seconds, CPU of the process and of the thread that asked.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

struct node {
    struct node *left, *right;
    uint64_t value;
};

static struct node *volatile root;

static double now(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void shuffle(struct node **nodes, uint64_t count)
{
    uint64_t seed = 5;

    for (uint64_t i = count; i-- > 1;) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        uint64_t other = seed % (i + 1);
        struct node *swap = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = swap;
    }
}

static void build(uint64_t count)
{
    struct node **nodes = malloc(count * sizeof(*nodes));

    for (uint64_t i = 0; i < count; i++) {
        nodes[i] = malloc(sizeof(**nodes));
        nodes[i]->value = i;
    }
    shuffle(nodes, count);
    for (uint64_t i = 0; i < count; i++) {
        nodes[i]->left = 2 * i + 1 < count ? nodes[2 * i + 1] : NULL;
        nodes[i]->right = 2 * i + 2 < count ? nodes[2 * i + 2] : NULL;
    }
    root = nodes[0];
    free(nodes);
}

static void search(const char *what)
{
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    double own = now(CLOCK_THREAD_CPUTIME_ID);

    VALGRIND_DO_QUICK_LEAK_CHECK;
    own = now(CLOCK_THREAD_CPUTIME_ID) - own;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%s %.3f %.3f %.3f\n", what, now(CLOCK_MONOTONIC) - wall, cpu, own);
}

int main(int argc, char **argv)
{
    build(argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000);
    search("kept");
    root = NULL;
    search("lost");
    fflush(stdout);
    _exit(0); // not a third time
}
