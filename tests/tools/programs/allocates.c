// SPDX-License-Identifier: MIT
//
// Allocates in known amounts, from two places.
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void much(void)
{
    for (int i = 0; i < 100; i++) {
        kept = malloc(1000);
        free(kept);
    }
}

__attribute__((noinline)) static void little(void)
{
    for (int i = 0; i < 5; i++) {
        kept = calloc(10, 4);
        kept = realloc(kept, 400);
        free(kept);
    }
}

int main(void)
{
    much();
    little();
    return 0;
}
