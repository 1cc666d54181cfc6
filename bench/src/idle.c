// SPDX-License-Identifier: MIT
//
// The small program whose memory the bench weighs: it touches stdio and the heap, says that it is
// ready, and waits for a byte so that the bench can read /proc from outside.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *heap = malloc(100000);
    if (!heap)
        return 1;
    memset(heap, 'x', 100000);
    printf("ready %c\n", heap[99999]);
    fflush(stdout);
    getchar();
    free(heap);
    return 0;
}
