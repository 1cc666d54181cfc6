// SPDX-License-Identifier: MIT
//
// A program on a conservative collector, which reads all that might be a pointer.
#include <gc.h>
#include <stdio.h>

typedef struct Node {
    struct Node *left, *right;
    long number;
} Node;

static Node *grow(int depth, long number)
{
    Node *node = GC_MALLOC(sizeof(*node));

    *node = (Node){.number = number};
    if (depth > 0) {
        node->left = grow(depth - 1, number * 2);
        node->right = grow(depth - 1, number * 2 + 1);
    }
    return node;
}

static long sum(const Node *node)
{
    return node ? node->number + sum(node->left) + sum(node->right) : 0;
}

int main(void)
{
    long total = 0;

    GC_INIT();
    for (int i = 0; i < 20; i++)
        total += sum(grow(11, i + 1));
    GC_gcollect();
    printf("%ld\n", total);
    return 0;
}
