// SPDX-License-Identifier: MIT
//
// An error at the bottom of a recursion.
#include <stdlib.h>

#define KEEP __attribute__((noinline, noipa))

KEEP static int descend(int *p, int depth)
{
    int result = depth ? descend(p, depth - 1) : p[1];
    __asm__ volatile("" : "+r"(result));
    return result;
}

int main(void)
{
    return descend(malloc(4), 5) == 12345;
}
