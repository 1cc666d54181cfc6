// SPDX-License-Identifier: MIT
// BUILD: dynamic static musl
//
// Every function beyond the end of a block: the first byte that is not part of it is named.
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

volatile size_t sink;
static void *hide(void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

// What is behind the block is zero, whoever allocates.
static char *block(size_t size)
{
    char *p = hide(malloc(size));
    memset(p, 'q', size);
    return p;
}

int main(void)
{
    char *s = block(13), *d = hide(calloc(1, 256)), *t = hide(calloc(1, 256)), *e = hide(malloc(4));
    wchar_t *w = (wchar_t *)block(12);
    memset(t, 'q', 100);

    sink = strlen(s);                     // EXPECT InvalidRead strlen +0
    sink = strnlen(s, 14);                // EXPECT InvalidRead strnlen +0
    sink = (size_t)strchr(s, 'x');        // EXPECT InvalidRead strchr +0
    sink = (size_t)strrchr(s, 'x');       // EXPECT InvalidRead strrchr +0
    sink = (size_t)memchr(s, 'x', 14);    // EXPECT InvalidRead memchr +0
    sink = (size_t)memrchr(s, 'q', 20);   // EXPECT InvalidRead memrchr +6
    sink = strspn(s, "q");                // EXPECT InvalidRead strspn +0
    sink = strcspn(s, "a");               // EXPECT InvalidRead strcspn +0
    sink = (size_t)strpbrk(s, "a");       // EXPECT InvalidRead strpbrk +0
    sink = (size_t)strstr(s, "qa");       // EXPECT InvalidRead strstr +0
    sink = strcmp(s, t);                  // EXPECT InvalidRead strcmp +0
    sink = strncmp(t, s, 20);             // EXPECT InvalidRead strncmp +0
    sink = memcmp(s, t, 15);              // EXPECT InvalidRead memcmp +0
    strcpy(d, s);                         // EXPECT InvalidRead strcpy +0
    strncpy(d, s, 20);                    // EXPECT InvalidRead strncpy +0
    memcpy(d, s, 14);                     // EXPECT InvalidRead memcpy +0
    memmove(d, s, 15);                    // EXPECT InvalidRead memmove +0
    sink = wcslen(w);                     // EXPECT InvalidRead wcslen +0

    memset(e, 0, 5);                      // EXPECT InvalidWrite memset +0
    memcpy(e, t, 5);                      // EXPECT InvalidWrite memcpy +0
    memmove(e, t, 7);                     // EXPECT InvalidWrite memmove +0
    strcpy(e, "abcd");                    // EXPECT InvalidWrite strcpy +0
    strncpy(e, "ab", 5);                  // EXPECT InvalidWrite strncpy +0
    e[0] = 0;
    strcat(e, "abcde");                   // EXPECT InvalidWrite strcat +0
    e[1] = 0;
    strncat(e, "xyz", 3);                 // EXPECT InvalidWrite strncat +0
    sink = (size_t)stpcpy(e, "wxyz");     // EXPECT InvalidWrite stpcpy +0
    wmemset((wchar_t *)e, 0, 2);          // EXPECT InvalidWrite wmemset +0
    wcscpy((wchar_t *)e, L"a");           // EXPECT InvalidWrite wcscpy +0

    free(s);
    sink = memcmp(s, t, 1);               // EXPECT InvalidRead memcmp
    memset(s, 0, 1);                      // EXPECT InvalidWrite memset
    return 0;
}
