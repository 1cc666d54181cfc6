// SPDX-License-Identifier: MIT
//
// Holds 1000 blocks of 1000 bytes, makes temporary ones, and frees all: the same program for
// allocators of every kind.
#include <stdlib.h>

void *volatile kept[1000];

__attribute__((noinline)) void hold(void)
{
    for (int i = 0; i < 1000; i++)
        kept[i] = malloc(1000);
}

__attribute__((noinline)) void churn(void)
{
    for (int i = 0; i < 20000; i++) {
        void *volatile block = malloc(64 + i % 8);
        free(block);
    }
}

int main(void)
{
    hold();
    churn();
    for (int i = 0; i < 1000; i++)
        free(kept[i]);
    return 0;
}
