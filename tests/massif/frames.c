// SPDX-License-Identifier: MIT
//
// Allocations from a frame near the end of the main thread's stack whose size changes between its
// calls: where its return address was the last time may be beyond the stack, and beyond all.
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile block[3];
static volatile char *volatile room;

__attribute__((noinline)) static void of_size(size_t bytes)
{
    room = alloca(bytes);
    for (int i = 0; i < 3; i++)
        block[i] = malloc(24 + 300 * (size_t)i);
    for (int i = 0; i < 3; i++)
        free(block[i]);
}

int main(void)
{
    for (int i = 0; i < 20000; i++)
        of_size(i / 500 % 2 ? 16 : i / 500 % 4 ? 500000 : 6000000);
    puts("done");
    return 0;
}
