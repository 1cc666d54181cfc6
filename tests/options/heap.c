// SPDX-License-Identifier: MIT
//
// Blocks whose sums by stack are known: see run.
#include <malloc.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noipa))

KEEP static void *inner(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

KEEP static void *outer(size_t size)
{
    void *p = inner(2 * size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

static void *volatile kept, *volatile lost;

int main(void)
{
    kept = inner(10);
    kept = realloc(kept, 40); // 40 live, of realloc
    lost = outer(50);         // 100 lost
    free(outer(200));         // 400 freed
    free(calloc(3, 5));
    lost = memalign(64, 9);
    lost = NULL;
    return 0;
}
