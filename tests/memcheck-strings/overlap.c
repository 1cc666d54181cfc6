// SPDX-License-Identifier: MIT
// BUILD: dynamic
// OUTPUT
//
// Copies onto themselves. Where memcpy is memmove, which glibc has it be, it is not told apart.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

// Those that are written before they are read again: an older copy stays the same then.
static char *text(char *b, size_t length)
{
    memset(b, 'a', 40);
    b[length] = 0;
    b[39] = 0;
    return b;
}

int main(void)
{
    char *b = malloc(64);
    text(b, 20);
    mempcpy(b, b + 4, 10);                // EXPECT Overlap mempcpy
    strcpy(b, b + 3);                     // EXPECT Overlap strcpy
    stpcpy(b, b + 3);                     // EXPECT Overlap stpcpy
    text(b, 20);
    strncpy(b, b + 4, 10);                // EXPECT Overlap strncpy
    text(b, 3);
    strcat(b, b + 6);                     // EXPECT Overlap strcat
    text(b, 3);
    strncat(b, b + 6, 9);                 // EXPECT Overlap strncat
    puts(b);
    text(b, 20);
    memmove(b + 4, b, 10);
    memmove(b, b + 4, 10);
    strcpy(b + 30, b);
    memcpy(b + 40, b, 20);
    puts(b);
    return 0;
}
