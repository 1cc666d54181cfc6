// SPDX-License-Identifier: MIT
//
// Who allocates may be a function without a name, or one that is inlined: 1000 bytes in a library
// (nameless.c), 2000 by what is inlined twice, 4000 in main().
#include <stdlib.h>

void *exported(size_t size);

static void *volatile blocks[3];

static inline __attribute__((always_inline)) void innermost(void)
{
    blocks[1] = malloc(2000);
}

static inline __attribute__((always_inline)) void between(void)
{
    innermost();
}

static __attribute__((noinline, noclone)) void outermost(void)
{
    between();
    blocks[0] = NULL;
}

int main(void)
{
    blocks[0] = exported(1000);
    outermost();
    blocks[2] = malloc(4000);
    return 0;
}
