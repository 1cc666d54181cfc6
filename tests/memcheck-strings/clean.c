// SPDX-License-Identifier: MIT
// BUILD: dynamic static stripped musl muslstatic clang fortified
// OUTPUT
//
// What programs rightly do, beside memory that is undefined or not theirs: nothing is found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

static void *hide(void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

// A string that fills its block, or ends in the middle of one that is not written behind it.
static char *string(const char *text, size_t room)
{
    char *p = hide(malloc(room));
    return strcpy(p, text);
}

struct Padded {
    char letter;
    long number;
};

static unsigned long sum;
static void add(const void *p, const void *base)
{
    sum = sum * 31 + (p ? (unsigned long)((const char *)p - (const char *)base) + 1 : 0);
}

static void look(const char *text, size_t room)
{
    char *s = string(text, room), *t = string(text, room), *d = hide(malloc(2 * room + 2));
    size_t n = strlen(s);
    sum = sum * 31 + n + strnlen(s, room) + strspn(s, "abc") + strcspn(s, "z");
    add(strchr(s, 'z'), s);
    add(strrchr(s, 'a'), s);
    add(memchr(s, 'c', n), s);
    add(memrchr(s, 'c', n), s);
    add(strpbrk(s, "xyz"), s);
    add(strstr(s, "bca"), s);
    add(strcasestr(s, "BCA"), s);
    add(memmem(s, n, "ca", 2), s);
    sum += (strcmp(s, t) == 0) + (strncmp(s, t, n + 5) == 0) + (strcasecmp(s, t) == 0) +
           (memcmp(s, t, n + 1) == 0);
    strcpy(d, s);
    strcat(d, t);
    strncpy(d, s, n + 1);
    add(stpcpy(d, s), d);
    add(memccpy(d, s, 0, n + 1), d);
    d[n] = 0;
    strncat(d, t, n);
    sum += strlen(d);
    free(s);
    free(t);
    free(d);
}

static void look_wide(size_t n)
{
    wchar_t *s = hide(malloc((n + 1) * sizeof(*s))), *d = hide(malloc((2 * n + 1) * sizeof(*d)));
    wmemset(s, L'q', n);
    s[n] = 0;
    wcscpy(d, s);
    wcscat(d, s);
    sum += wmemcmp(s, d, n) == 0; // THEIRS: it does not know this one, which reads whole vectors
    sum += wcslen(d) + (wcscmp(s, d) < 0) + (wcsncmp(s, d, n) == 0) +
           (wcschr(s, L'x') != NULL) + (wcsrchr(s, L'q') == s + n - 1);
    free(s);
    free(d);
}

int main(void)
{
    char text[80];
    for (size_t n = 0; n < 70; n++) {
        for (size_t i = 0; i < n; i++)
            text[i] = "abc"[i % 3];
        text[n] = 0;
        look(text, n + 1);
        look(text, n + 9);
        if (n)
            look_wide(n);
    }
    // Padding travels with what is around it.
    struct Padded a = {.letter = 'a', .number = 1}, b;
    memcpy(hide(&b), hide(&a), sizeof(b));
    struct Padded *c = hide(malloc(sizeof(*c) * 10));
    for (int i = 0; i < 10; i++)
        memmove(&c[i], &b, sizeof(b));
    printf("%lu %ld\n", sum, c[3].number);
    free(c);
    return 0;
}
