// SPDX-License-Identifier: MIT
// BUILD: dynamic static musl
//
// Every function over bytes that were never written: what it finds out depends on them.
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

int main(void)
{
    char *u = hide(malloc(64)), *d = hide(malloc(256)), *s = hide(malloc(64));
    wchar_t *wu = hide(malloc(64)), *wd = hide(malloc(256)), *ws = hide(malloc(64));
    memset(s, 'q', 63);
    s[63] = 0;
    wmemset(ws, L'q', 15);
    ws[15] = 0;
    u[5] = 0;
    wu[5] = 0;

    sink = strlen(u);                     // EXPECT UninitCondition strlen
    sink = strnlen(u, 4);                 // EXPECT UninitCondition strnlen
    sink = (size_t)strchr(u, 'x');        // EXPECT UninitCondition strchr
    sink = (size_t)strrchr(u, 'x');       // EXPECT UninitCondition strrchr
    sink = (size_t)memchr(u, 'x', 5);     // EXPECT UninitCondition memchr
    sink = (size_t)memrchr(u, 'x', 5);    // EXPECT UninitCondition memrchr
    sink = (size_t)strchrnul(u, 'x');     // EXPECT UninitCondition strchrnul
    sink = strspn(u, "ab");               // EXPECT UninitCondition strspn
    sink = strcspn(u, "ab");              // EXPECT UninitCondition strcspn
    sink = (size_t)strpbrk(u, "ab");      // EXPECT UninitCondition strpbrk
    sink = (size_t)strstr(u, "ab");       // EXPECT UninitCondition strstr
    sink = strcmp(u, s);                  // EXPECT UninitCondition strcmp
    sink = strncmp(u, s, 5);              // EXPECT UninitCondition strncmp
    sink = strcasecmp(u, s);              // EXPECT UninitCondition strcasecmp
    sink = strncasecmp(u, s, 5);          // EXPECT UninitCondition strncasecmp
    sink = memcmp(u, s, 5);               // EXPECT UninitCondition memcmp
    strcpy(d, u);                         // EXPECT UninitCondition strcpy
    strncpy(d, u, 9);                     // EXPECT UninitCondition strncpy
    sink = (size_t)stpcpy(d, u);          // EXPECT UninitCondition stpcpy
    d[0] = 0;
    strcat(d, u);                         // EXPECT UninitCondition strcat
    d[0] = 0;
    strncat(d, u, 3);                     // EXPECT UninitCondition strncat
    sink = wcslen(wu);                    // EXPECT UninitCondition wcslen
    sink = wcscmp(wu, ws);                // EXPECT UninitCondition wcscmp
    sink = (size_t)wcschr(wu, L'x');      // EXPECT UninitCondition wcschr
    sink = (size_t)wcsrchr(wu, L'x');     // EXPECT UninitCondition wcsrchr
    sink = wmemcmp(wu, ws, 2);            // EXPECT UninitCondition wmemcmp
    wcscpy(wd, wu);                       // EXPECT UninitCondition wcscpy

    // Moving them about is no error.
    memcpy(d, u, 64);
    memmove(d + 3, d, 64);
    memset(d, u[9], 20);
    wmemcpy(wd, wu, 16);
    // And they are still undefined there.
    sink = strlen(d + 3);                 // EXPECT UninitCondition strlen
    return 0;
}
