// SPDX-License-Identifier: MIT
//
// C allocation churn: pairs of malloc and free at the end of call stacks that are DEPTH deep, and a
// tree that grows and loses leaves meanwhile. The argument is the number of pairs; the checksum
// printed at the end depends on all of them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 24, PAIRS_AT_ONCE = 64, TREE_DEPTH = 8 };

typedef struct Node {
    struct Node *child[2];
    uint64_t value;
} Node;

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *checked(void *block)
{
    if (!block)
        abort();
    return block;
}

static uint64_t pairs(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < PAIRS_AT_ONCE; i++) {
        size_t size = 1 + next_random() % 300;
        unsigned char *block = checked(malloc(size));
        block[0] = (unsigned char)size;
        block[size - 1] = (unsigned char)(size >> 1);
        sum += block[0] + block[size - 1];
        free(block);
    }
    return sum;
}

// Two functions that call each other in an order of the random bits: many stacks, all deep.
static uint64_t left(int depth, uint64_t way);

__attribute__((noinline)) static uint64_t right(int depth, uint64_t way)
{
    uint64_t sum = depth == 0 ? pairs() : way & 1 ? left(depth - 1, way >> 1)
                                                  : right(depth - 1, way >> 1);
    return sum * 3 + 1; // not a tail call
}

__attribute__((noinline)) static uint64_t left(int depth, uint64_t way)
{
    uint64_t sum = depth == 0 ? pairs() : way & 1 ? right(depth - 1, way >> 1)
                                                  : left(depth - 1, way >> 1);
    return sum * 5 + 1;
}

// Goes down at random: what is missing is added, the last node is taken away if it is a leaf.
static uint64_t grow(Node **at, int depth)
{
    if (!*at) {
        *at = checked(calloc(1, sizeof(Node)));
        (*at)->value = next_random();
        return (*at)->value;
    }
    if (depth == 0) {
        free(*at);
        *at = NULL;
        return 1;
    }
    return grow(&(*at)->child[next_random() & 1], depth - 1) + (*at)->value;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    uint64_t sum = 0;
    Node *root = NULL;

    for (long done = 0; done < count; done += PAIRS_AT_ONCE) {
        sum += left(DEPTH, next_random() & 0xff); // 256 stacks
        for (int i = 0; i < PAIRS_AT_ONCE / 4; i++)
            sum += grow(&root, TREE_DEPTH);
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
