// SPDX-License-Identifier: MIT
//
// Holds more and more for five minutes and loses some, then lets go: something to look at while
// it runs.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *kept[20000];

__attribute__((noinline)) static char *grow(int step)
{
    char *block = malloc(2000 + (size_t)step);

    memset(block, 1, 2000);
    return block;
}

__attribute__((noinline)) static void lose(int step)
{
    *(volatile char *)grow(step) = 2;
}

int main(void)
{
    for (int i = 0; i < 20000; i++) {
        kept[i] = grow(i);
        lose(i);
        usleep(15000);
    }
    for (int i = 0; i < 20000; i++)
        free(kept[i]);
    return 0;
}
