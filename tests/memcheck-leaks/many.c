// SPDX-License-Identifier: MIT
//
// So many blocks that several workers search them: a tree, a part of it lost, pointers to the inside,
// and a page in the midst of a block that cannot be read.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COUNT = 120000, PAGE = 4096 };

struct node { struct node *left, *right; char *inside; };
struct node *tree;
void **large;

__attribute__((noinline)) static void build(void)
{
    struct node **all = malloc(COUNT * sizeof(*all));

    for (int i = 0; i < COUNT; i++)
        all[i] = calloc(1, sizeof(**all));
    for (int i = 0; i < COUNT; i++) {
        int other = (int)((uint64_t)i * 2654435761u % COUNT);
        all[i]->left = 2 * i + 1 < COUNT ? all[2 * i + 1] : NULL;
        all[i]->right = 2 * i + 2 < COUNT ? all[2 * i + 2] : NULL;
        if (i % 7 == 0)
            all[i]->inside = (char *)all[other] + 4;
    }
    all[1]->left = NULL; // its subtree is lost, but for what others point into
    tree = all[0];
    memset(all, 0, COUNT * sizeof(*all));
    free(all);
    large = aligned_alloc(PAGE, 64 * PAGE);
    memset(large, 0, 64 * PAGE);
    large[0] = malloc(111);
    large[20 * PAGE / 8] = malloc(222); // cannot be seen
    large[60 * PAGE / 8] = malloc(333);
    mprotect((char *)large + 20 * PAGE, PAGE, PROT_NONE);
}

int main(void)
{
    build();
    return 0;
}
