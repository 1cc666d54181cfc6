// SPDX-License-Identifier: MIT
//
// The malloc family, in whatever way a C library has its members call each
// other: realloc(NULL) is a tail call of malloc in some.
// BUILD: dynamic static staticpie stripped musl muslstatic
// DELTA: heap allocs 1305 frees 1304 bytes 128600
// DELTA: realloc calls 201 returns 201
// DELTA: calloc calls 100 returns 100
#include <malloc.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *volatile p[1000];
    if (argc < 2 || argv[1][0] == '0')
        return 0;
    for (int i = 0; i < 1000; i++)
        p[i] = malloc(100);
    for (int i = 0; i < 1000; i++)
        free(p[i]);
    for (int i = 0; i < 100; i++) {
        void *volatile q = realloc(NULL, 50);
        q = realloc(q, 200);
        free(q);
    }
    for (int i = 0; i < 100; i++) {
        void *volatile q = calloc(4, 5);
        free(q);
    }
    void *q = NULL;
    if (posix_memalign(&q, 64, 512))
        return 1;
    free(q);
    free(memalign(64, 544));
    free(aligned_alloc(64, 512));
    void *volatile r = malloc(16);
    r = realloc(r, 16);
    r = NULL; // lost
    free(r);
    return 0;
}
