// SPDX-License-Identifier: MIT
//
// Gives back what is no block, small and large: the totals count what was asked for.
#include <stdlib.h>

int main(void)
{
    char *volatile p = malloc(10);
    void *volatile r;

    free(p);
    free(p);
    p = malloc(20);
    r = realloc(p + 3, 40);
    r = realloc(p + 4, 50);
    free(p + 1);
    free(p);
    p = malloc(1 << 21);
    free(p + 16);
    free(p);
    free(p);
    (void)r;
    return 0;
}
