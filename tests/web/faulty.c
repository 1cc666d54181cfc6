// SPDX-License-Identifier: MIT
//
// A few mistakes with stacks through a macro-free inlined function, for the findings view.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    int values[4];
};

static inline int last_of(const int *values, int count)
{
    return values[count]; // one past the end
}

static int sum(const int *values, int count)
{
    int total = 0;

    for (int i = 0; i < count; i++)
        total += values[i];
    return total + last_of(values, count);
}

static struct node *make_list(int length)
{
    struct node *first = NULL;

    for (int i = 0; i < length; i++) {
        struct node *node = malloc(sizeof(*node));
        memset(node->values, 0, sizeof(node->values));
        node->next = first;
        first = node;
    }
    return first;
}

struct node *kept;

int main(void)
{
    int *values = malloc(4 * sizeof(*values));

    values[0] = values[1] = 1;
    if (sum(values, 4) > 3) // two of them were never written
        puts("more");
    make_list(3); // lost
    kept = make_list(2); // held by a variable
    free(values);
    return 0;
}
