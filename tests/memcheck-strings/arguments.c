// SPDX-License-Identifier: MIT
// BUILD: dynamic static
//
// Arguments that are undefined.
#include <stdlib.h>
#include <string.h>

volatile size_t sink;
static void *hide(void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

int main(void)
{
    size_t *u = hide(malloc(64));
    char *s = hide(calloc(1, 64)), *d = hide(calloc(1, 64));

    memcpy(d, s, u[0] & 15);              // EXPECT UninitCondition memcpy
    memset(d, 0, u[0] & 15);              // EXPECT UninitCondition memset
    sink = memcmp(d, s, u[0] & 15);       // EXPECT UninitCondition memcmp
    sink = strnlen(s, u[0] & 15);         // EXPECT UninitCondition strnlen
    memcpy(d + (u[1] & 7), s, 2);         // EXPECT UninitValue memcpy
    sink = strlen(s + (u[1] & 7));        // EXPECT UninitValue strlen
    sink = (size_t)memchr(s, (int)u[2], 4); // EXPECT UninitCondition memchr
    memset(d, (int)u[2], 4);
    return 0;
}
