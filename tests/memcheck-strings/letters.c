// SPDX-License-Identifier: MIT
// BUILD: dynamic static musl
// OUTPUT
//
// Comparisons that libc has to decide, beside undefined bytes: its own code finds nothing either.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int main(void)
{
    int n = 0;
    for (int k = 0; k < 40; k++) {
        char *a = malloc(80), *b = malloc(80);
        memset(a, 'x', k);
        memset(b, 'X', k);
        strcpy(a + k, "If-Modified");
        strcpy(b + k, "iF-mOdified");
        n += strcasecmp(a, b) == 0;
        n += strncasecmp(a, b, k + 3) == 0;
        n += strcasestr(a, "if-") == a + k;
        strcpy(a + k, "\xc3\xa9");
        strcpy(b + k, "\xc3\xa8");
        n += strcasecmp(a, b) != 0;
        free(a);
        free(b);
    }
    printf("%d\n", n);
    return 0;
}
