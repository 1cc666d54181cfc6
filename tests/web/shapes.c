// SPDX-License-Identifier: MIT
//
// Some functions that allocate, for profiles of other programs: 400 blocks of 4000 bytes at the
// peak, and small ones before and after it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *kept[400];

__attribute__((noinline)) static char *make_page(void)
{
    char *page = malloc(4000);

    memset(page, 1, 4000);
    return page;
}

__attribute__((noinline)) static void fill(int depth)
{
    if (depth > 0) {
        fill(depth - 1);
        return;
    }
    for (int i = 0; i < 400; i++) {
        kept[i] = make_page();
        if (i % 20 == 0)
            usleep(5000); // heaptrack's clock is coarse
    }
}

__attribute__((noinline)) static void use_scratch(int size)
{
    char *volatile scratch = malloc((size_t)size);

    scratch[0] = 1;
    free(scratch);
}

int main(void)
{
    for (int i = 1; i < 200; i++)
        use_scratch(i);
    fill(3);
    for (int i = 0; i < 390; i++) {
        free(kept[i]);
        if (i % 20 == 0)
            usleep(5000);
    }
    for (int i = 1; i < 200; i++)
        use_scratch(i);
    return 0;
}
